"""Programs that the checks run: a server, Debian's exporter and Prometheus. Each listens on loopback alone."""

import contextlib
import json
import re
import subprocess
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from harness import waiting
from harness.checks import Checks, Failed
from harness.common import ROOT
from harness.network import ON_LOOPBACK, free_port
from harness.server import Build, Server, initialise
from monitoring import programs

FOLDER = ROOT / "monitoring"
PASSWORD = "a password of this test"
OPTIONS = (
    "--innodb-buffer-pool-size=64M",
    "--innodb-redo-log-capacity=64M",
    "--skip-log-bin",
    "--loose-mysqlx=OFF",
    *ON_LOOPBACK,
)

# With a limit or without, the ceiling has all of its figures.
CEILING = "--memdiag-memory-target=64G"


def telemetry_options(endpoint: str) -> tuple[str, ...]:
    """Options with which component_telemetry, once it is installed, sends metrics there each second."""
    return (
        "--loose-telemetry.metrics_enabled=ON",
        "--loose-telemetry.trace_enabled=OFF",
        "--loose-telemetry.log_enabled=OFF",
        # A meter has a frequency of its own. The reader with the next lower frequency reads it.
        "--performance-schema-meter=%=frequency:1",
        "--loose-telemetry.metrics_reader_frequency_1=1",
        "--loose-telemetry.otel_exporter_otlp_metrics_timeout=2000",
        f"--loose-telemetry.otel_exporter_otlp_metrics_endpoint={endpoint}",
    )


def until(condition: Callable[[], object], what: str, seconds: float = waiting.PATIENCE) -> None:
    """Asks until the answer is true. Raises Failed if that takes too long."""
    if not waiting.until(condition, seconds):
        raise Failed(f"waited {seconds:.0f} s: {what}")


def get(url: str, timeout: float = 60) -> str:
    """Returns the page; empty while nobody answers."""
    try:
        with urllib.request.urlopen(url, timeout=timeout) as answer:
            return answer.read().decode()
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return ""


def metric_names() -> set[str]:
    """Every metric that the configurations export."""
    return {line.split()[0] for line in (FOLDER / "metrics.txt").read_text().splitlines() if line}


def statements() -> dict[str, dict]:
    """The statements of queries.libsonnet, by name."""
    sets = json.loads(programs.run("jsonnet", FOLDER / "queries.libsonnet"))
    return {name: one for each in sets.values() for name, one in each.items()}


@dataclass(frozen=True)
class Measured:
    """A server with the exporter's account, listening on `port` of loopback."""

    server: Server
    port: int

    def create_account(self) -> None:
        text = (FOLDER / "exporter.sql").read_text().replace("CHANGE-ME", PASSWORD)
        text = re.sub(r"(?m)^--.*\n", "", text)
        with self.server.connect() as session:
            for statement in text.split(";"):
                if statement.strip():
                    session.query(statement)


@contextlib.contextmanager
def measured(preset: str, *options: str) -> Iterator[Measured]:
    with tempfile.TemporaryDirectory(prefix="memdiag-") as folder:
        build = Build.of_preset(ROOT, preset)
        initialise(build, Path(folder) / "data", OPTIONS[:2])
        port = free_port()
        with Server(build, Path(folder), (*OPTIONS, f"--port={port}", *options)) as server:
            server.start()
            one = Measured(server, port)
            one.create_account()
            yield one


def check_sum(checks: Checks, server: Server, total: Callable[[], float]) -> None:
    """The ledger's series, which `total` adds up in bytes, are RSS within 5%.

    RSS moves meanwhile, for pages are given back after a start. It is read before and after, and the series get five
    tries: those that do not add up fail each time.
    """
    ratios = []
    fits = False
    while not fits and len(ratios) < 5:
        before = server.rss_kb() * 1024
        value = total()
        low, high = sorted((before, server.rss_kb() * 1024))
        fits = 0.95 * low <= value <= 1.05 * high
        ratios.append(f"{value / high:.3f}")
    checks.check("the ledger's series add up to RSS", fits, ", ".join(ratios))


@contextlib.contextmanager
def process(log: Path, *command: object, **more: str) -> Iterator[subprocess.Popen]:
    with log.open("wb") as file:
        started = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            env={**programs.environment(), **more},
        )
    try:
        yield started
    finally:
        started.terminate()
        try:
            started.wait(20)
        except subprocess.TimeoutExpired:
            started.kill()
            started.wait()


@dataclass(frozen=True)
class Exporter:
    address: str
    process: subprocess.Popen


@contextlib.contextmanager
def exporter(folder: Path, mysql_port: int, user: str = "memdiag_exporter", seconds: str = "1s") -> Iterator[str]:
    """As started_exporter(); yields its address."""
    with started_exporter(folder, mysql_port, user, seconds) as one:
        yield one.address


@contextlib.contextmanager
def started_exporter(
    folder: Path, mysql_port: int, user: str = "memdiag_exporter", seconds: str = "1s"
) -> Iterator[Exporter]:
    """Runs Debian's prometheus-sql-exporter with the shipped configuration."""
    text = (FOLDER / "debian/prometheus-sql-exporter.yml").read_text()
    text = text.replace(":3306)", f":{mysql_port})").replace("CHANGE-ME", PASSWORD)
    text = text.replace("memdiag_exporter:", f"{user}:")
    text = re.sub(r'interval: "\d+s"', f'interval: "{seconds}"', text)
    (folder / "exporter.yml").write_text(text)
    address = f"127.0.0.1:{free_port()}"
    with process(
        folder / "exporter.log",
        programs.program("prometheus-sql-exporter"),
        *("-config.file", folder / "exporter.yml"),
        *("-web.listen-address", address),
    ) as one:
        until(lambda: get(f"http://{address}/metrics"), "the exporter answers")
        yield Exporter(address, one)


@dataclass(frozen=True)
class Prometheus:
    address: str
    process: subprocess.Popen

    def ask(self, path: str, **words: object) -> dict:
        text = get(f"http://{self.address}/api/v1/{path}?{urllib.parse.urlencode(words)}")
        return json.loads(text)["data"] if text else {}

    def values(self, query: str) -> list[dict]:
        return self.ask("query", query=query).get("result", [])


@contextlib.contextmanager
def prometheus(folder: Path, exporter_address: str, seconds: str = "1s") -> Iterator[Prometheus]:
    """Runs Debian's Prometheus with the shipped configuration and rules."""
    text = (FOLDER / "prometheus/prometheus.yml").read_text()
    text = text.replace("127.0.0.1:9237", exporter_address)
    text = re.sub(r"scrape_(interval|timeout): \d+s", rf"scrape_\1: {seconds}", text)
    text += f"\nglobal:\n  evaluation_interval: {seconds}\n"
    for name in ("memdiag_rules.yml", "memdiag_alerts.yml"):
        (folder / name).write_text((FOLDER / "prometheus" / name).read_text())
    (folder / "prometheus.yml").write_text(text)
    address = f"127.0.0.1:{free_port()}"
    with process(
        folder / "prometheus.log",
        programs.program("prometheus"),
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'tsdb'}",
        f"--web.listen-address={address}",
    ) as started:
        until(lambda: get(f"http://{address}/-/ready"), "Prometheus is ready")
        yield Prometheus(address, started)
