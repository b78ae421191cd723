"""mysqldump of many tables, over and over, beside clients that read and write rows."""

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.workloads.base import Load, Workload, insert_rows
from harness import burst
from harness.common import ROOT
from harness.problem import Problem
from harness.programs import captured
from harness.server import Build, Server, last_line


def client(first: Path, second: Build) -> Path:
    """mysqldump of the first of two builds that has it. Every arm gets that of preset dev if it is there: Debian's server
    package has none. packaging/build does not build dev."""
    for build in (Build(first), second):
        program = build.program("mysqldump")
        if program.exists():
            return program
    raise Problem(f"{program} is missing: build upstream's target mysqldump")


@dataclass(frozen=True)
class DumpOltp(Workload):
    name = "dump_oltp"
    shows = "repeated mysqldump beside light OLTP: memory far above what Performance Schema knows of"
    unit = "OLTP statements"
    data = ("tables", "rows")

    tables: int = 400
    rows: int = 200  # of each table
    clients: int = 4
    seconds: float = 20.0

    def fill(self, server: Server) -> None:
        with server.connect(self.name) as session:
            for table in range(self.tables):
                session.query(
                    f"CREATE TABLE t{table} (id INT PRIMARY KEY, a INT NOT NULL, note VARCHAR(200), more TEXT, KEY (a))"
                )
                insert_rows(
                    session, f"t{table}", self.rows, "i, i % 10, REPEAT(SHA2(i, 256), 3), REPEAT('m', i % 3000)"
                )

    def load(self, server: Server) -> Load:
        program = client(ROOT / "build/dev/bld", server.build)
        dump = [
            str(program),
            "--no-defaults",
            "--user=root",
            f"--socket={server.socket}",
            "--single-transaction",
            "--result-file=/dev/null",
            self.name,
        ]

        def steps(number: int) -> Iterator[int]:
            yield 0
            if number == 0:
                for _ in itertools.count():
                    done = captured(dump)
                    if done.returncode != 0:
                        raise Problem(f"mysqldump failed: {last_line(done.stderr)}")
                    yield 1  # only dumps are counted as rows
            chooser = random.Random(number)
            with server.connect(self.name) as session:
                for _ in itertools.count():
                    table = f"t{chooser.randrange(self.tables)}"
                    row = chooser.randrange(self.rows) + 1
                    session.query(
                        f"SELECT * FROM {table} WHERE id = {row}"
                        if chooser.random() < 0.8
                        else f"UPDATE {table} SET a = a + 1 WHERE id = {row}"
                    )
                    yield 0

        done = burst.crowd(steps, self.clients + 1, self.seconds)
        return Load.of(done, len(done.latencies) - done.rows_seen, dumps=done.rows_seen)
