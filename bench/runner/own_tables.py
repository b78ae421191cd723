"""This server's tables: their names, and the processor time of the thread that reads them."""

import re
from pathlib import Path

from bench.runner.arms import TOP
from harness.server import Server
from harness.sql import Connection

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
