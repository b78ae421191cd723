#!/usr/bin/env python3
"""Runs everything of ours at a time on a server under the thread sanitizer, and shows what it reports.

  proof/races.py [--seconds 300] [--clients 64] [--seed 1] [--preset sanitize-thread]

Sessions run statements of all kinds, also over the X protocol, and are killed. Meanwhile each of our tables is read in
a loop, all variables of ours are switched, with targets near what the server takes, and plugins, components and
functions come and go. Then the server ends. The program builds the preset first. Reports go to build/proof/races-SEED.reports, grouped. The exit status is 0
if none has code of ours in a stack of its race, and the server has ended as it was told to.
"""

import argparse
import contextlib
import os
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness.common import ROOT, known_preset, lock, run_step, say
from harness.problem import Problem, run_main
from harness.server import Build, Server, initialise
from harness.sql import Connection, ConnectionLost, SqlError
from harness.x_protocol import XConnection
from proof import settings
from proof.places import STATES, scratch
from proof.programs import program
from proof.sanitizer_reports import Report, grouped, reports_of

SANITIZER = {
    # Mutexes that two threads take in different orders, too, with both stacks.
    "detect_deadlocks": "1",
    "second_deadlock_stack": "1",
    # Upstream's own atomics are not seen where only our code is instrumented, so its calls of memcpy() and others
    # must not be, either.
    "ignore_interceptors_accesses": "1",
    "history_size": "4",
    "exitcode": "0",
    "suppressions": str(ROOT / "cmake" / "tsan.supp"),
}
OPTIONS = (
    "--innodb-buffer-pool-size=64M",
    "--innodb-redo-log-capacity=64M",
    "--innodb-ft-cache-size=1600000",
    "--innodb-lock-wait-timeout=3",
    "--lock-wait-timeout=5",
    "--max-binlog-size=1M",
    "--binlog-expire-logs-seconds=1",
    "--table-open-cache=64",
    "--max-allowed-packet=64M",
    "--max-connections=500",
    "--loose-log-bin-trust-function-creators=ON",
    "--mysqlx=ON",
    "--performance-schema-instrument=memory/%=COUNTED",
)
START_SECONDS = 600.0
PATIENCE = 120.0
LENGTH = 60  # of a generated program
ACCOUNT = "loader"  # without privileges that let its statements pass the gate
SCHEMA = (
    "CREATE DATABASE shared",
    f"CREATE USER {ACCOUNT}",
    "GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, RELOAD, REFERENCES, INDEX, ALTER, CREATE TEMPORARY TABLES, LOCK"
    " TABLES, EXECUTE, CREATE VIEW, SHOW VIEW, CREATE ROUTINE, ALTER ROUTINE, TRIGGER, XA_RECOVER_ADMIN ON *.*"
    f" TO {ACCOUNT}",
    "CREATE TABLE shared.t (id INT AUTO_INCREMENT PRIMARY KEY, n INT, s VARCHAR(200), j JSON, KEY (n), KEY (s))",
    "CREATE TABLE shared.docs (id INT AUTO_INCREMENT PRIMARY KEY, body MEDIUMTEXT, FULLTEXT (body))",
    "CREATE TABLE shared.seen (id INT AUTO_INCREMENT PRIMARY KEY, what INT)",
    "CREATE TRIGGER shared.after_t AFTER INSERT ON shared.t FOR EACH ROW INSERT INTO seen (what) VALUES (NEW.n)",
    "CREATE PROCEDURE shared.walk (most INT) BEGIN DECLARE done, x INT DEFAULT 0; DECLARE c CURSOR FOR SELECT id FROM t"
    " WHERE id < most; DECLARE CONTINUE HANDLER FOR NOT FOUND SET done = 1; OPEN c; WHILE NOT done DO FETCH c INTO x;"
    " END WHILE; CLOSE c; SELECT x; END",
    "INSERT INTO shared.t (n, s, j) WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 900)"
    " SELECT n, REPEAT(CHAR(97 + n % 26), n % 200), JSON_OBJECT('a', n, 'b', JSON_ARRAY(n, 'x')) FROM n",
)
_MANY = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 900)"
# On tables that all sessions share. {n}: a number at random.
STATEMENTS = (
    "SELECT 1",
    "SELECT COUNT(*) FROM t WHERE n = {n}",
    "SELECT * FROM t ORDER BY s, n LIMIT 50",
    "SELECT n % 50, COUNT(*), MAX(s), GROUP_CONCAT(s) FROM t GROUP BY 1",
    "SELECT COUNT(*) FROM (SELECT DISTINCT a.s, b.n FROM t a JOIN t b ON a.n = b.n + {n} % 7) AS d",
    "SELECT LENGTH(JSON_ARRAYAGG(j)) FROM t",
    "SELECT COUNT(*) FROM t, JSON_TABLE(j, '$.b[*]' COLUMNS (x VARCHAR(20) PATH '$')) AS x WHERE n < 200",
    "SELECT SUM(n) OVER (PARTITION BY n % 5 ORDER BY s) FROM t LIMIT 9",
    "EXPLAIN ANALYZE SELECT COUNT(*) FROM t a JOIN t b USING (n) GROUP BY a.s ORDER BY 1",
    "EXPLAIN FORMAT=JSON SELECT * FROM t WHERE n = {n}",
    "INSERT INTO t (n, s, j) VALUES ({n}, REPEAT('y', {n} % 200), '[1, {n}]')",
    f"INSERT INTO t (n, s) {_MANY} SELECT n, 'many' FROM n WHERE n < 90",
    "UPDATE t SET s = CONCAT(LEFT(s, 50), 'u'), j = JSON_SET(j, '$.c', {n}) WHERE n = {n}",
    "DELETE FROM t WHERE id > 900 AND n % 90 = {n} % 90",
    "INSERT INTO docs (body) VALUES (CONCAT('word{n} fox ', REPEAT('lazy dog ', {n}), UUID()))",
    f"SET @@group_concat_max_len = 1 << 24; INSERT INTO docs (body) {_MANY}"
    " SELECT GROUP_CONCAT('w', a.n, 'x', b.n % 40 SEPARATOR ' ') FROM n a JOIN n b ON b.n < 40",
    "SELECT COUNT(*) FROM docs WHERE MATCH (body) AGAINST ('\"lazy dog\" @4' IN BOOLEAN MODE)",
    "SELECT id FROM docs WHERE MATCH (body) AGAINST ('word{n} fox' WITH QUERY EXPANSION) LIMIT 5",
    "DELETE FROM docs WHERE id % 20 = {n} % 20",
    "CREATE TEMPORARY TABLE IF NOT EXISTS tmp (n INT, s TEXT); INSERT INTO tmp SELECT n, s FROM t; DROP TABLE tmp",
    "SET @large = REPEAT('v', 1 << 10 + {n} % 14)",
    "SET @large = REPEAT('v', 8 << 20); SELECT LENGTH(@large); SET @large = NULL",
    "SELECT LENGTH(REGEXP_REPLACE(REPEAT('abc', 200000), 'b', 'xy'))",
    "SELECT COUNT(*) FROM t a, t b WHERE a.s REGEXP CONCAT('^', LEFT(b.s, 2)) AND b.n < 40",
    "PREPARE p FROM 'SELECT COUNT(*) FROM t WHERE n > ?'; SET @n = {n}; EXECUTE p USING @n; DEALLOCATE PREPARE p",
    "PREPARE kept{n} FROM 'SELECT * FROM t a JOIN t b USING (n) WHERE a.n = ? AND b.s = ?'",
    "CALL walk({n})",
    "BEGIN; INSERT INTO seen (what) VALUES ({n}); SELECT COUNT(*) FROM t FOR SHARE; ROLLBACK",
    "BEGIN; UPDATE t SET n = n + 1 WHERE id < 40; COMMIT",
    "LOCK TABLES seen WRITE; DELETE FROM seen LIMIT 500; UNLOCK TABLES",
    "DO GET_LOCK('l{n}', 0); DO RELEASE_ALL_LOCKS()",
    "CREATE TABLE d{n} (a INT PRIMARY KEY, b TEXT); ALTER TABLE d{n} ADD KEY (b(9)); DROP TABLE d{n}",
    "ALTER TABLE t ADD COLUMN c{n} INT, ALGORITHM = COPY; ALTER TABLE t DROP COLUMN c{n}",
    "OPTIMIZE TABLE docs",
    "ANALYZE TABLE t",
    "FLUSH TABLES",
    "SHOW TABLE STATUS",
    "SELECT * FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'shared' ORDER BY 4",
    "SELECT ST_AsText(ST_Buffer(ST_GeomFromText('POINT(1 {n})'), 3)); SELECT ExtractValue('<a><b>{n}</b></a>', '/a/b')",
    "CREATE TABLE IF NOT EXISTS m (a INT, b VARCHAR(900)) ENGINE = MEMORY; INSERT INTO m SELECT n, s FROM t; DROP TABLE m",
)
# Other statements show our figures too, or walk over what our code changes.
READS = (
    "SHOW GLOBAL STATUS LIKE 'Memdiag%'",
    "SHOW GLOBAL VARIABLES LIKE 'memdiag%'",
    "SELECT LENGTH(memdiag_profile('folded'))",
    "SELECT LENGTH(memdiag_profile('svg'))",
    "SELECT COUNT(*) FROM performance_schema.memory_summary_by_thread_by_event_name",
    "SELECT COUNT(*) FROM performance_schema.memory_summary_global_by_event_name",
    "SELECT COUNT(*) FROM performance_schema.events_statements_summary_by_digest",
    "SELECT COUNT(*) FROM performance_schema.prepared_statements_instances",
    "SELECT COUNT(*) FROM performance_schema.setup_metrics",
    "SHOW ENGINE INNODB STATUS",
    "TRUNCATE performance_schema.memory_summary_global_by_event_name",
    "TRUNCATE performance_schema.events_statements_summary_by_digest",
)
METERS = "component_test_server_telemetry_metrics"
# They are installed, used, and uninstalled.
GUESTS = (
    (
        "CREATE FUNCTION memdiag_fault RETURNS INTEGER SONAME 'memdiag_test.so'",
        "DO memdiag_fault('allocate', 'statement', 'soft', 0, 3)",
        "DROP FUNCTION memdiag_fault",
    ),
    # Not its table: stock's INSTALL PLUGIN of one waits for ever for a lock of its own, where tables were closed.
    (
        "INSTALL PLUGIN memdiag_native_daemon SONAME 'memdiag_native.so'",
        "SHOW PLUGINS",
        "UNINSTALL PLUGIN memdiag_native_daemon",
    ),
    (
        f"INSTALL COMPONENT 'file://{METERS}'",
        "SELECT test_report_single_metric('mysql.memdiag', 'mysql.memdiag.pool.active')",
        f"UNINSTALL COMPONENT 'file://{METERS}'",
    ),
    (
        "INSTALL COMPONENT 'file://component_query_attributes'",
        "DO mysql_query_attribute_string('none')",
        "UNINSTALL COMPONENT 'file://component_query_attributes'",
    ),
    (
        "INSTALL COMPONENT 'file://component_group_replication_resource_manager'",
        "SET GLOBAL group_replication_resource_manager.memory_used_limit = 1",
        "UNINSTALL COMPONENT 'file://component_group_replication_resource_manager'",
    ),
    ("UNINSTALL PLUGIN memdiag", "INSTALL PLUGIN memdiag SONAME 'memdiag_native.so'", "UNINSTALL PLUGIN MEMDIAG_POOLS"),
)


