#!/usr/bin/env python3
"""Ten states of a server, made on purpose. The first finding of the report must name the holder, and its remedy must work.
Then some by a generator (generated.py), in which each statement of MEMDIAG_ADVICE must work, and end nothing else.

  client/check/states.py [--preset dev] [--stock FOLDER] [--only STATE] [--generated COUNT] [--seed FIRST]

Without --stock it runs on our server; with it, on the server unpacked in FOLDER (client/check/peers.py), where
the remedy is not carried out: there the holder counts. A state that this machine does not allow is skipped.
"""

import argparse
import contextlib
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "client")]

from memdiag.collect.snapshot import take
from memdiag.connect.options import Target
from memdiag.connect.session import Session
from memdiag.model.document import Finding
from memdiag.model.units import signed_size, size
from memdiag.report.build import report

from check import generated
from harness import cgroup
from harness.checks import Checks
from harness.common import say
from harness.problem import NotPossible, run_main
from harness.server import Build, OfAnotherSuite, Server, initialise
from harness.sql import Connection, SqlError
from harness.waiting import until
from tools import host_states

MB = 1 << 20
OPTIONS = (
    "--innodb-buffer-pool-size=64M",
    "--innodb-log-buffer-size=4M",
    "--innodb-redo-log-capacity=64M",
    "--innodb-flush-log-at-trx-commit=2",
    "--max-connections=900",
    "--max-prepared-stmt-count=200000",
    "--max-allowed-packet=64M",
    "--table-open-cache=4000",
    "--table-definition-cache=2000",
    "--max-heap-table-size=512M",
    "--tmp-table-size=512M",
    "--log-bin=binlog",
    "--sync-binlog=0",
    "--loose-mysqlx=OFF",
    # The largest: few tables have much of it.
    "--innodb-ft-cache-size=80000000",
)
# So much of the bytes at stake must come back.
ENOUGH = 0.5
PATIENCE = 600.0
# Half of what makes a finding: it was read some seconds ago.
WAITING_PERCENT = 5.0


@dataclass
class Situation:
    """One server in one state."""

    server: Server
    ours: bool
    limit: cgroup.Limit | None = None
    stack: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def session(self, database: str = "state") -> Connection:
        return self.stack.enter_context(self.server.connect(database))


@dataclass(frozen=True)
class State:
    name: str
    make: Callable[[Situation], None]
    holders: tuple[str, ...]  # one of them must be named, or be the server's rule
    options: tuple[str, ...] = ()
    limit_mb: int = 0
    on_stock: tuple[str, ...] = ()  # also right there
    by_hand: Callable[[Situation], None] | None = None  # what a remedy without a statement says


# --- the states ------------------------------------------------------------------


def leak(now: Situation) -> None:
    """An application that puts more and more into variables of its session."""
    session = now.session()
    for number in range(24):
        session.query(f"SET @kept{number} = REPEAT('k', {8 * MB})")


def prepared_statements(now: Situation) -> None:
    session = now.session()
    words = ", ".join(f"id + {number} AS c{number}" for number in range(120))
    session.query("CREATE TABLE p (id INT PRIMARY KEY)")
    for number in range(1500):
        session.query(f"PREPARE s{number} FROM 'SELECT {words} FROM p WHERE id = ?'")


def table_cache(now: Situation) -> None:
    """Many columns make an open table large."""
    session = now.session()
    columns = ", ".join(f"c{number} INT" for number in range(200))
    for number in range(40):
        session.query(f"CREATE TABLE wide{number} (id INT PRIMARY KEY, {columns})")
    sessions = [now.session() for _ in range(60)]
    for number in range(40):
        # Sessions that have a table open at one time each need an instance of their own.
        for one in sessions:
            one.query(f"HANDLER wide{number} OPEN")
        for one in sessions:
            one.query(f"HANDLER wide{number} CLOSE")


