"""This server beside a stock one: replication in both directions, and the way back to stock on the same data directory.

No packages and no machines: two servers on loopback, ours from the build and stock from Debian's package, unpacked. The
statements come from our documents, so that a statement which harms a replica cannot be documented.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from harness.checks import Checks
from harness.common import ROOT
from harness.server import Build, Server, Unpacked, initialise, last_line
from harness.sql import SqlError
from tests import content
from tools.build import debian

STOCK_PACKAGES = "mysql-server-core,mysql-client-core"
REPLICATION_USER = "copier"
# Stock's answer to a GRANT of a privilege that it does not know.
SYNTAX_ERROR = "1149 "
UNKNOWN_VARIABLE = "Currently unknown variable 'memdiag_"
# All that keep an option of ours, and a value that is not the default.
PERSISTED = {
    "memdiag_quiet_ms": "'session=2000'",
    "memdiag_dirty_decay_ms": "'session=5000'",
    "memdiag_muzzy_decay_ms": "'session=1000'",
    "memdiag_dirty_limit": "'session=64M'",
    "memdiag_scope_survivors": "ON",
    "memdiag_sessions": "ON",
    "memdiag_history_interval_ms": "500",
    "memdiag_pressure_watcher": "WATCH",
    "memdiag_pressure_limit": "95",
    "memdiag_pressure_stall_percent": "20",
    "memdiag_pressure_buffer_pool_min": "16777216",
}
PERSISTED_FOR_THE_START = {
    "memdiag_routes": "'memory/sql/NET=general'",
    "memdiag_disabled_pools": "'fts_query'",
    "memdiag_history_samples": "600",
}


class Stock(Unpacked):
    """Debian's server and clients, run with the C library of their own suite."""

    @classmethod
    def below(cls, work: Path) -> Stock:
        stock = cls(work / "stock-programs")
        if not stock.mysqld.exists():
            unfinished = stock.directory.with_name("stock-programs.unfinished")
            debian.root("unstable", unfinished, "extract", STOCK_PACKAGES)
            unfinished.rename(stock.directory)
        return stock

    def client(self, name: str) -> list[str | Path]:
        usr = self.directory / "usr"
        loader = usr / "lib64/ld-linux-x86-64.so.2"
        libraries = usr / "lib/x86_64-linux-gnu"
        return [loader, "--library-path", libraries, self.program(name)]

    def command(self) -> list[str | Path]:
        return self.client("mysqld")


# --- what our documents say -----------------------------------------------------------


def documents() -> list[Path]:
    return [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(ROOT.glob("docs/*.md"))]


def documented_statements() -> list[tuple[str, ...]]:
    """Each piece of SQL about memdiag in our documents: its statements, in order. Those with a gap (`...`) for the
    reader to fill in are left out, but for GRANT, whose gap is an account."""
    found: dict[tuple[str, ...], None] = {}
    for path in documents():
        text = path.read_text()
        pieces = re.findall(r"^```sql\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
        pieces += re.findall(r"`([^`]+)`", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))  # fmt: skip
        for piece in pieces:
            lines = [re.sub(r"\s--\s.*$", "", line) for line in piece.splitlines()]
            piece = re.sub(r"\s+", " ", " ".join(lines)).strip()
            if not re.match(r"(?i)(SELECT|SET|GRANT|SHOW|CALL|DROP)\s", piece):
                continue
            if "memdiag" not in piece.lower():
                continue
            piece = re.sub(r"(?i)(GRANT .* TO) \.\.\.", r"\1 root@localhost", piece)
            if "..." in piece or "<" in piece:
                continue
            statements = (part.strip() for part in piece.split(";"))
            found[tuple(part for part in statements if part)] = None
    return list(found)


def unlogged(statements: tuple[str, ...]) -> bool:
    """Whether what stock cannot read is kept out of the binary log."""
    for number, statement in enumerate(statements):
        if re.match(r"(?i)(GRANT|REVOKE) .*MEMDIAG_ADMIN", statement):
            before = " ".join(statements[:number])
            if not re.search(r"(?i)SET (SESSION )?sql_log_bin\s*=\s*(0|OFF)", before):
                return False
    return True


