"""Statements of all kinds, each of which can be run again and again and answers the same each time."""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass

from proof.expressions import Column, Queries, Table

CONNECT = "(a session ends and another begins)"

# Their blocks are malloc()'s, and nothing counts them.
OF_MALLOC = ("general", "connection", "group_replication")
# Routes whose callers look whether they got a block. proof/README.md has the others, and what shows it.
HARD = re.compile(
    r"temptable|performance_schema|memory/memory/HP_(PTRS|KEYDEF|SHARE)|memory/myisam/MYISAM_SHARE|memory/mysys/(IO_CACHE|TREE|DYNAMIC_STRING|my_compress_alloc)"
    r"|memory/sql/(user_var_entry::value|Filesort.*|hashed_operation|Unique::.*|IndexRangeScanIterator::.*|READ_INFO"
    r"|NET::buff|THD::db|bison_stack|Partition::sort_buffer|test_quick_select|String::value|JSON)"
)
# my_realloc() of a server with instruments does not look at MY_FREE_ON_ERROR (my_malloc.cc), so my_yyoverflow() loses
# the parser's former stack.
STAYS_ON_STOCK = ("memory/sql/bison_stack",)
# DDL takes new locks of names, and their lock-free lists (memory/mysys/lf_slist, lf_node) keep what they took.
KEPT_AFTER_DDL = ("table_cache",)
# heap_create() returns 1, which becomes "Operation not permitted".
UNCLEAR_ON_STOCK = ("memory/memory/HP_SHARE",)


@dataclass(frozen=True)
class Case:
    kind: str
    texts: tuple[str, ...]
    # Each time before and after them, while nothing fails. The answers to the latter are compared, too.
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    # False: figures of the moment.
    same: bool = True
    hard: bool = True

    @property
    def commits(self) -> bool:
        return bool(self.after) and "BEGIN" not in self.before


_TABLE = "id INT PRIMARY KEY, i INT, s VARCHAR(40), d DECIMAL(12,3), at DATETIME, j JSON, b TEXT"
_ROWS = """WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {})
 SELECT n, n * 7 % 13, ELT(n % 5 + 1, 'alpha', 'beta', 'gamma ray', CONCAT('w', n), NULL), n * 1.25 - 9,
 TIMESTAMP'2020-02-02 00:00:00' + INTERVAL n * 31 HOUR, JSON_OBJECT('a', n % 4, 'b', JSON_ARRAY(n, 'x', NULL)),
 REPEAT(CHAR(97 + n % 26), n % 9 * 40) FROM n"""
_BODY = """BEGIN DECLARE done INT DEFAULT 0; DECLARE x INT; DECLARE y VARCHAR(40); DECLARE c CURSOR FOR
 SELECT id, s FROM t WHERE id < n ORDER BY id; DECLARE CONTINUE HANDLER FOR NOT FOUND SET done = 1; SET @sum = '';
 OPEN c; walk: LOOP FETCH c INTO x, y; IF done THEN LEAVE walk; END IF;
 SET @sum = CONCAT(@sum, x, IFNULL(y, '-')); END LOOP; CLOSE c; SELECT @sum; END"""
