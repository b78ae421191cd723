#!/usr/bin/env python3
"""The cost of the tables: time to read each one, and the loss of a load while they are read each second.

It also measures the cost of memdiag_sessions, which counts for sessions and statements. README.md explains the figures.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import sysbench_oltp
from bench.runner import arms as arm_list
from bench.runner import report, rounds
from bench.runner.own_tables import cpu_ms, every, everyday, thread_of
from bench.workloads import sysbench_program
from harness.burst import Sampler
from harness.problem import run_main
from harness.server import Server

# Everyday tables that no monitor needs each second: they show every instrument, the budget of
# variables, and the past, which the server has sampled each second already.
ON_DEMAND = (
    "MEMDIAG_BUDGET",
    "MEMDIAG_INSTRUMENTS",
    "MEMDIAG_HISTORY",
    "MEMDIAG_HISTORY_POOLS",
    "MEMDIAG_LAST_RUN",
    "MEMDIAG_LAST_RUN_PROFILE",
    "MEMDIAG_PROFILE_HISTORY",
)
READS = 15
POLL_SECONDS = 1.0
TARGETS = {"cheap_ms": 10.0, "poll_cost": 0.005, "sessions_cost": 0.01}

# A switch that is on during the block. The loads with and without it are compared.
Switch = Callable[[], contextlib.AbstractContextManager[None]]


def cheap() -> list[str]:
    """The tables that a monitor reads each second."""
    return [name for name in everyday() if name not in ON_DEMAND]


def read_tables(server: Server, connections: int) -> dict[str, dict[str, float]]:
    """Median milliseconds of each table, by the clock and by the processor, with so many idle sessions."""
    with contextlib.ExitStack() as sessions:
        for _ in range(connections):
            sessions.enter_context(server.connect())
        reader = sessions.enter_context(server.connect())
        thread = thread_of(reader)
        taken: dict[str, list[tuple[float, float]]] = {name: [] for name in every(reader)}
        for _ in range(READS):
            # A monitor reads one table after the other, and again a second later.
            time.sleep(POLL_SECONDS)
            for name, times in taken.items():
                began = (time.monotonic(), cpu_ms(server, thread))
                reader.discard(f"SELECT * FROM information_schema.{name}")
                ended = (time.monotonic(), cpu_ms(server, thread))
                times.append((1000 * (ended[0] - began[0]), ended[1] - began[1]))
    return {
        name: {"ms": report.median(ms for ms, _ in times), "cpu_ms": report.median(cpu for _, cpu in times)}
        for name, times in taken.items()
    }


@contextlib.contextmanager
def polled(server: Server, names: list[str]) -> Iterator[None]:
    """Read all cheap tables each second during the block."""
    with server.connect() as session:

        def read() -> None:
            for name in names:
                session.discard(f"SELECT * FROM information_schema.{name}")

        with Sampler(POLL_SECONDS, read):
            yield


@contextlib.contextmanager
def sessions_counted(server: Server) -> Iterator[None]:
    server.query("SET GLOBAL memdiag_sessions = ON")
    try:
        yield
    finally:
        server.query("SET GLOBAL memdiag_sessions = OFF")


def pairs_of(server: Server, switch: Switch, pairs: int, seconds: int) -> list[Any]:
    """Transactions per second, and microseconds of the server's processor time for each, without and with it in turns."""

    def once() -> dict[str, float]:
        before = server.usage()
        output = sysbench_program.run(server, "oltp_point_select", "run", "--threads=8", f"--time={seconds}")
        usage = server.usage().since(before)
        tps = sysbench_program.parse(output)["tps"]
        cpu_seconds = usage.cpu_seconds
        return {"tps": tps, "cpu_us": 1e6 * cpu_seconds / (tps * seconds)}

    once()  # a warm-up
    measured = []
    for number in range(pairs):
        pair: dict[str, dict[str, float]] = {}
        for name in ("without", "with")[:: -1 if number % 2 else 1]:
            with switch() if name == "with" else contextlib.nullcontext():
                pair[name] = once()
        measured.append(pair)
    return measured