def use_everything(server: Server, report: Checks) -> None:
    """Run all that is documented, read each table, and set and persist each variable."""
    statements = documented_statements()
    report.check("statements in our documents", len(statements) >= 10, len(statements))
    logged = [" ; ".join(x) for x in statements if not unlogged(x)]
    report.check(
        "each documented GRANT of MEMDIAG_ADMIN is kept out of the binary log",
        not logged,
        "; ".join(logged),
    )
    wrong = []
    with server.connect() as session:
        # For the statement that removes what an earlier version made.
        session.query("SET sql_log_bin = 0")
        session.query("CREATE DATABASE IF NOT EXISTS memdiag")
    for piece in statements:
        if not unlogged(piece):
            continue
        with server.connect("information_schema") as session:
            try:
                for statement in piece:
                    session.query(statement.removesuffix("\\G"))
            except SqlError as error:
                wrong.append(f"{' ; '.join(piece)}: {error}")
    report.check("each documented statement runs", not wrong, "; ".join(wrong))
    with server.connect("information_schema") as session:
        tables = session.query(
            "SELECT TABLE_NAME FROM TABLES WHERE TABLE_NAME LIKE 'MEMDIAG\\_%'"
        ).rows
        for (table,) in tables:
            session.discard(f"SELECT * FROM {table}")
        for name, value in PERSISTED.items():
            session.query(f"SET GLOBAL {name} = {value}")
            session.query(f"SET PERSIST {name} = {value}")
        for name, value in PERSISTED_FOR_THE_START.items():
            session.query(f"SET PERSIST_ONLY {name} = {value}")
        session.query("SELECT memdiag_purge('all')")
        session.query("SHOW GLOBAL STATUS LIKE 'Memdiag%'")


# --- two servers ------------------------------------------------------------------------


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def on_loopback(port: int, number: int) -> list[str]:
    return [
        "--skip-networking=OFF",
        "--bind-address=127.0.0.1",
        f"--port={port}",
        f"--server-id={number}",
        "--gtid-mode=ON",
        "--enforce-gtid-consistency=ON",
        "--log-bin=binlog",
        "--skip-replica-start",
        "--innodb-buffer-pool-size=64M",
    ]


class Pair:
    """A source and its replica, both with data directories of their own."""

    def __init__(self, folder: Path, source: Build, replica: Build) -> None:
        self._port = free_port()
        self.source = Server(source, folder / "source", on_loopback(self._port, 1))
        self.replica = Server(replica, folder / "replica", on_loopback(free_port(), 2))

    @contextlib.contextmanager
    def running(self) -> Iterator[Pair]:
        with self.source, self.replica:
            for server in (self.source, self.replica):
                initialise(server.build, server.data)
                server.start()
            password = secrets.token_hex(8)
            with self.source.connect() as session:
                session.query(
                    f"CREATE USER {REPLICATION_USER}@localhost IDENTIFIED BY '{password}'"
                )
                session.query(
                    f"CREATE USER {REPLICATION_USER}@'127.0.0.1' IDENTIFIED BY '{password}'"
                )
                for host in ("localhost", "127.0.0.1"):
                    session.query(
                        f"GRANT REPLICATION SLAVE ON *.* TO {REPLICATION_USER}@'{host}'"
                    )
            with self.replica.connect() as session:
                session.query(
                    "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1',"
                    f" SOURCE_PORT = {self._port}, SOURCE_USER = '{REPLICATION_USER}',"
                    f" SOURCE_PASSWORD = '{password}', SOURCE_AUTO_POSITION = 1,"
                    " GET_SOURCE_PUBLIC_KEY = 1, SOURCE_CONNECT_RETRY = 1"
                )
                session.query("START REPLICA")
            yield self

    def catch_up(self, seconds: float = 120) -> str:
        """Wait until the replica has all; what stopped it, or an empty text."""
        wanted = self.source.query("SELECT @@GLOBAL.gtid_executed").scalar()
        end = time.monotonic() + seconds
        with self.replica.connect() as session:
            while time.monotonic() < end:
                done = session.query(
                    f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{wanted}', 1)"
                ).scalar()
                if done == "0":
                    return ""
                (status,) = session.query("SHOW REPLICA STATUS").dicts()
                for kind in ("SQL", "IO"):
                    if status[f"Last_{kind}_Errno"] != "0":
                        return f"{status[f'Last_{kind}_Errno']} {status[f'Last_{kind}_Error']}"
        return f"it has not read all after {seconds:g} s"

    def errant(self) -> str:
        """Transactions that only the replica has."""
        source = self.source.query("SELECT @@GLOBAL.gtid_executed").scalar()
        return (
            self.replica.query(
                f"SELECT GTID_SUBTRACT(@@GLOBAL.gtid_executed, '{source}')"
            ).scalar()
            or ""
        )


