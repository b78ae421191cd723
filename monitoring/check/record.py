#!/usr/bin/env python3
"""Records what Prometheus sees of a server in states that alerts are for, into mixin/tests/recorded.tar.xz.

  monitoring/check/record.py [--only STATE] [--preset dev]

Each state is made on a server of its own, scraped by Debian's exporter and Prometheus. A recording has the series
that the alerts read. Root, for the states in a memory cgroup. Takes half an hour, most of it for growth.
"""

import argparse
import contextlib
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from harness import cgroup
from harness.common import say
from harness.network import own_network
from harness.problem import run_main
from harness.server import Build, Server, initialise
from monitoring import programs, running
from monitoring.check import recordings

MB = 1 << 20
NEAR_LIMIT_MB = 512
# Series that neither a rule nor an alert reads would only make the archive larger.
READ = frozenset(
    name
    for path in (running.FOLDER / "prometheus").glob("memdiag_*.yml")
    for name in re.findall(r"mysql_memdiag_\w+", path.read_text())
)


@dataclass(frozen=True)
class State:
    make: Callable[[Server], None]
    how: str
    options: tuple[str, ...] = ()
    limit_mb: int = 0
    step_seconds: int = 5  # between two samples


def idle(_: Server) -> None:
    time.sleep(20)


def unused_pages(server: Server) -> None:
    with server.connect() as session:
        for number in range(40):
            session.query(f"SET @v{number} = REPEAT('v', {6 * MB - 8192})")
        for number in range(40):
            session.query(f"SET @v{number} = NULL")
        time.sleep(15)


def fragmentation(server: Server) -> None:
    """Of sixteen neighbouring blocks, one stays."""
    with server.connect() as session:
        for begin in range(0, 80_000, 500):
            numbers = range(begin, begin + 500)
            session.query("SET " + ", ".join(f"@f{number} = REPEAT('f', 1700)" for number in numbers))
        for begin in range(0, 80_000, 500):
            numbers = [number for number in range(begin, begin + 500) if number % 16]
            session.query("SET " + ", ".join(f"@f{number} = NULL" for number in numbers))
        time.sleep(15)


def survivors(server: Server) -> None:
    """The route makes values that a session keeps those of a statement, which leaves them behind."""
    with server.connect() as session:
        for number in range(4):
            session.query(f"SET @kept{number} = REPEAT('k', {32 * MB})")
        time.sleep(15)


def backoff(server: Server) -> None:
    """A new burst begins as soon as the pages of the last one are purged."""
    waits = "SELECT BACKOFF FROM information_schema.MEMDIAG_POOLS WHERE POOL = 'session'"
    with server.connect() as session:
        for _ in range(60):
            for number in range(8):
                session.query(f"SET @v{number} = REPEAT('v', {6 * MB - 8192})")
            for number in range(8):
                session.query(f"SET @v{number} = NULL")
            time.sleep(0.25 + 0.1 * int(session.query(waits).scalar() or 1))