class Load:
    """All sessions of one server. Each thread has a name, dice of its own, and goes on in a new session after a kill."""

    def __init__(self, server: Server, seed: int, clients: int) -> None:
        self._server, self._seed = server, seed
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self.done: Counter[str] = Counter()
        self.errors: Counter[int] = Counter()
        self.faults: list[str] = []
        with server.connect() as session:
            settings.require_all(session)
            tables = settings.names(session)
        works: list[tuple[str, Callable[[random.Random], None]]] = []
        # A generated program has two sessions.
        works += [(f"program {number}", self._programs) for number in range(clients // 4)]
        works += [(f"client {number}", self._statements) for number in range(clients - clients // 4 * 2)]
        works += [(f"x {number}", self._over_x) for number in range(2)]
        works += [(f"reader {table}", self._reader(table)) for table in tables]
        works += [("reads", self._reads), ("guests", self._guests), ("killer", self._killer)]
        works += [(f"operator {number}", self._operator) for number in range(2)]
        self._threads = [threading.Thread(target=self._run, args=work) for work in works]

    def run(self, seconds: float) -> None:
        for thread in self._threads:
            thread.start()
        end = shown = time.monotonic()
        end += seconds
        while time.monotonic() < end and self._server.alive() and not self.faults:
            time.sleep(0.5)
            if time.monotonic() - shown > 30:
                shown = time.monotonic()
                say(f"{end - shown:.0f} s left: {self.brief()}")

    def end(self) -> None:
        """Ends the server below it."""
        self._stop.set()
        self._server.stop(START_SECONDS)
        for thread in self._threads:
            thread.join()

    def brief(self) -> str:
        done = ", ".join(f"{kind} {count}" for kind, count in self.done.most_common())
        errors = ", ".join(f"{code}: {count}" for code, count in self.errors.most_common(12))
        return f"{done}; errors {errors or 'none'}; RSS {self._rss_mb()} MB"

    def _rss_mb(self) -> int:
        with contextlib.suppress(OSError):
            return self._server.rss_kb() >> 10
        return 0

    # A thread calls one of these again and again. Each call works for a while, in a session of its own.

    def _run(self, name: str, work: Callable[[random.Random], None]) -> None:
        dice = random.Random(f"{self._seed}/{name}")
        while not self._stop.is_set():
            try:
                work(dice)
            except SqlError as error:
                self._count(name, error.code)
                self._stop.wait(0.05)
            except (ConnectionLost, OSError):
                if not self._server.alive():
                    return
            except Exception as error:
                self.faults.append(f"{name}: {error!r}")  # a thread has nothing else to tell it to
                return

    def _count(self, name: str, error: int = 0) -> None:
        with self._lock:
            self.done[name.split(" ")[0]] += 1
            if error:
                self.errors[error] += 1

    def _ask(self, name: str, session: Connection | XConnection, texts: Sequence[str]) -> None:
        """One after the other; an error does not end them."""
        for text in texts:
            if self._stop.is_set():
                return
            try:
                session.query(text)
                self._count(name)
            except SqlError as error:
                self._count(name, error.code)

    def _programs(self, dice: random.Random) -> None:
        database = f"p{dice.randrange(1 << 60)}"
        self._once(f"CREATE DATABASE {database}")
        try:
            with contextlib.ExitStack() as stack:
                sessions = [
                    stack.enter_context(Connection(self._server.socket, database, ACCOUNT, PATIENCE)) for _ in range(2)
                ]
                for statement in program(database, LENGTH):
                    self._ask("program", sessions[statement.session], [statement.text])
        finally:
            self._once(f"DROP DATABASE {database}")

    def _once(self, text: str) -> None:
        with self._server.connect(timeout=PATIENCE) as session:
            session.query(text)

    def _statements(self, dice: random.Random) -> None:
        with Connection(self._server.socket, "shared", ACCOUNT, PATIENCE) as session:
            for _ in range(dice.randint(1, 60)):
                self._ask("client", session, self._some(dice))
            if dice.random() < 0.5:
                session.open_cursor("SELECT * FROM t ORDER BY s")
                self._count("cursor")

    def _some(self, dice: random.Random) -> list[str]:
        number = str(dice.randint(1, 900))
        if dice.random() < 0.02:  # a large packet
            return [f"SELECT LENGTH('{'p' * dice.choice((70_000, 1_200_000, 3_000_000))}')"]
        return [text.replace("{n}", number) for text in dice.choice(STATEMENTS).split("; ")]

    def _over_x(self, dice: random.Random) -> None:
        with XConnection(self._server.folder / "x.sock", "shared", ACCOUNT, PATIENCE) as session:
            for _ in range(dice.randint(1, 30)):
                self._ask("x", session, self._some(dice))

    def _reader(self, table: str) -> Callable[[random.Random], None]:
        def read(dice: random.Random) -> None:
            with self._server.connect(timeout=PATIENCE) as session:
                for _ in range(100):
                    self._ask("reader", session, [f"SELECT * FROM information_schema.{table}"])

        return read

    def _reads(self, dice: random.Random) -> None:
        with self._server.connect(timeout=PATIENCE) as session:
            for _ in range(100):
                self._ask("read", session, [dice.choice(READS)])

    def _guests(self, dice: random.Random) -> None:
        with self._server.connect(timeout=PATIENCE) as session:
            for guest in dice.sample(GUESTS, len(GUESTS)):
                self._ask("guest", session, guest)

    def _operator(self, dice: random.Random) -> None:
        with self._server.connect(timeout=PATIENCE) as session:
            for _ in range(60):
                self.done["setting"] += len(settings.change(session, dice, 1))
                if dice.random() < 0.6:  # a target that the server keeps with an effort
                    target = self._rss_mb() + dice.choice((-20, 20, 60, 100, 200, 400, 1000))
                    self._ask("target", session, [f"SET GLOBAL memdiag_memory_target = '{target}M'"])
                self._ask("purge", session, [f"SELECT memdiag_purge('{dice.choice(settings.POOLS)}')"])
                self._stop.wait(dice.choice((0.01, 0.1, 1.0)))

    def _killer(self, dice: random.Random) -> None:
        with self._server.connect(timeout=PATIENCE) as session:
            while not self._stop.wait(dice.choice((0.02, 0.2, 0.5))):
                who = f"SELECT ID FROM performance_schema.processlist WHERE USER = '{ACCOUNT}' ORDER BY RAND() LIMIT 3"
                for row in session.query(who).rows:
                    self._ask("kill", session, [f"KILL {dice.choice(('QUERY', 'CONNECTION'))} {row[0]}"])


def write(groups: dict[str, list[Report]], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        for group, reports in groups.items():
            file.write(f"#### {len(reports)} x {group}\n{reports[0].text}\n\n")


def verdict(reports: Sequence[Report], path: Path) -> bool:
    """Shows them. True: none has code of ours."""
    groups = grouped(reports)
    write(groups, path)
    heads = {
        "access": "with an access of our code",
        "caller": "with an access that our code has called",
        "": "without code of ours",
    }
    for ours, head in heads.items():
        some = {group: many for group, many in groups.items() if many[0].ours == ours}
        say(f"{sum(map(len, some.values()))} reports {head}, {len(some)} groups")
        for group, many in some.items():
            say(f"  {len(many)} x {group}")
    return not any(report.ours for report in reports)


@contextlib.contextmanager
def sanitized(folder: Path) -> Iterator[None]:
    """mysqld that starts in the block writes its reports to `folder`. The user's options count more."""
    options = {**SANITIZER, "log_path": str(folder / "tsan")}
    own = os.environ.get("TSAN_OPTIONS", "")
    os.environ["TSAN_OPTIONS"] = ":".join([*(f"{name}={value}" for name, value in options.items()), own])
    try:
        yield
    finally:
        os.environ["TSAN_OPTIONS"] = own


def run(build: Build, folder: Path, options: argparse.Namespace) -> list[str]:
    """@return what went wrong, but for reports"""
    initialise(build, folder / "data", OPTIONS[:2])
    server = Server(build, folder, [*OPTIONS, f"--mysqlx-socket={folder / 'x.sock'}"])
    wrong: list[str] = []
    try:
        server.start(START_SECONDS)
        with server.connect() as session:
            for text in SCHEMA:
                session.query(text)
        load = Load(server, options.seed, options.clients)
        try:
            load.run(options.seconds)
            say(load.brief())
            if not server.alive():
                wrong.append(f"the server ended by itself:\n{server.log_tail()}")
        finally:
            load.end()
        wrong += load.faults
    finally:
        server.stop(START_SECONDS)
    if not wrong and "Shutdown complete" not in server.error_log.read_text(errors="replace"):
        wrong.append(f"the server did not come to its end:\n{server.log_tail()}")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=300.0, help="of load (default: %(default)s)")
    parser.add_argument("--clients", type=int, default=64, help="sessions beside readers (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--preset", default="sanitize-thread", help="default: %(default)s")
    options = parser.parse_args()
    if options.seconds <= 0 or options.clients < 4:
        raise Problem("--seconds must be above zero, and --clients 4 at least")
    preset = known_preset(options.preset)
    for verb in (["--preset", preset], ["--build", "--preset", preset]):
        run_step(["cmake", *verb])
    build = Build.of_preset(ROOT, preset)
    path = STATES / f"races-{options.seed}.reports"
    with lock(path.with_suffix(".lock"), "looking for races with this seed"), scratch() as folder, sanitized(folder):
        wrong = run(build, folder, options)
        clean = verdict(reports_of(folder, "tsan"), path)
    for words in wrong:
        say(words)
    return 0 if clean and not wrong else 1


if __name__ == "__main__":
    run_main("races", main)
