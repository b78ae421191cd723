"""A group of three servers on loopback, of this build alone, and rolled from stock to this server and back. Clients write
meanwhile.

It needs no packages and no machines: this server comes from the build, stock from Debian's unpacked package
(stock_peer.py). The writers note the rows that were acknowledged. At the end of each phase, every member must have each
of these rows, and all members must have the same rows.
"""

import contextlib
import os
import shutil
import signal
import threading
import time
from collections.abc import Iterator, Sequence

from harness.checks import Checks
from harness.common import ROOT
from harness.problem import Problem
from harness.server import Build
from harness.sql import Connection, SqlError
from tests import cluster_memory, content
from tests.group import Group, Member, kind, wait
from tests.installed import memdiag_tables
from tests.stock_peer import Persisting, builds, place

WRITERS = 2
# The pause of a writer after each transaction: two cores serve three servers here.
PAUSE_SECONDS = 0.01
# For each mixture of members, so many transactions must be acknowledged.
PROGRESS = 50
# Errors of a member that leaves, has left or changes its role: read-only, rolled back, held, killed, shut down,
# offline.
CHANGING = {1053, 1290, 1317, 1836, 3032, 3098, 3100, 3101, 3796, 3797, 3798}
BODY = "LEFT(REPEAT(UNHEX(SHA2({id}, 512)), 63), 20 + {id} % 3900)"


# --- clients ------------------------------------------------------------------------------


