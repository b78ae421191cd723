"""read_buffer_size below and above the size from which the C library maps and unmaps every block (Matsunobu, 2010).

A scan of 9.7 takes no read buffer any more; the blocks of a temporary table in the MEMORY engine still have its size.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from bench.workloads.base import Load, Workload, insert_rows
from harness import burst
from harness.server import Server


@dataclass(frozen=True)
class ReadBuffer(Workload):
    shows = "SELECT ... LIMIT 1 from MyISAM, plain and through a temporary table"
    unit = "statements"
    kb: ClassVar[int]

    repeats: int = 10_000  # of each of the two statements

    def mysqld_options(self) -> tuple[str, ...]:
        return (
            *super().mysqld_options(),
            # Only the value at the server's start counts.
            f"--read-buffer-size={self.kb}K",
            "--internal-tmp-mem-storage-engine=MEMORY",
        )

    def fill(self, server: Server) -> None:
        with server.connect(self.name) as session:
            session.query("CREATE TABLE t (id INT, note CHAR(100)) ENGINE = MyISAM")
            insert_rows(session, "t", 1000, "i, SHA2(i, 256)")

    def load(self, server: Server) -> Load:
        def steps(statement: str) -> Iterator[int]:
            with server.connect(self.name) as session:
                yield 0
                for _ in range(self.repeats):
                    yield len(session.query(statement).rows)

        scan, distinct = (
            burst.crowd(lambda _number, text=text: steps(text), 1)
            for text in ("SELECT * FROM t LIMIT 1", "SELECT DISTINCT id, note FROM t LIMIT 1")
        )
        both = burst.Burst(scan.seconds + distinct.seconds, 1, scan.latencies + distinct.latencies)
        return Load.of(both, scan_seconds=scan.seconds, temporary_seconds=distinct.seconds)


@dataclass(frozen=True)
class ReadBuffer256K(ReadBuffer):
    name = "read_buffer_256k"
    kb = 256


@dataclass(frozen=True)
class ReadBuffer2M(ReadBuffer):
    name = "read_buffer_2m"
    kb = 2048
