"""This server beside a stock one: replication in both directions, and the way back to stock on the same data directory.

It needs no packages and no machines: two servers on loopback, this one from the build, stock from Debian's unpacked
package. The statements come from the documents and from the server's own advice, so that neither can harm a replica.
"""

import contextlib
import re
import secrets
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from harness.checks import Checks
from harness.common import ROOT
from harness.network import free_port, own_network
from harness.server import Build, OfAnotherSuite, Server, initialise, last_line
from harness.sql import SqlError
from tests import content, documents
from tools.build import debian

STOCK_PACKAGES = "mysql-server-core,mysql-client-core"
REPLICATION_USER = "copier"
# Stock's error for a table of INFORMATION_SCHEMA that it does not have, and for a view that is there already.
UNKNOWN_TABLE, THERE_ALREADY = 1109, "1050 "
# The server's error for the mere beginning of a statement.
INCOMPLETE = (
    1064,
    "You have an error in your SQL syntax; check the manual that corresponds to your MySQL server version for the right"
    " syntax to use near '' at line 1",
)
UNKNOWN_VARIABLE = "Currently unknown variable 'memdiag_"
# Values for the gaps that a reader has to fill in; the tables are those of content.sql.
GAPS = {"<with a full-text index>": "kept.texts", "@<each large one>": "@large"}
# All memdiag variables that SET PERSIST keeps, each with a value that is not the default.
PERSISTED = {
    "memdiag_quiet_ms": "'session=2000'",
    "memdiag_dirty_decay_ms": "'session=5000'",
    "memdiag_muzzy_decay_ms": "'session=1000'",
    "memdiag_dirty_limit": "'session=64M'",
    "memdiag_scope_survivors": "ON",
    "memdiag_sessions": "ON",
    "memdiag_history_interval_ms": "500",
    "memdiag_profile": "RECORD",
    "memdiag_profile_sample_bytes": "1048576",
    "memdiag_profile_memory": "16777216",
    "memdiag_memory_target": "WATCH",
    "memdiag_memory_wait_ms": "5000",
}
PERSISTED_FOR_THE_START = {"memdiag_history_samples": "600"}
# Options alone set these: the server uses them before it reads mysqld-auto.cnf.
AT_THE_START = {"memdiag_routes": "memory/sql/NET=general", "memdiag_disabled_pools": "fts_query"}
# Documents set variables of this plugin. The plugin itself is not started.
GROUP_REPLICATION = ["--plugin-load-add=group_replication.so", "--loose-group-replication-start-on-boot=OFF"]
OUR_OPTIONS = [*(f"--{name.replace('_', '-')}={x}" for name, x in AT_THE_START.items()), *GROUP_REPLICATION]


class Persisting(Build):
    """A server that reads mysqld-auto.cnf, which --no-defaults leaves out, and no other settings."""

    def common_options(self) -> list[str]:
        return [
            "--defaults-file=/dev/null" if option == "--no-defaults" else option for option in super().common_options()
        ]


class Stock(Persisting, OfAnotherSuite):
    """Debian's server and clients of unstable."""

    @classmethod
    def below(cls, work: Path) -> Self:
        return cls(debian.programs(work / "stock-programs", STOCK_PACKAGES))


# --- what our documents say -----------------------------------------------------------


def use_everything(server: Server, report: Checks, role: str) -> None:
    """Run all documented and recommended statements, read each table, and set and persist each variable.

    A replica runs each piece with super_read_only, as most replicas do, unless it is about accounts or schemas."""
    found = documents.documented()
    report.check("pieces of SQL in our documents", len(found) >= 25, len(found))
    left = [" ; ".join(x) for x in found if documents.leaves_log_off(x)]
    report.check("each documented piece leaves a session that logs", not left, "; ".join(left))
    runner = Runner(server, replica=role == "replica")
    for piece in found:
        runner.run(piece)
    read_and_set(server, report)
    with server.connect("information_schema") as session:
        advised = session.query("SELECT DISTINCT STATEMENT FROM MEMDIAG_SUMMARY").rows
    for (statement,) in advised:
        if statement:
            runner.run((statement,))
    wrong = "; ".join(runner.wrong)
    figures = f"{runner.ran} run, {len(runner.names)} are names alone"
    report.check(f"each documented statement runs on a {role}", not wrong, wrong or figures)
    report.nothing(f"none of them is written to the log of a {role}", "; ".join(runner.logged))


