"""Indexes added online with a large innodb_ddl_buffer_size, and dropped, again and again."""

from collections.abc import Iterator
from dataclasses import dataclass

from bench.workloads.base import Load, Workload, insert_rows
from harness import burst
from harness.server import Server


@dataclass(frozen=True)
class OnlineDdl(Workload):
    name = "online_ddl"
    shows = "ALTER TABLE ... ADD INDEX with large sort buffers: live until the statement ends"
    unit = "pairs of ALTER"
    data = ("rows",)

    rows: int = 300_000
    buffer_mb: int = 512
    threads: int = 4
    cycles: int = 3

    def fill(self, server: Server) -> None:
        with server.connect(self.name) as session:
            session.query(
                "CREATE TABLE t (id INT PRIMARY KEY, a CHAR(64) NOT NULL, b CHAR(56) NOT NULL, c INT NOT NULL)"
            )
            insert_rows(session, "t", self.rows, "i, SHA2(i, 256), SHA2(i, 224), i % 1000")
            session.query("ANALYZE TABLE t")

    def load(self, server: Server) -> Load:
        def steps(_number: int) -> Iterator[int]:
            with server.connect(self.name) as session:
                session.query(f"SET innodb_ddl_buffer_size = {self.buffer_mb << 20}")
                session.query(f"SET innodb_ddl_threads = {self.threads}")
                session.query(f"SET innodb_parallel_read_threads = {self.threads}")
                yield 0
                for _ in range(self.cycles):
                    session.query(
                        "ALTER TABLE t ADD INDEX a (a, b), ADD INDEX b (b, a), ALGORITHM = INPLACE, LOCK = NONE"
                    )
                    session.query("ALTER TABLE t DROP INDEX a, DROP INDEX b")
                    yield 0

        return Load.of(burst.crowd(steps, 1))