SCHEMA = (
    f"CREATE TABLE t ({_TABLE}, KEY (i), KEY (s), KEY (at, d))",
    f"INSERT INTO t {_ROWS.format(60)}",
    f"CREATE TABLE u ({_TABLE}, KEY (d))",
    f"INSERT INTO u {_ROWS.format(25)}",
    f"CREATE TABLE m ({_TABLE}, KEY (i)) ENGINE = MyISAM",
    f"INSERT INTO m {_ROWS.format(25)}",
    "CREATE TABLE p (id INT PRIMARY KEY, i INT, s VARCHAR(40), KEY (i)) PARTITION BY HASH (id) PARTITIONS 4",
    "INSERT INTO p SELECT id, i, s FROM t",
    "CREATE TABLE f (id INT PRIMARY KEY, a VARCHAR(200), b TEXT, FULLTEXT (a), FULLTEXT (a, b))",
    "INSERT INTO f SELECT id, CONCAT('quick brown fox ', IFNULL(s, 'lazy dog'), ' number', i),"
    " 'the lazy dog gives pages back and finds the phrase again' FROM t",
    "CREATE TABLE g (id INT PRIMARY KEY, p POINT NOT NULL SRID 0, a POLYGON, SPATIAL KEY (p))",
    "INSERT INTO g SELECT id, ST_SRID(POINT(i, d), 0), ST_Buffer(POINT(i, id), 1 + id % 3) FROM t WHERE id < 20",
    "CREATE TABLE parent (id INT PRIMARY KEY, s VARCHAR(20))",
    "CREATE TABLE child (id INT PRIMARY KEY, i INT, FOREIGN KEY (i) REFERENCES parent (id) ON DELETE CASCADE"
    " ON UPDATE CASCADE)",
    "INSERT INTO parent SELECT id, s FROM u",
    "INSERT INTO child SELECT id, id % 20 + 1 FROM t",
    "CREATE TABLE k (id INT PRIMARY KEY, i INT, g INT AS (i * 2 + 1) STORED, v INT AS (i % 3), KEY (v), CHECK (i < 99))",
    "INSERT INTO k (id, i) SELECT id, i FROM t",
    "CREATE TABLE h (id INT PRIMARY KEY, n INT)",
    "INSERT INTO h SELECT id, 0 FROM u",
    "CREATE TABLE seen (id INT AUTO_INCREMENT PRIMARY KEY, s VARCHAR(60))",
    "CREATE TRIGGER h1 BEFORE UPDATE ON h FOR EACH ROW SET NEW.n = NEW.n + OLD.id",
    "CREATE TRIGGER h2 AFTER UPDATE ON h FOR EACH ROW INSERT INTO seen (s) VALUES (CONCAT(OLD.id, '>', NEW.n))",
    "CREATE TRIGGER h3 AFTER DELETE ON h FOR EACH ROW DELETE FROM seen WHERE id = OLD.id",
    "CREATE VIEW v AS SELECT id, i, s FROM t WHERE i > 3",
    "CREATE ALGORITHM = TEMPTABLE VIEW vt AS SELECT i, COUNT(*) AS n FROM t GROUP BY i",
    f"CREATE PROCEDURE walk (n INT) {_BODY}",
    "CREATE FUNCTION twice (n INT) RETURNS INT DETERMINISTIC BEGIN DECLARE x INT DEFAULT 0;"
    " DECLARE CONTINUE HANDLER FOR SQLEXCEPTION SET x = -1; SET x = n * 2; RETURN x; END",
    "CREATE FUNCTION counted (n INT) RETURNS INT READS SQL DATA RETURN (SELECT COUNT(*) FROM t WHERE i = n)",
    "CREATE PROCEDURE down (n INT) BEGIN IF n > 0 THEN CALL down(n - 1); ELSE SELECT COUNT(*) FROM u; END IF; END",
    "CREATE PROCEDURE caught () BEGIN DECLARE EXIT HANDLER FOR 1062 SELECT 'twice';"
    " INSERT INTO parent VALUES (1, 'x'); END",
    "CREATE PROCEDURE made () BEGIN CREATE TEMPORARY TABLE tmp AS SELECT i, s FROM t; SELECT COUNT(*) FROM tmp;"
    " DROP TEMPORARY TABLE tmp; END",
    "CREATE USER reader",
    "GRANT SELECT, PROCESS ON *.* TO reader",
)
_COLUMNS = {
    **dict.fromkeys("tu", "id, i, s, d, at, j, b"),
    **{"p": "id, i, s", "g": "id, HEX(p)", "k": "id, i, g, v", "h": "id, n", "child": "id, i"},
}
SESSION = ("SET timestamp = 1700000000, max_sp_recursion_depth = 9", "USE d")
_SMALL = "SET sort_buffer_size = 32768, join_buffer_size = 128, read_rnd_buffer_size = 1"
_TINY = "SET tmp_table_size = 1024, max_heap_table_size = 16384"
_MEMORY = "SET internal_tmp_mem_storage_engine = MEMORY"
_OTHER = "SET optimizer_switch = 'mrr=on,mrr_cost_based=off,batched_key_access=on,block_nested_loop=on'"
_OPEN = "FLUSH TABLES"

