"""A group of servers on loopback: its members, their builds and their roles."""

import contextlib
import secrets
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

from harness.checks import Failed
from harness.network import free_port
from harness.problem import Problem
from harness.server import Build, Server, initialise
from harness.sql import SqlError
from harness.waiting import until
from tests.stock_peer import Stock, on_loopback

MEMBERS = 3
WAIT_SECONDS = 180
ACCOUNT = "copier"
RIGHTS = "REPLICATION SLAVE, CONNECTION_ADMIN, BACKUP_ADMIN, GROUP_REPLICATION_STREAM"
# The server has cloned and cannot restart itself: nothing supervises it.
RESTART_BY_HAND = 3707


class Member:
    """One server of the group. Its build may change; its folder and ports stay."""

    def __init__(self, folder: Path, number: int, group: "Group") -> None:
        self.folder = folder / f"member{number}"
        self.number = number
        self.port = free_port()
        self.inner_port = free_port()
        self._group = group
        self.server: Server | None = None

    @property
    def name(self) -> str:
        return f"member {self.number}"

    def start(self, build: Build, options: Sequence[str] = (), wrapper: Sequence[str] = ()) -> None:
        """Starts the server. `options` come after those of the group; `wrapper` goes before mysqld."""
        options = [*self._options(), *options]
        self.server = Server(build, self.folder, options, wrapper=wrapper)
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
            "--loose-clone-valid-donor-list=" + ",".join(f"127.0.0.1:{x.port}" for x in self._group.members),
        ]

    def join(self, first: bool = False) -> None:
        with self.server.connect() as session:
            if first:
                session.query("SET GLOBAL group_replication_bootstrap_group = ON")
            session.query(f"START GROUP_REPLICATION USER = '{ACCOUNT}', PASSWORD = '{self._group.password}'")
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

    def clone_from(self, donor: "Member") -> None:
        """Makes this member a copy of the donor. The build stays."""
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
    """The members in their order, the account with which they replicate, and the name of the group."""

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
    def running(self, build: Build) -> Iterator[Self]:
        try:
            # The pool ends when each has started or failed: then none is left to start behind the end below.
            with ThreadPoolExecutor(MEMBERS) as pool:
                list(pool.map(lambda member: member.start(build), self.members))
            for member in self.members:
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
    if not until(true, WAIT_SECONDS):
        raise Failed(f"{problem} after {WAIT_SECONDS} s")


def kind(member: Member) -> str:
    return "stock" if isinstance(member.server.build, Stock) else "ours"
