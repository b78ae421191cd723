"""EXPLAIN of a query with two long IN lists: the optimizer makes a range of every pair (MySQL bug 120574)."""

from dataclasses import dataclass

from bench.workloads.base import Load, Workload, insert_rows
from harness import burst
from harness.server import Server


@dataclass(frozen=True)
class RangeOptimizer(Workload):
    name = "range_optimizer"
    shows = "EXPLAIN of two long IN lists: c3 times c4 ranges, live until the statement ends"
    unit = "statements"

    # The bug's report has 8192 and 2048, which takes 7 to 10 GB; memory goes with the product.
    c3: int = 1536
    c4: int = 512
    clients: int = 1
    seconds: float = 15.0

    def fill(self, server: Server) -> None:
        with server.connect(self.name) as session:
            columns = "".join(f"c{n} VARCHAR(32) NOT NULL, " for n in (1, 3, 4, 5, 6))
            session.query(
                f"CREATE TABLE t (id INT PRIMARY KEY, c2 INT NOT NULL, {columns}"
                "KEY k (c1, c2, c3 DESC, c4 DESC, c5 DESC))"
            )
            insert_rows(session, "t", 50_000, "i, 1, 'x', i, i % 5000, i, i")
            session.query("ANALYZE TABLE t")

    def load(self, server: Server) -> Load:
        c3, c4 = (",".join(f"'{number}'" for number in range(count)) for count in (self.c3, self.c4))
        explain = (
            f"EXPLAIN SELECT * FROM t FORCE INDEX (k) WHERE c1 = 'x' AND c2 = 1 AND c3 IN ({c3}) AND c4 IN ({c4})"
            " ORDER BY c3 DESC, c4 DESC, c5 DESC"
        )
        return Load.of(burst.run(server.socket, self.name, [explain], self.clients, self.seconds))
