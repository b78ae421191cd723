"""A group of three servers on loopback: rolled from stock to ours and back while clients write.

No packages and no machines: ours from the build, stock from Debian's package, unpacked (stock_peer.py). The writers note
what was acknowledged. At the end of each phase every member must have each such row, and all members the same rows.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from harness.checks import Checks, Failed
from harness.problem import Problem
from harness.server import Build, Server, initialise
from harness.sql import Connection, SqlError
from tests import content
from tests.installed import memdiag_tables
from tests.stock_peer import Stock, builds, free_port, on_loopback

MEMBERS = 3
WRITERS = 2
WAIT_SECONDS = 180
# A writer rests so long after each transaction: two cores serve three servers here.
PAUSE_SECONDS = 0.01
# Transactions that must be acknowledged in each mixture of members.
PROGRESS = 50
ACCOUNT = "copier"
RIGHTS = "REPLICATION SLAVE, CONNECTION_ADMIN, BACKUP_ADMIN, GROUP_REPLICATION_STREAM"
# A member that leaves, has left or changes its role: read-only, rolled back, held, killed, shut down, offline.
CHANGING = {1053, 1290, 1317, 1836, 3032, 3098, 3100, 3101, 3796, 3797, 3798}
# The server has cloned and cannot restart itself: nothing supervises it.
RESTART_BY_HAND = 3707
BODY = "LEFT(REPEAT(UNHEX(SHA2({id}, 512)), 63), 20 + {id} % 3900)"


class Member:
    """One server of the group; its build changes, its folder and ports stay."""

    def __init__(self, folder: Path, number: int, group: Group) -> None:
        self.folder = folder / f"member{number}"
        self.number = number
        self.port = free_port()
        self.inner_port = free_port()
        self._group = group
        self.server: Server | None = None

    @property
    def name(self) -> str:
        return f"member {self.number}"

    def start(self, build: Build) -> None:
        self.server = Server(build, self.folder, self._options())
        if not self.server.data.exists():
            initialise(build, self.server.data)
            self.server.start()
            self._group.let_in(self.server)
        else:
            self.server.start()

    def _options(self) -> list[str]:
        seeds = ",".join(f"127.0.0.1:{x.inner_port}" for x in self._group.members)
        return [
            *on_loopback(self.port, self.number),
            "--report-host=127.0.0.1",
            f"--report-port={self.port}",
            "--plugin-load-add=group_replication.so",
            "--plugin-load-add=mysql_clone.so",
            f"--group-replication-group-name={self._group.uuid}",
            f"--group-replication-local-address=127.0.0.1:{self.inner_port}",
            f"--group-replication-group-seeds={seeds}",
            "--group-replication-ip-allowlist=127.0.0.1/8",
            "--group-replication-start-on-boot=OFF",
            "--group-replication-recovery-get-public-key=ON",
            "--group-replication-message-cache-size=134217728",
            "--clone-enable-compression=OFF",
            "--loose-clone-valid-donor-list="
            + ",".join(f"127.0.0.1:{x.port}" for x in self._group.members),
        ]

    def join(self, first: bool = False) -> None:
        with self.server.connect() as session:
            if first:
                session.query("SET GLOBAL group_replication_bootstrap_group = ON")
            session.query(
                f"START GROUP_REPLICATION USER = '{ACCOUNT}', PASSWORD = '{self._group.password}'"
            )
            if first:
                session.query("SET GLOBAL group_replication_bootstrap_group = OFF")
        wait(f"{self.name} is not online", lambda: self.state() == "ONLINE")

    def leave(self) -> None:
        self.server.query("STOP GROUP_REPLICATION")
        self.server.stop()

    def state(self) -> str:
        own = "member_id = @@server_uuid"
        return self._of_members(f"SELECT member_state FROM {{}} WHERE {own}")

    def is_primary(self) -> bool:
        query = "SELECT COUNT(*) FROM {} WHERE member_id = @@server_uuid AND member_role = 'PRIMARY' AND member_state = 'ONLINE'"
        try:
            return self._of_members(query) == "1"
        except (OSError, SqlError, Problem):
            return False

    def _of_members(self, query: str) -> str:
        table = "performance_schema.replication_group_members"
        with self.server.connect(timeout=30) as session:
            return session.query(query.format(table)).scalar() or ""

    def clone_from(self, donor: Member) -> None:
        """Become a copy of the donor, with the build that runs here."""
        with self.server.connect() as session:
            try:
                session.query(
                    f"CLONE INSTANCE FROM '{ACCOUNT}'@'127.0.0.1':{donor.port} IDENTIFIED BY '{self._group.password}'"
                )
            except SqlError as error:
                if error.code != RESTART_BY_HAND:
                    raise
        wait(f"{self.name} does not end", lambda: not self.server.alive())
        build = self.server.build
        self.server.stop()
        self.start(build)


class Group:
    """Members in an order, an account with which they read from each other, and a name."""

    def __init__(self, folder: Path) -> None:
        self.uuid = "aaaaaaaa-bbbb-cccc-dddd-" + secrets.token_hex(6)
        self.password = secrets.token_hex(8)
        self.members: list[Member] = []
        for number in range(1, MEMBERS + 1):
            self.members.append(Member(folder, number, self))

    def let_in(self, server: Server) -> None:
        with server.connect() as session:
            session.query("SET sql_log_bin = 0")
            session.query(f"CREATE USER {ACCOUNT}@'%' IDENTIFIED BY '{self.password}'")
            session.query(f"GRANT {RIGHTS} ON *.* TO {ACCOUNT}@'%'")

    @contextlib.contextmanager
    def running(self, build: Build) -> Iterator[Group]:
        try:
            for member in self.members:
                member.start(build)
                member.join(first=member is self.members[0])
            yield self
        finally:
            for member in self.members:
                if member.server:
                    member.server.stop()

    def primary(self) -> Member | None:
        return next((x for x in self.members if x.is_primary()), None)

    def secondaries(self) -> list[Member]:
        return [x for x in self.members if not x.is_primary()]

    def catch_up(self) -> None:
        wanted = self.primary().server.query("SELECT @@GLOBAL.gtid_executed").scalar()
        for member in self.members:
            query = f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{wanted}', {WAIT_SECONDS})"
            if member.server.query(query).scalar() != "0":
                raise Failed(f"{member.name} has not applied all transactions")


def wait(problem: str, true: Callable[[], bool]) -> None:
    end = time.monotonic() + WAIT_SECONDS
    while not true():
        if time.monotonic() > end:
            raise Failed(f"{problem} after {WAIT_SECONDS} s")
        time.sleep(0.1)


# --- clients ------------------------------------------------------------------------------


class Writers:
    """Clients of the primary, whichever it is. `acknowledged`: numbers of rows whose COMMIT was answered, by writer."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self.acknowledged: list[list[int]] = [[] for _ in range(WRITERS)]
        self.wrong: list[str] = []
        self.longest = (
            0.0  # seconds between two acknowledged transactions of one writer
        )
        self._next = [0] * WRITERS
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        self._stop.clear()
        self._threads = [
            threading.Thread(target=self._write, args=(number,), daemon=True)
            for number in range(WRITERS)
        ]
        for thread in self._threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in self._threads:
                thread.join()

    def count(self) -> int:
        return sum(map(len, self.acknowledged))

    def progress(self, report: Checks, what: str) -> None:
        before = self.count()
        with report.checking(f"clients write: {what}"):
            wait("no progress", lambda: self.count() >= before + PROGRESS)

    def _write(self, number: int) -> None:
        last = time.monotonic()
        while not self._stop.is_set():
            try:
                if (primary := self._group.primary()) is None:
                    raise ConnectionError("there is no primary")
                with primary.server.connect("kept", timeout=60) as session:
                    while not self._stop.is_set():
                        self._transaction(session, number)
                        now = time.monotonic()
                        self.longest = max(self.longest, now - last)
                        last = now
                        self._stop.wait(PAUSE_SECONDS)
            except SqlError as error:
                if error.code not in CHANGING:
                    self.wrong.append(str(error))
            except (OSError, Problem):
                pass  # the member is gone
            self._stop.wait(0.1)

    def _transaction(self, session: Connection, number: int) -> None:
        # Each number is used once: a COMMIT without an acknowledgement may or may not have added its row.
        id_ = self._next[number] * WRITERS + number + 1
        self._next[number] += 1
        session.query("BEGIN")
        session.query(
            f"INSERT INTO written (id, writer, body, doc) VALUES ({id_}, {number}, {BODY.format(id=id_)},"
            f" JSON_OBJECT('l', JSON_ARRAY({id_}, {id_ + 1})))"
        )
        session.query(f"INSERT INTO words VALUES ({id_}, 'row {id_} and a needle')")
        session.query(
            f"INSERT INTO sums VALUES ({number}, 1, {id_})"
            f" ON DUPLICATE KEY UPDATE n = n + 1, total = total + {id_}"
        )
        session.query("COMMIT")
        self.acknowledged[number].append(id_)


