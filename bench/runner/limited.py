"""A server in a memory cgroup of its own, and clients that need more than the cgroup has."""

import collections
import contextlib
import hashlib
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any, Self

from bench.runner import prepared
from bench.runner.arms import Arm
from bench.workloads.killers import Killers
from harness.burst import Sampler
from harness.cgroup import Limit
from harness.problem import Problem
from harness.server import Server
from harness.sql import Connection, Result, SqlError
from harness.x_protocol import XConnection

Run = dict[str, Any]

ACCOUNT = "app"
NO_MEMORY = 3170  # ER_CAPACITY_EXCEEDED
PATIENCE_SECONDS = 60.0
PROBE_PAUSE_SECONDS = 0.05
# Their answers do not count: no load is made of them.
OF_NO_DATA = ("SET ", "PREPARE ", "BEGIN", "COMMIT", "ROLLBACK")
_PROCESSES = multiprocessing.get_context("fork")


def _digest(result: Result) -> str:
    return hashlib.sha256(repr(result.rows).encode()).hexdigest()[:16]


@dataclass
class Answers:
    """The answers that clients got. Threads add to it one at a time."""

    answers: int = 0
    no_memory: int = 0
    lost: int = 0
    other_errors: collections.Counter[int] = field(default_factory=collections.Counter)
    said: set[str] = field(default_factory=set)
    longest_probe: Synchronized = field(default_factory=lambda: _PROCESSES.Value("d", 0.0))
    # Each text's answers
    rows: dict[str, set[str]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, code: int | None) -> None:
        """`code`: 0 is an answer, None is a lost connection. The caller holds the lock."""
        if code is None:
            self.lost += 1
        elif code == 0:
            self.answers += 1
        elif code == NO_MEMORY:
            self.no_memory += 1
        else:
            self.other_errors[code] += 1

    def ask(self, session: Connection | XConnection, text: str) -> bool:
        """False: the connection is lost."""
        code: int | None = 0
        said = found = ""
        try:
            result = session.query(text)
            if text.startswith(("SELECT", "WITH")):
                found = _digest(result)
        except SqlError as error:
            code, said = error.code, error.message
        except OSError as error:
            code, said = None, str(error)
        with self.lock:
            if code != 0 or not text.startswith(OF_NO_DATA):
                self.count(code)
            if found:
                self.rows.setdefault(text, set()).add(found)
            if said and (code != NO_MEMORY or len(self.said) < 5):
                self.said.add(said)
        return code is not None

    def figures(self) -> Run:
        return {
            "answers": self.answers,
            "ended": self.no_memory,
            "lost": self.lost,
            "other_errors": dict(self.other_errors),
            "said": sorted(self.said),
            "longest_probe_s": self.longest_probe.value,
        }


def prepare(server: Server) -> None:
    server.query(f"CREATE USER {ACCOUNT}@localhost")
    server.query(f"GRANT ALL ON {Killers.name}.* TO {ACCOUNT}@localhost")
    # A warm pool, as of a server that has run for days.
    for table in ("things", "altered"):
        server.query(f"SELECT COUNT(*), SUM(LENGTH(note)), SUM(LENGTH(doc)) FROM {table}", Killers.name)


def _probe(socket: Path, end: float, over: Event, longest: Synchronized) -> None:
    with contextlib.suppress(OSError, SqlError), Connection(socket, "", ACCOUNT, PATIENCE_SECONDS) as session:
        while time.monotonic() < end and not over.is_set():
            began = time.monotonic()
            try:
                session.query("SELECT 1")
            finally:
                longest.value = max(longest.value, time.monotonic() - began)
            time.sleep(PROBE_PAUSE_SECONDS)


