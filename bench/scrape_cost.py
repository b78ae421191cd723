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
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import sysbench_oltp
from bench.profile_cost import cpu_seconds, interval
from bench.runner import arms as arm_list
from bench.runner import report, rounds
from bench.runner.quiet import wait_until_quiet
from bench.workloads import sysbench_program
from harness.problem import Problem, run_main
from harness.server import Server
from monitoring import programs, running, sink

TARGET = 0.005
REST_SECONDS = 20
WAYS = ("without", "exporter", "component", "otlp")
# Each reader, and the way that it is compared with. Upstream's component also follows every session and statement, which
# is no cost of a scrape.
READERS = {"exporter": "without", "otlp": "component"}
COMPONENT = "'file://component_telemetry'"
LIVE_SESSIONS = "SELECT VARIABLE_VALUE FROM performance_schema.global_status WHERE VARIABLE_NAME = 'telemetry.live_sessions'"

Turn = dict[str, dict[str, float]]


@contextlib.contextmanager
def exported(port: int) -> Iterator[None]:
    """Debian's exporter runs its statements each second, and Prometheus reads the exporter each second."""
    with tempfile.TemporaryDirectory(prefix="memdiag-") as scratch:
        folder = Path(scratch)
        with (
            running.exporter(folder, port, seconds="1s") as address,
            running.prometheus(folder, address),
        ):
            running.until(lambda: "sql_mysql_memdiag" in running.get(f"http://{address}/metrics"), "the exporter has figures")  # fmt: skip
            yield


@contextlib.contextmanager
def telemetry(server: Server, got: sink.Sink, reads: bool) -> Iterator[None]:
    """component_telemetry is installed. It reads all meters each second, or none."""
    enabled = "YES" if reads else "NO"
    server.query(f"UPDATE performance_schema.setup_meters SET ENABLED = '{enabled}'")
    got.meters.clear()
    server.query(f"INSTALL COMPONENT {COMPONENT}")
    try:
        if reads:
            running.until(lambda: "mysql.memdiag" in got.meters, "the collector gets metrics", 40)  # fmt: skip
        yield
    finally:
        # The component does not go while it knows another session than the one that removes it.
        with server.connect() as session:
            running.until(lambda: int(session.query(LIVE_SESSIONS).scalar() or 0) <= 1, "the load's sessions have ended")  # fmt: skip
            session.query(f"UNINSTALL COMPONENT {COMPONENT}")


def options(port: int, endpoint: str) -> tuple[str, ...]:
    return (
        *(o for o in sysbench_program.MYSQLD_OPTIONS if "-size=" not in o),
        "--innodb-buffer-pool-size=2G",
        *running.LISTENING,
        f"--port={port}",
        *running.telemetry_options(endpoint),
    )


def prepare(arms: Sequence[arm_list.Arm]) -> Path:
    """The data. Programs and libraries come first, because this machine may be unable to get them."""
    sink.provide()
    for name in ("prometheus", "prometheus-sql-exporter"):
        programs.program(name)
    return sysbench_oltp.template(arms)


def measure(arm: arm_list.Arm, folder: Path, turns: int, seconds: int) -> dict[str, Any]:  # fmt: skip
    """Transactions each second, and the server's processor time for each, in turns without and with a reader."""
    port = running.free_port()
    with (
        sink.listening() as got,
        arm.server(folder, options(port, got.endpoint)) as server,
    ):
        server.start()
        running.Measured(server, port).create_account()
        ways = {
            "without": contextlib.nullcontext,
            "exporter": lambda: exported(port),
            "component": lambda: telemetry(server, got, reads=False),
            "otlp": lambda: telemetry(server, got, reads=True),
        }

        def once() -> dict[str, float]:
            before = cpu_seconds(server)
            output = sysbench_program.run(server, "oltp_point_select", "run", "--threads=8", f"--time={seconds}")  # fmt: skip
            tps = sysbench_program.parse(output)["tps"]
            cpu = cpu_seconds(server) - before
            return {"tps": tps, "cpu_us": 1e6 * cpu / (tps * seconds)}

        once()  # a warm-up
        rest = {}
        for way in WAYS:
            with ways[way]():
                wait_until_quiet(lambda: cpu_seconds(server))
                before = cpu_seconds(server)
                time.sleep(REST_SECONDS)
                rest[way] = 1000 * (cpu_seconds(server) - before) / REST_SECONDS
        measured = []
        for number in range(turns):
            turn: Turn = {}
            first = number % len(WAYS)
            for way in WAYS[first:] + WAYS[:first]:
                with ways[way]():
                    turn[way] = once()
            measured.append(turn)
    return {"turns": measured, "rest_ms": rest}


def ratios(runs: list[dict[str, Any]], reader: str, figure: str) -> list[float]:
    """With the reader to without it, within each turn, where the machine's speed changes less."""
    base = READERS[reader]
    return [turn[reader][figure] / turn[base][figure] for run in runs for turn in run["turns"]]  # fmt: skip


def render(raw: dict[str, Any]) -> str:
    (runs,) = raw["runs"].values()
    rest = {way: report.median(run["rest_ms"][way] for run in runs) for way in WAYS}
    cpus = raw["machine"]["cpus"]
    rows = [
        [way, f"{rest[way]:.1f}", *(f"{report.median(turn[way][figure] for run in runs for turn in run['turns']):.1f}" for figure in ("tps", "cpu_us"))]
        for way in WAYS
    ]  # fmt: skip
    compared, targets = [], []
    for reader, base in READERS.items():
        tps, cpu = (interval(ratios(runs, reader, figure)) for figure in ("tps", "cpu_us"))  # fmt: skip
        compared.append([f"{reader} / {base}", *(f"{value:.4f}" for value in (*tps, *cpu))])  # fmt: skip
        targets += [
            report.target(f"{what}, {reader}", value, "<=", TARGET)
            for what, value in (
                ("processor time of the machine that the server takes for it", (rest[reader] - rest[base]) / 1000 / cpus),
                ("throughput lost", 1 - tps[0]),
                ("processor time more for each transaction", cpu[0] - 1),
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
            "\nRatios within a turn: the median and its 95% interval.\n",
            report.table(["", "transactions/s", "from", "to", "CPU each", "from", "to"], compared),
            "\n## Targets\n",
            report.target_table(targets),
            report.front_matter(raw),
        ]
    )  # fmt: skip


def main() -> int:
    parser = rounds.parser((__doc__ or "").splitlines()[0], rounds=1, arms=("dev",))
    parser.add_argument("--turns", type=int, default=12, help="default: %(default)s")
    parser.add_argument("--seconds", type=int, default=8, help="of each load (default: %(default)s)")  # fmt: skip
    given = parser.parse_args()
    rounds.require_positive(given, "turns", "seconds")
    if "," in given.arms:
        raise Problem("--arms takes one arm here")
    return rounds.run(
        "scrape_cost",
        given,
        settings={
            "sysbench": sysbench_program.version(),
            "turns": given.turns,
            "seconds": given.seconds,
        },
        prepare=prepare,
        measure=rounds.one_by_one(
            lambda arm, folder: measure(arm, folder, given.turns, given.seconds)
        ),
        brief=lambda run: ", ".join(
            f"{reader}: {report.median(ratios([run], reader, 'tps')):.4f} of the throughput"
            for reader in READERS
        ),
        render=render,
        seconds_each=30 + len(WAYS) * (REST_SECONDS + 5 + given.turns * (given.seconds + 3)),
    )  # fmt: skip


if __name__ == "__main__":
    run_main("scrape_cost", main)
