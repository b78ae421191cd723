"""A sink for OTLP over HTTP on loopback. It decodes the metrics that it gets, or behaves badly on request."""

import contextlib
import gzip
import http.server
import select
import socket
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from harness import pip

PINS = Path(__file__).with_name("requirements.txt")


def provide() -> None:
    """Makes opentelemetry.proto importable. Raises a Problem if pip cannot install it."""
    folder = str(pip.installed("opentelemetry-proto", PINS.read_text()))
    if folder not in sys.path:
        sys.path.insert(0, folder)


@dataclass(frozen=True)
class Metric:
    unit: str
    kind: str  # counter, up-down counter, gauge
    values: dict[tuple[tuple[str, str], ...], float]  # by attributes


@dataclass
class Sink:
    """The sink, with the last figures of each meter, and the attributes of the resource that sent them. `release` ends
    the requests of a sink that hangs; `held` are their connections."""

    port: int = 0
    requests: int = 0
    meters: dict[str, dict[str, Metric]] = field(default_factory=dict)
    resource: dict[str, str] = field(default_factory=dict)
    release: threading.Event = field(default_factory=threading.Event)
    held: list[socket.socket] = field(default_factory=list)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1/metrics"

    def hanging(self) -> socket.socket | None:
        """The connection of a request that waits for its answer now."""
        return self.held[-1] if self.held and waits(self.held[-1]) else None


def waits(connection: socket.socket) -> bool:
    """Whether the client has not given up."""
    return not select.select([connection], [], [], 0)[0]


def decoded(body: bytes) -> tuple[dict[str, str], dict[str, dict[str, Metric]]]:
    """The attributes of the last resource, and the metrics of each meter."""
    from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2

    request = metrics_service_pb2.ExportMetricsServiceRequest()
    request.ParseFromString(body)
    meters: dict[str, dict[str, Metric]] = {}
    attributes: dict[str, str] = {}
    for resource in request.resource_metrics:
        attributes = {one.key: one.value.string_value for one in resource.resource.attributes}
        for scope in resource.scope_metrics:
            metrics = meters.setdefault(scope.scope.name, {})
            for one in scope.metrics:
                if one.HasField("gauge"):
                    kind, points = "gauge", one.gauge.data_points
                else:
                    kind = "counter" if one.sum.is_monotonic else "up-down counter"
                    points = one.sum.data_points
                values = {}
                for point in points:
                    key = tuple(sorted((a.key, a.value.string_value) for a in point.attributes))
                    is_int = point.WhichOneof("value") == "as_int"
                    values[key] = float(point.as_int if is_int else point.as_double)
                metrics[one.name] = Metric(one.unit, kind, values)
    return attributes, meters


@contextlib.contextmanager
def listening(hangs: bool = False) -> Iterator[Sink]:
    sink = Sink()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            sink.requests += 1
            if hangs:
                sink.held.append(self.connection)
                sink.release.wait()
                return
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            resource, meters = decoded(body)
            sink.resource = resource
            sink.meters.update(meters)
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    sink.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield sink
    finally:
        sink.release.set()
        server.shutdown()
        server.server_close()
