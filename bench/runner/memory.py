"""One turn of a workload with one arm: fresh server, load, idle; and the figures of several such turns."""

import contextlib
import functools
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from bench.runner import arms as arm_list
from bench.runner import prepared, report
from bench.workloads.base import Workload
from harness import cgroup
from harness.burst import Sampler
from harness.problem import Problem
from harness.server import Server
from harness.snapshots import Diagnostics
from harness.sql import Connection, SqlError

SETTLE_SECONDS = 2.0  # between start and load
Run = dict[str, Any]
Pools = Mapping[str, Sequence[int]]  # live and resident bytes


def template(workload: Workload, arms: Sequence[arm_list.Arm]) -> Path:
    folder = workload.folder or workload.name

    def fill(server: Server) -> None:
        server.query(f"CREATE DATABASE {folder}")
        workload.fill(server)

    return prepared.template(folder, workload.data_key(), arms, workload.mysqld_options(), fill)


def templates(workloads: Sequence[Workload], arms: Sequence[arm_list.Arm]) -> Path:
    """All of them. The value is the first one: a round asks for each again by template()."""
    return [template(workload, arms) for workload in workloads][0]


class Turn:
    """A fresh server under load, then idling, in three steps: the next server is prepared while this one idles.

    As a context manager it ends the server at the end of the block, in any step.
    """

    def __init__(
        self, workload: Workload, arm: arm_list.Arm, folder: Path, idle: Sequence[float], limit_kb: int = 0
    ) -> None:
        self._workload = workload
        self._idle = idle
        self._limit_kb = limit_kb
        self._arm = arm
        self._folder = folder
        self._run: Run = {}
        self._failure: Exception | None = None
        self._over = threading.Event()
        self._watch = threading.Thread(target=self._watch_idling, daemon=True)

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            self._limit = stack.enter_context(cgroup.memory_limit(self._limit_kb)) if self._limit_kb else None
            self.server = stack.enter_context(
                self._arm.server(
                    self._folder, self._workload.mysqld_options(), self._limit.wrapper() if self._limit else ()
                )
            )
            stack.callback(self._kill)
            self._rss = Sampler(0.25, self.server.rss_kb)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *failure: object) -> None:
        self._over.set()
        if self._watch.is_alive():
            self._watch.join()
        self._stack.close()

    def start(self) -> None:
        with self._losses():
            self.server.start()
            # Background start-up work (statistics, purge) is to be over.
            time.sleep(SETTLE_SECONDS)

    def load(self) -> None:
        """Returns when the load is over; a thread then watches the server idle."""
        if self._run:
            return
        with self._losses():
            self._load()

    def note(self, figures: Mapping[str, float]) -> None:
        self._run.update(figures)

    def idling(self) -> bool:
        return self._watch.is_alive()

    def cpu_seconds(self) -> float:
        try:
            usage = self.server.usage()
        except OSError:  # killed by its limit
            return 0.0
        return usage.cpu_seconds

    def end(self) -> Run:
        """Waits for the end of idling."""
        if self._watch.ident:
            self._watch.join()
            with self._losses():
                if self._failure:
                    raise self._failure
                after = ask(self.server)
                self._run["after"] = after
                if after["pools"]:
                    with self.server.connect() as session:
                        self._run["unexplained"] = {
                            "cheap": _distance(session, "MEMDIAG_LEDGER"),
                            "exact": _distance(session, "MEMDIAG_LEDGER_EXACT"),
                        }
                self._run["buffer_pool_growth_kb"] = after["buffer_pool_kb"] - self._run["before"]["buffer_pool_kb"]
        if self._limit:
            self._run["limit"] = {"kb": self._limit_kb, **self._limit.figures()}
        return self._run

    def _end_sampling(self) -> None:
        # A server that was killed could not be sampled any more.
        with contextlib.suppress(Problem):
            self._rss.__exit__(None)

    def _kill(self) -> None:
        # Its data are thrown away. An orderly shutdown would take time and disturb the next turn.
        if self.server.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.server.pid, signal.SIGKILL)

    @contextlib.contextmanager
    def _losses(self) -> Iterator[None]:
        """Keep the figures of a server that the kernel killed at its limit; raise any other failure."""
        try:
            yield
        except (Problem, SqlError, OSError, KeyError) as error:
            time.sleep(1)  # a killed process may need a moment to be gone
            if self.server.alive():
                raise
            if not self._limit or not self._limit.figures()["oom_kills"]:
                # Its log goes with the copy of the data.
                raise Problem(f"{error}\n{self.server.log_tail()}") from error
            samples = self._rss.samples
            self._run = {
                "outcome": "killed",
                "peak_rss_kb": max((value for _, value in samples), default=0),
                "seconds": samples[-1][0] if samples else 0.0,
            }

    def _load(self) -> None:
        server = self.server
        before = ask(server)
        start = server.memory()
        server.reset_peak()
        usage_before = server.usage()
        self._rss.__enter__()
        self._stack.callback(self._end_sampling)
        began = time.monotonic()
        with contextlib.ExitStack() as sessions:
            known = sessions.enter_context(Sampler(1, functools.partial(_known_kb, _session(sessions, server))))
            pools = None
            if before["pools"]:
                pools = sessions.enter_context(Sampler(1, functools.partial(_pools, _session(sessions, server))))
            done = self._workload.load(server)
        self._ended = time.monotonic()
        usage = server.usage().since(usage_before)
        peak = server.memory()
        self._run = {
            "outcome": "survived",
            "start_rss_kb": start.rss_kb,
            "peak_rss_kb": peak.peak_kb,
            "idle": {},
            "known_peak_kb": max(value for _, value in known.samples),
            "pools_peak": highest_pools([value for _, value in pools.samples]) if pools else {},
            "before": before,
            "seconds": self._ended - began,
            "count": done.count,
            "per_second": done.count / done.seconds,
            "p99_ms": done.p99_ms,
            "extra": done.extra,
            "cpu_user_seconds": usage.user_seconds,
            "cpu_system_seconds": usage.system_seconds,
            "minor_faults": usage.minor_faults,
        }
        self._watch.start()

    def _watch_idling(self) -> None:
        # No statement runs meanwhile: statements make some allocators give memory back.
        try:
            for moment in self._idle:
                if self._over.wait(max(0.0, self._ended + moment - time.monotonic())):
                    return
                memory = self.server.memory()
                self._run["idle"][f"{moment:g}"] = {"rss_kb": memory.rss_kb, "lazy_free_kb": memory.lazy_free_kb}
        except Exception as error:  # noqa: BLE001 - raised by end()
            self._failure = error


