#!/usr/bin/env python3
"""The cost of monitoring: the loss of a load while an exporter or OpenTelemetry reads everything each second.

The exporter is Debian's, with the shipped configuration; the collector decodes what the server sends. README.md explains
the figures.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import sysbench_oltp
from bench.runner import arms as arm_list
from bench.runner import report, rounds
from bench.workloads import sysbench_program
from harness.problem import run_main
from harness.server import Server
from monitoring import running, sink

TARGET = 0.005
REST_SECONDS = 20
WAYS = ("without", "exporter", "otlp")
COMPONENT = "'file://component_telemetry'"


@contextlib.contextmanager
def exported(port: int) -> Iterator[None]:
    """Debian's exporter runs its statements each second. This program reads the exporter each second."""
    with tempfile.TemporaryDirectory(prefix="memdiag-") as scratch:
        folder = Path(scratch)
        with (
            running.exporter(folder, port, seconds="1s") as address,
            running.prometheus(folder, address),
        ):
            yield


@contextlib.contextmanager
def telemetry(server: Server, got: sink.Sink) -> Iterator[None]:
    server.query(f"INSTALL COMPONENT {COMPONENT}")
    try:
        running.until(lambda: "mysql.memdiag" in got.meters, "the collector gets metrics")  # fmt: skip
        yield
    finally:
        server.query(f"UNINSTALL COMPONENT {COMPONENT}")


def options(port: int, endpoint: str) -> tuple[str, ...]:
    return (
        *(o for o in sysbench_program.MYSQLD_OPTIONS if "-size=" not in o),
        "--innodb-buffer-pool-size=2G",
        *running.LISTENING,
        f"--port={port}",
        *running.telemetry_options(endpoint),
    )


def measure(arm: arm_list.Arm, folder: Path, turns: int, seconds: int) -> dict[str, Any]:  # fmt: skip
    """Transactions each second, and the server's processor time for each, in turns without and with a reader."""
    port = running.free_port()
    sink.provide()
    with (
        sink.listening() as got,
        arm.server(folder, options(port, got.endpoint)) as server,
    ):
        server.start()
        running.Measured(server, port).create_account()
        ways = {
            "without": contextlib.nullcontext,
            "exporter": lambda: exported(port),
            "otlp": lambda: telemetry(server, got),
        }

        def once() -> dict[str, float]:
            before = server.usage()
            output = sysbench_program.run(server, "oltp_point_select", "run", "--threads=8", f"--time={seconds}")  # fmt: skip
            tps = sysbench_program.parse(output)["tps"]
            cpu = server.usage().since(before).cpu_seconds
            return {"tps": tps, "cpu_us": 1e6 * cpu / (tps * seconds)}

        once()  # a warm-up
        rest = {}
        for way in WAYS:
            with ways[way]():
                before = server.usage()
                time.sleep(REST_SECONDS)
                used = server.usage().since(before).cpu_seconds
                rest[way] = 1000 * used / REST_SECONDS
        measured = []
        for number in range(turns):
            turn = {}
            order = WAYS[number % 3 :] + WAYS[: number % 3]
            for way in order:
                with ways[way]():
                    turn[way] = once()
            measured.append(turn)
    return {"turns": measured, "rest_ms": rest}


def ratio(runs: list[dict[str, Any]], way: str, figure: str) -> float:
    """The median with the reader, divided by the median without."""
    with_, without = (
        report.median(turn[one][figure] for run in runs for turn in run["turns"])
        for one in (way, "without")
    )
    return with_ / without


def render(raw: dict[str, Any]) -> str:
    (runs,) = raw["runs"].values()
    rest = {way: report.median(run["rest_ms"][way] for run in runs) for way in WAYS}
    cpus = raw["machine"]["cpus"]
    rows = [
        [way, f"{rest[way]:.1f}", *(f"{report.median(turn[way][figure] for run in runs for turn in run['turns']):.1f}" for figure in ("tps", "cpu_us"))]
        for way in WAYS
    ]  # fmt: skip
    targets = [
        report.target(f"{what}, {way}", value, "<=", TARGET)
        for way in WAYS[1:]
        for what, value in (
            ("processor time of the machine that the server takes for it", (rest[way] - rest["without"]) / 1000 / cpus),
            ("throughput lost", 1 - ratio(runs, way, "tps")),
            ("processor time more for each transaction", ratio(runs, way, "cpu_us") - 1),
        )
    ]  # fmt: skip
    return "\n".join(
        [
            "# What monitoring costs\n",
            "sysbench oltp_point_select, 8 threads; everything is read each second. Medians.\n",
            report.table(
                [
                    "reader",
                    "server's CPU at rest, ms each second",
                    "transactions/s",
                    "server's CPU us each",
                ],
                rows,
            ),
            "\n## Targets\n",
            report.target_table(targets),
            report.front_matter(raw),
        ]
    )


def main() -> int:
    parser = rounds.parser((__doc__ or "").splitlines()[0], rounds=1, arms=("dev",))
    parser.add_argument("--turns", type=int, default=12, help="default: %(default)s")
    parser.add_argument("--seconds", type=int, default=8, help="of each load (default: %(default)s)")  # fmt: skip
    given = parser.parse_args()
    rounds.require_positive(given, "turns", "seconds")
    return rounds.run(
        "scrape_cost",
        given,
        settings={
            "sysbench": sysbench_program.version(),
            "turns": given.turns,
            "seconds": given.seconds,
        },
        prepare=sysbench_oltp.template,
        measure=rounds.one_by_one(
            lambda arm, folder: measure(arm, folder, given.turns, given.seconds)
        ),
        brief=lambda run: ", ".join(
            f"{way}: {ratio([run], way, 'tps'):.4f} of the throughput"
            for way in WAYS[1:]
        ),  # fmt: skip
        render=render,
        seconds_each=30 + 3 * REST_SECONDS + 3 * given.turns * (given.seconds + 3),
    )


if __name__ == "__main__":
    run_main("scrape_cost", main)
