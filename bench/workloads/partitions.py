"""Tables of many partitions, opened, written, read and flushed over and over."""

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass

from bench.workloads.base import Load, Workload
from harness import burst
from harness.server import Server


@dataclass(frozen=True)
class Partitions(Workload):
    name = "partitions"
    shows = "insert into and select from all partitions, FLUSH TABLES, wait, again: memory that should not grow"
    unit = "tables visited"
    data = ("tables", "partitions")

    tables: int = 8
    partitions: int = 400
    clients: int = 4
    pause: float = 2.0  # after each FLUSH TABLES
    seconds: float = 20.0

    def mysqld_options(self) -> tuple[str, ...]:
        files = 2 * self.tables * self.partitions + 1000
        return (*super().mysqld_options(), f"--innodb-open-files={files}")

    def fill(self, server: Server) -> None:
        with server.connect(self.name) as session:
            for table in range(self.tables):
                session.query(
                    f"CREATE TABLE t{table} (id INT AUTO_INCREMENT, part INT, body VARCHAR(200), PRIMARY KEY (id, part),"
                    f" KEY (body)) PARTITION BY HASH (part) PARTITIONS {self.partitions}"
                )

    def load(self, server: Server) -> Load:
        rows = ",".join(f"({part}, REPEAT('p', {part % 100}))" for part in range(self.partitions))

        def steps(number: int) -> Iterator[int]:
            with server.connect(self.name) as session:
                yield 0
                for visit in itertools.count(number * self.tables // self.clients):
                    table = visit % self.tables
                    session.query(f"INSERT INTO t{table} (part, body) VALUES {rows}")
                    session.query(f"SELECT COUNT(*), MAX(body), SUM(part) FROM t{table}")
                    yield 0
                    # One client flushes, or clients would hardly ever find a table open.
                    if number == 0 and table == self.tables - 1:
                        session.query("FLUSH TABLES")
                        time.sleep(self.pause)

        return Load.of(burst.crowd(steps, self.clients, self.seconds))
