#!/usr/bin/env python3
"""Servers of others to run the client against: Debian's MySQL of the unstable suite, and MariaDB of the stable one.

  client/check/peers.py FOLDER    unpacks them into FOLDER/stock and FOLDER/mariadb; nothing is installed

Both run from there. Root makes the MySQL one, with mmdebstrap, as its C library is newer than this machine's.
"""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "client")]

from harness.common import cache_dir, say
from harness.problem import Problem, run_main
from harness.server import last_line
from harness.sql import Connection, SqlError
from harness.unpacked import unpack
from tools.build import debian

STOCK_PACKAGES = "mysql-server-core,mysql-client-core"
MARIADB_PACKAGES = ("mariadb-server-core", "mariadb-server", "liburing2")
MULTIARCH = "usr/lib/x86_64-linux-gnu"


def folder() -> Path:
    """Where ./run-tests looks for them."""
    return cache_dir() / "client-peers"


def fetch(into: Path) -> None:
    into.mkdir(parents=True, exist_ok=True)
    debian.programs(into / "stock", STOCK_PACKAGES)
    if not (into / "mariadb").exists():
        unpack(MARIADB_PACKAGES, into / "mariadb")


class MariaDb:
    """A private MariaDB, on a socket alone. Its data directory is made by its own bootstrap."""

    def __init__(self, programs: Path, base: Path, options: tuple[str, ...] = ()) -> None:
        self._usr = programs / "usr"
        self._base = base
        self.data = base / "data"
        self.socket = base / "mysqld.sock"
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process
        return self._process.pid

    def _command(self) -> list[str]:
        return [
            str(self._usr / "sbin/mariadbd"),
            "--no-defaults",
            f"--basedir={self._usr}",
            f"--datadir={self.data}",
            f"--lc-messages-dir={self._usr}/share/mysql",
            f"--plugin-dir={self._usr}/lib/mysql/plugin",
            "--user=root",
        ]

    def _environment(self) -> dict[str, str]:
        libraries = self._usr.parent / MULTIARCH
        return {**os.environ, "LD_LIBRARY_PATH": str(libraries)}

    def initialise(self) -> None:
        (self.data / "mysql").mkdir(parents=True)
        share = self._usr / "share/mysql"
        script = "CREATE DATABASE IF NOT EXISTS mysql;\nUSE mysql;\nSET @auth_root_socket = NULL;\nSET @skip_auth_anonymous = 1;\n"
        for name in ("mysql_system_tables", "mysql_performance_tables", "mysql_system_tables_data"):
            script += (share / f"{name}.sql").read_text()
        done = subprocess.run(
            [*self._command(), "--bootstrap", "--skip-grant-tables"],
            input=script.encode(),
            capture_output=True,
            env=self._environment(),
            check=False,
        )
        if done.returncode:
            raise Problem(f"MariaDB could not be initialised: {last_line(done.stderr.decode(errors='replace'))}")

    @contextlib.contextmanager
    def running(self) -> Iterator[Self]:
        with open(self._base / "error.log", "wb") as log:
            self._process = subprocess.Popen(
                [*self._command(), f"--socket={self.socket}", "--skip-networking", *self._options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._environment(),
            )
        try:
            self._wait()
            yield self
        finally:
            self._process.terminate()
            try:
                self._process.wait(60)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def _wait(self) -> None:
        assert self._process
        end = time.monotonic() + 60
        while time.monotonic() < end and self._process.poll() is None:
            try:
                Connection(self.socket, timeout=5).close()
                return
            except (OSError, SqlError):
                time.sleep(0.1)
        raise Problem(f"MariaDB did not start: {last_line((self._base / 'error.log').read_text())}")


def main() -> int:
    if len(sys.argv) > 2 or (len(sys.argv) == 2 and sys.argv[1].startswith("-")):
        print(__doc__)
        return 2
    into = Path(sys.argv[1]) if len(sys.argv) == 2 else folder()
    fetch(into)
    say(str(into))
    return 0


if __name__ == "__main__":
    run_main("peers", main)
