#!/usr/bin/env python3
"""What looking costs: how long each table takes to read, and what reading all of them each second costs a load.

See README.md for what the figures mean.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import arms as arm_list
from bench import report, rounds, sysbench_oltp
from tools.burst import Sampler
from tools.problem import run_main
from tools.server import Server

# Read when somebody asks, and not each second: details of every size class and lock,
# of every instrument, and of the past.
ON_DEMAND = (
    "MEMDIAG_BINS",
    "MEMDIAG_LARGE",
    "MEMDIAG_EXTENTS",
    "MEMDIAG_MUTEXES",
    "MEMDIAG_LEDGER_EXACT",
    "MEMDIAG_LAST_RUN",
    "MEMDIAG_HISTORY_POOLS",
    "MEMDIAG_INSTRUMENTS",
)
READS = 15
POLL_SECONDS = 1.0
TARGETS = {"cheap_ms": 10.0, "poll_cost": 0.005}


def read_tables(server: Server, connections: int) -> dict[str, float]:
    """Median milliseconds of each table, with so many idle sessions."""
    with contextlib.ExitStack() as sessions:
        for _ in range(connections):
            sessions.enter_context(server.connect())
        reader = sessions.enter_context(server.connect())
        names = [
            row["TABLE_NAME"]
            for row in reader.query(
                "SELECT TABLE_NAME FROM information_schema.TABLES"
                " WHERE TABLE_SCHEMA = 'information_schema' AND TABLE_NAME LIKE 'MEMDIAG%'"
            ).dicts()
        ]
        taken: dict[str, list[float]] = {name: [] for name in names}
        for _ in range(READS):
            for name, times in taken.items():
                began = time.monotonic()
                reader.query(f"SELECT * FROM information_schema.{name}")
                times.append(1000 * (time.monotonic() - began))
    return {name: report.median(times) for name, times in taken.items()}


@contextlib.contextmanager
def polled(server: Server, names: list[str]) -> Iterator[None]:
    """All cheap tables are read each second meanwhile."""
    with server.connect() as session:

        def read() -> None:
            for name in names:
                session.query(f"SELECT * FROM information_schema.{name}")

        with Sampler(POLL_SECONDS, read):
            yield


def throughput(server: Server, names: list[str], pairs: int, seconds: int) -> list[Any]:
    """Transactions per second without and with the poller, in turns."""

    def once() -> float:
        output = sysbench_oltp.sysbench(
            server, "oltp_point_select", "run", "--threads=8", f"--time={seconds}"
        )
        return sysbench_oltp.parse(output)["tps"]

    once()  # warm
    measured = []
    for number in range(pairs):
        pair: dict[str, float] = {}
        for name in ("without", "with")[:: -1 if number % 2 else 1]:
            with polled(server, names) if name == "with" else contextlib.nullcontext():
                pair[name] = once()
        measured.append(pair)
    return measured


def measure(
    arm: arm_list.Arm, folder: Path, connections: int, pairs: int, seconds: int
) -> dict[str, Any]:
    options = (
        *(o for o in sysbench_oltp.MYSQLD_OPTIONS if "-size=" not in o),
        "--innodb-buffer-pool-size=2G",
    )
    with arm.server(folder, options) as server:
        server.start()
        tables = read_tables(server, connections)
        cheap = [name for name in tables if name not in ON_DEMAND]
        return {
            "tables": tables,
            "cheap_ms": sum(tables[name] for name in cheap),
            "pairs": throughput(server, cheap, pairs, seconds),
        }


def poll_cost(runs: list[dict[str, Any]]) -> float:
    pairs = [pair for run in runs for pair in run["pairs"]]
    return 1 - report.median(pair["with"] / pair["without"] for pair in pairs)


def render(raw: dict[str, Any]) -> str:
    (runs,) = raw["runs"].values()
    names = list(runs[0]["tables"])
    rows = [
        [
            name,
            f"{report.median(run['tables'][name] for run in runs):.2f}",
            "on demand" if name in ON_DEMAND else "",
        ]
        for name in names
    ]
    cheap = report.median(run["cheap_ms"] for run in runs)
    return "\n".join(
        [
            "# What looking costs\n",
            f"{raw['settings']['connections']} connections open, a buffer pool of 2 GB; medians.\n",
            report.table(["table", "ms", ""], rows),
            "\n## Targets\n",
            report.target_table(
                [
                    report.target(
                        "all cheap tables together, ms",
                        cheap,
                        "<=",
                        TARGETS["cheap_ms"],
                    ),
                    report.target(
                        "throughput lost where they are read each second",
                        poll_cost(runs),
                        "<=",
                        TARGETS["poll_cost"],
                    ),
                ]
            ),
            report.front_matter(raw),
        ]
    )


def main() -> int:
    parser = rounds.parser(__doc__.splitlines()[0], rounds=1, arms=("dev",))
    parser.add_argument(
        "--connections", type=int, default=1000, help="default: %(default)s"
    )
    parser.add_argument(
        "--pairs",
        type=int,
        default=8,
        help="of loads without and with a poller (default: %(default)s)",
    )
    parser.add_argument(
        "--seconds", type=int, default=8, help="of each load (default: %(default)s)"
    )
    options = parser.parse_args()
    rounds.require_positive(options, "connections", "pairs", "seconds")
    return rounds.run(
        "looking",
        options,
        settings={
            "sysbench": sysbench_oltp.version(),
            "connections": options.connections,
            "pairs": options.pairs,
            "seconds": options.seconds,
        },
        prepare=sysbench_oltp.template,
        measure=lambda arm, folder: measure(
            arm, folder, options.connections, options.pairs, options.seconds
        ),
        brief=lambda run: f"all cheap tables {run['cheap_ms']:.1f} ms",
        render=render,
        seconds_each=30 + 2 * options.pairs * options.seconds,
    )


if __name__ == "__main__":
    run_main("looking", main)
