#!/usr/bin/env python3
"""How long a query stalls while another session reads the heap profile again and again.

A stall is the time within a query in which neither the server's thread nor the client's runs or waits for a processor. It
counts only if the server's thread slept within the query. If it did not, the virtual machine waited for its host. See
README.md.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import sys
import time
from collections.abc import Iterator
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.runner import arms as arm_list
from bench.runner import prepared, report, rounds
from bench.runner.own_tables import thread_of
from harness.burst import percentile
from harness.problem import Problem, run_main
from harness.server import Server
from harness.sql import Connection

OPTIONS = (
    "--innodb-buffer-pool-size=64M",
    "--max-connections=1100",
    "--max-prepared-stmt-count=100000",
    # A hundredth of the default sample_bytes, for more samples than any server has.
    "--loose-memdiag-profile-sample-bytes=8192",
    "--loose-memdiag-profile=ON",
)
ROWS = 1000
# Each session holds a prepared statement and a variable of so many bytes.
VARIABLE_BYTES = 100_000
STATEMENT = ", ".join(f"{n} AS c{n}" for n in range(60))
TABLE = "SELECT * FROM information_schema."
READS = {
    "nothing": "",
    # This takes a processor as reading does, but does not touch the profile.
    "another load": "SELECT BENCHMARK(100000, SHA2('x', 256))",
    "MEMDIAG_PROFILE": TABLE + "MEMDIAG_PROFILE",
    "MEMDIAG_SAMPLES": TABLE + "MEMDIAG_SAMPLES",
    "MEMDIAG_PINNED": TABLE + "MEMDIAG_PINNED",
    "memdiag_profile('svg')": "SELECT LENGTH(memdiag_profile('svg'))",
}
TARGET_MS = 1.0
PAUSE = 0.0002


def read(socket: str, statement: str, ready: Event, stop: Event) -> None:
    with Connection(socket) as session:
        while not stop.is_set():
            session.discard(statement)
            ready.set()


@contextlib.contextmanager
def reading(server: Server, statement: str) -> Iterator[None]:
    """Another session reads until the block ends. The block begins after the first read."""
    if not statement:
        yield
        return
    spawn = multiprocessing.get_context("spawn")
    ready, stop = spawn.Event(), spawn.Event()
    child = spawn.Process(target=read, args=(str(server.socket), statement, ready, stop), daemon=True)
    child.start()
    try:
        if not ready.wait(120):
            raise Problem(f"the reader read nothing: {statement}")
        yield
    finally:
        stop.set()
        child.join()


class Task:
    """The kernel's figures of a thread."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)

    def clock(self) -> tuple[int, int]:
        """Nanoseconds for which the thread ran, and for which it waited for a processor."""
        run, wait, _ = (self._path / "schedstat").read_bytes().split()
        return int(run), int(wait)

    def switches(self) -> int:
        """How often the thread gave its processor up."""
        text = (self._path / "status").read_bytes()
        return int(text.rpartition(b"\nvoluntary_ctxt_switches:")[2].split()[0])


def point_selects(server: Server, session: Connection, seconds: float) -> dict[str, list[float]]:
    """Milliseconds of each query: of its stall, and in all."""
    servers = Task(f"/proc/{server.pid}/task/{thread_of(session)}")
    own = Task("/proc/thread-self")
    stalls, totals = [], []
    time.sleep(PAUSE)
    switched = servers.switches()
    end = time.monotonic() + seconds
    number = 0
    while time.monotonic() < end:
        number += 1
        statement = f"SELECT c FROM bench.rows_ WHERE id = {number % ROWS}"
        before, own_wait = servers.clock(), own.clock()[1]
        began, own_run = time.monotonic_ns(), time.thread_time_ns()
        session.query(statement)
        total = time.monotonic_ns() - began
        # The kernel adds the time of waiting only when the thread runs again.
        busy = time.thread_time_ns() - own_run + own.clock()[1] - own_wait
        after = servers.clock()
        stall = total - busy - (after[0] - before[0]) - (after[1] - before[1])
        # The thread gives the processor up once to wait for the next query. More means that it slept before.
        time.sleep(PAUSE)
        switched, last = servers.switches(), switched
        stalls.append(max(0, stall) / 1e6 if switched > last + 1 else 0.0)
        totals.append(total / 1e6)
    return {"stalls": stalls, "totals": totals}