def compare(report: Checks, group: Group, writers: Writers, what: str) -> None:
    """That all members have the same rows, and each row that was acknowledged."""
    group.catch_up()
    sums = {}
    for member in group.members:
        with member.server.connect("kept") as session:
            lost = missing(session, writers)
            report.check(f"{what}: {member.name} has each acknowledged row", not lost, lost)  # fmt: skip
            sums[member.name] = table_sums(session)
    first, *others = sums.values()
    different = [
        f"{name}: {table}"
        for name, found in sums.items()
        for table in found
        if found[table] != first[table]
    ]
    good = not different and all(x.keys() == first.keys() for x in others)
    report.check(f"{what}: all members have the same rows", good, "; ".join(different) or f"{writers.count()} transactions")  # fmt: skip


def missing(session: Connection, writers: Writers) -> str:
    """The rows that are lost or damaged, in words; empty: none."""
    there = {int(x) for (x,) in session.query("SELECT id FROM written").rows}
    lost = [x for found in writers.acknowledged for x in found if x not in there]
    wrong = [f"{len(lost)} rows, {lost[0]} among them"] if lost else []
    damaged = f"SELECT COUNT(*) FROM written WHERE body <> {BODY.format(id='id')}"
    apart = (
        "SELECT COUNT(*) FROM sums s JOIN (SELECT writer, COUNT(*) n, SUM(id) total FROM written GROUP BY writer) w"
        " USING (writer) WHERE s.n <> w.n OR s.total <> w.total"
    )
    words = "SELECT (SELECT COUNT(*) FROM written) <> (SELECT COUNT(*) FROM words WHERE MATCH(t) AGAINST('needle'))"
    for name, query in {
        "damaged rows": damaged,
        "sums apart from their rows": apart,
        "an index of words apart from its rows": words,
    }.items():
        if (found := session.query(query).scalar()) != "0":
            wrong.append(f"{name}: {found}")
    return "; ".join(wrong)


