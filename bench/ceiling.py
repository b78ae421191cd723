#!/usr/bin/env python3
"""Ordinary clients that need more than their memory cgroup has, with and without the ceiling.

Each turn makes a cgroup of its own. README.md explains the figures.
"""

from __future__ import annotations

import collections
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.runner import arms as arm_list
from bench.runner import memory, report, rounds
from bench.workloads.killers import Killers
from harness import cgroup
from harness.burst import Sampler
from harness.common import say
from harness.problem import Problem, run_main
from harness.server import Server
from harness.sql import Connection, SqlError

ACCOUNT = "app"  # the ceiling never makes root wait
ENDED = 3170  # ER_CAPACITY_EXCEEDED
PATIENCE_SECONDS = 60.0
PROBE_PAUSE_SECONDS = 0.05


@dataclass
class Answers:
    """What clients got. Threads add to it one at a time."""

    answers: int = 0
    ended: int = 0
    lost: int = 0
    other_errors: collections.Counter[int] = field(default_factory=collections.Counter)
    longest_probe_s: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def ask(self, session: Connection, text: str) -> bool:
        """False: the connection is lost."""
        code: int | None = 0
        try:
            session.query(text)
        except SqlError as error:
            code = error.code
        except OSError:
            code = None
        with self.lock:
            if code is None:
                self.lost += 1
            elif code == 0:
                self.answers += 1
            elif code == ENDED:
                self.ended += 1
            else:
                self.other_errors[code] += 1
        return code is not None

    def figures(self) -> dict[str, Any]:
        return {
            "answers": self.answers,
            "ended": self.ended,
            "lost": self.lost,
            "other_errors": dict(self.other_errors),
            "longest_probe_s": self.longest_probe_s,
        }


def _client(workload: Killers, server: Server, number: int, end: float, got: Answers) -> None:
    try:
        session = Connection(server.socket, workload.name, ACCOUNT, PATIENCE_SECONDS)
    except (OSError, SqlError):
        with got.lock:
            got.lost += 1
        return
    with contextlib.suppress(OSError), session:
        for text in workload.statements(number):
            if time.monotonic() >= end or not got.ask(session, text):
                return


def _probe(server: Server, end: float, got: Answers) -> None:
    """A second client: how long SELECT 1 takes at most."""
    with contextlib.suppress(OSError, SqlError), server.connect(timeout=PATIENCE_SECONDS) as session:
        while time.monotonic() < end:
            began = time.monotonic()
            try:
                session.query("SELECT 1")
            finally:
                took = time.monotonic() - began
                with got.lock:
                    got.longest_probe_s = max(got.longest_probe_s, took)
            time.sleep(PROBE_PAUSE_SECONDS)


def crowd(workload: Killers, server: Server, seconds: float) -> Answers:
    got = Answers()
    end = time.monotonic() + seconds
    threads = [threading.Thread(target=_probe, args=(server, end, got), daemon=True)]
    threads += [
        threading.Thread(target=_client, args=(workload, server, number, end, got), daemon=True)
        for number in range(workload.clients)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, end + PATIENCE_SECONDS - time.monotonic()))
    if any(thread.is_alive() for thread in threads):
        raise Problem(f"clients were not answered within {PATIENCE_SECONDS:.0f} s")
    return got


def turn(workload: Killers, arm: arm_list.Arm, folder: Path, limit_kb: int) -> dict[str, Any]:
    """One turn: a server in a group of its own."""
    with (
        cgroup.memory_limit(limit_kb) as limit,
        arm.server(folder, workload.mysqld_options(), limit.wrapper()) as server,
    ):
        run: dict[str, Any] = {"limit_kb": limit_kb, "outcome": "survived"}
        got = Answers()
        used = Sampler(0.05, limit.used_bytes)
        try:
            server.start()
            server.query(f"CREATE USER {ACCOUNT}@localhost")
            server.query(f"GRANT ALL ON {workload.name}.* TO {ACCOUNT}@localhost")
            # A warm pool, as of a server that has run for days.
            server.query("SELECT COUNT(*), SUM(LENGTH(note)), SUM(LENGTH(doc)) FROM things", workload.name)
            run["start_kb"] = limit.used_bytes() >> 10
            with used:
                got = crowd(workload, server, workload.seconds)
            run["actions"] = actions(server)
        except (Problem, SqlError, OSError) as failure:
            time.sleep(1)  # a killed process may need a moment to be gone
            if server.alive() or not limit.figures()["oom_kills"]:
                raise Problem(f"{failure}\n{server.log_tail()}") from failure
        if limit.figures()["oom_kills"]:
            run["outcome"] = "killed" if "start_kb" in run else "killed at its start"
        run["peak_kb"] = max((bytes_ for _, bytes_ in used.samples), default=0) >> 10
        # Its data are of no use any more.
        if server.alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(server.pid, signal.SIGKILL)
        return {**run, **got.figures()}


