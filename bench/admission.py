#!/usr/bin/env python3
"""Loads in a memory cgroup of 0.8 of their own peak, with and without admission.

Each round begins with the peak of arm dev in a group without a limit. README.md explains the figures.
"""

from __future__ import annotations

import functools
import itertools
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.runner import arms as arm_list
from bench.runner import limited, memory, report, rounds
from bench.workloads import connection_storm, phrase_burst
from bench.workloads.base import Workload
from harness import cgroup
from harness.common import say
from harness.problem import Problem, run_main
from harness.server import Server
from harness.sql import Connection, SqlError

WIDE_KB = 16 << 20
REFUSED = limited.NO_MEMORY
OPTIONS = ("--loose-memdiag-pressure-watcher=ON",)


@dataclass
class Answers(limited.Answers):
    slowest: float = 0.0

    def ask(self, ask: Callable[[], object]) -> bool:
        """Counts the answer to a statement or a connect. False: the connection is lost."""
        began = time.monotonic()
        code: int | None = 0
        try:
            ask()
        except SqlError as error:
            code = error.code
        except OSError:
            code = None
        with self.lock:
            self.slowest = max(self.slowest, time.monotonic() - began)
            self.count(code)
        return code is not None

    def figures(self) -> dict[str, Any]:
        return {**super().figures(), "refused": self.no_memory, "slowest_s": self.slowest}


@dataclass(frozen=True)
class Crowd:
    """A workload's clients. Each runs its statements in its sessions until the time is up."""

    workload: Workload
    clients: int
    # Gets the number of a client; yields its sessions, each with its statements.
    sessions: Callable[[int], Iterator[Iterator[str]]]

    def run(self, server: Server, seconds: float, got: Answers) -> None:
        end = time.monotonic() + seconds
        limited.run_clients(
            (functools.partial(self._client, server, number, end, got) for number in range(self.clients)), end
        )

    def _client(self, server: Server, number: int, end: float, got: Answers) -> None:
        for statements in self.sessions(number):
            made: list[Connection] = []
            connected = got.ask(
                lambda made=made: made.append(
                    Connection(server.socket, self.workload.name, limited.ACCOUNT, limited.PATIENCE_SECONDS)
                )
            )
            if not connected or not made:
                return
            with made[0] as session:
                for statement in statements:
                    if time.monotonic() >= end:
                        return
                    if not got.ask(lambda text=statement: session.query(text)):
                        return


def storm(workload: connection_storm.ConnectionStorm) -> Crowd:
    def sessions(number: int) -> Iterator[Iterator[str]]:
        chooser = random.Random(number)
        while True:
            yield (
                connection_storm.statement(chooser, workload.rows)
                for _ in range(connection_storm.STATEMENTS_PER_SESSION)
            )

    return Crowd(workload, workload.clients, sessions)


def searches(workload: phrase_burst.PhraseBurst) -> Crowd:
    def sessions(number: int) -> Iterator[Iterator[str]]:
        order = phrase_burst.searches()
        random.Random(number).shuffle(order)
        yield itertools.cycle(order)

    return Crowd(workload, workload.clients, sessions)


def crowds(phrase_clients: int) -> dict[str, Crowd]:
    return {
        crowd.workload.name: crowd
        for crowd in (
            storm(connection_storm.ConnectionStorm()),
            searches(phrase_burst.PhraseBurst(clients=phrase_clients)),
        )
    }


def turn(crowd: Crowd, arm: arm_list.Arm, folder: Path, limit_kb: int, seconds: float) -> dict[str, Any]:
    """One turn: a server in a group of its own."""
    options = (*crowd.workload.mysqld_options(), *OPTIONS)
    with cgroup.memory_limit(limit_kb) as limit, arm.server(folder, options, limit.wrapper()) as server:
        got = Answers()
        run = limited.outlives(
            server,
            limit,
            lambda: limited.give_account(server, crowd.workload.name),
            lambda: crowd.run(server, seconds, got),
            lambda: {"decisions": limited.rows_by(server, "DECISION", "MEMDIAG_ADMISSIONS")},
            got,
        )
        return {"limit_kb": limit_kb, **run}


def brief(run: dict[str, Any]) -> str:
    return "; ".join(f"{name}: {_brief(one)}" for name, one in run.items())


def _brief(run: dict[str, Any]) -> str:
    return (
        f"{run['outcome']} in {run['limit_kb'] >> 10} MB, peak {run['peak_kb'] >> 10} MB; {run['answers']} answers,"
        f" {run['refused']} refused, {run['lost']} lost, other errors {run['other_errors']},"
        f" slowest {run['slowest_s']:.1f} s, decisions {run.get('decisions', {})}"
    )