def growth(server: Server) -> None:
    """An application puts more and more into user variables."""
    with server.connect() as session:
        for number in range(20 * 60 // 2):
            session.query(f"SET @kept{number} = REPEAT('k', {MB})")
            time.sleep(2)


def near_limit(server: Server) -> None:
    """Fills the group up to its limit. The kernel's charge counts, because RSS has pages of files that may be charged
    elsewhere."""
    room = "SELECT NUMBER FROM information_schema.MEMDIAG_HOST WHERE SUBJECT = 'cgroup' AND NAME = 'effective_room'"
    with server.connect() as session:
        number = 0
        while float(session.query(room).scalar() or 0) > 0.06 * NEAR_LIMIT_MB * MB:
            session.query(f"SET @v{number} = REPEAT('v', {6 * MB - 8192})")
            number += 1
        time.sleep(20)


def killed(server: Server) -> None:
    with server.connect() as session:
        for number in range(24):
            session.query(f"SET @kept{number} = REPEAT('k', {8 * MB})")
            time.sleep(0.2)
        time.sleep(3)
        os.kill(server.pid, signal.SIGKILL)
        while server.alive():
            time.sleep(0.1)
    server.stop()
    server.start()
    time.sleep(20)


STATES = {
    "idle": State(idle, "a server that nobody uses"),
    "unused_pages": State(
        unused_pages,
        "240 MB of user variables were freed, and pool session keeps its pages",
        ("--memdiag-quiet-ms=session=0", "--memdiag-dirty-decay-ms=session=-1"),
    ),
    "fragmentation": State(fragmentation, "of 80,000 user variables each 16th is left"),
    "survivors": State(
        survivors,
        "128 MB of user variables, which a route puts into pool statement, outlive their statements",
        ("--memdiag-routes=memory/sql/user_var_entry::value=statement", "--memdiag-scope-survivors=ON"),
    ),
    "backoff": State(
        backoff, "bursts of 48 MB, each begun when the last was purged", ("--memdiag-quiet-ms=session=100",)
    ),
    "growth": State(
        growth, "in a memory cgroup of 1 GB a session keeps 1 MB more every two seconds", limit_mb=1024, step_seconds=30
    ),
    "near_limit": State(
        near_limit,
        "user variables fill a memory cgroup of 512 MB, and the ceiling is off",
        ("--memdiag-memory-target=OFF",),
        limit_mb=NEAR_LIMIT_MB,
    ),
    "killed": State(killed, "SIGKILL after 192 MB of user variables, then a start"),
}


def name_of(metric: dict[str, str]) -> str:
    labels = {key: value for key, value in sorted(metric.items()) if key not in ("__name__", "instance", "job")}
    # Every recording uses the same name.
    labels |= {"instance": "db1", "job": "mysql-memdiag"}
    inside = ",".join(f'{key}="{value}"' for key, value in labels.items())
    return f"{metric['__name__']}{{{inside}}}"


def is_needed(metric: dict[str, str], values: list[list]) -> bool:
    name = metric["__name__"]
    if name == "up":
        return metric["job"] == "mysql-memdiag"
    if name not in READ:
        return False
    return name != "mysql_memdiag_ledger_resident_bytes" or any(float(value) for _, value in values)


def recorded(prometheus: running.Prometheus, began: float, state: State, version: str) -> dict:
    ended = time.time()
    step = state.step_seconds
    count = int((ended - began) // step) + 1
    data = prometheus.ask(
        "query_range", query='{__name__=~"mysql_memdiag_.+|up"}', start=began, end=began + (count - 1) * step, step=step
    )
    series = {}
    for one in data["result"]:
        if not is_needed(one["metric"], one["values"]):
            continue
        at = {round((when - began) / step): value for when, value in one["values"]}
        series[name_of(one["metric"])] = " ".join(at.get(number, "_") for number in range(count))
    return {
        "made": f"monitoring/check/record.py on {version}: {state.how}",
        "began": int(began),
        "step_seconds": step,
        "samples": count,
        "series": dict(sorted(series.items())),
    }


def record(name: str, state: State, build: Build) -> None:
    with contextlib.ExitStack() as stack:
        stack.enter_context(own_network())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="memdiag-")))
        initialise(build, folder / "data", running.OPTIONS[:2])
        wrapper: tuple[str, ...] = ()
        if state.limit_mb:
            limit = stack.enter_context(cgroup.memory_limit(state.limit_mb << 10))
            wrapper = limit.wrapper()
        port = running.free_port()
        options = (*running.OPTIONS, f"--port={port}", "--max-allowed-packet=64M", *state.options)
        server = stack.enter_context(Server(build, folder, options, wrapper=wrapper))
        server.start()
        running.Measured(server, port).create_account()
        address = stack.enter_context(running.exporter(folder, port, seconds=f"{state.step_seconds}s"))
        prometheus = stack.enter_context(running.prometheus(folder, address, f"{state.step_seconds}s"))
        running.until(lambda: prometheus.values("mysql_memdiag_process_resident_bytes"), "Prometheus has figures")
        began = time.time()
        state.make(server)
        made = recorded(prometheus, began, state, build.version())
    recordings.write(recordings.read() | {name: made})
    say(f"{name}: {len(made['series'])} series of {made['samples']} samples")


def main() -> int:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("--only", action="append", choices=STATES)
    parser.add_argument("--preset", default="dev")
    options = parser.parse_args()
    build = Build.of_preset(ROOT, options.preset)
    programs.all_present()
    for name, state in STATES.items():
        if not options.only or name in options.only:
            record(name, state, build)
    return 0


if __name__ == "__main__":
    run_main("record", main)
