#!/usr/bin/env python3
"""How long clients wait because a session reads tables, and how soon such a read ends.

Sessions connect and disconnect while others read tables, show status and set variables. KILL QUERY and
MAX_EXECUTION_TIME end reads.

See README.md for what the figures mean.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.runner import arms as arm_list
from bench.runner import own_tables, prepared, report, rounds
from bench.runner.quiet import priority
from harness.burst import Sampler
from harness.problem import Problem, run_main
from harness.server import Server
from harness.sql import Connection, SqlError

SAMPLES = 86400
OPTIONS = (
    "--innodb-buffer-pool-size=256M",
    "--max-connections=1500",
    # With long histories, reads take long.
    f"--loose-memdiag-history-samples={SAMPLES}",
    # The server measures the waits for mutexes. A client's clock would also measure the client.
    "--performance-schema-instrument=wait/synch/mutex/sql/%=ON",
    "--performance-schema-consumer-events-waits-current=ON",
)
# A session takes these when it connects or ends.
MUTEXES = (
    "wait/synch/mutex/sql/LOCK_status",
    "wait/synch/mutex/sql/LOCK_global_system_variables",
    "wait/synch/mutex/sql/LOCK_thd_list",
    "wait/synch/mutex/sql/LOCK_thd_remove",
)
# The history's interval, except while it is filled.
SAMPLING_MS = 1000
# These statements set each variable to another value and back.
VARIABLES = {
    "memdiag_quiet_ms": ("'session=1000'", "''"),
    "memdiag_dirty_decay_ms": ("'all=0'", "''"),
    "memdiag_muzzy_decay_ms": ("'session=1000'", "''"),
    "memdiag_dirty_limit": ("'all=1M'", "''"),
    "memdiag_scope_survivors": ("ON", "OFF"),
    "memdiag_sessions": ("ON", "OFF"),
    "memdiag_history_interval_ms": ("500", str(SAMPLING_MS)),
    "memdiag_profile": ("RECORD", "OFF"),
    "memdiag_profile_sample_bytes": ("1048576", "524288"),
    "memdiag_profile_memory": ("16777216", "33554432"),
    "memdiag_pressure_watcher": ("WATCH", "OFF"),
    "memdiag_pressure_limit": ("95", "90"),
    "memdiag_pressure_stall_percent": ("20", "10"),
    "memdiag_pressure_buffer_pool_min": ("67108864", "0"),
    "memdiag_admission": ("WATCH", "OFF"),
    "memdiag_admission_wait_ms": ("5000", "10000"),
    "memdiag_admission_reserve": ("33554432", "0"),
}
# Variables that stock MySQL has too. Setting them shows what a machine does that pauses a virtual processor.
CONTROLS = {"long_query_time": ("5", "10"), "net_read_timeout": ("20", "30"), "sort_buffer_size": ("524288", "262144")}
PROCESSES = 4
NOTHING = ("SELECT 1",)
CHURN_PAUSE_SECONDS = 0.02
CONNECT_PAUSE_SECONDS = 0.002
# After so many seconds a read is killed; so many milliseconds are its MAX_EXECUTION_TIME.
KILLED_AFTER = (0.002, 0.01, 0.05)
LIMITS_MS = (1, 10, 50)
TARGETS = {"wait_ms": 20.0, "end_ms": 100.0}


def churn(socket: str, sessions: int, stop: Event) -> None:
    """Hold so many sessions. Replace the oldest by a new one, again and again."""
    held: list[Connection] = []
    while not stop.is_set():
        session = Connection(socket)
        session.query("SELECT 1")
        held.append(session)
        if len(held) >= sessions:
            held.pop(0).close()
            time.sleep(CHURN_PAUSE_SECONDS)
    for session in held:
        session.close()


@contextlib.contextmanager
def churning(server: Server, sessions: int) -> Iterator[None]:
    spawn = multiprocessing.get_context("spawn")
    stop = spawn.Event()
    each = sessions // PROCESSES
    children = [
        spawn.Process(target=churn, args=(str(server.socket), each, stop), daemon=True) for _ in range(PROCESSES)
    ]

    def require_all() -> None:
        if not all(child.is_alive() for child in children):
            raise Problem("a client that connects and disconnects has ended")

    for child in children:
        child.start()
    try:
        with server.connect() as session:
            while int(threads(session)) < sessions:
                require_all()
                time.sleep(0.1)
        yield
        require_all()
    finally:
        stop.set()
        for child in children:
            child.join()


def threads(session: Connection) -> str:
    return session.query("SHOW GLOBAL STATUS LIKE 'Threads_connected'").rows[0][1] or ""


def connect_ms(server: Server) -> float:
    """Milliseconds to connect. A pause follows."""
    began = time.monotonic()
    with server.connect():
        waited = 1000 * (time.monotonic() - began)
    time.sleep(CONNECT_PAUSE_SECONDS)
    return waited


def actions(session: Connection) -> dict[str, tuple[str, ...]]:
    """The loads that run meanwhile: name, and the statements that the load repeats."""
    named: dict[str, tuple[str, ...]] = {}
    for table in own_tables.every(session):
        named[table] = (f"SELECT * FROM information_schema.{table}",)
    named["SHOW GLOBAL STATUS"] = ("SHOW GLOBAL STATUS",)
    for name, values in (VARIABLES | CONTROLS).items():
        named[setting(name)] = tuple(f"{setting(name)} = {value}" for value in values)
    return named


def setting(variable: str) -> str:
    return f"SET GLOBAL {variable}"


def mutex_wait_ms(session: Connection) -> float:
    """The longest wait of any session for one of the mutexes since the last call."""
    names = ", ".join(f"'{name}'" for name in MUTEXES)
    summary = "performance_schema.events_waits_summary_global_by_event_name"
    longest = session.query(f"SELECT MAX(MAX_TIMER_WAIT) / 1e9 FROM {summary} WHERE EVENT_NAME IN ({names})").scalar()
    session.query(f"TRUNCATE TABLE {summary}")
    return float(longest or 0)


def waits(server: Server, session: Connection, statements: Sequence[str], seconds: float) -> dict[str, float]:
    mutex_wait_ms(session)
    times = 0
    end = time.monotonic() + seconds
    with Sampler(0, lambda: connect_ms(server)) as connects:
        while time.monotonic() < end:
            for statement in statements:
                session.discard(statement)
            times += 1
    return {
        "times": times,
        "connect_ms": max(waited for _, waited in connects.samples),
        "mutex_ms": mutex_wait_ms(session),
    }


def in_turn(
    server: Server, session: Connection, statements: Sequence[str], seconds: float, slices: int
) -> dict[str, float]:
    """Alternates slices with and without the action. The longest wait of all slices of a kind counts."""
    each = seconds / slices
    without, with_it = [], []
    for _ in range(slices):
        without.append(waits(server, session, NOTHING, each))
        with_it.append(waits(server, session, statements, each))
    return {
        "times": sum(run["times"] for run in with_it),
        **{
            f"{when}{figure}": max(run[figure] for run in found)
            for when, found in (("", with_it), ("without_", without))
            for figure in ("connect_ms", "mutex_ms")
        },
    }


def goes_on_after_limit(server: Server, table: str, limit_ms: int) -> float:
    """Milliseconds for which a read goes on after its time limit."""
    with server.connect() as reader:
        began = time.monotonic()
        with contextlib.suppress(SqlError):
            reader.discard(f"SELECT /*+ MAX_EXECUTION_TIME({limit_ms}) */ * FROM information_schema.{table}")
        return max(0.0, 1000 * (time.monotonic() - began) - limit_ms)


def goes_on_after_kill(server: Server, table: str, after: float) -> float:
    """Milliseconds for which a read goes on after KILL QUERY, which comes so many seconds after its begin.

    KILL QUERY does nothing to a session whose statement has not begun."""
    with server.connect() as reader, server.connect() as killer:
        connection = reader.query("SELECT CONNECTION_ID()").scalar()
        ended = threading.Event()

        def read() -> None:
            with contextlib.suppress(SqlError):
                reader.discard(f"SELECT * FROM information_schema.{table}")
            ended.set()

        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        command = f"SELECT COMMAND FROM performance_schema.processlist WHERE ID = {connection}"
        while not ended.is_set() and killer.query(command).scalar() != "Query":
            pass
        time.sleep(after)
        began = time.monotonic()
        killer.query(f"KILL QUERY {connection}")
        ended.wait()
        thread.join()
        return 1000 * (time.monotonic() - began)


def fill_history(session: Connection, samples: int) -> int:
    """Waits until there are enough samples or no more come; returns their number."""
    session.query("SET GLOBAL memdiag_history_interval_ms = 1")
    count = "SELECT COUNT(*) FROM information_schema.MEMDIAG_HISTORY"
    before, now = -1, 0
    while before < now < samples:
        time.sleep((samples - now) * 0.001 + 1)
        before, now = now, int(session.query(count).scalar() or 0)
    session.query(f"SET GLOBAL memdiag_history_interval_ms = {SAMPLING_MS}")
    return now


def measure(
    arm: arm_list.Arm, folder: Path, sessions: int, seconds: float, slices: int, readers: int
) -> dict[str, Any]:
    with arm.server(folder, OPTIONS, priority()) as server, contextlib.ExitStack() as others:
        server.start()
        session = others.enter_context(server.connect())
        others.enter_context(churning(server, sessions))
        found = {
            name: in_turn(server, session, statements, seconds, slices) for name, statements in actions(session).items()
        }
        samples = fill_history(session, SAMPLES)
        # Without the profiler, its tables are empty.
        session.query("SET GLOBAL memdiag_profile = RECORD")
        for _ in range(readers - sessions):
            others.enter_context(server.connect())
        endings = {
            table: {
                "kill_ms": max(goes_on_after_kill(server, table, after) for after in KILLED_AFTER),
                "limit_ms": max(goes_on_after_limit(server, table, limit) for limit in LIMITS_MS),
            }
            for table in own_tables.every(session)
        }
        return {"waits": found, "ends": endings, "samples": samples}


def longest(runs: list[dict[str, Any]], part: str, figure: str, controls: bool = False) -> float:
    """Of the controls, or of all else."""
    names = [setting(name) for name in CONTROLS]
    return max(row[figure] for run in runs for name, row in run[part].items() if (name in names) == controls)


def render(raw: dict[str, Any]) -> str:
    (runs,) = raw["runs"].values()

    def worst(part: str, name: str, figure: str) -> str:
        return f"{max(run[part][name][figure] for run in runs):.1f}"

    return "\n".join(
        [
            "# How long clients wait for looking\n",
            f"{raw['settings']['sessions']} sessions, each of which is replaced all the time. The longest of each, in ms;"
            " without: in slices of time in between, in which nothing is looked at.\n",
            report.table(
                ["meanwhile", "times", "connect", "without", "mutex of connecting or ending", "without"],
                [
                    [
                        name,
                        f"{sum(run['waits'][name]['times'] for run in runs)}",
                        *(
                            worst("waits", name, figure)
                            for figure in ("connect_ms", "without_connect_ms", "mutex_ms", "without_mutex_ms")
                        ),
                    ]
                    for name in runs[0]["waits"]
                ],
            ),
            f"\nWith {raw['settings']['readers']} sessions and {min(run['samples'] for run in runs)} samples of history:"
            " reading goes on after KILL QUERY, and after MAX_EXECUTION_TIME, in ms:\n",
            report.table(
                ["table", "KILL QUERY", "MAX_EXECUTION_TIME"],
                [[name, worst("ends", name, "kill_ms"), worst("ends", name, "limit_ms")] for name in runs[0]["ends"]],
            ),
            "\n## Targets\n",
            report.target_table(
                [
                    report.target(
                        "longest wait for a mutex of connecting or ending, ms",
                        longest(runs, "waits", "mutex_ms"),
                        "<=",
                        TARGETS["wait_ms"],
                    ),
                    report.target(
                        "the same, ms above that while stock's own variables are set",
                        longest(runs, "waits", "mutex_ms") - longest(runs, "waits", "mutex_ms", controls=True),
                        "<=",
                        TARGETS["wait_ms"],
                    ),
                    report.target(
                        "longest connect, ms above that without looking",
                        longest(runs, "waits", "connect_ms") - longest(runs, "waits", "without_connect_ms"),
                        "<=",
                        TARGETS["wait_ms"],
                    ),
                    report.target(
                        "longest end of a killed read, ms", longest(runs, "ends", "kill_ms"), "<=", TARGETS["end_ms"]
                    ),
                    report.target(
                        "longest end of a read with a time limit, ms",
                        longest(runs, "ends", "limit_ms"),
                        "<=",
                        TARGETS["end_ms"],
                    ),
                ]
            ),
            report.front_matter(raw),
        ]
    )


def main() -> int:
    parser = rounds.parser(__doc__.splitlines()[0], rounds=1, arms=("dev",), one_arm=True)
    parser.add_argument("--sessions", type=int, default=200, help="default: %(default)s")
    parser.add_argument(
        "--seconds", type=float, default=3, help="of each action, and as many without (default: %(default)s)"
    )
    parser.add_argument(
        "--slices", type=int, default=3, help="that these seconds are divided into (default: %(default)s)"
    )
    parser.add_argument(
        "--readers", type=int, default=1000, help="sessions while reads are killed (default: %(default)s)"
    )
    options = parser.parse_args()
    rounds.require_positive(options, "sessions", "seconds", "slices", "readers")
    return rounds.run(
        "lock_waits",
        options,
        settings={
            "sessions": options.sessions,
            "seconds": options.seconds,
            "slices": options.slices,
            "readers": options.readers,
            "priority": " ".join(priority()),
        },
        prepare=lambda arms: prepared.template("empty", {}, arms, OPTIONS, lambda server: None),
        measure=rounds.one_by_one(
            lambda arm, folder: measure(arm, folder, options.sessions, options.seconds, options.slices, options.readers)
        ),
        brief=lambda run: (
            f"longest wait for a mutex {longest([run], 'waits', 'mutex_ms'):.1f} ms,"
            f" longest end {longest([run], 'ends', 'kill_ms'):.1f} ms"
        ),
        render=render,
        seconds_each=180 + 75 * options.seconds,
    )


if __name__ == "__main__":
    run_main("lock_waits", main)
