-- The account of an exporter. It can read figures and nothing else; it sees no data.
-- Not in the binary log: each server has its own.
SET sql_log_bin = 0;
CREATE USER IF NOT EXISTS memdiag_exporter@'127.0.0.1'
  IDENTIFIED BY 'CHANGE-ME' WITH MAX_USER_CONNECTIONS 3;
GRANT PROCESS ON *.* TO memdiag_exporter@'127.0.0.1';
SET sql_log_bin = 1;