def check_pair(pair: Pair, report: Checks, what: str) -> None:
    problem = pair.catch_up()
    report.check(f"{what}: the applier goes on", not problem, problem)
    errant = pair.errant()
    report.check(f"{what}: no errant transaction", not errant, errant)


# --- the tests ----------------------------------------------------------------------------


@contextlib.contextmanager
def builds(run) -> Iterator[tuple[Path, Build, Stock]]:
    """A folder that is removed at the end, our build, and stock."""
    folder = run.work / "stock-peer"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield folder, Build.of_preset(ROOT, run.preset), Stock.below(run.work)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def replication(run) -> None:
    report = run.report
    with builds(run) as (folder, ours, stock):
        with Pair(folder / "stock-replica", ours, stock).running() as pair:
            with pair.source.connect() as session:
                content.make(session)
            use_everything(pair.source, report)
            check_pair(pair, report, "our source, stock replica")
            # The statement that no document may have as it is: it shows that this test can fail.
            pair.source.query("GRANT MEMDIAG_ADMIN ON *.* TO root@localhost")
            problem = pair.catch_up()
            report.check(
                "a logged GRANT of MEMDIAG_ADMIN does stop a stock replica",
                problem.startswith(SYNTAX_ERROR),
                problem[:200],
            )
        with Pair(folder / "our-replica", stock, ours).running() as pair:
            with pair.source.connect() as session:
                content.make(session)
            use_everything(pair.replica, report)
            with pair.source.connect() as session:
                content.change(session, 1)
            check_pair(pair, report, "stock source, our replica")


def going_back(run) -> None:
    report = run.report
    with (
        builds(run) as (folder, ours, stock),
        Server(ours, folder / "server") as server,
    ):
        initialise(ours, server.data)
        server.start()
        with server.connect() as session:
            content.make(session)
            before = content.fingerprint(session)
        use_everything(server, report)
        server.stop()
        log = after_ours(report, folder, stock, before)
        unknown = len(re.findall(re.escape(UNKNOWN_VARIABLE), log))
        report.check(
            "stock warns of each persisted variable that it does not know, and starts",
            unknown >= len(PERSISTED),
            f"{unknown} warnings",
        )
        server.start()
        kept = server.query("SELECT @@GLOBAL.memdiag_quiet_ms").scalar()
        report.check(
            "back again, this server has its persisted settings",
            kept == PERSISTED["memdiag_quiet_ms"].strip("'"),
            kept,
        )


def after_ours(
    report: Checks, folder: Path, stock: Stock, before: dict[str, str]
) -> str:
    """Stock on the data directory that this server used; its error log."""
    with Server(stock, folder / "server") as server:
        server.start()
        with server.connect() as session:
            problem = content.differences(before, content.fingerprint(session))
            report.check("stock starts, and has every row", not problem, problem)
            session.query("SHOW GRANTS FOR root@localhost")
            # Writes mysqld-auto.cnf anew.
            session.query("SET PERSIST max_connections = 150")
        dump = folder / "dump.sql"
        with dump.open("wb") as file:
            problem = client(stock, "mysqldump", server, ["--all-databases", "--routines", "--events", "--triggers"], stdout=file)  # fmt: skip
        report.check("mysqldump --all-databases exits with 0", not problem, problem)
        log = server.error_log.read_text(errors="replace")
    with Server(stock, folder / "loaded") as loaded:
        initialise(stock, loaded.data)
        loaded.start()
        with dump.open("rb") as file:
            problem = client(stock, "mysql", loaded, [], stdin=file)
        report.check("its output loads into stock", not problem, problem)
        with report.checking("accounts of the dump are there"):
            loaded.query("FLUSH PRIVILEGES")
            loaded.query("SHOW GRANTS FOR root@localhost")
    return log


def client(stock: Stock, name: str, server: Server, words: list[str], **files) -> str:
    """Run a client of stock; what it complained of, or an empty text."""
    command = [
        *stock.client(name),
        "--no-defaults",
        "-uroot",
        f"--socket={server.socket}",
        *words,
    ]
    done = subprocess.run(command, stderr=subprocess.PIPE, check=False, **files)
    if done.returncode == 0:
        return ""
    return f"exit {done.returncode}: {last_line(done.stderr.decode(errors='replace'))}"
