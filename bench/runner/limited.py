"""A server in a memory cgroup of its own, and clients that need more than the cgroup has."""

import collections
import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from harness.burst import Sampler
from harness.cgroup import Limit
from harness.problem import Problem
from harness.server import Server
from harness.sql import SqlError

Run = dict[str, Any]

ACCOUNT = "app"
NO_MEMORY = 3170  # ER_CAPACITY_EXCEEDED
PATIENCE_SECONDS = 60.0


@dataclass
class Answers:
    """The answers that clients got. Threads add to it one at a time."""

    answers: int = 0
    no_memory: int = 0
    lost: int = 0
    other_errors: collections.Counter[int] = field(default_factory=collections.Counter)
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

    def figures(self) -> Run:
        return {"answers": self.answers, "lost": self.lost, "other_errors": dict(self.other_errors)}


def give_account(server: Server, database: str) -> None:
    server.query(f"CREATE USER {ACCOUNT}@localhost")
    server.query(f"GRANT ALL ON {database}.* TO {ACCOUNT}@localhost")


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
    may_stall: bool = False,
) -> Run:
    """Starts the server and puts it under load. The server ends with the call.

    `load` counts in `got`. `after` asks the server for figures when the load is over. `may_stall`: a server that lives and
    does not answer is an outcome, and no Problem.
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
            if not (may_stall and server.alive() and "start_kb" in run):
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