# Statements that read. An entry has the kind, the statements that the session runs first, and the statements themselves.
_READS: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    (
        "sort",
        (_SMALL,),
        (
            "SELECT s, b FROM t ORDER BY b, s, id",
            "SELECT id, j FROM t ORDER BY d DESC LIMIT 7",
            "SELECT a.id, c.s FROM t a, u c ORDER BY c.s, a.id, c.id LIMIT 900",
            "SELECT SHA2(GROUP_CONCAT(x.b ORDER BY x.b, x.id), 256) FROM t x, u y",
            "SELECT DISTINCT b FROM t ORDER BY 1",
            "SELECT * FROM m ORDER BY s, id",
        ),
    ),
    (
        "join",
        (),
        (
            "SELECT COUNT(*) FROM t a JOIN t b ON a.d = b.d * 2 JOIN u c ON c.i = a.i",
            "SELECT a.id, b.id FROM t a LEFT JOIN u b ON a.s = b.s AND b.i > 4 ORDER BY 1, 2",
            "SELECT COUNT(*) FROM t a IGNORE INDEX (i) JOIN u b ON a.i + 0 = b.i + 0",
            "SELECT /*+ NO_HASH_JOIN(a, b) */ COUNT(*) FROM m a JOIN m b ON a.d < b.d",
            "SELECT COUNT(*) FROM t NATURAL JOIN u",
            "SELECT a.id FROM t a WHERE a.i IN (SELECT i FROM u WHERE d > 3) ORDER BY a.id",
            "SELECT a.id FROM t a WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.id = a.id) ORDER BY a.id",
        ),
    ),
    (
        "join with small buffers",
        (_SMALL, _OTHER),
        (
            "SELECT COUNT(*), SUM(a.d) FROM t a JOIN t b ON a.d = b.d * 2",
            "SELECT COUNT(b.b) FROM u a JOIN t b ON a.i = b.i",
            "SELECT COUNT(b) FROM t FORCE INDEX (i) WHERE i BETWEEN 2 AND 9",
            "SELECT SUM(LENGTH(a.b)) FROM t a JOIN u b ON a.d = b.d",
        ),
    ),
    (
        "group",
        (),
        (
            "SELECT i, COUNT(*), MAX(s) FROM t GROUP BY i ORDER BY i",
            "SELECT i, s, COUNT(*) FROM t GROUP BY i, s WITH ROLLUP",
            "SELECT COUNT(DISTINCT s), COUNT(DISTINCT i, d) FROM t",
            "SELECT s, GROUP_CONCAT(id ORDER BY id DESC SEPARATOR '/') FROM t GROUP BY s ORDER BY s",
            "SELECT i % 3 AS x, JSON_ARRAYAGG(id), JSON_OBJECTAGG(id, s) FROM t GROUP BY x ORDER BY x",
            "SELECT STDDEV(d), BIT_XOR(i), AVG(d) FROM t HAVING COUNT(*) > 3",
            "SELECT DISTINCT i, s FROM t ORDER BY 1, 2",
            "SELECT COUNT(DISTINCT b), COUNT(DISTINCT j) FROM t",
        ),
    ),
    (
        "group with small tables",
        (_TINY,),
        (
            "SELECT b, COUNT(*), SUM(d) FROM t GROUP BY b ORDER BY b",
            "SELECT a.id * b.id AS x, COUNT(*) FROM t a, u b GROUP BY x ORDER BY x LIMIT 5",
            "SELECT i, s, b FROM t UNION SELECT i, s, b FROM u ORDER BY 1, 2, 3",
        ),
    ),
    (
        "group in MEMORY",
        (_MEMORY,),
        (
            "SELECT s, COUNT(*), SUM(d) FROM t GROUP BY s ORDER BY s",
            "SELECT DISTINCT a.i, b.s FROM t a, u b ORDER BY 1, 2",
            "SELECT i FROM t UNION SELECT id FROM u ORDER BY 1",
        ),
    ),
    (
        "window",
        (),
        (
            "SELECT id, ROW_NUMBER() OVER (PARTITION BY i ORDER BY id), SUM(d) OVER (ORDER BY id) FROM t ORDER BY id",
            "SELECT id, LAG(s, 2) OVER (ORDER BY id), NTILE(4) OVER (ORDER BY id) FROM t ORDER BY id",
            "SELECT id, NTH_VALUE(s, 2) OVER (PARTITION BY i ORDER BY id ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING)"
            " FROM t ORDER BY id",
            "SELECT id, RANK() OVER w, CUME_DIST() OVER w FROM t WINDOW w AS (PARTITION BY i % 2 ORDER BY d)"
            " ORDER BY id",
            "SELECT id, JSON_ARRAYAGG(i) OVER (ORDER BY id ROWS 2 PRECEDING) FROM u ORDER BY id",
        ),
    ),
    (
        "set operations",
        (),
        (
            "SELECT i FROM t INTERSECT SELECT id FROM u ORDER BY 1",
            "SELECT i FROM t EXCEPT ALL SELECT id FROM u ORDER BY 1",
            "(SELECT s FROM t ORDER BY id LIMIT 9) UNION ALL (SELECT s FROM u ORDER BY id LIMIT 9)",
            "TABLE h EXCEPT VALUES ROW(1, 0), ROW(2, 0)",
        ),
    ),
    (
        "common tables",
        (),
        (
            "WITH c AS (SELECT i, COUNT(*) AS n FROM t GROUP BY i) SELECT a.i FROM c a JOIN c b ON a.n = b.n ORDER BY 1",
            "WITH RECURSIVE r (n, x) AS (SELECT 1, CAST('' AS CHAR(90)) UNION ALL SELECT n + 1, CONCAT(x, n) FROM r"
            " WHERE n < 30) SELECT * FROM r ORDER BY n",
            "WITH RECURSIVE r (n) AS (SELECT 1 UNION SELECT n * 3 % 101 FROM r) SELECT COUNT(*), MAX(n) FROM r",
            "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT COUNT(*) FROM r",
        ),
    ),
    (
        "subqueries",
        (),
        (
            "SELECT id, (SELECT MAX(d) FROM u WHERE u.i = t.i) FROM t ORDER BY id",
            "SELECT COUNT(*) FROM t WHERE (i, s) NOT IN (SELECT i, s FROM u WHERE s IS NOT NULL)",
            "SELECT * FROM (SELECT i, COUNT(*) AS n FROM t GROUP BY i) x WHERE n > 3 ORDER BY i",
            "SELECT t.id, l.n FROM t, LATERAL (SELECT COUNT(*) AS n FROM u WHERE u.i < t.i) l ORDER BY 1",
            "SELECT id FROM t WHERE i > ALL (SELECT i FROM u WHERE id < 3) ORDER BY 1",
            "SELECT (SELECT id FROM t)",
        ),
    ),
    (
        "ranges",
        (),
        (
            "SELECT COUNT(*) FROM t WHERE i IN (1, 2, 3, 4) AND id > 5",
            "SELECT id FROM t WHERE i = 3 OR s = 'beta' OR (at > '2020-03-01' AND d < 9) ORDER BY id",
            f"SELECT COUNT(*) FROM t WHERE id IN ({', '.join(map(str, range(400)))})",
            "SELECT MIN(i), MAX(at) FROM t",
            "SELECT i, MIN(id) FROM t WHERE i > 2 GROUP BY i ORDER BY i",
            "SELECT COUNT(*) FROM t WHERE s LIKE 'w%' OR s BETWEEN 'a' AND 'b'",
        ),
    ),
    (
        "JSON",
        (),
        (
            "SELECT id, j->'$.b[1]', JSON_SET(j, '$.a', 5, '$.c', JSON_ARRAY(1, 2)) FROM t ORDER BY id",
            "SELECT id, x.* FROM t, JSON_TABLE(j, '$.b[*]' COLUMNS (n FOR ORDINALITY, v VARCHAR(9) PATH '$')) x"
            " ORDER BY id, n",
            "SELECT JSON_MERGE_PATCH(j, JSON_OBJECT('z', b)) FROM t ORDER BY id",
            "SELECT COUNT(*) FROM t WHERE 3 MEMBER OF (j->'$.b') OR JSON_CONTAINS(j, '2', '$.a')",
            "SELECT JSON_PRETTY(JSON_ARRAYAGG(j)) FROM t",
            "SELECT JSON_LENGTH(JSON_ARRAYAGG(JSON_OBJECT('k', REPEAT(b, 9)))) FROM t",
            'SELECT JSON_SCHEMA_VALID(\'{"type": "object"}\', j) FROM t ORDER BY id LIMIT 3',
            "SELECT CAST('{\"broken\": ' AS JSON)",
        ),
    ),
    (
        "full text",
        (),
        (
            "SELECT id FROM f WHERE MATCH (a) AGAINST ('lazy gamma') ORDER BY id",
            "SELECT id, ROUND(MATCH (a, b) AGAINST ('phrase beta'), 3) FROM f ORDER BY id",
            "SELECT COUNT(*) FROM f WHERE MATCH (a) AGAINST ('beta' WITH QUERY EXPANSION)",
            "SELECT COUNT(*) FROM f WHERE MATCH (a) AGAINST ('+quick -beta ~gamma (w* number3)' IN BOOLEAN MODE)",
        ),
    ),
    (
        "phrases",
        (),
        (
            "SELECT COUNT(*) FROM f WHERE MATCH (a) AGAINST ('\"brown fox\"' IN BOOLEAN MODE)",
            'SELECT id FROM f WHERE MATCH (a, b) AGAINST (\'+"lazy dog" +"quick brown"\' IN BOOLEAN MODE) ORDER BY id',
            "SELECT COUNT(*) FROM f WHERE MATCH (a) AGAINST ('\"fox brown quick\" @5' IN BOOLEAN MODE)",
            "SELECT COUNT(*) FROM f WHERE MATCH (a) AGAINST ('\"lazy dog' IN BOOLEAN MODE)",
        ),
    ),
    (
        "geometry",
        (),
        (
            "SELECT id, ST_AsText(p), ST_Area(a) > 1 FROM g ORDER BY id",
            "SELECT COUNT(*) FROM g WHERE MBRContains(ST_GeomFromText('POLYGON((0 0, 9 0, 9 9, 0 9, 0 0))'), p)",
            "SELECT COUNT(*) FROM g x JOIN g y ON ST_Intersects(x.a, y.a)",
            "SELECT ST_AsGeoJSON(ST_Union(x.a, y.a)) IS NULL FROM g x, g y WHERE x.id = 1 AND y.id = 2",
            "SELECT ST_NumPoints(ST_ExteriorRing(ST_ConvexHull(ST_Collect(p)))) FROM g",
            "SELECT ST_Distance_Sphere(ST_GeomFromText('POINT(1 2)', 4326), ST_GeomFromText('POINT(3 4)', 4326)) > 9",
        ),
    ),
    (
        "values",
        (),
        (
            "SET @a = REPEAT('v', 300000)",
            "SELECT LENGTH(REPEAT('x', 2000000)), CRC32(REPEAT('y', 70000))",
            "SELECT @x := CONCAT(IFNULL(s, ''), id) FROM t ORDER BY id",
            f"SELECT LENGTH('{'z' * 70000}')",
            f"SELECT {'(' * 250}1{')' * 250}",
            f"SELECT {' + '.join(map(str, range(300)))}",
            "SELECT REGEXP_REPLACE(s, '[aeiou]+', '_'), s REGEXP '^w[0-9]' FROM t ORDER BY id",
            "SELECT HEX(COMPRESS(REPEAT('a', 9999))), AES_ENCRYPT('a', 'b') IS NULL, UUID_TO_BIN(UUID()) IS NULL",
            "SELECT CONVERT(s USING latin1), s COLLATE utf8mb4_bin, DATE_FORMAT(at, '%W %M') FROM t ORDER BY id",
            "SELECT GET_LOCK('mine', 1), IS_USED_LOCK('mine') > 0, RELEASE_LOCK('mine')",
            "SELECT 1 FROM nothing",
            "SELECT 1 FRM t",
            "DO 1",
            "SELECT CAST(s AS SIGNED), s + 1 FROM t ORDER BY id",
        ),
    ),
    (
        "prepared",
        (),
        (
            "PREPARE a FROM 'SELECT i, COUNT(*) FROM t WHERE s = ? OR i = ? GROUP BY i ORDER BY i';SET @p = 'beta', @q = 4"
            ";EXECUTE a USING @p, @q;EXECUTE a USING @q, @p;DEALLOCATE PREPARE a",
            "PREPARE a FROM 'SELECT * FROM u WHERE id = ? ORDER BY d LIMIT ?';SET @p = 3, @q = 1;EXECUTE a USING @p, @q",
            "PREPARE a FROM 'CALL walk(?)';SET @p = 4;EXECUTE a USING @p;DEALLOCATE PREPARE a",
            "PREPARE a FROM 'SELECT FROM'",
            "PREPARE a FROM 'WITH c AS (SELECT * FROM t) SELECT COUNT(*) FROM c a JOIN c b USING (i)';EXECUTE a;EXECUTE a",
        ),
    ),
    (
        "programs",
        (),
        (
            "CALL walk(20)",
            "CALL down(6)",
            "CALL caught()",
            "CALL made()",
            "SELECT SUM(twice(id)), SUM(counted(i)) FROM u",
            "CALL walk('x')",
            "CALL nothing()",
        ),
    ),
    ("programs anew", ("ALTER PROCEDURE walk COMMENT ''",), ("CALL walk(9)", "CALL down(3)", "SELECT counted(3)")),
    (
        "open tables",
        (_OPEN,),
        (
            "SELECT COUNT(*) FROM t",
            "SELECT COUNT(*) FROM t a JOIN u b USING (id) JOIN p c USING (id)",
            "SELECT * FROM v ORDER BY id",
            "SELECT * FROM vt ORDER BY i",
            "SELECT COUNT(*) FROM m",
            "SELECT COUNT(*) FROM g",
            "SELECT COUNT(*) FROM h FOR UPDATE",
        ),
    ),
    (
        "partitions",
        (),
        (
            "SELECT * FROM p ORDER BY i, id",
            "SELECT COUNT(*) FROM p PARTITION (p1, p2)",
            "SELECT i, COUNT(*) FROM p WHERE id IN (3, 7, 11) GROUP BY i ORDER BY i",
            "SELECT id FROM p WHERE i > 3 ORDER BY i DESC, id LIMIT 5",
        ),
    ),
    (
        "views",
        (),
        (
            "SELECT a.id, b.n FROM v a JOIN vt b ON a.i = b.i ORDER BY a.id",
            "SELECT COUNT(*) FROM v WHERE s LIKE 'b%'",
            "SELECT MAX(n) FROM vt",
        ),
    ),
    (
        "SHOW",
        (),
        (
            "SHOW CREATE TABLE t",
            "SHOW FULL COLUMNS FROM u",
            "SHOW INDEX FROM t",
            "SHOW TABLES",
            "SHOW CREATE PROCEDURE walk",
            "SHOW TRIGGERS",
            "SHOW CREATE VIEW v",
            "SHOW VARIABLES LIKE 'memdiag%'",
            "SHOW GRANTS",
            "CHECK TABLE t, m, p",
            "CHECKSUM TABLE t, u, m",
            "SHOW DATABASES",
            "SHOW PROCEDURE STATUS WHERE Db = 'd'",
            "SHOW COLLATION LIKE 'utf8mb4_0900%'",
        ),
    ),
    (
        "information_schema",
        (),
        (
            "SELECT TABLE_NAME, ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'd' ORDER BY 1",
            "SELECT COUNT(*) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'd'",
            "SELECT ROUTINE_NAME, ROUTINE_DEFINITION FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = 'd'",
            "SELECT TABLE_NAME, INDEX_NAME, COLUMN_NAME FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = 'd'"
            " ORDER BY 1, 2, 3",
            "SELECT CONSTRAINT_NAME FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = 'd'",
            "SELECT PLUGIN_NAME FROM information_schema.PLUGINS ORDER BY 1",
            "SELECT COUNT(*) > 9 FROM information_schema.INNODB_TABLES",
        ),
    ),
    (
        "EXPLAIN",
        (),
        (
            "EXPLAIN SELECT * FROM t a JOIN u b USING (i) WHERE a.s = 'beta'",
            "EXPLAIN FORMAT=TREE SELECT i, COUNT(*) FROM t GROUP BY i",
            "EXPLAIN FORMAT=JSON SELECT * FROM t WHERE i IN (SELECT i FROM u)",
            "EXPLAIN UPDATE t SET i = 1 WHERE id = 3",
        ),
    ),
    (
        "HANDLER",
        (),
        (
            "HANDLER t OPEN AS x;HANDLER x READ i = (3);HANDLER x READ i NEXT;HANDLER x READ FIRST LIMIT 3;HANDLER x CLOSE",
        ),
    ),
    (
        "temporary tables",
        (),
        (
            "CREATE TEMPORARY TABLE x AS SELECT i, s, b FROM t;SELECT COUNT(*), MAX(b) FROM x;DROP TEMPORARY TABLE x",
            "CREATE TEMPORARY TABLE x (i INT, s VARCHAR(40), KEY (i)) ENGINE = MEMORY SELECT i, s FROM t"
            ";SELECT COUNT(*) FROM x WHERE i = 4;DELETE FROM x WHERE i > 5;DROP TEMPORARY TABLE x",
            "CREATE TEMPORARY TABLE x (i INT, b TEXT) ENGINE = MyISAM;INSERT INTO x SELECT i, b FROM t"
            ";SELECT SUM(i) FROM x;ALTER TABLE x ADD KEY (i);DROP TEMPORARY TABLE x",
            "CREATE TEMPORARY TABLE x LIKE t;INSERT INTO x SELECT * FROM t;UPDATE x SET i = i + 1"
            ";SELECT SUM(i) FROM x;DROP TEMPORARY TABLE x",
        ),
    ),
    ("locks", (), ("LOCK TABLES t READ, u WRITE;SELECT COUNT(*) FROM t;UPDATE u SET i = i;UNLOCK TABLES",)),
)
_MOMENT = (
    *(
        f"SELECT * FROM information_schema.memdiag_{name}"
        for name in (
            *("summary", "advice", "ledger", "pools", "instruments", "innodb", "sessions", "digests", "survivors"),
            *("budget", "host", "purges", "ceiling", "profile", "pinned", "history", "history_pools"),
            *("last_run_profile", "profile_history", "ledger_exact", "allocator", "arenas", "size_classes", "mutexes"),
            *("routes", "samples", "stacks", "regions"),
        )
    ),
    "SELECT memdiag_purge('statement')",
    "SHOW STATUS LIKE 'memdiag%'",
    "SHOW ENGINE INNODB STATUS",
    "SHOW PROCESSLIST",
    "SHOW BINLOG EVENTS LIMIT 3",
    "SHOW STATUS",
    "EXPLAIN ANALYZE SELECT i, COUNT(*) FROM t GROUP BY i",
    "SELECT * FROM performance_schema.threads",
    "SELECT * FROM performance_schema.memory_summary_global_by_event_name LIMIT 50",
    "SELECT * FROM performance_schema.events_statements_summary_by_digest LIMIT 9",
    "SELECT * FROM sys.memory_global_by_current_bytes LIMIT 9",
    "SELECT * FROM information_schema.innodb_metrics",
    "SELECT * FROM information_schema.innodb_trx",
)
# Statements that change rows. Each is rolled back. An entry has the kind, the table, and the statements.
_CHANGES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (
        "insert",
        "t",
        (
            "INSERT INTO t (id, i, s, b) VALUES (100, 1, 'new', REPEAT('n', 9000)), (101, 2, NULL, '')",
            "INSERT INTO t SELECT id + 100, i, s, d, at, j, b FROM t",
            "INSERT INTO t (id, i) VALUES (1, 7), (900, 8) ON DUPLICATE KEY UPDATE i = 99, b = 'again'",
            "INSERT IGNORE INTO t (id, i) SELECT id, 5 FROM u UNION ALL SELECT id + 200, i FROM u",
            "REPLACE INTO t (id, s) SELECT id, 'replaced' FROM u",
            "INSERT INTO t (id) VALUES (1)",
            "LOAD DATA INFILE '{folder}/rows' INTO TABLE t (id, i, s)",
            "LOAD DATA INFILE '{folder}/rows' REPLACE INTO TABLE t (id, @x, s) SET i = LENGTH(@x)",
            f"INSERT INTO t (id, b) VALUES (500, '{'q' * 40000}')",
        ),
    ),
    (
        "update",
        "t",
        (
            "UPDATE t SET i = i + 1, s = CONCAT(s, 'x') WHERE i > 2",
            "UPDATE t SET j = JSON_SET(j, '$.a', 9), b = REPEAT(b, 30)",
            "UPDATE t JOIN u USING (id) SET t.i = u.i + 9, t.d = 1",
            "UPDATE t SET i = 3 ORDER BY d DESC LIMIT 5",
            "UPDATE t SET id = id + 1000 WHERE i = 5",
            "UPDATE v SET s = 'seen' WHERE id < 9",
            "UPDATE t SET i = (SELECT COUNT(*) FROM u) WHERE id IN (SELECT id FROM u WHERE i > 3)",
        ),
    ),
    (
        "delete",
        "t",
        (
            "DELETE FROM t WHERE i IN (2, 3)",
            "DELETE t FROM t JOIN u USING (id) WHERE u.i > 4",
            "DELETE FROM t ORDER BY at DESC LIMIT 9",
            "WITH c AS (SELECT id FROM u WHERE i > 5) DELETE FROM t WHERE id IN (SELECT id FROM c)",
        ),
    ),
    ("triggers", "h", ("UPDATE h SET n = 1 WHERE id < 9", "DELETE FROM h WHERE id > 9", "UPDATE h SET n = 'x'")),
    (
        "foreign keys",
        "child",
        (
            "DELETE FROM parent WHERE id < 5",
            "UPDATE parent SET id = id + 100 WHERE id IN (2, 3)",
            "INSERT INTO child VALUES (900, 99999)",
        ),
    ),
    (
        "generated columns",
        "k",
        (
            "INSERT INTO k (id, i) SELECT id + 100, i FROM t",
            "UPDATE k SET i = i + 3 WHERE v = 1",
            "UPDATE k SET i = 99",
        ),
    ),
    (
        "partitioned rows",
        "p",
        (
            "INSERT INTO p SELECT id + 100, i, s FROM t",
            "UPDATE p SET id = id + 501 WHERE i > 4",
            "DELETE FROM p PARTITION (p0, p3) WHERE i > 3",
        ),
    ),
    (
        "geometries",
        "g",
        ("INSERT INTO g SELECT id + 100, p, a FROM g", "UPDATE g SET p = POINT(id, 3) WHERE id > 5", "DELETE FROM g"),
    ),
    (
        "savepoints",
        "t",
        (
            "SAVEPOINT a;DELETE FROM t;SAVEPOINT b;INSERT INTO t (id) VALUES (1);ROLLBACK TO b;ROLLBACK TO a;UPDATE t SET i = 1",
        ),
    ),
    (
        "row locks",
        "t",
        ("SELECT * FROM t WHERE i > 2 FOR UPDATE", "SELECT id FROM u WHERE d > 3 FOR SHARE SKIP LOCKED"),
    ),
)
# Statements that commit. An entry has the kind, the statements that make their objects, the statements themselves, and
# the queries that look at what they did.
_NEW = ("DROP TABLE IF EXISTS x, y", f"CREATE TABLE x ({_TABLE}, KEY (i))", "INSERT INTO x SELECT * FROM u")
_SEE = ("SHOW CREATE TABLE x", "SELECT COUNT(*), SUM(i) FROM x", "CHECK TABLE x")
_DOCUMENTS = (
    "DROP TABLE IF EXISTS x",
    "CREATE TABLE x (id INT PRIMARY KEY, a TEXT, FULLTEXT (a))",
    "INSERT INTO x SELECT id, a FROM f",
)
_FOUND = ("SELECT COUNT(*) FROM x WHERE MATCH (a) AGAINST ('\"brown fox\"' IN BOOLEAN MODE)", "CHECK TABLE x")
_PARTS = ("DROP TABLE IF EXISTS x", "CREATE TABLE x LIKE p", "INSERT INTO x SELECT * FROM p")
_COMMITS: tuple[tuple[str, tuple[str, ...], tuple[str, ...], tuple[str, ...]], ...] = (
    (
        "CREATE and DROP",
        ("DROP TABLE IF EXISTS x, y",),
        (
            f"CREATE TABLE x ({_TABLE}, KEY (i), KEY (s, d), UNIQUE (id, i))",
            "CREATE TABLE x AS SELECT i, s, COUNT(*) AS n FROM t GROUP BY i, s ORDER BY i, s",
            "CREATE TABLE x LIKE p",
            "CREATE TABLE x (i INT REFERENCES parent (id), CHECK (i > 3), g INT AS (i + 1), KEY ((i * 2)))",
            "CREATE TABLE x (i INT) PARTITION BY RANGE (i) (PARTITION a VALUES LESS THAN (9), PARTITION b VALUES LESS"
            " THAN MAXVALUE)",
            "CREATE TABLE x (i INT, KEY (i)) ENGINE = MyISAM",
        ),
        ("SHOW CREATE TABLE x", "CHECK TABLE x"),
    ),
    (
        "ALTER in place",
        _NEW,
        (
            "ALTER TABLE x ADD KEY (s, d), ALGORITHM = INPLACE",
            "ALTER TABLE x ADD COLUMN n INT DEFAULT 4, ALGORITHM = INSTANT",
            "ALTER TABLE x FORCE, ALGORITHM = INPLACE",
            "ALTER TABLE x DROP KEY i, ADD UNIQUE KEY (at), ALGORITHM = INPLACE",
            "ALTER TABLE x RENAME COLUMN s TO z, RENAME KEY i TO ii",
            "ALTER TABLE x DROP PRIMARY KEY, ADD PRIMARY KEY (i, id)",
            "CREATE FULLTEXT INDEX ft ON x (s, b)",
            "ALTER TABLE x ADD UNIQUE KEY (i)",
        ),
        _SEE,
    ),
    (
        "ALTER by copy",
        _NEW,
        (
            "ALTER TABLE x MODIFY s VARCHAR(90) CHARACTER SET latin1, ALGORITHM = COPY",
            "ALTER TABLE x ENGINE = MyISAM",
            "ALTER TABLE x PARTITION BY KEY (id) PARTITIONS 2",
            "ALTER TABLE x ADD CHECK (i < 2)",
            "OPTIMIZE TABLE x",
            "ANALYZE TABLE x UPDATE HISTOGRAM ON i, s WITH 4 BUCKETS",
            "TRUNCATE TABLE x",
        ),
        _SEE,
    ),
    ("RENAME", _NEW, ("RENAME TABLE x TO y, y TO x", "ALTER TABLE x RENAME TO y;RENAME TABLE y TO x"), _SEE),
    ("DROP", _NEW, ("DROP TABLE x", "DROP TABLE x, nothing"), ("SHOW TABLES LIKE 'x'",)),
    (
        "partitions changed",
        _PARTS,
        (
            "ALTER TABLE x TRUNCATE PARTITION p1",
            "ALTER TABLE x COALESCE PARTITION 1",
            "ALTER TABLE x REBUILD PARTITION p0, p2",
            "ALTER TABLE x REMOVE PARTITIONING",
        ),
        ("SHOW CREATE TABLE x", "SELECT COUNT(*), SUM(i) FROM x", "CHECK TABLE x"),
    ),
    (
        "full text changed",
        _DOCUMENTS,
        (
            "INSERT INTO x SELECT id + 100, a FROM f WHERE id < 20",
            "UPDATE x SET a = CONCAT(a, ' brown fox')",
            "DELETE FROM x WHERE id < 30",
            "ALTER TABLE x DROP KEY a, ADD FULLTEXT b (a)",
            "SET GLOBAL innodb_optimize_fulltext_only = ON;OPTIMIZE TABLE x;SET GLOBAL innodb_optimize_fulltext_only = OFF",
        ),
        _FOUND,
    ),
    (
        "programs made",
        (
            "DROP PROCEDURE IF EXISTS x",
            "DROP FUNCTION IF EXISTS y",
            "DROP VIEW IF EXISTS z",
            "DROP TRIGGER IF EXISTS w",
        ),
        (
            f"CREATE PROCEDURE x (n INT) {_BODY};;CALL x(5);;DROP PROCEDURE x",
            "CREATE FUNCTION y (n INT) RETURNS INT DETERMINISTIC RETURN n + 1;SELECT y(4)",
            "CREATE VIEW z AS SELECT a.id, b.s FROM t a JOIN u b USING (id);SELECT COUNT(*) FROM z;DROP VIEW z",
            "CREATE TRIGGER w BEFORE INSERT ON parent FOR EACH ROW SET NEW.s = 'w'",
            "CREATE PROCEDURE x () SELECT FROM",
        ),
        ("SHOW PROCEDURE STATUS WHERE Name = 'nothing'", "SELECT COUNT(*) FROM parent"),
    ),
    (
        "accounts",
        ("DROP USER IF EXISTS x, y", "DROP ROLE IF EXISTS z"),
        (
            "CREATE USER x IDENTIFIED WITH caching_sha2_password BY 'a' PASSWORD EXPIRE NEVER",
            "CREATE USER x;GRANT SELECT (id, i), INSERT ON t TO x;SHOW GRANTS FOR x",
            "CREATE ROLE z;GRANT SELECT ON d.* TO z;CREATE USER y;GRANT z TO y;SHOW GRANTS FOR y USING z",
            "FLUSH PRIVILEGES",
        ),
        ("SHOW GRANTS FOR reader",),
    ),
    (
        "XA",
        ("DELETE FROM parent WHERE id > 900",),
        (
            "XA START 'a';INSERT INTO parent VALUES (901, 'x');XA END 'a';XA PREPARE 'a';XA RECOVER;XA COMMIT 'a'",
            "XA START 'a';DELETE FROM parent WHERE id = 1;XA END 'a';XA ROLLBACK 'a'",
            "XA START 'a';INSERT INTO parent VALUES (902, 'y');XA END 'a';XA COMMIT 'a' ONE PHASE",
        ),
        ("SELECT COUNT(*), MAX(id) FROM parent",),
    ),
    (
        "committed",
        ("DELETE FROM parent WHERE id > 900", "DELETE FROM m WHERE id > 900"),
        (
            "INSERT INTO parent SELECT id + 900, s FROM t",
            "INSERT INTO m SELECT id + 900, i, s, d, at, j, b FROM t;DELETE FROM m WHERE id > 930",
            "BEGIN;INSERT INTO parent VALUES (905, 'z');UPDATE parent SET s = 'y' WHERE id = 905;COMMIT",
            "SET autocommit = 0;INSERT INTO parent VALUES (905, 'z');SET autocommit = 1",
        ),
        ("SELECT COUNT(*), MAX(id) FROM parent", "SELECT COUNT(*), SUM(i) FROM m", "CHECK TABLE m"),
    ),
)


