"""A server that was installed into a machine. This process connects to its socket from outside."""

import socket
import struct
import threading
import time
from pathlib import Path
from typing import Self

from harness import phrase_searches
from harness.checks import Checks, Failed
from harness.server import Server
from harness.sql import Connection, SqlError
from tests.machine import Machine

SOCKET = "/run/mysqld/mysqld.sock"


class Installed(Server):
    """Connects through the socket as root, without a password: auth_socket lets this process in, because it is root."""

    def __init__(self, machine: Machine) -> None:
        self.folder = machine.folder
        self.socket = machine.path(SOCKET)
        self.pid = self._wait()

    def _wait(self) -> int:
        """Waits until the server answers; returns its process id outside of the machine."""
        end = time.monotonic() + 60
        while True:
            try:
                with self.connect(timeout=10) as session:
                    session.query("SELECT 1")
                with socket.socket(socket.AF_UNIX) as link:
                    link.connect(str(self.socket))
                    credentials = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
                return struct.unpack("iII", credentials)[0]
            except (OSError, SqlError) as error:
                if time.monotonic() > end:
                    raise Failed(f"the server does not answer after a minute: {error}") from None
            time.sleep(0.1)


def main_job(machine: Machine, report: Checks, documents: int = 5000, seconds: float = 5) -> None:
    """The demonstration's burst of phrase searches, with its own checks."""
    server = Installed(machine)
    statements = phrase_searches.prepare(server, documents)
    checks = Checks(show=False)
    phrase_searches.run(server, statements, 8, seconds, checks)
    problem = "; ".join(checks.failures)
    report.check("the main job", not problem, problem or f"{checks.passed} of its checks hold")


def memdiag_tables(server: Server, report: Checks) -> None:
    """Every table answers; a warning would be something that an installed server cannot read of its host.

    A warning that is gone a second later does not count: InnoDB's dictionary was in use, or two purges met."""
    tables = "SELECT table_name FROM information_schema.tables WHERE table_name LIKE 'MEMDIAG\\_%' ORDER BY 1"
    with server.connect("information_schema") as session:
        names = [row[0] for row in session.query(tables).rows]
        wrong, rows = [], 0
        for name in names:
            try:
                for pause in (1, 0):
                    count = len(session.query(f"SELECT * FROM {name}").rows)
                    warnings = session.query("SHOW WARNINGS").rows
                    if not warnings:
                        break
                    time.sleep(pause)
                rows += count
                wrong += [f"{name}: {row[2]}" for row in warnings]
            except SqlError as error:
                wrong.append(f"{name}: {error}")
        status = session.query("SHOW GLOBAL STATUS LIKE 'Memdiag\\_%'").rows
    good = len(names) > 10 and rows > len(names) and len(status) > 10 and not wrong
    figures = f"{len(names)} tables, {rows} rows, {len(status)} status variables"
    report.check("every memdiag table", good, "; ".join([figures, *wrong]))


class Outage:
    """Asks the server all the time during the block. Afterwards `seconds` is the longest time without an answer."""

    def __init__(self, machine: Machine) -> None:
        self._socket = machine.path(SOCKET)
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.seconds = 0.0

    def __enter__(self) -> Self:
        self._last = time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        self.seconds = max(self.seconds, time.monotonic() - self._last)

    def _run(self) -> None:
        while not self._done.is_set():
            if _answers(self._socket):
                now = time.monotonic()
                self.seconds, self._last = max(self.seconds, now - self._last), now
            time.sleep(0.02)


def _answers(path: Path) -> bool:
    try:
        with Connection(path, timeout=5) as connection:
            return connection.query("SELECT 1").scalar() == "1"
    except (OSError, SqlError):
        return False