def triggers(now: Situation) -> None:
    session = now.session()
    body = "".join(
        f"SET NEW.b = CONCAT(UPPER(NEW.b), '{number}', LENGTH(NEW.b) + NEW.a * {number}); " for number in range(150)
    )
    aliases = 40
    for number in range(4):
        session.query(f"CREATE TABLE t{number} (id INT PRIMARY KEY AUTO_INCREMENT, a INT, b VARCHAR(200))")
        session.query(
            f"CREATE TRIGGER large{number} BEFORE INSERT ON t{number} FOR EACH ROW BEGIN"
            f" DO GET_LOCK('gate', 3600) + RELEASE_LOCK('gate'); IF NEW.a < 0 THEN {body} END IF; END"
        )
    # Inserts that run at one time each have an instance of the table, which then stays in the cache.
    # So all wait at a gate until the last one is there.
    waiting = f"SELECT COUNT(*) = {aliases} FROM performance_schema.processlist WHERE STATE = 'User lock'"
    processes = [now.server.connect("state", timeout=PATIENCE) for _ in range(aliases)]
    with ThreadPoolExecutor(aliases) as pool:
        for number in range(4):
            session.query("DO GET_LOCK('gate', 0)")
            inserted = pool.map(
                lambda one, table=number: one.query(f"INSERT INTO t{table} (a, b) VALUES (1, 'some text')"), processes
            )
            until(lambda: session.query(waiting).scalar() == "1", PATIENCE)
            session.query("DO RELEASE_LOCK('gate')")
            list(inserted)
    for one in processes:
        one.close()


def memory_tables(now: Situation) -> None:
    session = now.session()
    session.query("CREATE TABLE m (id INT, filler CHAR(255)) ENGINE = MEMORY")
    session.query("INSERT INTO m VALUES " + ", ".join(["(1, 'x')"] * 1000))
    for _ in range(8):
        session.query("INSERT INTO m SELECT * FROM m")


def large_transaction(now: Situation) -> None:
    """Changes that wait in the binary log's cache."""
    session = now.session()
    session.query("CREATE TABLE big (id INT PRIMARY KEY AUTO_INCREMENT, b LONGTEXT)")
    session.query("BEGIN")
    for _ in range(20):
        session.query(f"INSERT INTO big (b) VALUES (REPEAT('b', {8 * MB}))")


def to_innodb(now: Situation) -> None:
    with now.server.connect("state") as session:
        session.query("ALTER TABLE m ENGINE = InnoDB")


def end_the_transaction(now: Situation) -> None:
    with now.server.connect() as session:
        number = session.query("SELECT trx_mysql_thread_id FROM information_schema.INNODB_TRX").scalar()
        session.query(f"KILL {number}")


def connection_storm(now: Situation) -> None:
    """They sleep for a minute: no remedy ends a session that was at work a moment ago."""
    for _ in range(700):
        session = now.session()
        session.query(f"SET @x = REPEAT('x', {96 << 10})")
    young = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE COMMAND = 'Sleep' AND TIME < 61"
    until(lambda: not now.ours or now.server.query(young).scalar() == "0", PATIENCE, 1)


def fragmentation(now: Situation) -> None:
    """One of sixteen neighbouring blocks stays."""
    session = now.session()
    numbers = range(80_000)
    for begin in range(0, len(numbers), 500):
        values = (f"@f{number} = REPEAT('f', 1700)" for number in numbers[begin : begin + 500])
        session.query("SET " + ", ".join(values))
    freed = [number for number in numbers if number % 16]
    for begin in range(0, len(freed), 500):
        session.query("SET " + ", ".join(f"@f{number} = NULL" for number in freed[begin : begin + 500]))
    # Pages that are quite free are purged when the pool is quiet.
    dirty = "SELECT DIRTY_BYTES FROM information_schema.MEMDIAG_POOLS WHERE POOL = 'session'"
    until(lambda: not now.ours or int(now.server.query(dirty).scalar() or 0) < 16 * MB, PATIENCE)


def near_limit(now: Situation) -> None:
    """Unused pages fill the group, as the options leave them to stay."""
    assert now.limit
    session = now.session()
    count = 0
    limit = _LIMIT_MB * MB
    while now.limit.used_bytes() < limit * 0.92:
        session.query(f"SET @v{count} = REPEAT('v', {6 * MB - 8192})")
        count += 1
    if now.ours:
        for number in range(count):
            session.query(f"SET @v{number} = NULL")


def swap(now: Situation) -> None:
    assert now.limit
    session = now.session()
    place = now.server.folder.parent / "states.swap"
    now.stack.enter_context(host_states.swap_file(place))
    for number in range(10):
        session.query(f"SET @idle{number} = REPEAT('i', {32 * MB - 8192})")
    host_states.swap_out(
        now.limit, now.limit.used_bytes() - 192 * MB, lambda: host_states.swapped_mb(now.server) >= 100
    )
    if host_states.swapped_mb(now.server) < 80:
        raise NotPossible("the kernel swapped out too little")


