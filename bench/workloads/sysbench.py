"""sysbench's OLTP tests: what an allocator costs in throughput, and what memory does under an ordinary load."""

from dataclasses import dataclass
from typing import ClassVar

from bench.workloads import sysbench_program
from bench.workloads.base import Load, Workload
from harness.server import Server


@dataclass(frozen=True)
class Sysbench(Workload):
    unit = "transactions"
    options = sysbench_program.MYSQLD_OPTIONS
    test: ClassVar[str]

    threads: int = 8
    seconds: int = 20

    def data_key(self) -> dict[str, object]:
        return sysbench_program.data_key()

    def fill(self, server: Server) -> None:
        sysbench_program.fill(server)

    def load(self, server: Server) -> Load:
        output = sysbench_program.run(
            server, self.test, "run", f"--threads={self.threads}", f"--time={self.seconds}", "--percentile=99"
        )
        figures = sysbench_program.parse(output, percentile=99)
        return Load(self.seconds, round(figures["tps"] * self.seconds), figures["p99_ms"])


class PointSelect(Sysbench):
    name = "sysbench_point_select"
    shows = "primary-key lookups: the cost of every allocation"
    test = "oltp_point_select"


class ReadOnly(Sysbench):
    name = "sysbench_read_only"
    shows = "transactions that read ranges, sort and group"
    test = "oltp_read_only"


class ReadWrite(Sysbench):
    name = "sysbench_read_write"
    shows = "transactions that read and write"
    test = "oltp_read_write"
