"""The memory of a group's members: what group replication holds, one report over all, and a member at its limit.

The limit is that of a control group, and the machine has far more memory. component_group_replication_resource_manager
reads /proc/meminfo, so in a stock server it never sees the member's shortage. In this server it does.
"""

import contextlib
import json
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from harness.cgroup import Limit, memory_limit
from harness.checks import Checks, Failed
from harness.common import ROOT
from harness.problem import NotPossible
from harness.programs import captured
from harness.server import Build
from harness.sql import Connection, SqlError
from tests.group import Group, Member, kind, wait

COMPONENT = "group_replication_resource_manager"
# The component looks every five seconds. It expels a member that was above this limit at more than ten looks.
JUDGED_PERCENT = 90
# Between the limit of the component's rule and the limit at which the kernel kills.
HELD_PERCENT = 94
WIDE_KB = 8 << 20
ROOM_BYTES = 300 << 20
# Each open copy of a table takes some 160 KB. Nobody uses this memory after the statement.
TABLES = 60
COLUMNS = 500
COPIES = 100
SCHEMA = "crowd"
OPTIONS = ("--table-open-cache=8000", "--table-open-cache-instances=1")
WITHOUT_CEILING = (*OPTIONS, "--memdiag-memory-target=OFF")
TARGET_PERCENT = 80
# Clients that want a gigabyte together.
READER = "reader"
READERS = 16
READ_SECONDS = 15
READ = (
    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50)"
    " SELECT LENGTH(GROUP_CONCAT(REPEAT('x', 1000000))) FROM n"
)
ENDED = 3170  # ER_CAPACITY_EXCEEDED


# --- what is held, and one report ---------------------------------------------------------


def held_by_group_replication(report: Checks, member: Member) -> None:
    pool = "SELECT LIVE_BYTES, ARENAS FROM information_schema.memdiag_pools WHERE pool = 'group_replication'"
    ((live, arenas),) = member.server.query(pool).rows
    counted = (
        "SELECT SUM(current_number_of_bytes_used) FROM"
        " performance_schema.memory_summary_global_by_event_name WHERE event_name LIKE 'memory/group_rpl/%'"
    )
    least = int(member.server.query(counted).scalar() or 0)
    figures = f"{int(live) >> 10} KB in {arenas} arenas, {least >> 10} KB of it have an instrument"
    report.check("its group replication has a pool", 0 < least <= int(live), figures)


def reported(report: Checks, folder: Path, group: Group, what: str) -> None:
    """`memdiag report` over all members makes one page that compares them."""
    sockets = [str(member.server.socket) for member in group.members]
    page = folder / "report.html"
    done = captured(
        [*(sys.executable, "-m", "memdiag", "report", "--no-defaults", "-u", "root"), *("-o", str(page), *sockets)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "client"), "HOME": "/nonexistent"},
        timeout=300,
    )
    title = f"{what}: one report over three servers"
    if done.returncode != 0:
        report.check(title, False, done.stderr)
        return
    text = page.read_text()
    data = json.loads(re.search(r'id="memdiag-data">(.*?)</script>', text, re.S)[1])
    labels = [one["label"] for one in data["reports"]]
    report.check(title, len(set(labels)) == len(group.members), "; ".join(labels))
    compared = re.search(r'<section id="comparison".*?</section>', text, re.S)
    wrong = []
    figures = []
    for member, one in zip(group.members, data["reports"], strict=True):
        if not compared or f">{one['label']}</th>" not in compared[0]:
            wrong.append(f"{one['label']} is not compared")
        (rss,) = (x["value"] for x in one["facts"] if x["label"] == "RSS")
        now = member.server.rss_kb() << 10
        figures.append(f"{rss >> 20} MiB")
        # The roles may have changed since.
        if not 0.7 * now < rss < 1.4 * now:
            wrong.append(f"{one['label']}: RSS is {now >> 20} MiB, not {rss >> 20}")
        if f'<data value="{rss}"' not in compared[0]:
            wrong.append(f"{one['label']}: its RSS is not beside the others'")
    shown = "; ".join(wrong) or ", ".join(figures)
    report.check(f"{what}: the page has their RSS side by side", not wrong, shown)
    page.unlink()


# --- a member at its limit ----------------------------------------------------------------


