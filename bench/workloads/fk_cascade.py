"""One DELETE that foreign keys spread over two more levels of tables."""

from collections.abc import Iterator
from dataclasses import dataclass

from bench.workloads.base import Load, Workload, insert_rows
from harness import burst
from harness.server import Server

CHILDREN_EACH = 4  # rows of the third table for each row of the second
PARENTS = 100


@dataclass(frozen=True)
class ForeignKeyCascade(Workload):
    name = "fk_cascade"
    shows = "one DELETE that cascades to many rows: live until the statement ends, then free at once"
    unit = "rows"
    data = ("rows",)

    rows: int = 1_000_000  # of both dependent tables together
    native: int = 0  # 1: cascades by InnoDB, as before 9.6; 0: by the SQL layer, upstream's default

    def mysqld_options(self) -> tuple[str, ...]:
        return (*super().mysqld_options(), f"--innodb-native-foreign-keys={self.native}")

    def fill(self, server: Server) -> None:
        with server.connect(self.name) as session:
            session.query("CREATE TABLE parent (id INT PRIMARY KEY)")
            for table, above in (("child", "parent"), ("grandchild", "child")):
                session.query(
                    f"CREATE TABLE {table} (id INT PRIMARY KEY, above INT NOT NULL, note VARCHAR(100),"
                    f" FOREIGN KEY (above) REFERENCES {above} (id) ON DELETE CASCADE)"
                )
        self.renew(server)

    def renew(self, server: Server) -> None:
        middle = self.rows // (1 + CHILDREN_EACH)
        with server.connect(self.name) as session:
            for table in ("grandchild", "child", "parent"):
                session.query(f"DELETE FROM {table}")  # left by a load that failed
            for table, count, above in (
                ("parent", PARENTS, ""),
                ("child", middle, f", i % {PARENTS} + 1, REPEAT('c', 80)"),
                ("grandchild", self.rows - middle, f", i % {middle} + 1, REPEAT('g', 80)"),
            ):
                insert_rows(session, table, count, f"i{above}")
                session.query(f"ANALYZE TABLE {table}")

    def load(self, server: Server) -> Load:
        def steps(_number: int) -> Iterator[int]:
            with server.connect(self.name) as session:
                yield 0
                yield session.query("DELETE FROM parent").affected

        return Load.of(burst.crowd(steps, 1), count=self.rows)