def read_and_set(server: Server, report: Checks) -> None:
    with server.connect("information_schema") as session:
        tables = session.query("SELECT TABLE_NAME FROM TABLES WHERE TABLE_NAME LIKE 'MEMDIAG\\_%'").rows
        for (table,) in tables:
            session.discard(f"SELECT * FROM {table}")
        variables = session.query("SHOW GLOBAL VARIABLES LIKE 'memdiag\\_%'").rows
        known = {*PERSISTED, *PERSISTED_FOR_THE_START, *AT_THE_START}
        report.nothing("each variable is set", known ^ {name for name, _ in variables})
        for name, value in PERSISTED.items():
            session.query(f"SET GLOBAL {name} = {value}")
            session.query(f"SET PERSIST {name} = {value}")
        for name, value in PERSISTED_FOR_THE_START.items():
            session.query(f"SET PERSIST_ONLY {name} = {value}")


def administer(server: Server) -> None:
    """Runs logged statements about all privileges, and one that reads a table which stock lacks."""
    with server.connect() as session:
        for statement in (
            "CREATE USER chief@localhost",
            "GRANT ALL ON *.* TO chief@localhost WITH GRANT OPTION",
            "GRANT helper TO chief@localhost",
            "REVOKE ALL PRIVILEGES, GRANT OPTION FROM chief@localhost",
            "CREATE TABLE kept.figures AS SELECT * FROM information_schema.memdiag_pools",
        ):
            session.query(statement)


class Runner:
    """Runs pieces, each in a session of its own. It adds what a reader has to bring: accounts, and values for gaps.

    `wrong`: pieces that failed. `logged`: pieces that the server wrote to its binary log. `names`: pieces that only
    name a statement."""

    def __init__(self, server: Server, replica: bool) -> None:
        self.wrong: list[str] = []
        self.logged: list[str] = []
        self.names: list[str] = []
        self.ran = 0
        self._server = server
        self._replica = replica

    def run(self, piece: documents.Piece) -> None:
        text = " ; ".join(piece)
        before = self._own_transactions()
        try:
            self._prepare(text)
            with self._server.connect("information_schema") as session:
                for statement in piece:
                    session.query(self._filled(statement))
            self._clear(text)
            self.ran += 1
        except SqlError as error:
            if documents.is_name(text) and (error.code, error.message) == INCOMPLETE:
                self.names.append(text)
            else:
                self.wrong.append(f"{text}: {error}")
        if self._own_transactions() != before:
            self.logged.append(text)

    def _own_transactions(self) -> str:
        """The transactions that this server itself has logged."""
        query = "SELECT @@server_uuid, @@GLOBAL.gtid_executed"
        ((own, executed),) = self._server.query(query).rows
        return next((x for x in executed.split(",") if x.strip().startswith(own)), "")

    def _prepare(self, text: str) -> None:
        with self._server.connect() as session:
            session.query("SET GLOBAL super_read_only = OFF")
            session.query("SET GLOBAL read_only = OFF")
            session.query("SET sql_log_bin = 0")
            if account := re.search(r"GRANT .* TO (\S+)", text):
                session.query(f"CREATE USER IF NOT EXISTS {account[1]}")
            if "memdiag_profile(" in text:  # the last piece may have switched it off
                session.query("SET GLOBAL memdiag_profile = ON")
            if "DROP DATABASE memdiag" in text:  # the schema of an earlier version
                session.query("CREATE DATABASE IF NOT EXISTS memdiag")
            elif self._replica and not re.search("GRANT|CREATE USER|INSTALL COMPONENT", text):
                session.query("SET GLOBAL super_read_only = ON")

    def _clear(self, text: str) -> None:
        """Uninstalls the components of a piece: they stay in the data directory, and stock may not have them. A replica
        keeps them, because its threads use them."""
        if self._replica:
            return
        for component in re.findall(r"INSTALL COMPONENT ('[^']+')", text):
            self._server.query(f"UNINSTALL COMPONENT {component}")

    def _filled(self, statement: str) -> str:
        if setting := re.fullmatch(r"SET GLOBAL (\w+) = <less>", statement):
            value = self._server.query(f"SELECT @@GLOBAL.{setting[1]}").scalar()
            return f"SET GLOBAL {setting[1]} = {int(value) // 2}"
        if re.fullmatch(r"KILL \d+", statement):
            with self._server.connect() as session:
                other = session.query("SELECT CONNECTION_ID()").scalar()
                self._server.query(f"KILL {other}")
            return "DO 0"
        for gap, filling in GAPS.items():
            statement = statement.replace(gap, filling)
        return statement


