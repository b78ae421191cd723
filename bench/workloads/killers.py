"""Loads that get a server killed in a container: crowds of ordinary clients, and single statements of much memory."""

import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bench.workloads import connection_storm, phrase_burst
from bench.workloads.base import Workload, insert_rows
from harness.server import Server

MIB = 1 << 20
ROWS = 120_000
DOCUMENTS = 20_000
LOCKED_ROWS = 1_000_000
TRIGGER_LEVELS = 6
TRIGGER_STATEMENTS = 400
PREPARED_EACH = 40
JSON_CALLS = 250_000
IN_LIST = 100_000
BULK_ROWS = 60_000
ROUTINES = 60
ROUTINE_STEPS = 60

_COUNTS = tuple(ROWS * part // 8 for part in range(3, 9))


def ordinary(number: int) -> Iterator[str]:
    """Sorts, groupings, JSON, prepared statements. A session keeps its prepared statements and a large variable."""
    chooser = random.Random(number)
    yield f"SET @one = {1 + number}"
    yield f"SET @kept = REPEAT('x', {2 * MIB})"
    for each in range(PREPARED_EACH):
        yield f"PREPARE p{each} FROM 'SELECT id, note FROM things WHERE id BETWEEN ? AND ? + {each}'"
    while True:
        some = chooser.choice(_COUNTS)
        key = chooser.randrange(PREPARED_EACH)
        yield chooser.choice(
            (
                f"SELECT COUNT(*), MAX(note) FROM"
                f" (SELECT id, note FROM things WHERE id <= {some} ORDER BY note, id LIMIT {some}) AS s",
                f"SELECT COUNT(*), MAX(n) FROM (SELECT note, COUNT(*) AS n FROM things WHERE id <= {some} GROUP BY note)"
                " AS g",
                f"SELECT LENGTH(JSON_ARRAYAGG(doc)) FROM things WHERE id <= {some // 2}",
                f"SELECT COUNT(DISTINCT CONCAT(note, id)) FROM things WHERE id <= {some}",
                f"EXECUTE p{key} USING @one, @one",
            )
        )


def _json_row(number: int) -> Iterator[str]:
    """One row as in issue 19915 of Vitess: a text of megabytes that calls functions of JSON hundreds of thousands of
    times."""
    calls = (
        f"JSON_OBJECT('id',{each},'of',JSON_QUOTE('n{each}'),'is',CAST('[{each}]' AS JSON))"
        for each in itertools.count()
    )
    text = ",".join(itertools.islice(calls, JSON_CALLS // 3))
    while True:
        yield f"INSERT INTO json_rows (session, doc) VALUES ({number}, JSON_ARRAY({text}))"


def _bulk_inserts(number: int) -> Iterator[str]:
    """As a dump is loaded: many rows in one text of megabytes."""
    yield f"CREATE TABLE IF NOT EXISTS bulk{number} (id INT, note VARCHAR(255), doc JSON)"
    rows = ",".join(f"({each},REPEAT('n',200),'{{\"a\":{each}}}')" for each in range(BULK_ROWS))
    while True:
        yield f"INSERT INTO bulk{number} VALUES {rows}"


def _blobs(number: int) -> Iterator[str]:
    yield f"CREATE TABLE IF NOT EXISTS blobs{number} (blob_of_16_mb LONGBLOB)"
    while True:
        yield f"INSERT INTO blobs{number} VALUES ('{'b' * (16 * MIB)}')"


def _x_blobs(number: int) -> Iterator[str]:
    yield f"CREATE TABLE x{number} (a LONGBLOB)"
    text = f"INSERT INTO x{number} VALUES ('{'b' * 30 * MIB}')"
    while True:
        yield text
        yield f"SELECT a FROM x{number} LIMIT 1"


def _variables(_number: int) -> Iterator[str]:
    """A session keeps more with each statement, and no two have a digest in common."""
    for each in itertools.count():
        yield f"SET @kept{each} = REPEAT('x', {5 * MIB})"
        yield f"SELECT LENGTH(@kept{each}) > 0 OR @kept{each} IS NULL"


def _prepared(_number: int) -> Iterator[str]:
    some = ",".join(map(str, range(IN_LIST // 8)))
    for each in itertools.count():
        yield f"PREPARE p{each} FROM 'SELECT COUNT(*) FROM things WHERE id IN ({some})'"
        yield "SELECT COUNT(*) FROM things WHERE id < 100"


def _growing_variables(number: int) -> Iterator[str]:
    """A session that assigns a variable holds its own lock while it allocates."""
    yield f"DROP PROCEDURE IF EXISTS grow{number}"
    yield (
        f"CREATE PROCEDURE grow{number}() BEGIN DECLARE i INT DEFAULT 0; SET @kept = '';"
        f" WHILE i < 60 DO SET @kept = CONCAT(@kept, REPEAT('y', {MIB})), i = i + 1; END WHILE; SELECT LENGTH(@kept); END"
    )
    while True:
        yield f"CALL grow{number}()"


def _in_transactions(number: int) -> Iterator[str]:
    """Statements of open transactions never wait before they begin."""
    yield "SET autocommit = 0"
    yield from ordinary(number)


def _json_arrayagg(_number: int) -> Iterator[str]:
    while True:
        yield f"SELECT LENGTH(JSON_ARRAYAGG(doc)) FROM things WHERE id <= {ROWS}"


def _group_concat(_number: int) -> Iterator[str]:
    yield f"SET group_concat_max_len = {1 << 30}"
    while True:
        yield "SELECT LENGTH(GROUP_CONCAT(note, doc)) FROM things JOIN (SELECT 1 UNION ALL SELECT 2) AS twice"


def _recursive_cte(_number: int) -> Iterator[str]:
    yield "SET cte_max_recursion_depth = 10000000"
    while True:
        yield (
            "WITH RECURSIVE n (i, t) AS (SELECT 1, CAST(REPEAT('x', 200) AS CHAR(200))"
            " UNION ALL SELECT i + 1, t FROM n WHERE i < 400000) SELECT COUNT(*), SUM(i), MAX(LENGTH(t)) FROM n"
        )


def _in_lists(number: int) -> Iterator[str]:
    chooser = random.Random(number % 2)
    some = ",".join(str(chooser.randrange(2 * ROWS)) for _ in range(IN_LIST))
    while True:
        yield f"SELECT COUNT(*), SUM(id) FROM things WHERE id IN ({some})"
        yield f"SELECT COUNT(*), SUM(a.id) FROM things AS a JOIN things AS b USING (id) WHERE a.id IN ({some})"


def _regular_expressions(_number: int) -> Iterator[str]:
    """Blocks of C++ containers and of ICU: malloc() cannot refuse them."""
    while True:
        yield f"SELECT LENGTH(REGEXP_REPLACE(REPEAT('abc def ', {4 * MIB}), 'x+', 'xyz'))"


def _json_table(_number: int) -> Iterator[str]:
    """The parser of JSON looks for no KILL, and takes twenty times the size of the text."""
    item = '{"id": 1, "name": "' + 20 * "x" + '"}'
    text = f"CONCAT('[', REPEAT('{item},', 299999), '{item}]')"
    while True:
        yield f"SELECT COUNT(*), SUM(id) FROM JSON_TABLE({text}, '$[*]' COLUMNS (id INT PATH '$.id')) AS t"


def _xml(_number: int) -> Iterator[str]:
    while True:
        yield "SELECT LENGTH(UPDATEXML(CONCAT('<r>', REPEAT('<a>1</a>', 500000), '</r>'), '/r/a[1]', '<b/>'))"


def _geometry(_number: int) -> Iterator[str]:
    yield f"SET group_concat_max_len = {MIB}"
    points = "(SELECT GROUP_CONCAT(3 * (id % 141), ' ', 3 * (id DIV 141)) FROM things WHERE id <= 20000)"
    while True:
        yield f"SELECT ST_AREA(ST_BUFFER(ST_GEOMFROMTEXT(CONCAT('MULTIPOINT(', {points}, ')')), 1)) > 0"


def _phrases(number: int) -> Iterator[str]:
    texts = phrase_burst.searches()
    random.Random(number).shuffle(texts)
    yield from itertools.cycle(texts)


def _triggers(number: int) -> Iterator[str]:
    while True:
        yield f"INSERT INTO level0 (a, b) VALUES {','.join(f'({number}, {each})' for each in range(20))}"


def _routines(_number: int) -> Iterator[str]:
    """Each session keeps all of them, parsed for it alone."""
    while True:
        yield from (f"CALL routine{each}(-1)" for each in range(ROUTINES))


def _memory_rows(number: int) -> Iterator[str]:
    """They stay when their statement has ended, also by an error."""
    yield f"SET max_heap_table_size = {8192 * MIB}"
    yield f"CREATE TABLE memory_rows{number} (a INT, b VARCHAR(2000)) ENGINE = MEMORY"
    while True:
        yield f"INSERT INTO memory_rows{number} VALUES {','.join(['(1, NULL)'] * 100)}"


def _transactions(text: str, end: str) -> Iterator[str]:
    """The statement holds its locks while another one reads."""
    while True:
        yield from ("BEGIN", text, "SELECT COUNT(*) FROM things", end)


def _row_locks(number: int) -> Iterator[str]:
    return _transactions(f"SELECT COUNT(*) FROM locked WHERE MOD(id, 32) <> {number} FOR SHARE", "ROLLBACK")


def _locking_updates(number: int) -> Iterator[str]:
    """Undo, locks and dirty pages in one open transaction."""
    width = LOCKED_ROWS // 32
    return _transactions(
        f"UPDATE locked SET a = a + 1 WHERE id > {number * width} AND id <= {(number + 1) * width}", "COMMIT"
    )


def _connects(_number: int) -> Iterator[str]:
    yield f"SET @kept = REPEAT('x', {MIB // 8})"
    yield "SELECT COUNT(*), SUM(LENGTH(note)) FROM things WHERE id <= 200"
    yield "DO SLEEP(2)"


def _load_data(number: int) -> Iterator[str]:
    while True:
        yield f"LOAD DATA INFILE '{{folder}}/things.txt' INTO TABLE loaded (id, note, doc) SET session = {number}"


def _online_alter(number: int) -> Iterator[str]:
    if number == 0:
        while True:
            yield "ALTER TABLE altered ADD INDEX (note), ALGORITHM = INPLACE, LOCK = NONE"
            yield "ALTER TABLE altered DROP INDEX note, ALGORITHM = INPLACE, LOCK = NONE"
    elif number % 2:
        while True:
            yield f"UPDATE altered SET note = REVERSE(note) WHERE id BETWEEN {number * 500} AND {number * 500 + 499}"
    else:
        yield from ordinary(number)


def _beside_a_dump(number: int) -> Iterator[str]:
    if number != 0:
        yield from ordinary(number)
    while True:  # what mysqldump does
        yield "SELECT /*!40001 SQL_NO_CACHE */ id, note, doc FROM things"


def _events(number: int) -> Iterator[str]:
    """The scheduler begins an event anew although its last run has not ended."""
    yield (
        f"CREATE EVENT e{number} ON SCHEDULE EVERY 1 SECOND DO BEGIN DECLARE d LONGTEXT;"
        f" SET group_concat_max_len = {1024 * MIB}; SELECT GROUP_CONCAT(note, doc) INTO d FROM things;"
        """ SET d = JSON_LENGTH(CONCAT('["', d, '"]')); END"""
    )
    while True:
        yield "SELECT COUNT(*) FROM things WHERE id < 100"


def _words(number: int) -> Iterator[str]:
    """Full-text documents of 5 MB in which each word is another one."""
    digits = random.Random(number).randbytes(5 * MIB // 2).hex()
    text = " ".join(digits[at : at + 7] for at in range(0, len(digits) - 7, 8))
    while True:
        yield f"INSERT INTO words (body) VALUES ('{text}')"


@dataclass(frozen=True)
class Killer:
    """One load. `statements` makes those of a session."""

    name: str
    statements: Callable[[int], Iterator[str]]
    clients: tuple[int, ...] = (1, 32)
    # Its sessions begin again when their statements end.
    again: bool = False
    # Its account has all privileges, as that of many applications.
    administrators: bool = False
    # Its SELECTs read what no statement of it changes.
    same_answers: bool = True
    # Its sessions speak the X protocol.
    over_x: bool = False


KILLERS: dict[str, Killer] = {
    killer.name: killer
    for killer in (
        Killer("ordinary", ordinary, (32,)),
        Killer("administrators", ordinary, (32,), administrators=True),
        Killer("json_row", _json_row, same_answers=False),
        Killer("bulk_inserts", _bulk_inserts, (32,), same_answers=False),
        Killer("blobs", _blobs, (32,), same_answers=False),
        Killer("x_blobs", _x_blobs, (32,), same_answers=False, over_x=True),
        Killer("variables", _variables, (32,), same_answers=False),
        Killer("prepared", _prepared, (32,)),
        Killer("growing_variables", _growing_variables, (32,), same_answers=False),
        Killer("in_transactions", _in_transactions, (32,)),
        Killer("json_arrayagg", _json_arrayagg),
        Killer("group_concat", _group_concat),
        Killer("recursive_cte", _recursive_cte),
        Killer("in_lists", _in_lists),
        Killer("regular_expressions", _regular_expressions),
        Killer("json_table", _json_table),
        Killer("xml", _xml),
        Killer("geometry", _geometry),
        Killer("phrases", _phrases),
        Killer("triggers", _triggers, same_answers=False),
        Killer("routines", _routines, (150,)),
        Killer("memory_rows", _memory_rows, (8, 32)),
        Killer("row_locks", _row_locks),
        Killer("locking_updates", _locking_updates),
        Killer("connects", _connects, (500,), again=True),
        Killer("load_data", _load_data, same_answers=False),
        Killer("online_alter", _online_alter, (32,)),
        Killer("beside_a_dump", _beside_a_dump, (32,)),
        Killer("words", _words, same_answers=False),
        Killer("events", _events, (32,), same_answers=False, administrators=True),
    )
}


@dataclass(frozen=True)
class Killers(Workload):
    """The data of all of them."""

    name = "killers"

    pool_mb: int = 900

    def mysqld_options(self) -> tuple[str, ...]:
        common = [each for each in super().mysqld_options() if not each.startswith("--innodb-buffer-pool-size")]
        return (
            *common,
            f"--innodb-buffer-pool-size={self.pool_mb}M",
            "--sort-buffer-size=32M",
            "--tmp-table-size=64M",
            "--max-heap-table-size=64M",
            "--max-allowed-packet=256M",
            "--max-connections=1000",
            "--secure-file-priv=",
            "--innodb-ft-min-token-size=3",
            "--innodb-ft-enable-stopword=OFF",
        )

    def fill(self, server: Server) -> None:
        with server.connect(self.name) as session:
            for table in ("things", "altered"):
                connection_storm.fill_things(session, table, ROWS)
            session.query("CREATE TABLE json_rows (session INT, doc JSON)")
            session.query("CREATE TABLE words (id INT PRIMARY KEY AUTO_INCREMENT, body LONGTEXT, FULLTEXT (body))")
            session.query("CREATE TABLE loaded (session INT, id INT, note VARCHAR(255), doc JSON, KEY (note))")
            session.query("CREATE TABLE locked (id INT PRIMARY KEY, a INT NOT NULL)")
            insert_rows(session, "locked", LOCKED_ROWS, "i, i")
            self._fill_triggers(server)
            for each in range(ROUTINES):
                body = "".join(
                    f"IF a > {step} THEN SET @b = CONCAT(a, '{step}'); UPDATE locked SET a = a + 1 WHERE id = @b; END IF; "
                    for step in range(ROUTINE_STEPS)
                )
                session.query(f"CREATE PROCEDURE routine{each} (a INT) BEGIN {body} END")
            phrase_burst.fill_documents(session, DOCUMENTS)

    def _fill_triggers(self, server: Server) -> None:
        body = "".join(f"SET @b = CONCAT(NEW.a, '{each}', NEW.b + {each}); " for each in range(TRIGGER_STATEMENTS))
        with server.connect(self.name) as session:
            for level in range(TRIGGER_LEVELS):
                session.query(f"CREATE TABLE level{level} (id INT PRIMARY KEY AUTO_INCREMENT, a INT, b INT)")
            for level in range(TRIGGER_LEVELS - 1):
                rows = "(NEW.a, NEW.b), (NEW.a, NEW.b + 1)"
                session.query(
                    f"CREATE TRIGGER large{level} AFTER INSERT ON level{level} FOR EACH ROW BEGIN"
                    f" IF NEW.a < 0 THEN {body} END IF; INSERT INTO level{level + 1} (a, b) VALUES {rows}; END"
                )