class Confined:
    """A secondary in a control group whose limit leaves 300 MB more than it uses."""

    def __init__(self, member: Member, limit: Limit) -> None:
        self.member = member
        self._limit = limit
        self.limit_bytes = limit.used_bytes() + ROOM_BYTES
        if not limit.resize(self.limit_bytes):
            raise Failed("the kernel refuses the limit")

    def used_percent(self) -> float:
        return 100 * self._limit.used_bytes() / self.limit_bytes

    def kills(self) -> int:
        return self._limit.figures()["oom_kills"]

    def judged(self) -> tuple[int, int]:
        """The percentage that the component has read, and how often it was above its limit."""
        query = "SELECT variable_value FROM performance_schema.global_status WHERE variable_name = 'Gr_resource_manager_memory_{}'"
        used, hits = (int(self.member.server.query(query.format(name)).scalar()) for name in ("used", "threshold_hits"))
        return used, hits

    def fill(self, up_to: float = 1000, rest: float = 0.1) -> None:
        """Open table after table, until the group uses this percentage or no table is left."""
        copies = ", ".join(f"t{{0}} AS a{n} READ" for n in range(COPIES))
        with self.member.server.connect(SCHEMA, timeout=60) as session:
            for number in range(TABLES):
                if self.used_percent() >= up_to:
                    return
                session.query("LOCK TABLES " + copies.format(number))
                session.query("UNLOCK TABLES")
                time.sleep(rest)
        if up_to < 100:
            raise Failed(f"only {self.used_percent():.0f}% of the limit is used")


@contextlib.contextmanager
def confined(
    group: Group, build: Build, options: Sequence[str], prepare: Callable[[Member], None] = lambda _: None
) -> Iterator[Confined]:
    """A secondary of this build, restarted; afterwards it is restarted once more, without a limit."""
    member = next(x for x in group.secondaries() if type(x.server.build) is type(build))
    with memory_limit(WIDE_KB) as limit:
        member.leave()
        member.start(build, options, limit.wrapper())
        try:
            member.join()
            prepare(member)
            yield Confined(member, limit)
        finally:
            member.server.stop()
    member.start(build)
    member.join()


def judge_memory(member: Member) -> None:
    """The component judges it from now on."""
    with member.server.connect() as session:
        for statement in (
            "SET GLOBAL super_read_only = OFF",
            "SET GLOBAL read_only = OFF",
            "SET sql_log_bin = 0",
            f"INSTALL COMPONENT 'file://component_{COMPONENT}'",
            "SET GLOBAL super_read_only = ON",
            f"SET GLOBAL {COMPONENT}.memory_used_limit = {JUDGED_PERCENT}",
            f"SET GLOBAL {COMPONENT}.quarantine_time = 0",
            "SET GLOBAL group_replication_autorejoin_tries = 0",
        ):
            session.query(statement)
    # The first table also takes memory that the server then keeps.
    with member.server.connect(SCHEMA) as session:
        session.query("SELECT COUNT(*) FROM t0")


def pressed(report: Checks, group: Group, stock: Build, ours: Build) -> None:
    with group.primary().server.connect() as session:
        session.query(f"CREATE DATABASE {SCHEMA}")
        columns = ", ".join(f"c{n} INT DEFAULT {n}" for n in range(COLUMNS))
        for number in range(TABLES):
            session.query(f"CREATE TABLE {SCHEMA}.t{number} (id INT PRIMARY KEY, {columns})")
    group.catch_up()
    try:
        with confined(group, stock, OPTIONS, judge_memory) as one:
            dies(report, one)
        with confined(group, ours, WITHOUT_CEILING, judge_memory) as one:
            leaves(report, one)
            stays(report, one)
    except NotPossible as reason:
        report.skip("a member at the limit of its control group", reason)
    group.primary().server.query(f"DROP DATABASE {SCHEMA}")
    group.catch_up()


