"""Kinds of things that a server keeps for its clients: how to make some more of each, in a server that has some."""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from bench.runner import arms as arm_list
from bench.runner import prepared
from bench.workloads.base import digest
from harness.server import Server
from harness.sql import Connection

DATABASE = "objects"
TABLES = 480
PARTITIONED = 18
PARTITIONS = 100  # of each
PROCEDURES = 16
IFS = 40

OPTIONS = (
    "--innodb-buffer-pool-size=256M",
    # The pool would read pages in the background while RSS is compared.
    "--innodb-buffer-pool-load-at-startup=OFF",
    "--innodb-buffer-pool-dump-at-shutdown=OFF",
    "--innodb-flush-log-at-trx-commit=2",
    "--disable-log-bin",
    "--max-connections=4000",
    "--max-prepared-stmt-count=100000",
    "--table-open-cache=8000",
    "--table-open-cache-instances=1",
    "--table-definition-cache=8000",
    "--innodb-open-files=8000",
)

JOIN = (
    "SELECT l.id, l.note, r.note FROM lefts AS l JOIN rights AS r ON r.id = l.partner"
    " WHERE l.id > {} ORDER BY r.note, l.id DESC LIMIT 10"
)

Sessions = list[Connection]
STEPS = 5  # after the first one, which warms up
STILL_KB = 128  # at rest, RSS changes by less than this
STILL_SECONDS = 2.0
PATIENCE_SECONDS = 20.0


@dataclass(frozen=True)
class Kind:
    """`make` adds the objects with these numbers. It uses the sessions that are open, or opens more."""

    name: str
    step: int  # objects made between two readings
    goal_kib: float
    make: Callable[[Server, Sessions, range], None]
    # This server's threads give back memory when their clients have been idle for five seconds.
    idle_seconds: float = 0.0
    # Sessions that are open before the first object, for each object; at least one.
    sessions_each: float = 0.0

    def sessions(self) -> int:
        return max(1, round(self.sessions_each * self.step * (STEPS + 1)))


@dataclass(frozen=True)
class Line:
    """Least squares: what one more costs, and the standard error of that."""

    slope: float
    error: float

    @classmethod
    def through(cls, points: Sequence[tuple[float, float]]) -> Self:
        if len(points) < 3:
            raise ValueError("a slope with an error needs three points")
        xs, ys = zip(*points, strict=True)
        slope, begin = statistics.linear_regression(xs, ys)
        rest = sum((y - begin - slope * x) ** 2 for x, y in points)
        return cls(slope, (rest / (len(points) - 2) / (statistics.pvariance(xs) * len(points))) ** 0.5)


def rest(server: Server) -> int:
    """Waits until RSS no longer changes, and returns it in kB: allocators give freed memory back later."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    lowest = highest = server.rss_kb()
    since = time.monotonic()
    while time.monotonic() < min(deadline, since + STILL_SECONDS):
        time.sleep(0.1)
        now = server.rss_kb()
        lowest, highest = min(lowest, now), max(highest, now)
        if highest - lowest > STILL_KB:
            lowest = highest = now
            since = time.monotonic()
    return server.rss_kb()


def fill(server: Server) -> None:
    """The tables and procedures of all kinds."""
    server.query(f"CREATE DATABASE {DATABASE}")
    with server.connect(DATABASE) as session:
        for name in ("lefts", "rights"):
            session.query(f"CREATE TABLE {name} (id INT PRIMARY KEY, partner INT, note VARCHAR(100), KEY (partner))")
            session.insert(
                f"INSERT INTO {name} VALUES (%s, %s, %s)",
                [(str(i), str(i * 7 % 1000), f"note {i}") for i in range(1000)],
            )
            session.query(f"ANALYZE TABLE {name}")
        for number in range(TABLES):
            session.query(wide_table(f"wide{number}"))
        for number in range(PARTITIONED):
            session.query(
                f"CREATE TABLE parts{number} (id INT, part INT, note VARCHAR(100), PRIMARY KEY (id, part), KEY (note))"
                f" PARTITION BY HASH (part) PARTITIONS {PARTITIONS}"
            )
        for number in range(PROCEDURES):
            session.query(procedure(f"many_ifs{number}"))


def wide_table(name: str) -> str:
    """A table of 30 columns and 4 indexes."""
    types = ("INT", "VARCHAR(100)", "DATETIME", "DECIMAL(12,2)", "VARCHAR(40) NOT NULL")
    columns = [f"c{i} {types[i % len(types)]}" for i in range(1, 30)]
    keys = ["KEY (c1)", "KEY (c2, c3)", "KEY (c4, c1)"]
    return f"CREATE TABLE {name} (id INT PRIMARY KEY, {', '.join(columns)}, {', '.join(keys)})"


def procedure(name: str) -> str:
    """A body of 40 IFs. A call with NULL enters none, but the session keeps all of it."""
    ifs = (
        f"IF a = {i} THEN SET n = n + CHAR_LENGTH(CONCAT(text, '{i}')); SET text = LOWER(CONCAT(text, n * a)); END IF;"
        for i in range(IFS)
    )
    return (
        f"CREATE PROCEDURE {name}(a INT) BEGIN DECLARE n INT DEFAULT 0;"
        f" DECLARE text VARCHAR(100) DEFAULT ''; {' '.join(ifs)} END"
    )


def connect(server: Server, sessions: Sessions, numbers: range) -> None:
    sessions.extend(server.connect(DATABASE) for _ in numbers)


def first_query(_server: Server, sessions: Sessions, numbers: range) -> None:
    for number in numbers:
        sessions[number].query(JOIN.format(0))


def prepare(_server: Server, sessions: Sessions, numbers: range) -> None:
    for number in numbers:
        session = sessions[number % len(sessions)]
        session.query(f"PREPARE s{number} FROM '{JOIN.format('?')}'")


def call(_server: Server, sessions: Sessions, numbers: range) -> None:
    for number in numbers:
        session = sessions[number // PROCEDURES]
        session.query(f"CALL many_ifs{number % PROCEDURES}(NULL)")


def open_tables(_server: Server, sessions: Sessions, numbers: range) -> None:
    for number in numbers:
        sessions[0].query(f"SELECT * FROM wide{number} LIMIT 0")


def open_partitions(_server: Server, sessions: Sessions, numbers: range) -> None:
    for number in numbers[::PARTITIONS]:
        sessions[0].query(f"SELECT COUNT(*) FROM parts{number // PARTITIONS}")


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("idle connection", 160, 64, connect, idle_seconds=6),
        Kind("first query of a connection", 160, 15, first_query, idle_seconds=6, sessions_each=1),
        Kind("prepared statement", 600, 15, prepare, sessions_each=1 / 100),
        Kind("cached procedure", 32, 200, call, sessions_each=1 / PROCEDURES),
        Kind("open table", 80, 60, open_tables),
        Kind("open partition", 300, 4, open_partitions),
    )
}


def data_key() -> dict[str, object]:
    """Data of other counts, or of another version of the code, are made again."""
    return {
        "tables": TABLES,
        "partitioned": PARTITIONED,
        "partitions": PARTITIONS,
        "procedures": PROCEDURES,
        "ifs": IFS,
        "source": digest(fill, wide_table, procedure),
    }


def without_tables(arms: Sequence[arm_list.Arm]) -> Path:
    """A folder with a new data directory: the pool would read pages of tables at a start."""
    return prepared.template("without_tables", {}, arms, (), lambda _: None)


def template(arms: Sequence[arm_list.Arm]) -> Path:
    """A folder with the tables and procedures of all kinds."""
    return prepared.template("per_object", data_key(), arms, OPTIONS, fill)