def measure_round(wanted: dict[str, Crowd], factor: float, seconds: float) -> rounds.Round:
    def measure(arms: Sequence[arm_list.Arm], _template: Path) -> Iterator[tuple[str, rounds.Run]]:
        first = arm_list.ARMS["dev"]
        runs: dict[str, dict[str, Any]] = {arm.name: {} for arm in arms}
        for name, crowd in wanted.items():
            template = memory.template(crowd.workload, arms)
            with memory.prepared.copy(template, first) as folder:
                free = turn(crowd, first, folder, WIDE_KB, seconds)
            say(f"{name} without a limit: {_brief(free)}")
            limit_kb = int(factor * free["peak_kb"])
            for arm in arms:
                with memory.prepared.copy(template, arm) as folder:
                    one = turn(crowd, arm, folder, limit_kb, seconds)
                say(f"{name} {arm.name}: {_brief(one)}")
                runs[arm.name][name] = {
                    **one,
                    "free_peak_kb": free["peak_kb"],
                    "free_answers": free["answers"],
                    "free_start_kb": free["start_kb"],
                }
        yield from runs.items()

    return measure


def good(run: dict[str, Any]) -> bool:
    """True if every client got its answer or the error, and the server lives."""
    return run["outcome"] == "survived" and not run["lost"] and not run["other_errors"] and run["answers"] > 0


def render(raw: dict[str, Any]) -> str:
    rows = []
    targets = []
    for name in raw["settings"]["loads"]:
        for arm, every in raw["runs"].items():
            runs = [run[name] for run in every]
            survived = sum(good(run) for run in runs)

            def middle(figure: str, runs: list[dict[str, Any]] = runs) -> float:
                return report.median(run[figure] for run in runs)

            rows.append(
                [
                    name,
                    arm,
                    f"{survived} of {len(runs)}",
                    f"{middle('limit_kb') / 1024:.0f}",
                    f"{middle('free_start_kb') / 1024:.0f}",
                    f"{middle('peak_kb') / 1024:.0f}",
                    f"{middle('answers'):.0f}",
                    f"{middle('free_answers'):.0f}",
                    f"{sum(run['refused'] for run in runs)}",
                    f"{sum(run['lost'] for run in runs)}",
                    f"{max(run['slowest_s'] for run in runs):.1f}",
                ]
            )
            if arm == "dev-admission":
                targets.append(
                    report.target(f"{name}: rounds with an answer or the error for all", survived / len(runs), ">=", 1)
                )
    return "\n".join(
        [
            "# Admission below a limit of the own peak\n",
            f"A memory cgroup of {raw['settings']['factor']} of the peak; {raw['settings']['seconds']:g} s of load.\n",
            report.table(
                [
                    "load",
                    "arm",
                    "good rounds",
                    "limit MB",
                    "at rest MB",
                    "peak MB",
                    "answers",
                    "without limit",
                    "refused",
                    "lost",
                    "slowest s",
                ],
                rows,
            ),
            "\n## Targets\n",
            report.target_table(targets),
            report.front_matter(raw),
        ]
    )


def main() -> int:
    parser = rounds.parser((__doc__ or "").splitlines()[0], rounds=3, arms=("dev", "dev-admission", "debian"))
    parser.add_argument(
        "--loads", default="connection_storm,phrase_burst", help="comma-separated (default: %(default)s)"
    )
    parser.add_argument("--factor", type=float, default=0.8, help="of the peak (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=15.0, help="of each load (default: %(default)s)")
    parser.add_argument("--phrase-clients", type=int, default=64, help="default: %(default)s")
    options = parser.parse_args()
    rounds.require_positive(options, "factor", "seconds", "phrase_clients")
    every = crowds(options.phrase_clients)
    loads = options.loads.split(",")
    if unknown := [name for name in loads if name not in every]:
        raise Problem(f"unknown load '{unknown[0]}'; there are: {', '.join(every)}")
    wanted = {name: every[name] for name in loads}
    return rounds.run(
        "admission",
        options,
        settings={
            "loads": loads,
            "factor": options.factor,
            "seconds": options.seconds,
            "phrase_clients": options.phrase_clients,
            "mysqld": OPTIONS,
        },
        prepare=lambda arms: [memory.template(crowd.workload, arms) for crowd in wanted.values()][0],
        measure=measure_round(wanted, options.factor, options.seconds),
        brief=brief,
        render=render,
        seconds_each=len(wanted) * (options.seconds + 12) * 4 / 3,
    )


if __name__ == "__main__":
    run_main("admission", main)