_LIMIT_MB = 768
_KEPT = ("--loose-memdiag-quiet-ms=session=0", "--loose-memdiag-dirty-decay-ms=session=-1")
STATES = (
    State("leak", leak, ("user variables",)),
    State("fragmentation", fragmentation, ("fragmentation",), on_stock=("unused pages", "memory that is not counted")),
    State("table cache", table_cache, ("open tables",)),
    State("triggers", triggers, ("triggers",)),
    State("prepared statements", prepared_statements, ("prepared statements",)),
    State("MEMORY tables", memory_tables, ("MEMORY tables",), by_hand=to_innodb),
    State(
        "large transaction",
        large_transaction,
        ("binary log caches", "transactions, locks"),
        ("--binlog-cache-size=256M",),
        by_hand=end_the_transaction,
    ),
    State("connection storm", connection_storm, ("sessions", "user variables", "idle_sessions")),
    State("swap", swap, ("swap",), limit_mb=2 * _LIMIT_MB),
    # The ceiling would keep it away from there.
    State("cgroup near its limit", near_limit, ("cgroup",), (*_KEPT, "--loose-memdiag-memory-target=OFF"), _LIMIT_MB),
)


# --- carrying them out ---------------------------------------------------------------


@contextlib.contextmanager
def situation(build: Build, folder: Path, state: State, ours: bool) -> Iterator[Situation]:
    with contextlib.ExitStack() as stack:
        limit = None
        wrapper: tuple[str, ...] = ()
        if state.limit_mb:
            limit = stack.enter_context(cgroup.memory_limit(state.limit_mb << 10))
            wrapper = limit.wrapper()
        server = stack.enter_context(Server(build, folder, (*OPTIONS, *state.options), wrapper=wrapper))
        server.start()
        with server.connect() as session:
            session.query("DROP DATABASE IF EXISTS state")
            session.query("CREATE DATABASE state")
        yield Situation(server, ours, limit, stack)


def snapshot(server: Server) -> dict:
    with Session(Target(socket=str(server.socket), user="root")) as session:
        return take(session)


def settle(now: Situation) -> None:
    """Waits until nothing grows by the advice: a busy machine takes longer than a minute to make a state, and then its
    growth is the first finding for a while."""
    growing = "SELECT COUNT(*) FROM information_schema.MEMDIAG_ADVICE WHERE RULE LIKE 'growth%'"
    until(lambda: not now.ours or now.server.query(growing).scalar() == "0", PATIENCE, 1)


def bytes_at_stake(server: Server, finding: Finding) -> int:
    """Bytes that the report gives the same holder now; 0 where it names the holder no more."""
    view = report(snapshot(server))
    for one in view.findings:
        if (one.rule, one.holder) == (finding.rule, finding.holder):
            return one.bytes or 0
    return 0


def names(finding: Finding, right: tuple[str, ...]) -> bool:
    return finding.holder in right or finding.rule in right


def is_of_others(finding: Finding, now: Situation) -> bool:
    """States beside this one make tasks of the machine wait for memory. A server in a group of its own knows its own
    waits, and one that tells of waits where there are none is wrong."""
    is_of_pressure = "pressure" in (finding.rule, finding.holder)
    return is_of_pressure and now.limit is None and waiting_percent() >= WAITING_PERCENT


def waiting_percent(file: Path = Path("/proc/pressure/memory")) -> float:
    """How much of the last ten seconds some task of the machine waited for memory."""
    found = re.match(r"some avg10=([0-9.]+)", file.read_text()) if file.exists() else None
    return float(found[1]) if found else 0.0


def rss(server: Server) -> int:
    return server.rss_kb() * 1024