# --- two servers ------------------------------------------------------------------------


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


def options_of(build: Build) -> list[str]:
    return [] if isinstance(build, Stock) else OUR_OPTIONS


class Pair:
    """A source and its replica, both with data directories of their own."""

    def __init__(self, folder: Path, source: Build, replica: Build) -> None:
        self._port = free_port()
        self.source, self.replica = (
            Server(build, folder / name, on_loopback(port, number) + options_of(build))
            for build, name, port, number in ((source, "source", self._port, 1), (replica, "replica", free_port(), 2))
        )

    @contextlib.contextmanager
    def running(self) -> Iterator[Self]:
        with self.source, self.replica:
            for server in (self.source, self.replica):
                initialise(server.build, server.data)
                server.start()
            password = secrets.token_hex(8)
            with self.source.connect() as session:
                session.query(f"CREATE USER {REPLICATION_USER}@localhost IDENTIFIED BY '{password}'")
                session.query(f"CREATE USER {REPLICATION_USER}@'127.0.0.1' IDENTIFIED BY '{password}'")
                for host in ("localhost", "127.0.0.1"):
                    session.query(f"GRANT REPLICATION SLAVE ON *.* TO {REPLICATION_USER}@'{host}'")
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
        """Waits until the replica has all transactions; returns what stopped it, or an empty text."""
        wanted = self.source.query("SELECT @@GLOBAL.gtid_executed").scalar()
        end = time.monotonic() + seconds
        with self.replica.connect() as session:
            while time.monotonic() < end:
                done = session.query(f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{wanted}', 1)").scalar()
                if done == "0":
                    return ""
                (status,) = session.query("SHOW REPLICA STATUS").dicts()
                for kind in ("SQL", "IO"):
                    if status[f"Last_{kind}_Errno"] != "0":
                        return f"{status[f'Last_{kind}_Errno']} {status[f'Last_{kind}_Error']}"
        return f"it has not read all after {seconds:g} s"

    def errant(self) -> str:
        """The transactions that only the replica has."""
        source = self.source.query("SELECT @@GLOBAL.gtid_executed").scalar()
        return self.replica.query(f"SELECT GTID_SUBTRACT(@@GLOBAL.gtid_executed, '{source}')").scalar() or ""


def check_pair(pair: Pair, report: Checks, what: str) -> None:
    report.nothing(f"{what}: the applier goes on", pair.catch_up())
    report.nothing(f"{what}: no errant transaction", pair.errant())


# --- the tests ----------------------------------------------------------------------------


@contextlib.contextmanager
def place(run, name: str) -> Iterator[Path]:
    """A folder of this name that is removed at the end. Meanwhile this process has a network of its own."""
    folder = run.work / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        with own_network():
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def builds(run, name: str = "stock-peer") -> Iterator[tuple[Path, Build, Stock]]:
    """A place, the build of this server, and stock."""
    stock = Stock.below(run.work)  # may have to be fetched, so it comes first
    with place(run, name) as folder:
        yield folder, Persisting.of_preset(ROOT, run.preset), stock


def replication(run) -> None:
    report = run.report
    with builds(run) as (folder, ours, stock):
        with Pair(folder / "stock-replica", ours, stock).running() as pair:
            with pair.source.connect() as session:
                content.make(session)
            use_everything(pair.source, report, "source")
            administer(pair.source)
            check_pair(pair, report, "our source, stock replica")
            try:
                pair.source.query("CREATE VIEW kept.pools AS SELECT * FROM information_schema.memdiag_pools")
                number = None
            except SqlError as refused:
                number = refused.code
            report.equal("a view of a MEMDIAG table is refused with stock's number", number, UNKNOWN_TABLE)
            report.nothing("our source, stock replica: nothing of it is logged", pair.catch_up())
            # This shows that the test can fail.
            with pair.replica.connect() as session:
                session.query("SET sql_log_bin = 0")
                session.query("CREATE VIEW kept.one AS SELECT 1")
            pair.source.query("CREATE VIEW kept.one AS SELECT 1")
            problem = pair.catch_up()
            report.check("a view that is there already does stop it", problem.startswith(THERE_ALREADY), problem[:200])
        with Pair(folder / "our-replica", stock, ours).running() as pair:
            with pair.source.connect() as session:
                content.make(session)
            use_everything(pair.replica, report, "replica")
            with pair.source.connect() as session:
                content.change(session, 1)
            check_pair(pair, report, "stock source, our replica")


def going_back(run) -> None:
    report = run.report
    with builds(run) as (folder, ours, stock), Server(ours, folder / "server", OUR_OPTIONS) as server:
        initialise(ours, server.data)
        server.start()
        with server.connect() as session:
            content.make(session)
            before = content.fingerprint(session)
        use_everything(server, report, "server")
        dump(report, [ours.program("mysqldump")], server, folder / "ours.sql", "our")
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
            "back again, this server has its persisted settings", kept == PERSISTED["memdiag_quiet_ms"].strip("'"), kept
        )