def actions(server: Server) -> dict[str, int]:
    with contextlib.suppress(SqlError):  # stock lacks the table
        rows = server.query("SELECT ACTION, COUNT(*) FROM information_schema.MEMDIAG_CEILING GROUP BY ACTION").rows
        return {str(name): int(str(count)) for name, count in rows}
    return {}


def brief(run: dict[str, Any]) -> str:
    return (
        f"{run['outcome']} in {run['limit_kb'] >> 10} MB, peak {run['peak_kb'] >> 10} MB; {run['answers']} answers,"
        f" {run['ended']} ended, {run['lost']} lost, other errors {run['other_errors']},"
        f" longest SELECT 1 {run['longest_probe_s']:.2f} s, actions {run.get('actions', {})}"
    )


def measure_round(workload: Killers, limit_kb: int) -> rounds.Round:
    def measure(arms: Sequence[arm_list.Arm], template: Path) -> Iterator[tuple[str, rounds.Run]]:
        for arm in arms:
            with memory.prepared.copy(template, arm) as folder:
                run = turn(workload, arm, folder, limit_kb)
            say(f"{arm.name}: {brief(run)}")
            yield arm.name, run

    return measure


def good(run: dict[str, Any]) -> bool:
    """True if every client got its answer or the ceiling's error, in time, and the server lives."""
    return (
        run["outcome"] == "survived"
        and not run["lost"]
        and not run["other_errors"]
        and run["answers"] > 0
        and run["longest_probe_s"] <= 1
    )


def render(raw: dict[str, Any]) -> str:
    rows = []
    targets = []
    for arm, runs in raw["runs"].items():

        def middle(figure: str, runs: list[dict[str, Any]] = runs) -> float:
            return report.median(run[figure] for run in runs)

        rows.append(
            [
                arm,
                f"{sum(run['outcome'] == 'survived' for run in runs)} of {len(runs)}",
                f"{sum(good(run) for run in runs)}",
                f"{middle('peak_kb') / 1024:.0f}",
                f"{middle('answers'):.0f}",
                f"{sum(run['ended'] for run in runs)}",
                f"{sum(run['lost'] for run in runs)}",
                f"{sum(sum(run['other_errors'].values()) for run in runs)}",
                f"{max(run['longest_probe_s'] for run in runs):.2f}",
            ]
        )
        if arm == "dev-ceiling":
            targets.append(report.target("good rounds", sum(map(good, runs)) / len(runs), ">=", 1))
    return "\n".join(
        [
            "# The ceiling\n",
            f"A memory cgroup of {raw['settings']['limit_mb']} MB, a buffer pool of {raw['settings']['pool_mb']} MB,"
            f" {raw['settings']['clients']} clients, {raw['settings']['seconds']:g} s.\n",
            report.table(
                [
                    "arm",
                    "survived",
                    "good",
                    "peak MB",
                    "answers",
                    "ended",
                    "lost",
                    "other errors",
                    "longest SELECT 1, s",
                ],
                rows,
            ),
            "\n## Targets\n",
            report.target_table(targets),
            report.front_matter(raw),
        ]
    )


def main() -> int:
    parser = rounds.parser((__doc__ or "").splitlines()[0], rounds=3, arms=("dev", "dev-ceiling", "stock"))
    parser.add_argument("--limit-mb", type=int, default=1200, help="of the cgroup (default: %(default)s)")
    parser.add_argument("--pool-percent", type=float, default=75.0, help="of the limit (default: %(default)s)")
    parser.add_argument("--clients", type=int, default=32, help="default: %(default)s")
    parser.add_argument("--seconds", type=float, default=20.0, help="of the load (default: %(default)s)")
    options = parser.parse_args()
    rounds.require_positive(options, "limit_mb", "pool_percent", "clients", "seconds")
    pool_mb = int(options.limit_mb * options.pool_percent / 100)
    workload = Killers(clients=options.clients, seconds=options.seconds, pool_mb=pool_mb)
    return rounds.run(
        "ceiling",
        options,
        settings={
            "limit_mb": options.limit_mb,
            "pool_mb": pool_mb,
            "clients": options.clients,
            "seconds": options.seconds,
        },
        prepare=lambda arms: memory.template(workload, arms),
        measure=measure_round(workload, options.limit_mb << 10),
        brief=brief,
        render=render,
        seconds_each=options.seconds + 30,
    )


if __name__ == "__main__":
    run_main("ceiling", main)
