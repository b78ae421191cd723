"""Connections that come and go, each with a few statements of very different sizes."""

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass

from bench.workloads.base import HUGE_PAGES, LIMIT, PLAIN, Load, Workload, insert_rows
from harness import burst
from harness.server import Server
from harness.sql import Connection

STATEMENTS_PER_SESSION = 6


def fill_things(session: Connection, table: str, rows: int) -> None:
    session.query(f"CREATE TABLE {table} (id INT PRIMARY KEY, note VARCHAR(255) NOT NULL, doc JSON NOT NULL)")
    document = (
        "JSON_OBJECT('id', i, 'tags', JSON_ARRAY(SHA2(i, 224), i, NULL), 'of', JSON_OBJECT('a', i, 'b', SHA2(i, 256)))"
    )
    insert_rows(session, table, rows, f"i, REPEAT(SHA2(i, 224), 1 + i % 4), {document}")
    session.query(f"ANALYZE TABLE {table}")


def statement(chooser: random.Random, rows: int) -> str:
    """One that allocates in a way of its own: user variable, packet, sort, temporary table, JSON, parse tree."""
    size = int(2 ** chooser.uniform(10, 21))  # 1 KB to 2 MB, small ones as often
    some = int(rows ** chooser.uniform(0.3, 1))
    key = chooser.randrange(1000)
    return chooser.choice(
        (
            f"SET @kept{key % 4} = REPEAT('x', {size})",
            f"SELECT LENGTH('{'y' * (size // 4)}')",
            f"SELECT id FROM things WHERE id <= {some} ORDER BY note, doc LIMIT 5",
            f"SELECT COUNT(*) FROM (SELECT DISTINCT CONCAT(note, id % {key + 2}) FROM things WHERE id <= {some}) AS d",
            f"SELECT LENGTH(JSON_ARRAYAGG(doc)) FROM things WHERE id <= {some}",
            f"SELECT COUNT(*) FROM things WHERE id IN ({','.join(map(str, range(key, key + some // 4 + 1)))})",
            " UNION ALL ".join(
                f"SELECT id, note FROM things WHERE id = {key + number}" for number in range(1, key % 60 + 2)
            ),
        )
    )


@dataclass(frozen=True)
class ConnectionStorm(Workload):
    name = "connection_storm"
    shows = "sessions of all sizes that come and go: memory of many threads, freed in another order"
    unit = "sessions"
    data = ("rows",)
    surroundings = (PLAIN, HUGE_PAGES, LIMIT)

    rows: int = 20_000
    clients: int = 100
    seconds: float = 15.0

    def mysqld_options(self) -> tuple[str, ...]:
        # Clients come again before the server has noticed that they left.
        return (*super().mysqld_options(), f"--max-connections={5 * self.clients}")

    def fill(self, server: Server) -> None:
        with server.connect(self.name) as session:
            fill_things(session, "things", self.rows)

    def load(self, server: Server) -> Load:
        def steps(number: int) -> Iterator[int]:
            chooser = random.Random(number)
            yield 0
            for _ in itertools.count():
                with server.connect(self.name) as session:
                    for _ in range(STATEMENTS_PER_SESSION):
                        session.query(statement(chooser, self.rows))
                yield 0

        return Load.of(burst.crowd(steps, self.clients, self.seconds))