def dies(report: Checks, one: Confined) -> None:
    """A stock member: the component expels nobody, and the kernel kills the member."""
    one.fill(HELD_PERCENT)
    before = one.used_percent()
    end = time.monotonic() + 15  # the component looks three times
    while time.monotonic() < end:
        time.sleep(1)
    used, hits = one.judged()
    figures = f"{before:.0f}% of the limit, the component reads {used}%, {hits} hits"
    good = hits == 0 and used < JUDGED_PERCENT and one.member.state() == "ONLINE"
    report.check("stock at its limit: nobody thinks of expelling it", good, figures)
    with report.checking("stock: beyond it, the kernel kills the member"):
        with contextlib.suppress(OSError, SqlError):
            one.fill()
        wait("it runs on", lambda: not one.member.server.alive())
        assert one.kills() > 0, "it ended otherwise"


def leaves(report: Checks, one: Confined) -> None:
    """A member of this build without the ceiling: it cannot give memory back, and leaves the group alive."""
    assert kind(one.member) == "ours"
    one.fill(HELD_PERCENT)
    before = one.used_percent()
    wait("the component sees no use", lambda: one.judged()[1] > 0)
    used, _ = one.judged()
    good = abs(used - before) <= 5
    figures = f"{before:.0f}% of the limit, the component reads {used}%"
    report.check("ours at its limit: it is judged by the limit", good, figures)
    with report.checking("ours, the ceiling OFF: it leaves the group and lives"):
        wait("it stays", lambda: one.member.state() != "ONLINE")
        assert one.member.server.alive() and one.kills() == 0


def stays(report: Checks, one: Confined) -> None:
    """With a target below the component's limit it gives memory back and rejoins. Driven there again, it stays."""
    server = one.member.server
    target = one.limit_bytes * TARGET_PERCENT // 100
    server.query(f"SET GLOBAL memdiag_memory_target = {target}")
    with report.checking("ours, with a target: it gives memory back and joins again"):
        wait("nothing is given back", lambda: one.used_percent() < 85)
        server.query("STOP GROUP_REPLICATION")
        server.query("SET GLOBAL offline_mode = OFF")  # the exit action has set it
        one.member.join()
    with report.checking("and it stays when it is driven there again"):
        one.fill(rest=0.5)
        assert one.kills() == 0, "the kernel has killed a process of the group"
        state = one.member.state()
        assert state == "ONLINE", state
    rows = server.query(
        "SELECT COUNT(*), SUM(bytes) >> 20 FROM information_schema.memdiag_ceiling WHERE action = 'caches'"
    ).rows
    report.check("its ceiling has closed tables", int(rows[0][0]) > 0, rows[0])


# --- a member below the ceiling -----------------------------------------------------------


class Readers:
    """Clients of a member that together want more than it has."""

    def __init__(self) -> None:
        self.answers = self.ended = 0
        self.wrong: list[str] = []
        self._lock = threading.Lock()

    def run(self, member: Member) -> None:
        threads = [threading.Thread(target=self._read, args=(member,), daemon=True) for _ in range(READERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _read(self, member: Member) -> None:
        end = time.monotonic() + READ_SECONDS
        try:
            with Connection(member.server.socket, user=READER, timeout=60) as session:
                session.query("SET group_concat_max_len = 1 << 30")
                while time.monotonic() < end:
                    self._ask(session)
        except (OSError, SqlError) as error:
            self.wrong.append(str(error))

    def _ask(self, session: Connection) -> None:
        try:
            session.query(READ)
        except SqlError as error:
            if error.code != ENDED:
                raise
            with self._lock:
                self.ended += 1
        else:
            with self._lock:
                self.answers += 1


def below_the_ceiling(report: Checks, group: Group, build: Build) -> None:
    """The group writes, and clients of one member want more memory than its limit leaves."""
    with group.primary().server.connect() as session:
        session.query(f"CREATE USER {READER}@localhost")
        session.query(f"GRANT SELECT ON *.* TO {READER}@localhost")
    group.catch_up()
    try:
        with confined(group, build, ("--memdiag-memory-target=AUTO",)) as one:
            readers = Readers()
            readers.run(one.member)
            figures = f"{readers.answers} answers, {readers.ended} ended, {one.kills()} kills"
            report.check("a member below the ceiling lives", one.member.server.alive() and not one.kills(), figures)
            wrong = "; ".join(sorted(set(readers.wrong)))
            report.check(
                "its clients see answers and the ceiling's error alone", not wrong and readers.answers > 0, wrong
            )
            report.equal("it stays in the group", one.member.state(), "ONLINE")
    except NotPossible as reason:
        report.skip("a member below the ceiling", reason)