def _split(text: str, folder: str) -> tuple[str, ...]:
    if "BEGIN DECLARE" in text:
        return tuple(text.split(";;"))
    return tuple(text.replace("{folder}", folder).split(";")) if "BEGIN " not in text else (text,)


def fixed(folder: str) -> Iterator[Case]:
    """`folder`: of the file that LOAD DATA reads."""
    for kind, first, texts in _READS:
        for text in texts:
            # Without memory, ha_myisam::check() finds the table damaged.
            yield Case(kind, _split(text, folder), first, hard="CHECK TABLE" not in text)
    for text in _MOMENT:
        yield Case("figures of the moment", (text,), same=False)
    yield Case("connections", (CONNECT,), hard=False)
    for kind, table, texts in _CHANGES:
        for text in texts:
            see = f"SELECT SUM(CRC32(JSON_ARRAY({_COLUMNS[table]}))) FROM {table}"
            yield Case(kind, _split(text, folder), ("BEGIN",), (see, "ROLLBACK", f"SELECT COUNT(*) FROM {table}"))
    for kind, first, texts, after in _COMMITS:
        for text in texts:
            yield Case(kind, _split(text, folder), first, after)


def at_random(seed: str, count: int) -> Iterator[Case]:
    """Queries of all shapes over the tables of SCHEMA. Most take the same routes, so few fail hard."""
    queries = Queries(random.Random(seed))
    kinds = ("i", "i", "s", "d", "t", "j", "s")
    names = ("id", "i", "s", "d", "at", "j", "b")
    columns = [Column(name, kind, "") for name, kind in zip(names, kinds, strict=True)]
    queries.tables = [Table(name, columns) for name in "tum"]
    queries.functions = ["twice", "counted"]
    for number in range(count):
        yield Case("at random", (queries.query()[0],), hard=number % 10 == 0)


def rows_of_file() -> str:
    return "".join(f"{number + 300}\t{number % 7}\tline {number}\n" for number in range(40))