def measure(arm: arm_list.Arm, folder: Path, connections: int, pairs: int, seconds: int) -> dict[str, Any]:
    options = (*(o for o in sysbench_program.MYSQLD_OPTIONS if "-size=" not in o), "--innodb-buffer-pool-size=2G")
    with arm.server(folder, options) as server:
        server.start()
        tables = read_tables(server, connections)
        return {
            "tables": tables,
            "cheap_ms": sum(tables[name]["ms"] for name in cheap()),
            "cheap_cpu_ms": sum(tables[name]["cpu_ms"] for name in cheap()),
            "polled": pairs_of(server, lambda: polled(server, cheap()), pairs, seconds),
            "sessions": pairs_of(server, lambda: sessions_counted(server), pairs, seconds),
        }


def cost(runs: list[dict[str, Any]], switch: str, figure: str) -> float:
    """The share by which the switch lowers a figure, or raises a cost."""
    pairs = [pair for run in runs for pair in run[switch]]
    change = report.median(pair["with"][figure] / pair["without"][figure] for pair in pairs) - 1
    return change if figure == "cpu_us" else -change


def render(raw: dict[str, Any]) -> str:
    (runs,) = raw["runs"].values()
    names = list(runs[0]["tables"])
    rows = [
        [
            name,
            *(f"{report.median(run['tables'][name][figure] for run in runs):.2f}" for figure in ("ms", "cpu_ms")),
            "" if name in cheap() else "on demand",
        ]
        for name in names
    ]
    cheap_ms, cheap_cpu_ms = (report.median(run[figure] for run in runs) for figure in ("cheap_ms", "cheap_cpu_ms"))
    share = cheap_cpu_ms / (1000 * POLL_SECONDS * raw["machine"]["cpus"])
    return "\n".join(
        [
            "# What looking costs\n",
            f"{raw['settings']['connections']} connections open, a buffer pool of 2 GB; medians.\n",
            report.table(["table", "ms", "CPU ms", ""], rows),
            "\n## Targets\n",
            report.target_table(
                [
                    report.target("all cheap tables together, ms", cheap_ms, "<=", TARGETS["cheap_ms"]),
                    report.target(
                        "processor time of the machine that reading them each second takes",
                        share,
                        "<=",
                        TARGETS["poll_cost"],
                    ),
                    report.target("throughput lost meanwhile", cost(runs, "polled", "tps"), "<=", TARGETS["poll_cost"]),
                    report.target(
                        "processor time more for each transaction, memdiag_sessions ON",
                        cost(runs, "sessions", "cpu_us"),
                        "<=",
                        TARGETS["sessions_cost"],
                    ),
                    report.target(
                        "throughput lost with it", cost(runs, "sessions", "tps"), "<=", TARGETS["sessions_cost"]
                    ),
                ]
            ),
            report.front_matter(raw),
        ]
    )


def main() -> int:
    parser = rounds.parser(__doc__.splitlines()[0], rounds=1, arms=("dev",), one_arm=True)
    parser.add_argument("--connections", type=int, default=1000, help="default: %(default)s")
    parser.add_argument("--pairs", type=int, default=8, help="of loads without and with (default: %(default)s)")
    parser.add_argument("--seconds", type=int, default=8, help="of each load (default: %(default)s)")
    options = parser.parse_args()
    rounds.require_positive(options, "connections", "pairs", "seconds")
    return rounds.run(
        "table_cost",
        options,
        settings={
            "sysbench": sysbench_program.version(),
            "connections": options.connections,
            "pairs": options.pairs,
            "seconds": options.seconds,
        },
        prepare=sysbench_oltp.template,
        measure=rounds.one_by_one(
            lambda arm, folder: measure(arm, folder, options.connections, options.pairs, options.seconds)
        ),
        brief=lambda run: (
            f"all cheap tables {run['cheap_ms']:.1f} ms, {run['cheap_cpu_ms']:.1f} ms of them on a processor"
        ),
        render=render,
        seconds_each=50 + 4 * options.pairs * options.seconds,
    )


if __name__ == "__main__":
    run_main("table_cost", main)
