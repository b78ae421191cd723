-- What one server writes the other has to read: rows, pages of indexes, and a dictionary that has changed.
USE kept;
DELETE FROM parent WHERE id % 7 = {round};
UPDATE types SET o = REPEAT('changed ', id % 3000), s = JSON_SET(s, '$.round', {round}) WHERE id % 5 = {round};
UPDATE types SET p = REPEAT(UNHEX(SHA2(id, 256)), 3000) WHERE id % 50 = {round};
INSERT INTO texts SELECT n + 1000000 * {round}, CONCAT('needle of round {round} in row ', n) FROM numbers WHERE n <= 500;
DELETE FROM texts WHERE id % 11 = {round};
UPDATE places SET p = ST_SRID(POINT(id % 90, {round}), 4326) WHERE id % 3 = 0;
ALTER TABLE instant ADD COLUMN c{round} INT DEFAULT {round}, ALGORITHM=INSTANT;
ALTER TABLE types ADD COLUMN c{round} VARCHAR(10) DEFAULT 'r{round}', ALGORITHM=INPLACE, ADD KEY k{round} (g, h);
ALTER TABLE parts REORGANIZE PARTITION c INTO (
  PARTITION c{round} VALUES LESS THAN (2020 + {round}), PARTITION c VALUES LESS THAN MAXVALUE);
OPTIMIZE TABLE parent;
CREATE TABLE made{round} AS SELECT id, SHA2(id, 256) v FROM types;
UPDATE old_engine SET v = CONCAT(v, ' {round}') WHERE id % 9 = {round};
ALTER USER keeper@'%' COMMENT 'round {round}';
