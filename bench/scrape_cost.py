#!/usr/bin/env python3
"""The cost of monitoring: the loss of a load while an exporter or OpenTelemetry reads everything each second.

The exporter is Debian's, with the shipped configuration. The collector decodes what the server sends. The readers are
paused and resumed while one load lasts. README.md explains the figures.
"""

import contextlib
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.runner import arms as arm_list
from bench.runner import prepared, report, rounds
from bench.runner.quiet import wait_until_quiet
from bench.runner.resampling import interval
from bench.runner.switching import Window, block_seconds, blocks_under_load, cpu_seconds, ratios
from bench.workloads import sysbench_program
from harness.checks import Failed
from harness.network import ON_LOOPBACK
from harness.problem import Problem, run_main
from harness.server import Server
from harness.sql import Connection
from monitoring import programs, running, sink

TARGET = 0.005
REST_SECONDS = 20
# Each reader, and the way that it is compared with. Upstream's component also follows every session and statement, which
# is no cost of a scrape.
READERS = {"exporter": "without", "otlp": "component"}
COMPONENT = "'file://component_telemetry'"
LIVE_SESSIONS = (
    "SELECT VARIABLE_VALUE FROM performance_schema.global_status WHERE VARIABLE_NAME = 'telemetry.live_sessions'"
)

Switch = Callable[[Connection, str], None]


@contextlib.contextmanager
def exported(port: int) -> Iterator[Switch]:
    """Debian's exporter runs its statements each second, and Prometheus reads the exporter each second."""
    with tempfile.TemporaryDirectory(prefix="memdiag-") as scratch:
        folder = Path(scratch)
        with (
            running.started_exporter(folder, port, seconds="1s") as exporter,
            running.prometheus(folder, exporter.address) as prometheus,
        ):
            running.until(
                lambda: "sql_mysql_memdiag" in running.get(f"http://{exporter.address}/metrics"),
                "the exporter has figures",
            )

            def switch(_session: Connection, way: str) -> None:
                number = signal.SIGCONT if way == "exporter" else signal.SIGSTOP
                for one in (exporter, prometheus):
                    one.process.send_signal(number)

            try:
                yield switch
            finally:
                for one in (exporter, prometheus):
                    one.process.send_signal(signal.SIGCONT)


@contextlib.contextmanager
def telemetry(server: Server, got: sink.Sink) -> Iterator[Switch]:
    """component_telemetry is installed. It reads all meters each second, or none."""

    def switch(session: Connection, way: str) -> None:
        enabled = "YES" if way == "otlp" else "NO"
        session.query(f"UPDATE performance_schema.setup_meters SET ENABLED = '{enabled}'")

    with server.connect() as session:
        switch(session, "otlp")
    got.meters.clear()
    server.query(f"INSTALL COMPONENT {COMPONENT}")
    running.until(lambda: "mysql.memdiag" in got.meters, "the collector gets metrics", 40)
    yield switch
    # The component does not go while it knows another session than the one that removes it.
    with server.connect() as session:
        running.until(lambda: int(session.query(LIVE_SESSIONS).scalar() or 0) <= 1, "the load's sessions have ended")
        session.query(f"UNINSTALL COMPONENT {COMPONENT}")


@contextlib.contextmanager
def problems() -> Iterator[None]:
    """What fails a check of monitoring/ is a Problem here."""
    try:
        yield
    except Failed as failed:
        raise Problem(str(failed)) from failed


def options(port: int, endpoint: str) -> tuple[str, ...]:
    return (
        *(o for o in sysbench_program.MYSQLD_OPTIONS if "-size=" not in o),
        "--innodb-buffer-pool-size=2G",
        *ON_LOOPBACK,
        f"--port={port}",
        *running.telemetry_options(endpoint),
    )


def prepare(arms: Sequence[arm_list.Arm]) -> Path:
    """The data. Programs and libraries come first, because this machine may be unable to get them."""
    sink.provide()
    for name in ("prometheus", "prometheus-sql-exporter"):
        programs.program(name)
    return prepared.sysbench(arms)