def fill(server: Server, sessions: list[Connection]) -> None:
    with server.connect() as session:
        session.query("CREATE DATABASE IF NOT EXISTS bench")
        session.query("CREATE TABLE IF NOT EXISTS bench.rows_ (id INT PRIMARY KEY, c VARCHAR(200))")
        session.insert("INSERT INTO bench.rows_ VALUES (%s, %s)", [(str(n), "x" * 120) for n in range(ROWS)])
    for session in sessions:
        session.query(f"PREPARE held FROM 'SELECT {STATEMENT}'")
        session.query(f"SET @held = REPEAT('x', {VARIABLE_BYTES})")


def measure(arm: arm_list.Arm, folder: Path, count: int, seconds: float, slices: int) -> dict[str, Any]:
    with arm.server(folder, OPTIONS) as server, contextlib.ExitStack() as others:
        server.start()
        sessions = [others.enter_context(server.connect()) for _ in range(count)]
        fill(server, sessions)
        session = others.enter_context(server.connect())
        found: dict[str, dict[str, list[float]]] = {name: {"stalls": [], "totals": []} for name in READS}
        for _ in range(slices):
            for name, statement in READS.items():
                with reading(server, statement):
                    of_slice = point_selects(server, session, seconds / slices)
                for key, values in of_slice.items():
                    found[name][key] += values
        samples = session.query("SELECT COUNT(*) FROM information_schema.MEMDIAG_SAMPLES").scalar()
        return {"samples": int(samples or 0), "reads": {name: figures(**lists) for name, lists in found.items()}}


def figures(stalls: list[float], totals: list[float]) -> dict[str, float]:
    return {
        "queries": len(stalls),
        "longest": max(stalls),
        "p999": percentile(stalls, 99.9),
        "stalled": sum(one > 0 for one in stalls),
        "total_longest": max(totals),
        "total_median": report.median(totals),
    }


def longest(runs: list[dict[str, Any]], name: str) -> float:
    return max(run["reads"][name]["longest"] for run in runs)


def render(raw: dict[str, Any]) -> str:
    (runs,) = raw["runs"].values()
    rows = []
    for name in READS:
        of_all = [run["reads"][name] for run in runs]
        rows.append(
            [
                name,
                f"{sum(one['queries'] for one in of_all)}",
                f"{sum(one['stalled'] for one in of_all)}",
                f"{report.median(one['p999'] for one in of_all):.3f}",
                f"{longest(runs, name):.3f}",
                f"{report.median(one['total_median'] for one in of_all):.3f}",
                f"{max(one['total_longest'] for one in of_all):.1f}",
            ]
        )
    base = max(longest(runs, "nothing"), longest(runs, "another load"))
    return "\n".join(
        [
            "# How long a query stalls while the heap profile is read\n",
            f"Point selects of one session, in ms, beside {raw['settings']['sessions']} sessions and"
            f" {min(run['samples'] for run in runs)} samples.\n",
            report.table(
                [
                    "meanwhile is read",
                    "queries",
                    "stalled",
                    "stall, 99.9%",
                    "longest",
                    "whole query, median",
                    "longest",
                ],
                rows,
            ),
            "\n## Targets\n",
            report.target_table(
                [
                    report.target(
                        f"longest stall with {name}, ms above that without", longest(runs, name) - base, "<=", TARGET_MS
                    )
                    for name in list(READS)[2:]
                ]
            ),
            report.front_matter(raw),
        ]
    )


def main() -> int:
    parser = rounds.parser(__doc__.splitlines()[0], rounds=1, arms=("dev",), one_arm=True)
    parser.add_argument("--sessions", type=int, default=1000, help="default: %(default)s")
    parser.add_argument("--seconds", type=float, default=10, help="of each kind of reading (default: %(default)s)")
    parser.add_argument(
        "--slices", type=int, default=5, help="that these seconds are divided into (default: %(default)s)"
    )
    options = parser.parse_args()
    rounds.require_positive(options, "sessions", "seconds", "slices")
    return rounds.run(
        "profile_reading",
        options,
        settings={
            "sessions": options.sessions,
            "seconds": options.seconds,
            "slices": options.slices,
            "mysqld": OPTIONS,
        },
        prepare=lambda arms: prepared.template("empty", {}, arms, OPTIONS, lambda server: None),
        measure=rounds.one_by_one(
            lambda arm, folder: measure(arm, folder, options.sessions, options.seconds, options.slices)
        ),
        brief=lambda run: f"longest stall {max(one['longest'] for one in run['reads'].values()):.3f} ms",
        render=render,
        seconds_each=30 + 7 * options.seconds,
    )


if __name__ == "__main__":
    run_main("profile_reading", main)
