-- The account of an exporter. PROCESS shows figures and the texts of running statements. It shows no table.
-- The statements are not in the binary log, because each server has its own account.
-- An account that exists is an error, because it would keep its password. ALTER USER changes that.
SET sql_log_bin = 0;
CREATE USER memdiag_exporter@'127.0.0.1'
  IDENTIFIED BY 'CHANGE-ME' WITH MAX_USER_CONNECTIONS 3;
GRANT PROCESS ON *.* TO memdiag_exporter@'127.0.0.1';
SET sql_log_bin = 1;