def measure(arm: arm_list.Arm, folder: Path, blocks: int, seconds: float) -> dict[str, Any]:
    """Transactions each second, and the server's processor time for each, in windows without and with a reader."""
    port = running.free_port()
    rest: dict[str, float] = {}
    found: dict[str, list[dict[str, Window]]] = {}
    with problems(), sink.listening() as got, arm.server(folder, options(port, got.endpoint)) as server:
        server.start()
        running.Measured(server, port).create_account()

        def load(whole: int) -> None:
            sysbench_program.run(server, "oltp_point_select", "run", "--threads=8", f"--time={whole}")

        load(8)  # a warm-up
        started = {"exporter": exported(port), "otlp": telemetry(server, got)}
        for reader, base in READERS.items():
            with started[reader] as switch:
                for way in (base, reader):
                    with server.connect() as session:
                        switch(session, way)
                    wait_until_quiet(lambda: cpu_seconds(server))
                    before = cpu_seconds(server)
                    time.sleep(REST_SECONDS)
                    rest[way] = 1000 * (cpu_seconds(server) - before) / REST_SECONDS
                found[reader] = blocks_under_load(server, load, switch, (base, reader), blocks, seconds)
    return {"blocks": found, "rest_ms": rest}


def render(raw: dict[str, Any]) -> str:
    (runs,) = raw["runs"].values()
    rest = {way: report.median(run["rest_ms"][way] for run in runs) for way in runs[0]["rest_ms"]}
    cpus = raw["machine"]["cpus"]
    rows, compared, targets = [], [], []
    for reader, base in READERS.items():
        blocks = [block for run in runs for block in run["blocks"][reader]]
        for way in (base, reader):
            medians = (report.median(block[way][figure] for block in blocks) for figure in ("rate", "cpu_us"))
            rows.append([way, f"{rest[way]:.1f}", *(f"{value:.1f}" for value in medians)])
        tps, cpu = (interval(ratios(blocks, reader, base, figure)) for figure in ("rate", "cpu_us"))
        compared.append([f"{reader} / {base}", *(f"{value:.4f}" for value in (*tps, *cpu))])
        targets += [
            report.target(f"{what}, {reader}", value, "<=", TARGET)
            for what, value in (
                (
                    "processor time of the machine that the server takes for it",
                    (rest[reader] - rest[base]) / 1000 / cpus,
                ),
                ("throughput lost", 1 - tps[0]),
                ("processor time more for each transaction", cpu[0] - 1),
            )
        ]
    return "\n".join(
        [
            "# What monitoring costs\n",
            "sysbench oltp_point_select, 8 threads; everything is read each second. Medians.\n",
            report.table(
                ["reader", "server's CPU at rest, ms each second", "transactions/s", "server's CPU us each"], rows
            ),
            "\nRatios within a block of two windows: the median and its 95% interval.\n",
            report.table(["", "transactions/s", "from", "to", "CPU each", "from", "to"], compared),
            "\n## Targets\n",
            report.target_table(targets),
            report.front_matter(raw),
        ]
    )


def main() -> int:
    parser = rounds.parser((__doc__ or "").splitlines()[0], rounds=1, arms=("dev",), one_arm=True)
    parser.add_argument("--blocks", type=int, default=40, help="of two windows, for each reader (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each window (default: %(default)s)")
    given = parser.parse_args()
    rounds.require_positive(given, "blocks", "seconds")
    return rounds.run(
        "scrape_cost",
        given,
        settings={"sysbench": sysbench_program.version(), "blocks": given.blocks, "seconds": given.seconds},
        prepare=prepare,
        measure=rounds.one_by_one(lambda arm, folder: measure(arm, folder, given.blocks, given.seconds)),
        brief=lambda run: ", ".join(
            f"{reader}: {report.median(ratios(run['blocks'][reader], reader, base, 'rate')):.4f} of the throughput"
            for reader, base in READERS.items()
        ),
        render=render,
        seconds_each=30 + len(READERS) * (2 * (REST_SECONDS + 5) + given.blocks * block_seconds(2, given.seconds)),
    )


if __name__ == "__main__":
    run_main("scrape_cost", main)
