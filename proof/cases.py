"""Statements of all kinds, each of which can be run again and again and answers the same each time; most are in cases.sql."""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

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
# Routes of which the ceiling may refuse a statement blocks (whose_users_look in mysys/memdiag/routes/routes.cc).
REFUSED = tuple(
    f"memory/sql/{name}" for name in ("Filesort_buffer::sort_keys", "String::value", "user_var_entry::value")
)
# Statements that must not fail hard.
WRONG_ON_STOCK = re.compile(r"CHECK TABLE|JSON_SEARCH|NTH_VALUE\(j|LOWER\(''")
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
    "CREATE TABLE w (id INT PRIMARY KEY, a LONGTEXT, b LONGTEXT CHARACTER SET latin1, c LONGBLOB, j JSON, x LONGTEXT,"
    " g LINESTRING)",
    "INSERT INTO w SELECT id, REPEAT(CONCAT('Wörd ', id, ' '), 4000), REPEAT('Plain text, ', 3000), REPEAT(x'00FF6127',"
    " 9000), CAST(CONCAT('{\"a\": \"', REPEAT('value ', 5000), '\", \"b\": [0', REPEAT(', 1, \"x\"', 3000), ']}')"
    " AS JSON), CONCAT('<r>', REPEAT('<e k=\"v\">text</e>', 2000), '</r>'),"
    " ST_GeomFromText(CONCAT('LINESTRING(0 0', REPEAT(',1 2,3 4', 2000), ')')) FROM u WHERE id < 3",
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
    **{
        "w": "id, a, b, HEX(c), j, x",
        "p": "id, i, s",
        "g": "id, HEX(p)",
        "k": "id, i, g, v",
        "h": "id, n",
        "child": "id, i",
    },
}
SESSION = ("SET timestamp = 1700000000, max_sp_recursion_depth = 9", "USE d")
# What stands for these names in cases.sql.
_NAMED = {
    "{table}": _TABLE,
    "{body}": _BODY,
    "{ids}": ", ".join(map(str, range(400))),
    "{sum}": " + ".join(map(str, range(300))),
    "{open}": "(" * 250,
    "{close}": ")" * 250,
    "{40000 letters}": "q" * 40000,
    "{70000 letters}": "z" * 70000,
}
_MOMENT = (
    *(
        f"SELECT * FROM information_schema.memdiag_{name}"
        for name in (
            *("summary", "advice", "ledger", "pools", "instruments", "innodb", "sessions", "digests", "survivors"),
            *("budget", "host", "purges", "ceiling", "profile", "pinned", "history", "history_pools"),
            *("last_run_profile", "profile_history", "ledger_exact", "allocator", "arenas", "size_classes"),
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


@dataclass
class _Kind:
    """A kind of cases.sql: "read" and "commit" are as they are, and the rows of "change TABLE" are rolled back."""

    name: str
    how: str
    table: str
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    within: str = "{}"
    cases: list[tuple[str, ...]] = field(default_factory=list)

    def made(self) -> Iterator[Case]:
        before, after = self.before, self.after
        if self.how == "change":
            see = f"SELECT SUM(CRC32(JSON_ARRAY({_COLUMNS[self.table]}))) FROM {self.table}"
            before, after = ("BEGIN",), (see, "ROLLBACK", f"SELECT COUNT(*) FROM {self.table}")
        for texts in self.cases:
            yield Case(self.name, texts, before, after, hard=not any(map(WRONG_ON_STOCK.search, texts)))


def _kinds(folder: str) -> list[_Kind]:
    """Of cases.sql, whose head says how it is written."""
    kinds: list[_Kind] = []
    for line in Path(__file__).with_name("cases.sql").read_text().replace("\n  ", " ").splitlines():
        for name, text in (*_NAMED.items(), ("{folder}", folder)):
            line = line.replace(name, text)
        if heading := re.fullmatch(r"== (\w+) (?:(\w+): )?(.+)", line):
            kinds.append(_Kind(heading[3], heading[1], heading[2]))
        elif part := re.match(r":(before|after) ", line):
            setattr(kinds[-1], part[1], tuple(line.removeprefix(part[0]).split(";")))
        elif line.startswith(":in "):
            kinds[-1].within = line.removeprefix(":in ")
        elif line and not line.startswith("#"):
            line = kinds[-1].within.replace("{}", line)
            kinds[-1].cases.append(tuple(line.split(";;" if ";;" in line else ";")))
    return kinds


def fixed(folder: str) -> Iterator[Case]:
    """`folder`: of the file that LOAD DATA reads."""
    for kind in _kinds(folder):
        yield from kind.made()
    for text in _MOMENT:
        yield Case("figures of the moment", (text,), same=False)
    yield Case("connections", (CONNECT,), hard=False)


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