def after_ours(report: Checks, folder: Path, stock: Stock, before: dict[str, str]) -> str:
    """Starts stock on the data directory that this server used; returns its error log."""
    with Server(stock, folder / "server") as server:
        server.start()
        with server.connect() as session:
            report.nothing("stock starts, and has every row", content.differences(before, content.fingerprint(session)))
            session.query("SHOW GRANTS FOR root@localhost")
            # This makes the server write mysqld-auto.cnf anew.
            session.query("SET PERSIST max_connections = 150")
        dump(report, stock.command_of("mysqldump"), server, folder / "stock.sql", "stock's")
        log = server.error_log.read_text(errors="replace")
    for whose in ("ours", "stock"):
        load(report, stock, folder, whose, before)
    return log


def load(report: Checks, stock: Stock, folder: Path, whose: str, before: dict[str, str]) -> None:
    """Loads a dump into a new stock server."""
    with Server(stock, folder / f"{whose}-loaded") as server:
        initialise(stock, server.data)
        server.start()
        with (folder / f"{whose}.sql").open("rb") as file:
            problem = client(stock.command_of("mysql"), server, [], stdin=file)
        report.nothing(f"{whose}.sql loads into stock", problem)
        what = f"rows and accounts of {whose}.sql are there"
        with report.checking(what), server.connect() as session:
            session.query("FLUSH PRIVILEGES")
            session.query("SHOW GRANTS FOR root@localhost")
            after = content.fingerprint(session)
            problem = content.differences(rows_of(before), rows_of(after))
            assert not problem, problem


def rows_of(sums: dict[str, str]) -> dict[str, str]:
    """The part of the content that a dump keeps. A dump makes indexes anew and leaves persisted variables out."""
    return {name: value for name, value in sums.items() if name.startswith(("rows", "grants"))}


def dump(report: Checks, program: list[str | Path], server: Server, path: Path, whose: str) -> None:
    words = ["--all-databases", "--routines", "--events", "--triggers"]
    with path.open("wb") as file:
        problem = client(program, server, words, stdout=file)
    what = f"{whose} mysqldump --all-databases exits with 0"
    report.nothing(what, problem)


def client(program: list[str | Path], server: Server, words: list[str], **files) -> str:
    """Runs a client program; returns its complaints, or an empty text."""
    command = [*program, "--no-defaults", "-uroot", f"--socket={server.socket}", *words]
    done = subprocess.run(command, stderr=subprocess.PIPE, check=False, **files)
    if done.returncode == 0:
        return ""
    return f"exit {done.returncode}: {last_line(done.stderr.decode(errors='replace'))}"
