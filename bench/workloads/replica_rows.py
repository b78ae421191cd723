"""A replica that applies large row events.

No port and no second server: while the data are prepared, the server is the source and writes the changes to its binary
log; then the rows go, unlogged. In each turn the server is the replica: that binary log is its relay log.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass

from bench.workloads.base import Load, Workload
from harness import burst
from harness.problem import Problem
from harness.server import Server

SOURCE_ID, REPLICA_ID = 1, 2


@dataclass(frozen=True)
class ReplicaRows(Workload):
    name = "replica_rows"
    shows = "large row events applied by a replica: event buffers, row images, binary log caches"
    unit = "rows"
    options = (
        "--log-bin=source-bin",
        f"--server-id={SOURCE_ID}",
        "--sync-binlog=0",
        "--relay-log=relay-bin",
        "--sync-relay-log=0",
        "--max-allowed-packet=64M",
        "--max-binlog-size=1G",
        "--skip-replica-start",
    )
    data = ("transactions", "rows", "row_kb", "blobs", "blob_mb")

    transactions: int = 8
    rows: int = 2000  # of each transaction, inserted and then updated
    row_kb: int = 8
    blobs: int = 3  # of each transaction
    blob_mb: int = 8

    def mysqld_options(self) -> tuple[str, ...]:
        return tuple(option for option in super().mysqld_options() if option != "--disable-log-bin")

    def fill(self, server: Server) -> None:
        with server.connect(self.name) as session:
            session.query(
                "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, batch INT, a INT, body LONGBLOB, KEY (batch))"
            )
            session.query("FLUSH BINARY LOGS")
            for batch in range(self.transactions):
                session.query("BEGIN")
                values = ",".join(f"({batch}, {row}, REPEAT('r', {self.row_kb << 10}))" for row in range(self.rows))
                session.query(f"INSERT INTO t (batch, a, body) VALUES {values}")
                for _ in range(self.blobs):
                    session.query(
                        f"INSERT INTO t (batch, a, body) VALUES ({batch}, -1, REPEAT('b', {self.blob_mb << 20}))"
                    )
                session.query(f"UPDATE t SET a = a + 1 WHERE batch = {batch}")
                session.query("COMMIT")
            session.query("FLUSH BINARY LOGS")
            changes = sorted(server.data.glob("source-bin.0*"))[1:-1]
            for number, log in enumerate(changes, 1):
                (server.data / f"relay-bin.{number:06}").hardlink_to(log)
            (server.data / "relay-bin.index").write_text(
                "".join(f"./relay-bin.{number + 1:06}\n" for number in range(len(changes)))
            )
            # Or the replica would skip what its own history has.
            session.query("RESET BINARY LOGS AND GTIDS")
            session.query("SET sql_log_bin = 0")
            session.query("TRUNCATE TABLE t")

    def load(self, server: Server) -> Load:
        server.query(f"SET GLOBAL server_id = {REPLICA_ID}")
        server.query(
            "CHANGE REPLICATION SOURCE TO SOURCE_HOST = 'nowhere', RELAY_LOG_FILE = 'relay-bin.000001', RELAY_LOG_POS = 4"
        )

        def steps(_number: int) -> Iterator[int]:
            with server.connect() as session:
                yield 0
                session.query("START REPLICA SQL_THREAD")
                while True:
                    (status,) = session.query("SHOW REPLICA STATUS").dicts()
                    if status["Last_SQL_Errno"] != "0":
                        raise Problem(f"the replica: {status['Last_SQL_Error']}")
                    if "read all" in (status["Replica_SQL_Running_State"] or ""):
                        break
                    time.sleep(0.1)
                yield 1

        done = burst.crowd(steps, 1)
        expected = self.transactions * (self.rows + self.blobs)
        count = int(server.query("SELECT COUNT(*) FROM t", self.name).scalar() or 0)
        if count != expected:
            raise Problem(f"the replica has {count} rows instead of {expected}")
        return Load.of(done, count=2 * count)  # inserted and updated