def table_sums(session: Connection) -> dict[str, str]:
    of_kept = "FROM information_schema.{} WHERE table_schema = 'kept'"
    tables = session.query(f"SELECT table_name {of_kept.format('tables')}").rows
    sums = {}
    for (table,) in tables:
        columns = session.query(
            f"SELECT column_name {of_kept.format('columns')} AND table_name = '{table}' ORDER BY ordinal_position"
        ).rows
        statement = content.row_sums(table, [name for (name,) in columns])
        sums[table] = repr(session.query(statement).rows)
        checked = session.query(f"CHECK TABLE {table}").rows
        sums[f"indexes of {table}"] = repr(checked)
    return sums


# --- the test --------------------------------------------------------------------------------


def cluster(run) -> None:
    report = run.report
    with builds(run, "cluster") as (folder, ours, stock):
        group = Group(folder)
        writers = Writers(group)
        with group.running(stock):
            with group.primary().server.connect() as session:
                content.run_file(session, "cluster.sql")
            roll(report, group, writers, ours, "stock to ours")
            compare(report, group, writers, "three of ours")
            alone(report, group, writers)
            compare(report, group, writers, "ours after a kill")
            copied(report, group, writers, stock, "from ours to stock")
            compare(report, group, writers, "a stock clone of ours")
            roll(report, group, writers, stock, "ours to stock", primary_first=True)
            compare(report, group, writers, "three of stock")
            copied(report, group, writers, ours, "from stock to ours")
            compare(report, group, writers, "a clone of stock in ours")
            memory(report, group)
            notices(report, group, writers)
        wrong = "; ".join(sorted(set(writers.wrong)))
        report.check("clients see no other error than a member that leaves", not wrong, wrong)  # fmt: skip
        figures = f"{writers.count()} transactions, at most {writers.longest:.1f} s between two of a client"
        report.check("clients wait for another primary at most a minute", writers.longest < 60, figures)  # fmt: skip


