-- Group replication takes tables of InnoDB with a primary key.
CREATE DATABASE kept CHARACTER SET utf8mb4;
USE kept;
CREATE TABLE numbers (n INT PRIMARY KEY);
INSERT INTO numbers
  WITH RECURSIVE s AS (SELECT 1 n UNION ALL SELECT n + 1 FROM s WHERE n < 1000) SELECT n FROM s;

-- What the writers write: a row, the same in words that an index knows, and a sum over both.
CREATE TABLE written (
  id BIGINT PRIMARY KEY, writer INT NOT NULL, body VARBINARY(4000) NOT NULL, doc JSON,
  even INT AS (id % 2) VIRTUAL, KEY (even), KEY ((CAST(doc->'$.l' AS UNSIGNED ARRAY))));
CREATE TABLE words (
  id BIGINT PRIMARY KEY, t TEXT, FULLTEXT (t),
  FOREIGN KEY (id) REFERENCES written (id) ON DELETE CASCADE);
CREATE TABLE sums (writer INT PRIMARY KEY, n BIGINT NOT NULL, total BIGINT NOT NULL);

CREATE TABLE types (
  id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY,
  a TINYINT, c DECIMAL(30, 10), d DOUBLE, f BIT(17), h DATETIME(6), i TIMESTAMP(3) NULL,
  m VARCHAR(300) CHARACTER SET latin1, n VARBINARY(99), o TEXT, p LONGBLOB, q ENUM('x','y','z'), s JSON);
INSERT INTO types (a, c, d, f, h, i, m, n, o, p, q, s)
  SELECT n % 100, n / 7, n / 3, n, '1999-12-31 23:59:59.123456' + INTERVAL n HOUR,
    '2001-01-01 00:00:00' + INTERVAL n MINUTE, REPEAT(CHAR(65 + n % 26), n % 300), UNHEX(SHA2(n, 256)),
    REPEAT(CONCAT('text ', n, ' é 漢字 '), n % 50), IF(n % 20, NULL, REPEAT(UNHEX(SHA2(n, 512)), 500)),
    ELT(n % 4, 'x', 'y', 'z'), JSON_OBJECT('n', n, 'l', JSON_ARRAY(n, n + 1))
  FROM numbers;
CREATE TABLE parts (id INT, day DATE, v VARCHAR(50), PRIMARY KEY (id, day))
  PARTITION BY RANGE (YEAR(day)) (
    PARTITION a VALUES LESS THAN (2001), PARTITION b VALUES LESS THAN MAXVALUE);
INSERT INTO parts SELECT n, '2000-01-01' + INTERVAL n DAY, LEFT(SHA2(n, 256), 40) FROM numbers;
