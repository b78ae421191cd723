"""Ordinary clients whose statements take tens of megabytes each: sorts, groupings, JSON, prepared statements."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass

from bench.workloads.base import LIMIT, Load, Workload, insert_rows
from harness import burst
from harness.server import Server

PREPARED_EACH = 40


def prepare() -> Iterator[str]:
    """What a session does once: prepared statements and a large user variable, which it keeps."""
    yield "SET @kept = REPEAT('x', 2 << 20)"
    for number in range(PREPARED_EACH):
        yield f"PREPARE p{number} FROM 'SELECT id, note FROM things WHERE id BETWEEN ? AND ? + {number}'"


def statement(chooser: random.Random, rows: int) -> str:
    some = int(rows * chooser.uniform(0.3, 1))
    key = chooser.randrange(PREPARED_EACH)
    return chooser.choice(
        (
            f"SELECT COUNT(*) FROM (SELECT id, note FROM things WHERE id <= {some} ORDER BY note, id LIMIT {some}) AS s",
            f"SELECT COUNT(*) FROM (SELECT note, COUNT(*) FROM things WHERE id <= {some} GROUP BY note) AS g",
            f"SELECT LENGTH(JSON_ARRAYAGG(doc)) FROM things WHERE id <= {some // 2}",
            f"SELECT COUNT(DISTINCT CONCAT(note, id)) FROM things WHERE id <= {some}",
            f"EXECUTE p{key} USING @one, @one",
        )
    )


@dataclass(frozen=True)
class Killers(Workload):
    name = "killers"
    shows = "ordinary clients that need more memory than the limit has"
    unit = "statements"
    data = ("rows",)
    surroundings = (LIMIT,)

    rows: int = 120_000
    clients: int = 32
    seconds: float = 20.0
    pool_mb: int = 900

    def mysqld_options(self) -> tuple[str, ...]:
        common = [each for each in super().mysqld_options() if not each.startswith("--innodb-buffer-pool-size")]
        return (
            *common,
            f"--innodb-buffer-pool-size={self.pool_mb}M",
            "--sort-buffer-size=32M",
            "--tmp-table-size=64M",
            "--max-heap-table-size=64M",
            "--temptable-max-ram=1G",
        )

    def fill(self, server: Server) -> None:
        with server.connect(self.name) as session:
            session.query("CREATE TABLE things (id INT PRIMARY KEY, note VARCHAR(255) NOT NULL, doc JSON NOT NULL)")
            insert_rows(
                session,
                "things",
                self.rows,
                "i, REPEAT(SHA2(i, 224), 1 + i % 4), JSON_OBJECT('id', i,"
                " 'tags', JSON_ARRAY(SHA2(i, 224), i, NULL), 'of', JSON_OBJECT('a', i, 'b', SHA2(i, 256)))",
            )
            session.query("ANALYZE TABLE things")

    def statements(self, number: int) -> Iterator[str]:
        """Endless."""
        chooser = random.Random(number)
        yield f"SET @one = {1 + number}"
        yield from prepare()
        for _ in itertools.count():
            yield statement(chooser, self.rows)

    def load(self, server: Server) -> Load:
        def steps(number: int) -> Iterator[int]:
            yield 0
            with server.connect(self.name) as session:
                for text in self.statements(number):
                    session.query(text)
                    yield 0

        return Load.of(burst.crowd(steps, self.clients, self.seconds))
