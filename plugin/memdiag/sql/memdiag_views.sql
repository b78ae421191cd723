-- Views and a procedure over INFORMATION_SCHEMA.MEMDIAG_*, in a schema of their
-- own: who holds memory, what grew, what can be had back, and when it was most.
--
--   mysql -u root -p < memdiag_views.sql
--   mysql -u root -p -e "CALL memdiag.diagnose()"
--
-- Can be loaded again at any time; DROP DATABASE memdiag removes all of it. They
-- run with the rights of whoever asks, who needs PROCESS besides SELECT and
-- EXECUTE on memdiag.
--
-- In no binary log: a replica that is no such server has none of these tables.

SET @memdiag_sql_log_bin = @@SESSION.sql_log_bin;
SET SESSION sql_log_bin = OFF;

CREATE DATABASE IF NOT EXISTS memdiag;

-- Physical memory by what it is for, the largest first. bytes add up to VmRSS.
CREATE OR REPLACE SQL SECURITY INVOKER VIEW memdiag.top_holders AS
SELECT COMPONENT AS component, NAME AS name, STATE AS what,
       FORMAT_BYTES(RESIDENT_BYTES) AS size, ROUND(PERCENT, 1) AS percent,
       RESIDENT_BYTES AS bytes
  FROM INFORMATION_SCHEMA.MEMDIAG_LEDGER
 WHERE NOT (RESIDENT_BYTES <=> 0)
 ORDER BY RESIDENT_BYTES DESC;

