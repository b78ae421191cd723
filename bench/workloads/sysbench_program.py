"""The program sysbench: its tables, the server's options for it, and its output."""

import re
import shutil

from bench.workloads.base import digest
from harness.problem import Problem
from harness.programs import captured
from harness.server import Server, last_line

TESTS = ("oltp_point_select", "oltp_read_only", "oltp_read_write")
MAX_THREADS = 1024
TABLES = 4
ROWS = 50_000
DATABASE = "sbtest"
# An application's.
ACCOUNT = "sbtest"
MYSQLD_OPTIONS = (
    "--innodb-buffer-pool-size=512M",
    "--innodb-buffer-pool-load-at-startup=OFF",
    "--innodb-buffer-pool-dump-at-shutdown=OFF",
    f"--max-connections={MAX_THREADS + 10}",
    # A session of oltp_read_write prepares more than the default leaves to each of so many.
    f"--max-prepared-stmt-count={64 * MAX_THREADS}",
    "--disable-log-bin",
)


def run(server: Server, test: str, action: str, *options: str) -> str:
    """Run sysbench and return what it printed."""
    command = [
        "sysbench",
        test,
        "--db-driver=mysql",
        f"--mysql-socket={server.socket}",
        f"--mysql-user={ACCOUNT}",
        f"--mysql-db={DATABASE}",
        f"--tables={TABLES}",
        f"--table-size={ROWS}",
        *options,
        action,
    ]
    done = captured(command)
    if done.returncode != 0:
        complaint = next((line for line in done.stdout.splitlines() if "FATAL" in line), last_line(done.stderr))
        raise Problem(f"sysbench {test} {action} failed: {complaint}\n{server.log_tail()}")
    return done.stdout


def fill(server: Server) -> None:
    server.query(f"CREATE DATABASE {DATABASE}")
    server.query(f"CREATE USER {ACCOUNT}@localhost")
    server.query(f"GRANT ALL ON {DATABASE}.* TO {ACCOUNT}@localhost")
    run(server, "oltp_read_only", "prepare")
    for number in range(1, TABLES + 1):
        server.query(f"ANALYZE TABLE sbtest{number}", DATABASE)


def read_all(server: Server) -> None:
    """Read every row once. All rows fit into the buffer pool, so later measurements do not read from the disk."""
    for number in range(1, TABLES + 1):
        server.query(f"SELECT COUNT(*), SUM(LENGTH(c)), SUM(LENGTH(pad)) FROM sbtest{number}", DATABASE)


def version() -> str:
    if shutil.which("sysbench") is None:
        raise Problem("sysbench is missing; install it with: apt-get install sysbench")
    done = captured(["sysbench", "--version"])
    return done.stdout.strip()


def data_key() -> dict[str, object]:
    return {"tables": TABLES, "rows": ROWS, "sysbench": version(), "source": digest(fill, run)}


def parse(output: str, percentile: int = 95) -> dict[str, float]:
    """The figures of the last report. With --report-checkpoints it begins at the last checkpoint, and so does the
    histogram, of which there is only one."""
    _, _, output = output.rpartition("SQL statistics:")
    patterns = {
        "tps": r"transactions:\s+\d+\s+\(([\d.]+) per sec",
        f"p{percentile}_ms": rf"{percentile}th percentile:\s+([\d.]+)",
    }
    figures = {}
    for name, pattern in patterns.items():
        found = re.search(pattern, output)
        if not found:
            raise Problem(f"sysbench printed no {name}:\n{output}")
        figures[name] = float(found[1])
    return figures


def histogram(output: str) -> list[tuple[float, int]]:
    """(latency in milliseconds, transactions) of a run with --histogram, or of several, the shortest first. A line has the
    middle of a range of latencies, which is 2% above the one before."""
    counts = sorted(
        (float(found[1]), int(found[2]))
        for found in re.finditer(r"^\s*([\d.]+) \|\**\s+(\d+)\s*$", output, re.MULTILINE)
    )
    if not counts:
        raise Problem(f"sysbench printed no histogram:\n{output}")
    return counts


def percentile(output: str, share: float) -> float:
    """The latency in milliseconds that this share (0 to 1) of all transactions does not exceed. sysbench itself computes
    one percentile only."""
    counts = histogram(output)
    wanted = share * sum(count for _, count in counts)
    so_far = 0
    for latency, count in counts:
        so_far += count
        if so_far >= wanted:
            return latency
    return counts[-1][0]


def longer_than(output: str, least_ms: float) -> int:
    """The number of transactions that took longer."""
    return sum(count for latency, count in histogram(output) if latency > least_ms)
