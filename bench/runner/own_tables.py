"""This server's tables: their names, how a monitor reads them, and the processor time of the thread that reads them."""

import contextlib
import os
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.runner import report
from bench.runner.arms import TOP
from harness.server import Server
from harness.sql import Connection

READS = 9
# A monitor that reads each second asks for so much of the past.
SEEN_SECONDS = 10
_HEADER = TOP / "plugin/memdiag/tables/tables.h"


def everyday() -> list[str]:
    """The tables for people who run servers, according to the plugin's list of tables."""
    text = _HEADER.read_text()
    (macro,) = re.findall(r"define MEMDIAG_EVERYDAY_TABLES\(TABLE\)((?:.*\\\n)*.*)", text)
    return [f"MEMDIAG_{name.upper()}" for name in re.findall(r"TABLE\((\w+)\)", macro)]


def every(session: Connection) -> list[str]:
    """All that the server has."""
    rows = session.query(
        "SELECT TABLE_NAME FROM information_schema.TABLES"
        " WHERE TABLE_SCHEMA = 'information_schema' AND TABLE_NAME LIKE 'MEMDIAG\\_%'"
        " ORDER BY TABLE_NAME"
    ).rows
    return [name for (name,) in rows if name]


def thread_of(session: Connection) -> int:
    """The server's thread of the session."""
    thread = session.query(
        "SELECT THREAD_OS_ID FROM performance_schema.threads WHERE PROCESSLIST_ID = CONNECTION_ID()"
    ).scalar()
    return int(thread or 0)


def cpu_ms(server: Server, thread: int) -> float:
    """CPU time of a thread so far; the first figure of /proc/PID/task/TID/schedstat is nanoseconds on a processor."""
    return int(Path(f"/proc/{server.pid}/task/{thread}/schedstat").read_text().split()[0]) / 1e6


def select(table: str) -> str:
    """The statement with which a monitor reads a table: of the past, it reads what it has not seen yet."""
    past = table in ("MEMDIAG_HISTORY", "MEMDIAG_HISTORY_POOLS")
    seen = f" WHERE TIME > NOW() - INTERVAL {SEEN_SECONDS} SECOND" if past else ""
    return f"SELECT * FROM information_schema.{table}{seen}"


def read(
    server: Server, reader: Connection, names: Sequence[str], in_turn: bool, reads: int = READS
) -> dict[str, tuple[float, float]]:
    """Median milliseconds of each table, by the clock and of processor time.

    `in_turn`: reads one table after the other, each second. Otherwise another statement comes in between, so two reads
    share nothing.
    """
    thread = thread_of(reader)
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    for _ in range(reads):
        time.sleep(1 if in_turn else 0)
        for name, times in taken.items():
            if not in_turn:
                reader.query("SELECT 1")
            before = (time.monotonic(), cpu_ms(server, thread))
            reader.discard(select(name))
            after = (time.monotonic(), cpu_ms(server, thread))
            times.append((1000 * (after[0] - before[0]), after[1] - before[1]))
    return {
        name: (report.median(ms for ms, _ in times), report.median(cpu for _, cpu in times))
        for name, times in taken.items()
    }


@contextlib.contextmanager
def foremost() -> Iterator[None]:
    """Gives this program priority over all else on the machine, as its server has. Only root can do this."""
    if os.geteuid() != 0:
        yield
        return
    before = os.getpriority(os.PRIO_PROCESS, 0)
    os.setpriority(os.PRIO_PROCESS, 0, -15)
    try:
        yield
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, before)