def _session(stack: contextlib.ExitStack, server: Server) -> Connection:
    return stack.enter_context(server.connect())


def _known_kb(session: Connection) -> int:
    """Memory in use by Performance Schema's count."""
    total = session.query(
        "SELECT SUM(current_number_of_bytes_used) FROM performance_schema.memory_summary_global_by_event_name"
    ).scalar()
    return int(total or 0) // 1024


def buffer_pool_kb(session: Connection) -> int:
    """The pages that InnoDB's buffer pool holds."""
    rows = session.query("SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_bytes_data'").rows
    return int(rows[0][1] or 0) // 1024


def _pools(session: Connection) -> Pools:
    rows = session.query("SELECT POOL, LIVE_BYTES, RESIDENT_BYTES FROM INFORMATION_SCHEMA.MEMDIAG_POOLS").rows
    if any(None in row for row in rows):
        raise Problem("MEMDIAG_POOLS could not be read: see its warnings")
    return {str(pool): (int(str(live)), int(str(resident))) for pool, live, resident in rows}


def unexplained(session: Connection, ledger: str) -> float | None:
    """The row `unexplained` of a ledger, in percent of RSS; None: it could not be read."""
    percent = session.query(f"SELECT PERCENT FROM INFORMATION_SCHEMA.{ledger} WHERE COMPONENT = 'unexplained'").scalar()
    return None if percent is None else float(percent)


def _distance(session: Connection, ledger: str) -> float | None:
    percent = unexplained(session, ledger)
    return None if percent is None else abs(percent)


def highest_pools(samples: Sequence[Pools]) -> Pools:
    """The sample in which all pools together had the most resident bytes."""
    return max(samples, key=lambda pools: sum(resident for _, resident in pools.values()), default={})


def named_share(pools: Pools) -> float | None:
    """The share of the allocator's resident bytes in pools other than general, in percent."""
    total = sum(resident for _, resident in pools.values())
    named = total - pools.get("general", (0, 0))[1]
    return 100 * named / total if total else None


def ask(server: Server) -> dict[str, Any]:
    """The server's own figures of its memory; resident and allocated are None in an arm without memdiag."""
    with server.connect() as session, Diagnostics(server) as diagnostics:
        allocator = diagnostics.snapshot().allocator
        return {
            "known_kb": _known_kb(session),
            "resident_bytes": allocator.get("RESIDENT_BYTES"),
            "allocated_bytes": allocator.get("ALLOCATED_BYTES"),
            "buffer_pool_kb": buffer_pool_kb(session),
            "pools": _pools(session) if allocator else {},
        }


def figures(run: Run) -> dict[str, float | None]:
    """The figures that reports show of a run that the server survived; memory in MB."""
    cpu = run["cpu_user_seconds"] + run["cpu_system_seconds"]
    after = run["after"]
    found: dict[str, float | None] = {
        "start": run["start_rss_kb"] / 1024,
        "peak": run["peak_rss_kb"] / 1024,
        "pages": run["buffer_pool_growth_kb"] / 1024,
        "known_peak": run["known_peak_kb"] / 1024,
        "known_after": after["known_kb"] / 1024,
        "resident_ratio": report.ratio(after["resident_bytes"], after["allocated_bytes"])
        if after["resident_bytes"] is not None
        else None,
        "per_second": run["per_second"],
        "p99_ms": run["p99_ms"],
        "cpu_seconds": cpu,
        "faults": run["minor_faults"],
        "named_peak": named_share(run["pools_peak"]),
        "named_after": named_share(after["pools"]),
        "unexplained_cheap": run.get("unexplained", {}).get("cheap"),
        "unexplained_exact": run.get("unexplained", {}).get("exact"),
        **run["extra"],
    }
    for moment, memory in run["idle"].items():
        found[f"idle_{moment}"] = (memory["rss_kb"] - memory["lazy_free_kb"]) / 1024
    return found


def medians(runs: Sequence[Run]) -> dict[str, float | None]:
    """The figures of an arm: each the median over the rounds it survived; nothing when it survived none."""
    every = [figures(run) for run in runs if run["outcome"] == "survived"]
    columns: dict[str, list[float | None]] = {}
    for found in every:
        for name, value in found.items():
            columns.setdefault(name, []).append(value)
    return {name: None if None in values else report.median(values) for name, values in columns.items()}


def brief(run: Run) -> str:
    if run["outcome"] != "survived":
        return f"{run['outcome']} after {run['seconds']:.0f} s at {run['peak_rss_kb'] // 1024} MB"
    after = ", ".join(f"{moment} s after {memory['rss_kb'] // 1024}" for moment, memory in run["idle"].items())
    return (
        f"start {run['start_rss_kb'] // 1024} MB, peak {run['peak_rss_kb'] // 1024}, {after}; {run['per_second']:.1f}/s"
    )