@contextlib.contextmanager
def probing(server: Server, end: float, got: Answers) -> Iterator[BaseProcess]:
    """A second client: how long SELECT 1 takes at most, until `end` or the end of the block.

    It is a process: in this one, it would wait while another client's thread makes a text of many megabytes.
    """
    over = _PROCESSES.Event()
    process = _PROCESSES.Process(target=_probe, args=(server.socket, end, over, got.longest_probe))
    process.start()
    try:
        yield process
        over.set()
        process.join(PATIENCE_SECONDS)
    finally:
        process.kill()
        process.join()


def run_clients(clients: Iterable[Callable[[], None]], end: float) -> None:
    """All at once. Each ends by itself after `end`, a time of the monotonic clock."""
    threads = [threading.Thread(target=client, daemon=True) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, end + PATIENCE_SECONDS - time.monotonic()))
    if any(thread.is_alive() for thread in threads):
        raise Problem(f"clients were not answered within {PATIENCE_SECONDS:.0f} s")


def outlives(
    server: Server,
    limit: Limit,
    prepare: Callable[[], object],
    load: Callable[[], object],
    after: Callable[[], Run],
    got: Answers,
) -> Run:
    """Starts the server and puts it under load. The server ends with the call.

    `load` counts in `got`. `after` asks the server for figures when the load is over. A server that lives and does not
    answer is an outcome, and no Problem.
    """
    run: Run = {"outcome": "survived"}
    used = Sampler(0.05, limit.used_bytes)
    try:
        server.start()
        prepare()
        run["start_kb"] = limit.used_bytes() >> 10
        with used:
            load()
        run.update(after())
    except (Problem, SqlError, OSError) as failure:
        time.sleep(1)  # a killed process may need a moment to be gone
        if not limit.figures()["oom_kills"] or server.alive():
            if not (server.alive() and "start_kb" in run):
                raise Problem(f"{failure}\n{server.log_tail()}") from failure
            run["outcome"] = "stalled"
            run["why"] = str(failure)
    if limit.figures()["oom_kills"]:
        run["outcome"] = "killed" if "start_kb" in run else "killed at its start"
    run["peak_kb"] = max((bytes_ for _, bytes_ in used.samples), default=0) >> 10
    # The turn needs no data any more.
    if server.alive():
        with contextlib.suppress(ProcessLookupError):
            os.kill(server.pid, signal.SIGKILL)
    return {**run, **got.figures()}


def rows_by(server: Server, column: str, table: str) -> dict[str, int]:
    """How many rows each value of the column has; {}: the server lacks the table."""
    with contextlib.suppress(SqlError):
        rows = server.query(f"SELECT {column}, COUNT(*) FROM information_schema.{table} GROUP BY {column}").rows
        return {str(name): int(str(count)) for name, count in rows}
    return {}


def status(server: Server) -> dict[str, str]:
    rows = server.query("SHOW GLOBAL STATUS LIKE 'Memdiag\\_ceiling%'").rows
    return {str(name).removeprefix("Memdiag_ceiling_"): str(value) for name, value in rows}


class Unlimited:
    """A server without a limit, which knows what a statement has to answer. It starts when it is first asked."""

    def __init__(self, arm: Arm, template: Path) -> None:
        self._arm = arm
        self._template = template
        self._stack = contextlib.ExitStack()
        self._session: Connection | None = None
        self._known: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def wrong(self, rows: dict[str, set[str]]) -> list[str]:
        """The texts that got another answer."""
        return [text for text, found in rows.items() if found != {self._answer(text)}]

    def _answer(self, text: str) -> str:
        if text not in self._known:
            if self._session is None:
                folder = self._stack.enter_context(prepared.copy(self._template, self._arm))
                server = self._stack.enter_context(self._arm.server(folder, Killers(pool_mb=256).mysqld_options()))
                server.start()
                self._session = self._stack.enter_context(server.connect(Killers.name))
                self._session.query(f"SET cte_max_recursion_depth = 10000000, group_concat_max_len = {1 << 30}")
            self._known[text] = _digest(self._session.query(text))
        return self._known[text]
