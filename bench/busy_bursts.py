#!/usr/bin/env python3
"""A server that is never idle: steady OLTP at a fixed rate, and a burst of large sorts every ten seconds.

It measures the memory that is resident between the bursts, and what the rate becomes.

See README.md for what the figures mean.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import sysbench_oltp
from bench.runner import arms as arm_list
from bench.runner import prepared, report, rounds
from bench.workloads import sysbench_program
from harness import burst
from harness.burst import Sampler
from harness.problem import run_main
from harness.server import Server

TEST = "oltp_read_write"
THREADS = 8
LOAD = 0.6  # of the rate that the first arm of a round reaches alone
CALIBRATION_SECONDS = 10
PERIOD_SECONDS = 10.0
# After so many seconds of a period, until the next burst, the server is "between bursts".
SETTLE_SECONDS = 6.0
SAMPLE_SECONDS = 0.1
SORTERS = 4
SORT_BUFFER_MB = 32
# Some 10 MB of rows each.
SORT = (
    "SELECT /*+ SET_VAR(sort_buffer_size = {bytes}) */ COUNT(*) FROM"
    " (SELECT c, pad FROM sbtest{table} ORDER BY pad, c LIMIT 49999) AS sorted"
)
TARGETS = {"rss": 1.0, "rate": 1.0}


def sort_burst(server: Server) -> float:
    """Runs all sorts of one burst; returns the seconds that they took."""

    def steps(number: int) -> Iterator[int]:
        statement = SORT.format(bytes=SORT_BUFFER_MB << 20, table=1 + number % sysbench_oltp.TABLES)
        with server.connect(sysbench_oltp.DATABASE) as session:
            yield 0
            yield len(session.query(statement).rows)

    return burst.crowd(steps, SORTERS).seconds


def oltp(server: Server, seconds: float, *options: str) -> dict[str, float]:
    return sysbench_program.parse(
        sysbench_program.run(server, TEST, "run", f"--threads={THREADS}", f"--time={seconds:.0f}", *options)
    )


def measure(server: Server, rate: float, bursts: int) -> dict[str, Any]:
    steady: dict[str, float] = {}
    failed: list[BaseException] = []
    seconds = bursts * PERIOD_SECONDS

    def run_steady() -> None:
        try:
            steady.update(oltp(server, seconds, f"--rate={rate:.0f}"))
        except BaseException as error:  # noqa: BLE001 - raised below
            failed.append(error)

    thread = threading.Thread(target=run_steady, daemon=True)
    began = time.monotonic()
    took: list[float] = []
    with Sampler(SAMPLE_SECONDS, server.rss_kb) as rss:
        thread.start()
        for number in range(bursts):
            time.sleep(max(0.0, began + number * PERIOD_SECONDS - time.monotonic()))
            took.append(sort_burst(server))
        thread.join()
        if failed:
            raise failed[0]
    # The first period is a warm-up. In the last one, the load may end a moment early.
    last = (bursts - 1) * PERIOD_SECONDS
    kept = [(at, kb) for at, kb in rss.samples if PERIOD_SECONDS <= at < last]
    between = [kb for at, kb in kept if at % PERIOD_SECONDS >= SETTLE_SECONDS]
    return {
        "rate": rate,
        "tps": steady["tps"],
        "p95_ms": steady["p95_ms"],
        "burst_seconds": report.median(took),
        "peak_mb": max(kb for _, kb in kept) / 1024,
        "between_mb": report.median(between) / 1024,
        "rss": kept,
    }


def measure_round(arms: Sequence[arm_list.Arm], template: Path, bursts: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each arm has the machine for itself. All run at the same rate: LOAD times what the first arm can do."""
    rate = 0.0
    for arm in arms:
        with prepared.copy(template, arm) as folder, arm.server(folder, sysbench_oltp.MYSQLD_OPTIONS) as server:
            server.start()
            most = oltp(server, CALIBRATION_SECONDS)["tps"]
            rate = rate or LOAD * most
            yield arm.name, measure(server, rate, bursts)


def render(raw: dict[str, Any]) -> str:
    def figure(arm: str, name: str) -> float:
        return report.median(run[name] for run in raw["runs"][arm])

    arms = list(raw["runs"])
    rows = [
        [
            arm,
            *(
                f"{figure(arm, name):.{digits}f}"
                for name, digits in (("tps", 0), ("p95_ms", 1), ("burst_seconds", 2), ("peak_mb", 0), ("between_mb", 0))
            ),
        ]
        for arm in arms
    ]
    targets = []
    if {"dev", "linked"} <= set(arms):
        targets = [
            report.target(
                "RSS between bursts, dev to linked",
                report.ratio(figure("dev", "between_mb"), figure("linked", "between_mb")),
                "<=",
                TARGETS["rss"],
            ),
            report.target(
                "transactions per second, dev to linked",
                report.ratio(figure("dev", "tps"), figure("linked", "tps")),
                ">=",
                TARGETS["rate"],
            ),
        ]
    return "\n".join(
        [
            "# A busy server gives memory back\n",
            f"{TEST} with {THREADS} threads at {LOAD:.0%} of what the first arm of a round reaches;"
            f" every {PERIOD_SECONDS:.0f} s {SORTERS} sorts of {SORT_BUFFER_MB} MB. RSS in MB: the most, and the"
            f" median from {SETTLE_SECONDS:.0f} s after a burst began to the next.\n",
            report.table(["arm", "transactions/s", "95% within ms", "burst, s", "most", "between bursts"], rows),
            *(["\n## Targets\n", report.target_table(targets)] if targets else []),
            report.front_matter(raw),
        ]
    )


def main() -> int:
    parser = rounds.parser(__doc__.splitlines()[0], rounds=3, arms=("stock", "linked", "dev"))
    parser.add_argument("--bursts", type=int, default=8, help="of each turn (default: %(default)s)")
    options = parser.parse_args()
    rounds.require_positive(options, "bursts")
    if options.bursts < 3:
        parser.error("--bursts must be 3 or more: the first and the last do not count")
    return rounds.run(
        "busy_bursts",
        options,
        settings={"sysbench": sysbench_program.version(), "bursts": options.bursts, "nice": os.nice(0)},
        prepare=sysbench_oltp.template,
        measure=lambda arms, template: measure_round(arms, template, options.bursts),
        brief=lambda run: (
            f"{run['between_mb']:.0f} MB between bursts, {run['peak_mb']:.0f} at most, {run['tps']:.0f} transactions/s"
        ),
        render=render,
        seconds_each=CALIBRATION_SECONDS + options.bursts * PERIOD_SECONDS + 10,
    )


if __name__ == "__main__":
    run_main("busy_bursts", main)