def roll(
    report: Checks,
    group: Group,
    writers: Writers,
    build: Build,
    what: str,
    primary_first: bool = False,
) -> None:
    """Replace the server of each member in turn, on its data directory."""
    with writers.at_work():
        writers.progress(report, f"before {what}")
        primary = group.primary()
        order: Sequence[Member] = [*group.secondaries(), primary]
        if primary_first:
            order = [primary, *(x for x in order if x is not primary)]
        for member in order:
            if type(member.server.build) is type(build):
                continue  # a clone has come before
            role = "primary" if member.is_primary() else "secondary"
            title = f"{what}: {member.name}, a {role}, is replaced and online again"
            with report.checking(title):
                member.leave()
                member.start(build)
                member.join()
            mixture = ", ".join(kind(x) for x in group.members)
            led = kind(group.primary())
            writers.progress(report, f"{mixture}; the primary is {led}")


def kind(member: Member) -> str:
    return "stock" if isinstance(member.server.build, Stock) else "ours"


def alone(report: Checks, group: Group, writers: Writers) -> None:
    """Three of ours: DDL, a large transaction, a primary that is killed."""
    with writers.at_work():
        primary = group.primary()
        with report.checking("DDL under load"), primary.server.connect("kept") as session:  # fmt: skip
            for statement in (
                "ALTER TABLE types ADD COLUMN z VARCHAR(20) DEFAULT 'was not there', ALGORITHM=INSTANT",
                "ALTER TABLE written ADD COLUMN later INT DEFAULT 7, ADD KEY (later), ALGORITHM=INPLACE",
                "ALTER TABLE parts REORGANIZE PARTITION b INTO (PARTITION b VALUES LESS THAN (2002), PARTITION c VALUES LESS THAN MAXVALUE)",
            ):
                session.query(statement)
        with report.checking("a transaction of many rows"), primary.server.connect("kept") as session:  # fmt: skip
            session.query("UPDATE types SET p = REPEAT(UNHEX(SHA2(id, 256)), 500)")
        with report.checking("the primary is killed, and another takes over"):
            os.kill(primary.server.pid, signal.SIGKILL)
            wait("it runs on", lambda: not primary.server.alive())
            others = [x for x in group.members if x is not primary]
            wait("no primary", lambda: any(x.is_primary() for x in others))
        writers.progress(report, "without the one that was killed")
        with report.checking("it recovers and is online again"):
            build = primary.server.build
            primary.server.stop()
            primary.start(build)
            primary.join()


def copied(
    report: Checks, group: Group, writers: Writers, build: Build, what: str
) -> None:
    """A secondary loses its data, and begins anew as a clone of the primary while clients write."""
    with writers.at_work():
        member = group.secondaries()[-1]
        with report.checking(f"clone {what}, under load"):
            member.leave()
            shutil.rmtree(member.server.data)
            member.start(build)
            member.clone_from(group.primary())
            with member.server.connect() as session:
                done = (
                    "SELECT state, error_message FROM performance_schema.clone_status"
                )
                ((state, error),) = session.query(done).rows
            assert state == "Completed", f"{state}: {error}"
        with report.checking(f"clone {what}: it joins the group"):
            member.join()
        writers.progress(report, f"with the clone {what}")


def memory(report: Checks, group: Group) -> None:
    """Our member reports its memory as any other server does, and what group replication has of it."""
    for member in group.members:
        if kind(member) == "ours":
            memdiag_tables(member.server, report)
            query = (
                "SELECT FORMAT_BYTES(SUM(current_number_of_bytes_used)) FROM"
                " performance_schema.memory_summary_global_by_event_name WHERE event_name LIKE 'memory/group_rpl/%'"
            )
            held = member.server.query(query).scalar()
            report.check("its group replication has instruments", bool(held), held)


def notices(report: Checks, group: Group, writers: Writers) -> None:
    """A row that one member loses, unseen by the others, shows that this test can fail."""
    member = group.secondaries()[0]
    with member.server.connect("kept") as session:
        before = table_sums(session)
        for statement in (
            "SET GLOBAL super_read_only = OFF",
            "SET GLOBAL read_only = OFF",
            "SET sql_log_bin = 0",
            f"DELETE FROM written WHERE id = {writers.acknowledged[0][0]}",
        ):
            session.query(statement)
        lost = missing(session, writers)
        report.check("a row that one member loses is noticed", bool(lost), lost)
        good = table_sums(session)["written"] != before["written"]
        report.check("and makes its rows different", good)
