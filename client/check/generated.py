"""States of a server by a generator: one holder of memory or two, by any route, in few sessions or in many, and bystanders.

Each statement that MEMDIAG_ADVICE offers is carried out. At least half of what its row names must come back, and no
session may end but those that hold it. states.py runs them; a seed makes the same state again.
"""

import contextlib
import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from memdiag.connect.options import Target
from memdiag.connect.session import Session
from memdiag.model.units import size

from harness.checks import Checks
from harness.server import Server
from harness.sql import Connection, ConnectionLost, SqlError
from harness.waiting import until

MB = 1 << 20
ENOUGH = 0.5
PATIENCE = 300.0
LOCK_WAIT_TIMEOUT = 1205


@dataclass
class Made:
    """What a state has: sessions by the holder whose memory they have, and statements that run in threads."""

    server: Server
    dice: random.Random
    stack: contextlib.ExitStack
    sessions: dict[str, set[str]] = field(default_factory=dict)
    programs: int = 0

    def holders(self, holder: str, count: int) -> list[Connection]:
        """New sessions that will hold it."""
        found = []
        for _ in range(count):
            one = self.stack.enter_context(self.server.connect("state"))
            self.sessions.setdefault(holder, set()).add(one.query("SELECT CONNECTION_ID()").scalar() or "")
            found.append(one)
        return found


# --- holders: each takes about so many bytes -----------------------------------------