def drive(state: State, build: Build, folder: Path, ours: bool, checks: Checks, keep: Path | None) -> None:
    with situation(build, folder, state, ours) as now:
        began = rss(now.server)
        state.make(now)
        settle(now)
        found = snapshot(now.server)
        page = report(found)
        if keep:
            name = f"{'ours' if ours else 'stock'}-{state.name.replace(' ', '-')}.json"
            (keep / name).write_text(json.dumps(found))
        first = next((one for one in page.findings if not is_of_others(one, now)), None)
        right = state.holders + (() if ours else state.on_stock)
        checks.check(
            f"{state.name}: the first finding names the holder",
            first is not None and names(first, right),
            "no finding" if first is None else f"{first.holder}: {first.headline}",
        )
        if ours:
            checks.nothing(f"{state.name}: nothing is more than RSS", generated.beyond_rss(now.server))
        if not ours or first is None or not names(first, right):
            return
        before = first.bytes or 0
        rss_before = rss(now.server)
        apply(now, first)
        if not first.statements and state.by_hand:
            state.by_hand(now)
        deadline = time.monotonic() + PATIENCE
        # After KILL the session ends by itself, and the pool is purged when it is quiet.
        while (left := bytes_at_stake(now.server, first)) > before * ENOUGH:
            if time.monotonic() > deadline:
                break
            time.sleep(0.5)
        time.sleep(0 if state.limit_mb else 1.2)
        after = rss(now.server)
        gone = before - left
        checks.check(
            f"{state.name}: its remedy works",
            left <= before * ENOUGH,
            f"{'; '.join(first.statements)[:90]} gave back {size(gone)} of {size(before)};"
            f" RSS {size(began)}, {size(rss_before)} in the state, {signed_size(after - rss_before)} after",
        )


def apply(now: Situation, finding: Finding) -> None:
    """Carry out the statements as a person would: the rows of a column RUN are statements, too."""
    with now.server.connect() as session:
        for statement in finding.statements:
            if statement.startswith(("systemctl", "echo", "ps ")):
                continue  # the alternative that needs a service
            if statement.startswith("sysctl"):
                continue
            if "swapoff" in statement:
                # The swap of this test alone, not the machine's.
                subprocess.run(["swapoff", now.server.folder.parent / "states.swap"], check=True)
                continue
            found = session.query(statement)
            for row in found.rows if [name.upper() for name in found.columns] == ["RUN"] else ():
                # A session may have ended by itself.
                with contextlib.suppress(SqlError):
                    session.query(str(row[0]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--preset", default="dev")
    parser.add_argument("--build", type=Path, help="folder of a build, instead of --preset")
    parser.add_argument("--stock", type=Path)
    parser.add_argument("--only", action="append", choices=[*(one.name for one in STATES), "generated"])
    parser.add_argument(
        "--part", choices=("1/3", "2/3", "3/3"), help="a third of the states: three processes take a third of the time"
    )
    parser.add_argument("--generated", type=int, default=3, metavar="COUNT", help="so many states of the generator")
    parser.add_argument("--seed", type=int, default=5, help="of the first of these")
    parser.add_argument("--holder", action="append", default=[], help="of these, by the names in generated.py")
    parser.add_argument("--folder", type=Path, help="data directories; removed before")
    parser.add_argument("--keep", type=Path, help="folder for the snapshots, as fixtures")
    options = parser.parse_args()
    checks = Checks("client states")
    if options.stock:
        build: Build = OfAnotherSuite(options.stock)
    elif options.build:
        build = Build(options.build)
    else:
        build = Build.of_preset(ROOT, options.preset)
    part = options.part[0] if options.part else ""
    folder = options.folder or ROOT / "build" / options.preset / f"client-states{part}"
    ours = not options.stock
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
    base = folder / "server"
    initialise(build, base / "data", ())
    try:
        for state in STATES:
            if options.only and state.name not in options.only:
                continue
            if part and STATES.index(state) % 3 != int(part) - 1:
                continue
            say(f"-- {state.name}")
            try:
                drive(state, build, base, ours, checks, options.keep)
            except NotPossible as reason:
                checks.skip(state.name, reason)
        seeds = range(options.seed, options.seed + options.generated)
        for seed in seeds if ours and "generated" in (options.only or ["generated"]) else ():
            if part and seed % 3 != int(part) - 1:
                continue
            say(f"-- generated {seed}")
            with situation(build, base, State("generated", leak, ()), ours) as now:

                def of_triggers(_made: generated.Made, _wanted: int, now: Situation = now) -> None:
                    triggers(now)

                generated.drive(seed, now.server, now.stack, (of_triggers,), checks, options.holder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return checks.finish()


if __name__ == "__main__":
    run_main("states", main)
