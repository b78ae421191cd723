"""A server whose allocations fail on demand: the session in which they do, and one that ends it."""

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.runner import arms as arm_list
from harness.problem import Problem
from harness.server import Server, initialise
from harness.sql import Connection, ConnectionLost, SqlError
from proof import cases
from proof.cases import CONNECT, Case
from proof.compare import Answer, Part, Session

OPTIONS = (
    "--innodb-buffer-pool-size=64M",
    "--innodb-redo-log-capacity=64M",
    "--innodb-log-buffer-size=1M",
    "--innodb-doublewrite=OFF",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-stats-auto-recalc=OFF",
    "--sync-binlog=0",
    "--max-binlog-size=1M",
    "--binlog-expire-logs-seconds=1",
    "--table-open-cache-instances=1",
    "--event-scheduler=OFF",
    "--tls-version=",
    "--loose-memdiag-memory-target=64G",  # The ceiling has room. It knows what a statement may be refused.
)
PATIENCE = 120.0
FOREVER = 1_000_000_000
IN_MALLOC = ": blocks in malloc"
_DISARM = "SELECT memdiag_fault('allocate', '', 'soft', 0, 0) AS left_over"
_LEFT = (("left_over", 8),)


@dataclass(frozen=True)
class Way:
    """How allocations fail. `what` is a pool or a route. `kind` is that of memdiag_fault(). `count` of them fail."""

    what: str
    kind: str
    count: int

    def arm(self, skip: int) -> str:
        """`skip`: so many succeed before."""
        return f"DO memdiag_fault('allocate', '{self.what}', '{self.kind}', {skip}, {self.count})"


NOTHING = Way("", "soft", 0)


@dataclass(frozen=True)
class Run:
    """The answers to the statements, then to each after them, and how many allocations failed."""

    answers: list[Answer]
    failed: int


def _split(case: Case, way: Way, parts: list[Part]) -> Run:
    """Of a packet without errors."""
    place = next(at for at, part in enumerate(parts) if part.columns[:1] == _LEFT)
    answers = [Answer(parts[len(case.before) + 1 : place])]
    if case.after:
        answers.append(Answer(parts[place + 1 :]))
    return Run(answers, way.count - int(parts[place].rows[0][0] or 0))


