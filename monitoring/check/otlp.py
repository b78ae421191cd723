#!/usr/bin/env python3
"""Checks the meter mysql.memdiag: the metrics that component_telemetry exports by OTLP, and a collector that hangs or
is missing."""

import contextlib
import os
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from harness.checks import Checks
from harness.common import preset_of_arguments
from harness.network import own_network
from harness.problem import Problem, run_main
from harness.server import Build
from monitoring import running, sink
from monitoring.check import meter

METER = "mysql.memdiag"
# The forecast needs three samples. It has no time if its line does not reach the limit. A control group may have none.
MAY_LACK = {
    "mysql.memdiag.process.until_limit",
    "mysql.memdiag.process.growth",
    "mysql.memdiag.host.limit",
    "mysql.memdiag.host.room",
    "mysql.memdiag.host.room_limit",
}
COMPONENT = "'file://component_telemetry'"
# Statements that are answered while an export waits for its answer, and seconds until there are so many.
ENOUGH = 20
PATIENCE = 180.0


def wait_for_exports(got: sink.Sink, count: int) -> None:
    seen = got.requests
    running.until(lambda: got.requests >= seen + count, "more metrics come")


def exports(checks: Checks, one: running.Measured, got: sink.Sink) -> None:
    one.server.query(f"INSTALL COMPONENT {COMPONENT}")
    running.until(lambda: "mysql.memdiag.process.resident" in got.meters.get(METER, {}), "the sink gets metrics")
    # The first export may be older than the first sample of the host.
    wait_for_exports(got, 3)
    metrics = got.meters[METER]
    wanted = meter.documented()
    checks.check(
        "the reference has every metric that is exported",
        metrics.keys() <= wanted.keys(),
        sorted(metrics.keys() - wanted.keys()) or "",
    )
    missing = wanted.keys() - metrics.keys() - MAY_LACK
    checks.check("every metric is exported", not missing, sorted(missing) or len(metrics))
    wrong = [
        name
        for name, metric in metrics.items()
        if (metric.unit, metric.kind) != wanted[name][:2]
        or any({key for key, _ in attributes} - wanted[name][2] for attributes in metric.values)
    ]
    checks.check("unit, kind and attributes are those of the reference", not wrong, wrong or "")
    names = {meter.prometheus_name(name, *wanted[name][:2]) for name in wanted}
    checks.check(
        "translated, they are the exporters' names",
        names <= running.metric_names(),
        sorted(names - running.metric_names()) or "",
    )
    checks.equal("its job is the one for which the alerts are tested", meter.job_of(got.resource), meter.JOB)
    running.check_sum(checks, one.server, lambda: exported_ledger(got))
    pools = {value for ((_, value),) in metrics["mysql.memdiag.pool.active"].values}
    table = {row[0] for row in one.server.query("SELECT POOL FROM information_schema.MEMDIAG_POOLS").rows}
    checks.check("there is a series for each pool", pools == table, len(pools))
    peaks = metrics["mysql.memdiag.pool.peak"].values
    checks.check("what is not known is no measurement", (("pool", "general"),) not in peaks)
    count = sum(len(metric.values) for metric in metrics.values())
    sessions = [one.server.connect() for _ in range(60)]
    for session in sessions:
        session.query("SET @kept = REPEAT('k', 65536)")
    wait_for_exports(got, 3)
    later = sum(len(metric.values) for metric in got.meters[METER].values())
    checks.check("60 sessions add no series", later <= count + 10, f"{count}, {later}")
    for session in sessions:
        session.close()
    one.server.query(f"UPDATE performance_schema.setup_meters SET ENABLED = 'NO' WHERE NAME = '{METER}'")
    wait_for_exports(got, 2)
    got.meters.clear()
    wait_for_exports(got, 2)
    checks.check("a meter that is switched off is silent", METER not in got.meters and got.meters)
    forget_component(one)


def exported_ledger(got: sink.Sink) -> float:
    """The bytes of the ledger in an export that began after the call."""
    # The next may have begun before; the last may not be decoded yet.
    wait_for_exports(got, 3)
    return sum(got.meters[METER]["mysql.memdiag.ledger.resident"].values.values())


def forget_component(one: running.Measured) -> None:
    """The next start does not load the component.

    UNINSTALL COMPONENT would take the same two locks as a running export in the other order, and both would wait for ever:
    docs/monitoring.md.
    """
    one.server.query("DELETE FROM mysql.component WHERE component_urn LIKE '%telemetry'")