def user_variables(made: Made, wanted: int) -> None:
    sessions = made.holders("user variables", made.dice.choice((1, 5, 40)))
    for one in sessions:
        parts = max(1, wanted // len(sessions) // (8 * MB))
        for number in range(parts):
            one.query(f"SET @kept{number} = REPEAT('k', {wanted // len(sessions) // parts})")


def prepared_statements(made: Made, wanted: int) -> None:
    sessions = made.holders("prepared statements", made.dice.choice((1, 5, 40)))
    words = ", ".join(f"id + {number} AS c{number}" for number in range(120))
    made.server.query("CREATE TABLE p (id INT PRIMARY KEY)", "state")
    for one in sessions:
        for number in range(max(1, wanted // len(sessions) // (100 << 10))):
            one.query(f"PREPARE s{number} FROM 'SELECT {words} FROM p WHERE id = ?'")


def user_temporary_tables(made: Made, wanted: int) -> None:
    """At random with as many base tables in the caches, which FLUSH and not KILL would close."""
    if made.dice.random() < 0.5:
        for number in range(200):
            made.server.query(f"CREATE TABLE base{number} (id INT PRIMARY KEY, b VARCHAR(20))", "state")
            made.server.query(f"SELECT COUNT(*) FROM base{number}", "state")
    sessions = made.holders("user temporary tables", made.dice.choice((4, 20)))
    for one in sessions:
        for number in range(wanted // len(sessions) // (15 << 10)):
            one.query(f"CREATE TEMPORARY TABLE t{number} (id INT PRIMARY KEY, b VARCHAR(20))")


def stored_programs(made: Made, wanted: int) -> None:
    """At random few programs that are larger than 4 MiB each."""
    lines, bytes_each = made.dice.choice(((100, 950 << 10), (1200, 11 * MB)))
    body = " ".join(f"SET @a = x + {number};" for number in range(lines))
    name = f"program{made.programs}"
    made.programs += 1
    made.server.query(f"CREATE PROCEDURE {name} (x INT) BEGIN IF x = 0 THEN {body} END IF; END", "state")
    for one in made.holders("stored programs", max(1, wanted // bytes_each)):
        one.query(f"CALL {name}(1)")


def open_tables(made: Made, wanted: int) -> None:
    columns = ", ".join(f"c{number} INT" for number in range(200))
    tables = 40
    for number in range(tables):
        made.server.query(f"CREATE TABLE wide{number} (id INT PRIMARY KEY, {columns})", "state")
    with contextlib.ExitStack() as stack:
        users = [
            stack.enter_context(made.server.connect("state")) for _ in range(max(1, wanted // tables // (90 << 10)))
        ]
        for number in range(tables):
            for one in users:
                one.query(f"HANDLER wide{number} OPEN")
            for one in users:
                one.query(f"HANDLER wide{number} CLOSE")


def sort_buffers(made: Made, wanted: int) -> None:
    """Statements that run: they have sorted, and send their rows slowly."""
    made.server.query(
        "CREATE TABLE sorted (id INT PRIMARY KEY AUTO_INCREMENT, b VARCHAR(1000)) CHARACTER SET latin1", "state"
    )
    made.server.query("INSERT INTO sorted (b) VALUES (REPEAT('b', 1000))", "state")
    for _ in range(15):
        made.server.query("INSERT INTO sorted (b) SELECT b FROM sorted", "state")
    sessions = made.holders("sort buffers", max(1, wanted // (64 * MB)))
    for one, number in zip(sessions, sorted(made.sessions["sort buffers"], key=int), strict=True):
        one.query("SET SESSION sort_buffer_size = 128 << 20")
        _in_a_thread(made, one, number, "SELECT b, SLEEP(1) FROM sorted ORDER BY b, id")
    _until_all_sleep(made, len(sessions))


def open_cursors(made: Made, wanted: int) -> None:
    """Connectors that fetch in parts. A session that waits for the next fetch has no statement that KILL QUERY ends."""
    rows = _numbered_rows(made)
    for one in made.holders("temporary tables", max(1, wanted // (20 * MB))):
        one.open_cursor(f"SELECT id, b FROM {rows} ORDER BY b, id")


def unread_results(made: Made, wanted: int) -> None:
    """Clients that do not read. The server waits for each of them, and KILL QUERY does not end that."""
    bytes_each = 24 * MB
    for one in made.holders("strings", max(1, wanted // bytes_each)):
        one.send(f"SELECT REPEAT('u', {bytes_each})")
    _until_all_are(made, max(1, wanted // bytes_each), "Sending to client")


def _numbered_rows(made: Made) -> str:
    """A table whose sorted rows take some 20 MB."""
    made.server.query("CREATE TABLE numbered (id INT PRIMARY KEY AUTO_INCREMENT, b VARCHAR(600))", "state")
    made.server.query("INSERT INTO numbered (b) VALUES (REPEAT('n', 600))", "state")
    for _ in range(15):
        made.server.query("INSERT INTO numbered (b) SELECT b FROM numbered", "state")
    return "numbered"


def _end(server: Server, session: str) -> None:
    with contextlib.suppress(SqlError):
        server.query(f"KILL {session}")


def memory_tables(made: Made, wanted: int) -> None:
    """No statement is offered for it."""
    made.server.query("CREATE TABLE m (id INT, filler CHAR(255)) ENGINE = MEMORY", "state")
    made.server.query("INSERT INTO m VALUES (1, 'x')", "state")
    rows = 1
    while rows * 1100 < wanted:
        made.server.query("INSERT INTO m SELECT * FROM m", "state")
        rows *= 2


def full_text_caches(made: Made, wanted: int) -> None:
    """Words of many tables that are not yet written out. Those who put them there do not hold them."""
    live = "SELECT LIVE_BYTES FROM information_schema.MEMDIAG_POOLS WHERE POOL = 'fts_cache'"
    before = int(made.server.query(live).scalar() or 0)
    tables = made.dice.choice((4, 40))
    with made.server.connect("state") as session:
        for number in range(tables):
            session.query(f"CREATE TABLE words{number} (id INT PRIMARY KEY AUTO_INCREMENT, w TEXT, FULLTEXT (w))")
        turn = 0
        while int(made.server.query(live).scalar() or 0) - before < wanted:
            rows = (" ".join(f"{made.dice.getrandbits(48):012x}" for _ in range(500)) for _ in range(20))
            session.query(f"INSERT INTO words{turn % tables} (w) VALUES ('" + "'), ('".join(rows) + "')")
            turn += 1


def row_locks(made: Made, wanted: int) -> None:
    """Two rows fill a page, and a lock is of one page: some 2 MB of a session. Their memory is the buffer pool's."""
    made.server.query("SET GLOBAL innodb_buffer_pool_size = 640 << 20")
    made.server.query(
        "CREATE TABLE locked (id INT AUTO_INCREMENT PRIMARY KEY, one TINYINT NOT NULL DEFAULT 1,"
        " body VARCHAR(7200) CHARACTER SET latin1 NOT NULL, KEY (one))",
        "state",
    )
    made.server.query("INSERT INTO locked (body) VALUES (REPEAT('b', 7200))", "state")
    for _ in range(14):
        made.server.query("INSERT INTO locked (body) SELECT body FROM locked", "state")
    for one in made.holders("transactions, locks", wanted // (2 * MB)):
        one.query("BEGIN")
        # The rows, then the gaps between them as well.
        one.query("SELECT COUNT(body) FROM locked FORCE INDEX (one) WHERE one = 1 FOR SHARE")
        one.query("SELECT COUNT(*) FROM locked FORCE INDEX (PRIMARY) FOR SHARE")


def large_packets(made: Made, wanted: int) -> None:
    """Statements that run keep the packets that they came in. An idle session gives its buffer back."""
    bytes_each = 12 * MB
    sessions = made.holders("network buffers", max(1, wanted // bytes_each))
    numbers = sorted(made.sessions["network buffers"], key=int)
    for one, number in zip(sessions, numbers, strict=True):
        _in_a_thread(made, one, number, f"SELECT SLEEP(300) /* {'x' * bytes_each} */")
    _until_all_sleep(made, len(sessions))


def binary_log_caches(made: Made, wanted: int) -> None:
    """Changes that no transaction has committed. No statement is offered for them: it would roll back."""
    made.server.query("SET GLOBAL binlog_cache_size = 512 << 20")
    made.server.query("CREATE TABLE logged (id INT PRIMARY KEY AUTO_INCREMENT, b LONGTEXT)", "state")
    for one in made.holders("binary log caches", made.dice.choice((1, 5))):
        one.query("BEGIN")
        for _ in range(max(1, wanted // len(made.sessions["binary log caches"]) // (8 * MB))):
            one.query(f"INSERT INTO logged (b) VALUES (REPEAT('b', {8 * MB}))")


def dump_threads(made: Made, wanted: int) -> None:
    """Threads of replicas that have sent a large row and wait."""
    bytes_each = 24 * MB
    made.server.query("CREATE TABLE replicated (id INT PRIMARY KEY, b LONGTEXT)", "state")
    log = made.server.query("SHOW BINARY LOG STATUS").rows[0]
    made.server.query(f"INSERT INTO replicated VALUES (1, REPEAT('b', {bytes_each}))", "state")
    count = wanted // bytes_each
    for number, one in enumerate(made.holders("binary log dump threads", count)):
        one.query("SET @source_binlog_checksum = @@global.binlog_checksum")
        session = one.query("SELECT CONNECTION_ID()").scalar() or ""
        _begin(made, session, lambda one=one, id=1000 + number: one.dump_binlog(str(log[0]), int(log[1] or 4), id))
    _until_all_are(made, count, "Source has sent all binlog to replica; waiting for more updates")


def large_values(made: Made, wanted: int) -> None:
    """One statement that has read them from several tables. What Performance Schema counts of all heaps tells its session."""
    bytes_each = 48 * MB
    made.server.query("CREATE TABLE valued (id INT PRIMARY KEY, b LONGTEXT)", "state")
    made.server.query(f"INSERT INTO valued VALUES (1, REPEAT('b', {bytes_each}))", "state")
    aliases = range(max(3, wanted // bytes_each))
    tables = ", ".join(f"valued AS v{number}" for number in aliases)
    used = " + ".join(f"(v{number}.b IS NULL)" for number in aliases)
    (one,) = made.holders("rows with large values", 1)
    session = one.query("SELECT CONNECTION_ID()").scalar() or ""
    _in_a_thread(made, one, session, f"SELECT {used}, SLEEP(300) FROM {tables}")
    _until_all_sleep(made, 1)


def definitions(made: Made, wanted: int) -> None:
    """Of many tables, which are closed: partitions are tables to InnoDB. FLUSH does not free them."""
    made.server.query("SET GLOBAL innodb_file_per_table = OFF, GLOBAL table_definition_cache = 20000")
    columns = ", ".join(f"a_column_{number} INT" for number in range(100))
    partitions = 1500
    with made.server.connect("state") as session:
        for number in range(max(2, wanted // partitions // (18 << 10))):
            session.query(
                f"CREATE TABLE many{number} (id INT PRIMARY KEY, {columns}) PARTITION BY KEY (id) PARTITIONS {partitions}"
            )
            session.query(f"SELECT COUNT(*) FROM many{number}")
        session.query("FLUSH LOCAL TABLES")


def _in_a_thread(made: Made, session: Connection, number: str, statement: str) -> None:
    """It runs until its session ends."""
    _begin(made, number, lambda: session.discard(statement))


def _begin(made: Made, number: str, work: Callable[[], None]) -> None:
    def run() -> None:
        with contextlib.suppress(SqlError, ConnectionLost):
            work()

    thread = threading.Thread(target=run)
    thread.start()
    made.stack.callback(thread.join)
    made.stack.callback(_end, made.server, number)


def _until_all_sleep(made: Made, count: int) -> None:
    _until_all_are(made, count, "User sleep")


def _until_all_are(made: Made, count: int, state: str) -> None:
    running = f"SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE = '{state}'"
    until(lambda: int(made.server.query(running).scalar() or 0) >= count, PATIENCE)


Holder = Callable[[Made, int], None]
# These have words alone.
WITHOUT_STATEMENT: tuple[Holder, ...] = (memory_tables, binary_log_caches)
HOLDERS: tuple[Holder, ...] = (
    user_variables,
    prepared_statements,
    user_temporary_tables,
    stored_programs,
    open_tables,
    sort_buffers,
    open_cursors,
    unread_results,
    full_text_caches,
    row_locks,
    large_packets,
    dump_threads,
    large_values,
    *WITHOUT_STATEMENT,
)
# They take minutes, and only --holder makes them.
SLOW: tuple[Holder, ...] = (definitions,)


# --- bystanders: none of them may end --------------------------------------------------


def bystanders(made: Made) -> set[str]:
    """An idle session, one with a small temporary table, one in a transaction, and memdiag's. All of them have a little
    of what others hold."""
    idle, owner, changing = (made.stack.enter_context(made.server.connect("state")) for _ in range(3))
    idle.query("SET @little = REPEAT('l', 100)")
    owner.query("CREATE TEMPORARY TABLE small (id INT PRIMARY KEY)")
    made.server.query("CREATE TABLE changed (id INT PRIMARY KEY)", "state")
    changing.query("BEGIN")
    changing.query("INSERT INTO changed VALUES (1)")
    # It holds much, and its end would roll back what it changed.
    changing.query(f"SET @much = REPEAT('m', {8 * MB})")
    of_memdiag = made.stack.enter_context(Session(Target(socket=str(made.server.socket), user="root")))
    result = {one.query("SELECT CONNECTION_ID()").scalar() or "" for one in (idle, owner, changing)}
    return result | {str(row["ID"]) for row in of_memdiag.rows("SELECT CONNECTION_ID() AS ID")}


# --- carrying it out ----------------------------------------------------------------


def _alive(server: Server) -> set[str]:
    return {row[0] or "" for row in server.query("SELECT ID FROM information_schema.PROCESSLIST").rows}


def _offered(server: Server) -> list[dict[str, str | None]]:
    """Findings with bytes and a statement."""
    found = server.query("SELECT RULE, HOLDER, BYTES, STATEMENT FROM information_schema.MEMDIAG_ADVICE").dicts()
    return [row for row in found if row["BYTES"] and row["STATEMENT"]]


def _resident(server: Server) -> int:
    """Of all pools, without unused pages, and what locks have of the buffer pool."""
    server.query("SELECT memdiag_purge('all')")
    states = "('live', 'fragmentation')"
    words = f"SELECT SUM(RESIDENT_BYTES) FROM information_schema.MEMDIAG_LEDGER_EXACT WHERE STATE IN {states}"
    locks = "SELECT BYTES FROM information_schema.MEMDIAG_INNODB WHERE COMPONENT = 'buffer_pool_misc'"
    return sum(int(float(server.query(one).scalar() or 0)) for one in (words, locks))


_UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_RESIDENT = (
    "SELECT CONCAT('advice: ', RULE), BYTES FROM information_schema.MEMDIAG_ADVICE WHERE RULE NOT LIKE 'ceiling%'",
    "SELECT CONCAT_WS(' ', 'ledger:', NAME, STATE), RESIDENT_BYTES FROM information_schema.MEMDIAG_LEDGER",
    "SELECT CONCAT('instrument: ', EVENT_NAME), RESIDENT_BYTES FROM information_schema.MEMDIAG_INSTRUMENTS",
)
_SUMMARY = (
    "SELECT CONCAT('summary: ', WHAT), SIZE FROM information_schema.MEMDIAG_SUMMARY"
    " WHERE QUESTION IN ('holds', 'get back') AND SIZE <> ''"
)


def beyond_rss(server: Server) -> list[str]:
    """What names more than the process has, which changes meanwhile."""
    rss = server.rss_kb()
    named = [(row[0], float(row[1] or 0)) for one in _RESIDENT for row in server.query(one).rows]
    for what, text in server.query(_SUMMARY).rows:
        number, unit = str(text).split()
        named.append((what, float(number) * _UNITS[unit]))
    # Texts have three digits.
    most = max(rss, server.rss_kb()) * 1024 * 1.01
    return [f"{what} has {size(int(held))}" for what, held in named if held > most]


def _carry_out(server: Server, statement: str) -> list[str]:
    """@return the statements that ran"""
    with server.connect() as session:
        # FLUSH waits for statements that run, as its remedy says; what no statement uses it closes before.
        session.query("SET SESSION lock_wait_timeout = 5")
        try:
            found = session.query(statement)
        except SqlError as error:
            if error.code != LOCK_WAIT_TIMEOUT:
                raise
            return [statement]
        if [name.upper() for name in found.columns] != ["RUN"]:
            return [statement]
        done = [str(row[0]) for row in found.rows]
        for one in done:
            with contextlib.suppress(SqlError):
                session.query(one)
    return done


def drive(
    seed: int,
    server: Server,
    stack: contextlib.ExitStack,
    others: tuple[Holder, ...],
    checks: Checks,
    wanted: Sequence[str] = (),
) -> None:
    """@param others  holders besides those of this file
    @param wanted  names of the holders instead of those that the dice choose"""
    dice = random.Random(seed)
    made = Made(server, dice, stack)
    safe = bystanders(made)
    chosen = dice.sample(HOLDERS + others, dice.choice((1, 2)))
    if wanted:
        chosen = [holder for holder in HOLDERS + SLOW if holder.__name__ in wanted]
    for holder in chosen:
        holder(made, dice.randint(120, 260) * MB)
    title = f"generated {seed} ({', '.join(holder.__name__ for holder in chosen)})"
    checks.check(f"{title}: nothing is more than RSS", not (more := beyond_rss(server)), "; ".join(more))
    done: set[str] = set()
    while rows := [row for row in _offered(server) if row["RULE"] not in done]:
        # Each must help by itself, whatever was done before.
        row = dice.choice(rows)
        rule, named = row["RULE"] or "", int(row["BYTES"] or 0)
        done.add(rule)
        if rule == "unused_pages":  # _resident() gives these back
            continue
        before, living = _resident(server), _alive(server)
        ran = _carry_out(server, row["STATEMENT"] or "")
        gone, last = before - _resident(server), -1
        deadline = time.monotonic() + PATIENCE
        # Sessions end by themselves after KILL.
        while (gone < named * ENOUGH or gone - last > MB) and time.monotonic() < deadline:
            time.sleep(0.5)
            gone, last = before - _resident(server), gone
        ended = (living - _alive(server)) & safe.union(*made.sessions.values())
        own = made.sessions.get(row["HOLDER"] or "", set()) if row["HOLDER"] else set().union(*made.sessions.values())
        checks.check(
            f"{title}: {rule}: at least half of it comes back",
            gone >= named * ENOUGH,
            f"{size(gone)} of {size(named)}, by {len(ran)} statements, the first: {'; '.join(ran)[:90]}",
        )
        checks.check(
            f"{title}: {rule}: no other session ends", not (ended - own) and not (ended & safe), str(ended - own)
        )
    checks.check(f"{title}: some statement is offered", bool(done) or set(chosen) <= set(WITHOUT_STATEMENT), "none")
    checks.check(f"{title}: the bystanders live", safe <= _alive(server), str(safe - _alive(server)))