class Writers:
    """Clients of the primary, whichever it is. `acknowledged`: numbers of rows whose COMMIT was answered, by writer."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self.acknowledged: list[list[int]] = [[] for _ in range(WRITERS)]
        self.wrong: list[str] = []
        self.longest = 0.0  # seconds between two acknowledged transactions of one writer
        self._next = [0] * WRITERS
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        self._stop.clear()
        self._threads = [threading.Thread(target=self._write, args=(number,), daemon=True) for number in range(WRITERS)]
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
                pass  # the member has gone
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
            f"INSERT INTO sums VALUES ({number}, 1, {id_}) ON DUPLICATE KEY UPDATE n = n + 1, total = total + {id_}"
        )
        session.query("COMMIT")
        self.acknowledged[number].append(id_)


def compare(report: Checks, group: Group, writers: Writers, what: str) -> None:
    """Checks that all members have the same rows, and each row that was acknowledged."""
    group.catch_up()
    sums = {}
    for member in group.members:
        with member.server.connect("kept") as session:
            report.nothing(f"{what}: {member.name} has each acknowledged row", missing(session, writers))
            sums[member.name] = table_sums(session)
    first, *others = sums.values()
    different = [
        f"{name}: {table}" for name, found in sums.items() for table in found if found[table] != first.get(table)
    ]
    good = not different and all(x.keys() == first.keys() for x in others)
    report.check(
        f"{what}: all members have the same rows", good, "; ".join(different) or f"{writers.count()} transactions"
    )


def missing(session: Connection, writers: Writers) -> str:
    """Names the rows that are lost or damaged; empty if there are none."""
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
            cluster_memory.reported(report, folder, group, "three of ours")
            alone(report, group, writers)
            compare(report, group, writers, "ours after a kill")
            copied(report, group, writers, stock, "from ours to stock")
            compare(report, group, writers, "a stock clone of ours")
            roll(report, group, writers, stock, "ours to stock", primary_first=True)
            compare(report, group, writers, "three of stock")
            copied(report, group, writers, ours, "from stock to ours")
            compare(report, group, writers, "a clone of stock in ours")
            memory(report, group)
            cluster_memory.reported(report, folder, group, "ours and stock")
            cluster_memory.pressed(report, group, stock, ours)
            notices(report, group, writers)
        answered(report, writers)


def group_of_ours(run) -> None:
    """The short part: three members of this build, of which each but one ends once."""
    report = run.report
    build = Persisting.of_preset(ROOT, run.preset)
    with place(run, "group") as folder:
        group = Group(folder)
        writers = Writers(group)
        with group.running(build):
            with group.primary().server.connect() as session:
                content.run_file(session, "cluster.sql")
            with writers.at_work():
                writers.progress(report, "three of ours")
                with report.checking("a secondary is restarted"):
                    member = group.secondaries()[0]
                    member.leave()
                    member.start(build)
                    member.join()
                killed(report, group, writers)
                cluster_memory.below_the_ceiling(report, group, build)
            compare(report, group, writers, "after a kill")
            memory(report, group)
            cluster_memory.reported(report, folder, group, "three of ours")
        answered(report, writers)


def answered(report: Checks, writers: Writers) -> None:
    report.nothing("clients see no other error than a member that leaves", "; ".join(sorted(set(writers.wrong))))
    figures = f"{writers.count()} transactions, at most {writers.longest:.1f} s between two of a client"
    report.check("clients wait for another primary at most a minute", writers.longest < 60, figures)


def roll(report: Checks, group: Group, writers: Writers, build: Build, what: str, primary_first: bool = False) -> None:
    """Replace the server of each member in turn, on its data directory."""
    with writers.at_work():
        writers.progress(report, f"before {what}")
        primary = group.primary()
        order: Sequence[Member] = [*group.secondaries(), primary]
        if primary_first:
            order = [primary, *(x for x in order if x is not primary)]
        for member in order:
            if type(member.server.build) is type(build):
                continue  # a clone has been here before
            role = "primary" if member.is_primary() else "secondary"
            title = f"{what}: {member.name}, a {role}, is replaced and online again"
            with report.checking(title):
                member.leave()
                member.start(build)
                member.join()
            mixture = ", ".join(kind(x) for x in group.members)
            led = kind(group.primary())
            writers.progress(report, f"{mixture}; the primary is {led}")


def alone(report: Checks, group: Group, writers: Writers) -> None:
    """Three members of this build: DDL, a large transaction, a primary that is killed."""
    with writers.at_work():
        primary = group.primary()
        with report.checking("DDL under load"), primary.server.connect("kept") as session:
            for statement in (
                "ALTER TABLE types ADD COLUMN z VARCHAR(20) DEFAULT 'was not there', ALGORITHM=INSTANT",
                "ALTER TABLE written ADD COLUMN later INT DEFAULT 7, ADD KEY (later), ALGORITHM=INPLACE",
                "ALTER TABLE parts REORGANIZE PARTITION b INTO (PARTITION b VALUES LESS THAN (2002), PARTITION c VALUES LESS THAN MAXVALUE)",
            ):
                session.query(statement)
        with report.checking("a transaction of many rows"), primary.server.connect("kept") as session:
            session.query("UPDATE types SET p = REPEAT(UNHEX(SHA2(id, 256)), 500)")
        killed(report, group, writers)


def killed(report: Checks, group: Group, writers: Writers) -> None:
    """The primary is killed while clients write, and comes back."""
    primary = group.primary()
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


def copied(report: Checks, group: Group, writers: Writers, build: Build, what: str) -> None:
    """A secondary loses its data, and becomes a clone of the primary while clients write."""
    with writers.at_work():
        member = group.secondaries()[-1]
        with report.checking(f"clone {what}, under load"):
            member.leave()
            shutil.rmtree(member.server.data)
            member.start(build)
            member.clone_from(group.primary())
            with member.server.connect() as session:
                done = "SELECT state, error_message FROM performance_schema.clone_status"
                ((state, error),) = session.query(done).rows
            assert state == "Completed", f"{state}: {error}"
        with report.checking(f"clone {what}: it joins the group"):
            member.join()
        writers.progress(report, f"with the clone {what}")


def memory(report: Checks, group: Group) -> None:
    """A member of this build reports its memory as any other server does, with the part that group replication uses."""
    for member in group.members:
        if kind(member) == "ours":
            memdiag_tables(member.server, report)
            cluster_memory.held_by_group_replication(report, member)


def notices(report: Checks, group: Group, writers: Writers) -> None:
    """Shows that this test can fail: one member loses a row, and the others do not notice."""
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
        report.check("and makes its rows different", table_sums(session)["written"] != before["written"])