def is_socket(file: Path) -> bool:
    try:
        return os.readlink(file).startswith("socket:")
    except FileNotFoundError:  # closed since it was listed
        return False


def taken(one: running.Measured) -> tuple[int, int, int]:
    """The server's threads, sockets and resident kB. It opens and closes files of tables at any time."""
    process = Path(f"/proc/{one.server.pid}")
    threads = len(list((process / "task").iterdir()))
    sockets = sum(map(is_socket, (process / "fd").iterdir()))
    return threads, sockets, one.server.rss_kb()


def hangs(checks: Checks, one: running.Measured, got: sink.Sink) -> None:
    one.server.query(f"INSTALL COMPONENT {COMPONENT}")
    running.until(lambda: got.requests, "the sink gets a request")
    before = taken(one)
    answered = 0
    slowest = 0.0
    seen = got.requests
    deadline = time.monotonic() + PATIENCE
    while (got.requests < seen + 4 or answered < ENOUGH) and time.monotonic() < deadline:
        hanging = got.hanging()
        began = time.monotonic()
        one.server.query("SHOW GLOBAL STATUS LIKE 'Memdiag_resident_bytes'")
        slowest = max(slowest, time.monotonic() - began)
        answered += hanging is not None and sink.waits(hanging)
        time.sleep(0.05)
    after = taken(one)
    # A busy machine delays statements, too. One that waited for an export would have no answer before its end.
    figures = f"{answered} answers during an export, slowest {slowest * 1000:.0f} ms"
    checks.check("a collector that hangs delays no statement", answered >= ENOUGH, figures)
    figures = f"{got.requests} requests; {before} before, {after} after (threads, sockets, kB)"
    checks.check(
        "and takes no threads, sockets and memory",
        after[0] <= before[0] + 2 and after[1] <= before[1] + 2 and after[2] <= before[2] + 16384,
        figures,
    )
    forget_component(one)
    began = time.monotonic()
    one.server.stop()
    took = time.monotonic() - began
    # Otherwise stop() would kill it after two minutes.
    checks.check("the server shuts down meanwhile", took < 120, f"{took:.1f} s")


def refused(checks: Checks, one: running.Measured, port: int) -> None:
    log = one.server.error_log
    before = log.stat().st_size
    one.server.query(f"INSTALL COMPONENT {COMPONENT}")

    def said() -> list[str]:
        with open(log, "rb") as file:
            file.seek(before)
            lines = file.read().decode(errors="replace").splitlines()
        return [line for line in lines if "OTLP" in line and f"127.0.0.1 port {port}" in line]

    with contextlib.suppress(Problem):
        running.until(said, "the error log says so")
    checks.check("a wrong endpoint is named in the error log", bool(said()), "".join(said()[:1])[-120:])


def uninstalled(checks: Checks, one: running.Measured) -> None:
    """As docs/monitoring.md says: first the exports end, then the component goes."""
    one.server.stop()
    one.server._options = [*one.server._options, "--loose-telemetry.metrics_enabled=OFF"]
    one.server.start()
    one.server.query(f"UNINSTALL COMPONENT {COMPONENT}")
    rows = int(one.server.query("SELECT COUNT(*) FROM information_schema.MEMDIAG_LEDGER").scalar() or 0)
    checks.check("a component that does not export can be uninstalled", rows > 0, str(rows))


def main() -> int:
    preset = preset_of_arguments(__doc__)
    Build.of_preset(ROOT, preset)
    sink.provide()
    checks = Checks("otlp")
    with (
        own_network(),
        sink.listening() as good,
        running.measured(preset, running.CEILING, *running.telemetry_options(good.endpoint)) as one,
    ):
        with checks.checking("component_telemetry exports the meter"):
            exports(checks, one, good)
        with sink.listening(hangs=True) as hanging:
            restart(one, hanging.endpoint)
            with checks.checking("a collector that hangs"):
                hangs(checks, one, hanging)
        port = running.free_port()
        restart(one, f"http://127.0.0.1:{port}/v1/metrics")
        with checks.checking("a collector that is not there"):
            refused(checks, one, port)
        with checks.checking("UNINSTALL COMPONENT"):
            uninstalled(checks, one)
    return checks.finish()


def restart(one: running.Measured, endpoint: str) -> None:
    """Restarts the server with another collector."""
    one.server.stop()
    one.server._options = [*one.server._options, *running.telemetry_options(endpoint)]
    one.server.start()


if __name__ == "__main__":
    run_main("otlp", main)