class Switched:
    def __init__(self, arm: arm_list.Arm, folder: Path) -> None:
        """stop() ends it, also when prepare() has not come to its end."""
        self.folder = folder
        self.server: Server = arm.server(folder, [*OPTIONS, f"--secure-file-priv={folder}"])
        self.control: Connection
        self.session: Session | None = None
        self.pools: list[str] = []
        self.routes: list[str] = []  # whose callers look whether they got a block

    def prepare(self) -> None:
        initialise(self.server.build, self.server.data, OPTIONS[:2])
        (self.folder / "rows").write_text(cases.rows_of_file())
        self.start()
        for text in ("CREATE FUNCTION memdiag_fault RETURNS INTEGER SONAME 'memdiag_test.so'", "CREATE DATABASE d"):
            self.control.query(text)
        for text in ("USE d", *cases.SCHEMA, "ANALYZE TABLE t, u, m, p, f, g, parent, child, k, h, seen"):
            self.control.query(text)
        rows = self.control.query("SELECT POOL FROM information_schema.memdiag_pools").rows
        self.pools = [str(row[0]) for row in rows if row[0] not in cases.OF_MALLOC]
        rows = self.control.query("SELECT ROUTE FROM information_schema.memdiag_routes WHERE POOL <> 'general'").rows
        self.routes = [str(row[0]) for row in rows if cases.HARD.fullmatch(str(row[0]))]

    def start(self) -> None:
        self.server.start()
        self.control = self.server.connect(timeout=PATIENCE)
        self.session = None

    def start_again(self) -> None:
        with contextlib.suppress(OSError):
            self.control.close()
        self.server.stop()
        self.start()

    def stop(self) -> None:
        self.server.stop()

    def lives(self) -> bool:
        """False soon after it has crashed."""
        end = time.monotonic() + 3
        while time.monotonic() < end and self.server.alive():
            time.sleep(0.1)
        return self.server.alive()

    # The session.

    def connect(self) -> Answer:
        """A new one, in the thread of the one before."""
        try:
            self.leave()
            self.session = Session(self.server.socket, timeout=PATIENCE)
            self.session.allow_several()
        except SqlError as error:
            return Answer(error=error.code, text=error.message)
        except (ConnectionLost, OSError):
            return Answer(lost=True)
        return Answer()

    def leave(self) -> None:
        if not self.session:
            return
        self.session.close()
        self.session = None
        end = time.monotonic() + PATIENCE
        while self.control.query("SHOW GLOBAL STATUS LIKE 'Threads_connected'").rows[0][1] != "1":
            if time.monotonic() > end:
                raise Problem("a session does not end")
            time.sleep(0.001)

    def begin(self) -> None:
        """A new one that nothing of the one before disturbs."""
        self.connect()
        self.ask(cases.SESSION)
        for row in self.control.query("XA RECOVER").rows:
            self.control.query(f"XA ROLLBACK '{row[3]}'")

    def ask(self, texts: Sequence[str], *how: Any) -> Answer:
        """In one packet. `how`: as Session.receive() has it."""
        if not self.session:
            return Answer(lost=True)
        self.session.send(";".join(texts))
        return self.session.receive(*how)

    # Runs.

    def once(self, case: Case, way: Way = NOTHING, skip: int = 0) -> Run:
        if not self.session:
            self.begin()
        left = 0

        def disarm() -> None:
            nonlocal left
            with contextlib.suppress(ConnectionLost, OSError):  # the server has crashed
                left = int(self.control.query(_DISARM).scalar() or 0)

        first = [*case.before, way.arm(skip)]
        if CONNECT in case.texts:
            self.ask(first)
            answers = [self.connect()]
            disarm()
            self.ask(cases.SESSION)
            return Run(answers, way.count - left)
        answer = self.ask([*first, *case.texts, _DISARM, *case.after], disarm, way.kind not in ("hard", "refused"))
        if not answer.error and not answer.lost:
            with contextlib.suppress(StopIteration):
                return _split(case, way, answer.parts)
        if not answer.error:
            disarm()
        answer.parts = answer.parts[len(first) :]
        # None left: the packet itself has asked, or the server has crashed.
        failed = way.count - left if left else min(way.count, 1)
        return Run([answer, self.ask(case.after)] if case.after else [answer], failed)

    def many(self, case: Case, ways: Sequence[tuple[Way, int]]) -> list[Run]:
        """All in one packet: ways, and how many allocations succeed first. Empty where a statement has an error."""
        if not self.session:
            self.begin()
        texts: list[str] = []
        for way, skip in ways:
            texts += [*case.before, way.arm(skip), *case.texts, _DISARM, *case.after]
        answer = self.ask(texts)
        size, rest = divmod(len(answer.parts), len(ways))
        if answer.error or answer.lost or rest:
            return []
        parts = [answer.parts[number * size : (number + 1) * size] for number in range(len(ways))]
        try:
            return [_split(case, way, own) for (way, _), own in zip(ways, parts, strict=True)]
        except StopIteration:
            return []  # other numbers of results

    def held(self) -> dict[str, int]:
        """Bytes of each pool, and blocks that malloc has for it, without sessions and open tables."""
        self.leave()
        self.control.query("FLUSH TABLES")
        figures = ", ".join(f"memdiag_fault('fallbacks', '{each}')" for each in self.pools)
        blocks = self.control.query(f"SELECT {figures}").rows[0]
        pools = self.control.query("SELECT POOL, LIVE_BYTES FROM information_schema.memdiag_pools").rows
        held = {each + IN_MALLOC: int(number or 0) for each, number in zip(self.pools, blocks, strict=True)}
        return held | {str(pool): int(size or 0) for pool, size in pools if pool in self.pools}
