"""Large triggers, parsed anew for every instance of every table in the table cache, and then FLUSH TABLES."""

import time
from dataclasses import dataclass

from bench.workloads.base import HUGE_PAGES, LIMIT, PLAIN, Load, Workload
from harness import burst
from harness.server import Server


@dataclass(frozen=True)
class Triggers(Workload):
    name = "triggers"
    shows = "triggers times table cache: live as long as the tables are open, then free at once"
    unit = "inserts"
    options = ("--table-open-cache=4000", "--table-open-cache-instances=8")
    data = ("tables", "statements")
    surroundings = (PLAIN, HUGE_PAGES, LIMIT)

    tables: int = 100
    statements: int = 60  # in each trigger
    clients: int = 8
    seconds: float = 15.0

    def fill(self, server: Server) -> None:
        # Parsed, but not executed: this is about memory, not about the interpreter.
        body = "".join(
            f"SET NEW.b = CONCAT(UPPER(NEW.b), '{number}', LENGTH(NEW.b) + NEW.a * {number}); "
            for number in range(self.statements)
        )
        with server.connect(self.name) as session:
            for table in range(self.tables):
                session.query(f"CREATE TABLE t{table} (id INT PRIMARY KEY AUTO_INCREMENT, a INT, b VARCHAR(200))")
                session.query(
                    f"CREATE TRIGGER large{table} BEFORE INSERT ON t{table} FOR EACH ROW"
                    f" BEGIN IF NEW.a < 0 THEN {body} END IF; END"
                )

    def load(self, server: Server) -> Load:
        inserts = [f"INSERT INTO t{table} (a, b) VALUES ({table}, 'some text')" for table in range(self.tables)]
        done = burst.run(server.socket, self.name, inserts, self.clients, self.seconds)
        before = time.monotonic()
        server.query("FLUSH TABLES")
        return Load.of(done, flush_seconds=time.monotonic() - before)