-- What can be had back, and the statement that does it. Unused pages cost nothing
-- to give back, and all of them go. Of a cache it is the most there is: what is in
-- use stays, and what goes is read or made again when it is needed. What is in <>
-- is yours to fill in.
CREATE OR REPLACE SQL SECURITY INVOKER VIEW memdiag.reclaimable AS
SELECT kind, name, FORMAT_BYTES(SUM(resident)) AS size, statement,
       SUM(resident) AS bytes
  FROM (SELECT IF(STATE IN ('dirty', 'muzzy'), 'unused pages', 'cache') AS kind,
               IF(COMPONENT = 'pool', NAME, COMPONENT) AS name,
               RESIDENT_BYTES AS resident,
               CASE
               WHEN COMPONENT = 'pool' AND STATE IN ('dirty', 'muzzy')
               THEN CONCAT('SELECT memdiag_purge(''', NAME, ''')')
               WHEN COMPONENT = 'pool' AND STATE = 'live'
                    AND NAME IN ('table_cache', 'dictionary')
               THEN 'FLUSH TABLES'
               WHEN COMPONENT = 'pool' AND STATE = 'live' AND NAME = 'fts_cache'
               THEN 'OPTIMIZE TABLE <each with a full-text index>'
               WHEN COMPONENT = 'buffer_pool' AND STATE = 'clean pages'
               THEN 'SET GLOBAL innodb_buffer_pool_size = <less>'
               END AS statement
          FROM INFORMATION_SCHEMA.MEMDIAG_LEDGER) AS parts
 WHERE statement IS NOT NULL AND resident > 0
 GROUP BY kind, name, statement
 ORDER BY kind DESC, bytes DESC;

-- Live bytes of each pool, and by how many they grew within the last minute, the
-- last hour, and since the first sample that there is; what grew most comes first.
CREATE OR REPLACE SQL SECURITY INVOKER VIEW memdiag.growth AS
WITH samples AS
  (SELECT TIME AS taken, POOL AS pool, CAST(LIVE_BYTES AS SIGNED) AS bytes
     FROM INFORMATION_SCHEMA.MEMDIAG_HISTORY_POOLS WHERE RUN = 0),
last_sample AS (SELECT MAX(taken) AS taken FROM samples),
moments AS
  (SELECT MAX(l.taken) AS newest, MIN(s.taken) AS oldest,
          MIN(IF(s.taken >= l.taken - INTERVAL 1 HOUR, s.taken, NULL)) AS of_hour,
          MIN(IF(s.taken >= l.taken - INTERVAL 1 MINUTE, s.taken, NULL)) AS of_minute
     FROM samples AS s JOIN last_sample AS l),
pools AS
  (SELECT s.pool, MAX(m.oldest) AS oldest,
          MAX(IF(s.taken = m.newest, s.bytes, NULL)) AS bytes,
          MAX(IF(s.taken = m.of_minute, s.bytes, NULL)) AS minute_bytes,
          MAX(IF(s.taken = m.of_hour, s.bytes, NULL)) AS hour_bytes,
          MAX(IF(s.taken = m.oldest, s.bytes, NULL)) AS oldest_bytes
     FROM samples AS s JOIN moments AS m
       ON s.taken IN (m.newest, m.of_minute, m.of_hour, m.oldest)
    GROUP BY s.pool)
SELECT pool, FORMAT_BYTES(bytes) AS size,
       FORMAT_BYTES(bytes - minute_bytes) AS in_a_minute,
       FORMAT_BYTES(bytes - hour_bytes) AS in_an_hour,
       FORMAT_BYTES(bytes - oldest_bytes) AS since_first, oldest AS first_sample,
       bytes, bytes - minute_bytes AS minute_growth,
       bytes - hour_bytes AS hour_growth, bytes - oldest_bytes AS total_growth
  FROM pools
 ORDER BY total_growth DESC;

-- The most that the process and each pool had since the server started. Of the
-- process it is VmHWM, when it was first seen, and the pool that was largest then.
CREATE OR REPLACE SQL SECURITY INVOKER VIEW memdiag.peaks AS
WITH samples AS
  (SELECT TIME AS taken, RSS_PEAK_BYTES AS bytes, RSS_PEAK_TIME AS peak_time,
          LARGEST_POOL AS largest_pool FROM INFORMATION_SCHEMA.MEMDIAG_HISTORY),
newest AS
  (SELECT bytes, peak_time FROM samples ORDER BY taken DESC LIMIT 1)
SELECT 'process' AS holder, FORMAT_BYTES(n.bytes) AS size, n.peak_time,
       s.largest_pool, n.bytes
  FROM newest AS n LEFT JOIN samples AS s ON s.taken = n.peak_time
 WHERE n.bytes IS NOT NULL
UNION ALL
SELECT POOL, FORMAT_BYTES(PEAK_BYTES), PEAK_TIME, POOL, PEAK_BYTES
  FROM INFORMATION_SCHEMA.MEMDIAG_POOLS WHERE PEAK_TIME IS NOT NULL
 ORDER BY bytes DESC;

DROP PROCEDURE IF EXISTS memdiag.diagnose;
DELIMITER //
CREATE PROCEDURE memdiag.diagnose()
  COMMENT 'What is wrong, who holds memory, what grew, what can be had back'
  SQL SECURITY INVOKER
  READS SQL DATA
BEGIN
  SELECT SEVERITY AS severity, SUBSYSTEM AS subsystem, VERDICT AS verdict,
         EVIDENCE AS evidence, REMEDY AS remedy
    FROM INFORMATION_SCHEMA.MEMDIAG_ADVICE;
  SELECT component, name, what, size, percent
    FROM memdiag.top_holders ORDER BY bytes DESC LIMIT 12;
  SELECT pool, size, in_a_minute, in_an_hour, since_first, first_sample
    FROM memdiag.growth ORDER BY total_growth DESC LIMIT 12;
  SELECT kind, name, size, statement
    FROM memdiag.reclaimable ORDER BY kind DESC, bytes DESC;
  SELECT holder, size, peak_time, largest_pool
    FROM memdiag.peaks ORDER BY bytes DESC LIMIT 12;
END//
DELIMITER ;

SET SESSION sql_log_bin = @memdiag_sql_log_bin;
