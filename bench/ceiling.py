#!/usr/bin/env python3
"""Clients that need more than their memory cgroup has: is the server there afterwards, and is each client answered?

Each turn makes a cgroup of its own. The turns of one commit are kept in a file, and a run that was interrupted goes on
behind its last turn. README.md explains the figures.
"""

import argparse
import contextlib
import functools
import itertools
import operator
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.runner import arms as arm_list
from bench.runner import limited, memory, prepared, report, rounds
from bench.runner.turns import keep, turns_of
from bench.workloads.killers import KILLERS, Killer, Killers
from harness import cgroup, huge_pages
from harness.common import say
from harness.problem import Problem, run_main
from harness.server import Server
from harness.sql import Connection, SqlError
from harness.x_protocol import XConnection

X_SOCKET = "x.sock"
CEILING = "dev"
TUNED = "dev-tuned"
# The buffer pool's part of the limit, and that of TUNED.
POOL_PERCENT = 75
TUNED_PERCENT = 40


def _client(killer: Killer, server: Server, number: int, end: float, got: limited.Answers) -> None:
    while time.monotonic() < end:
        try:
            if killer.over_x:
                session: Connection | XConnection = XConnection(
                    server.folder / X_SOCKET, Killers.name, limited.ACCOUNT, limited.PATIENCE_SECONDS
                )
            else:
                session = Connection(server.socket, Killers.name, limited.ACCOUNT, limited.PATIENCE_SECONDS)
        except (SqlError, OSError) as error:
            with got.lock:
                got.count(error.code if isinstance(error, SqlError) else None)
            return
        with contextlib.suppress(OSError), session:
            for text in killer.statements(number):
                if time.monotonic() >= end or not got.ask(session, text.replace("{folder}", str(server.folder))):
                    return
        if not killer.again:
            return


def crowd(killer: Killer, clients: int, server: Server, seconds: float, got: limited.Answers) -> None:
    end = time.monotonic() + seconds
    each = [functools.partial(_client, killer, server, number, end, got) for number in range(clients)]
    with limited.probing(server, end, got) as probe:
        limited.run_clients(each, end)
        # It ends before if the server is gone.
        probe.join(max(0.0, end - time.monotonic()))


@dataclass(frozen=True)
class Turn:
    arm: str
    load: str
    clients: int
    limit_mb: int
    processors: float  # 0: all
    huge_pages: str
    number: int

    @classmethod
    def of(cls, run: dict[str, Any]) -> Self:
        """The one that a run was of."""
        return cls(**{each.name: run[each.name] for each in fields(cls)})

    def name(self) -> str:
        quota = f", {self.processors:g} processors" if self.processors else ""
        return f"{self.arm}, {self.load} x {self.clients}, {self.limit_mb} MB{quota}, THP {self.huge_pages}"


def _prepare(killer: Killer, server: Server) -> None:
    if "{folder}" in next(killer.statements(0)):
        server.query(
            f"SELECT id, note, doc INTO OUTFILE '{server.folder}/things.txt' FROM things WHERE id <= 12000",
            Killers.name,
        )
    limited.prepare(server)
    privileges = "ALL" if killer.administrators else "FILE"
    server.query(f"GRANT {privileges} ON *.* TO {limited.ACCOUNT}@localhost")


def perform(turn: Turn, seconds: float, template: Path) -> tuple[dict[str, Any], limited.Answers]:
    """One turn: a server in a group of its own."""
    killer = KILLERS[turn.load]
    load_s = 0.0

    def load() -> None:
        nonlocal load_s
        began = time.monotonic()
        crowd(killer, turn.clients, server, seconds, got)
        load_s = time.monotonic() - began

    arm = arm_list.choose(turn.arm)[0]
    pool_percent = TUNED_PERCENT if turn.arm == TUNED else POOL_PERCENT
    workload = Killers(pool_mb=turn.limit_mb * pool_percent // 100)
    got = limited.Answers()
    with contextlib.ExitStack() as stack:
        stack.enter_context(huge_pages.set_to(turn.huge_pages))
        folder = stack.enter_context(prepared.copy(template, arm))
        limit = stack.enter_context(cgroup.memory_limit(turn.limit_mb << 10))
        wrapper = limit.wrapper()
        if turn.processors:
            wrapper = (*wrapper, *stack.enter_context(cgroup.processors(turn.processors, limit)))
        options = workload.mysqld_options()
        if killer.over_x:
            options = (*options, "--mysqlx=ON", f"--mysqlx-socket={folder / X_SOCKET}")
        server = stack.enter_context(arm.server(folder, options, wrapper))
        try:
            run = limited.outlives(
                server,
                limit,
                lambda: _prepare(killer, server),
                load,
                lambda: {
                    "actions": limited.rows_by(server, "ACTION", "MEMDIAG_CEILING"),
                    "status": limited.status(server),
                },
                got,
            )
        except Problem as problem:
            raise Problem(f"{turn.name()}: {problem}") from problem
    return {**vars(turn), **run, "load_s": load_s}, got


def brief(run: dict[str, Any]) -> str:
    errors = f", errors {run['other_errors']}" if run["other_errors"] else ""
    return (
        f"{run['outcome']}, peak {run['peak_kb'] >> 10} MB; {run['answers']} answers, {run['ended']} ended,"
        f" {run['lost']} lost{errors}, {run.get('wrong', 0)} wrong, SELECT 1 {run['longest_probe_s']:.2f} s,"
        f" {run.get('actions', {})}"
    )


def is_good(run: dict[str, Any]) -> bool:
    """True if every client got its answer or the ceiling's error, in time, and the server lives."""
    return (
        run["outcome"] == "survived"
        and not run["lost"]
        and not run["other_errors"]
        and not run.get("wrong", 0)
        and run["answers"] + run["ended"] > 0
        and run["longest_probe_s"] <= 1
    )


def _rows(runs: Sequence[dict[str, Any]]) -> Iterator[list[str]]:
    row_of = operator.itemgetter("load", "clients", "arm")
    for (load, clients, arm), group in itertools.groupby(sorted(runs, key=row_of), key=row_of):
        of_arm = list(group)
        yield [
            f"{load} x {clients}",
            arm,
            f"{sum(run['outcome'] == 'survived' for run in of_arm)} of {len(of_arm)}",
            f"{sum(map(is_good, of_arm))}",
            f"{report.median(run['answers'] for run in of_arm):.0f}",
            f"{sum(run['ended'] for run in of_arm)}",
            f"{sum(run['lost'] for run in of_arm)}",
            f"{sum(sum(run['other_errors'].values()) for run in of_arm)}",
            f"{sum(run.get('wrong', 0) for run in of_arm)}",
            f"{max(run['longest_probe_s'] for run in of_arm):.2f}",
        ]


def answers_a_second(runs: Sequence[dict[str, Any]], arm: str) -> float | None:
    """Of the ordinary load: the median of the turns that it survived."""
    found = [
        run["answers"] / run["load_s"]
        for run in runs
        if run["arm"] == arm and run["load"] == "ordinary" and run.get("load_s") and run["outcome"] == "survived"
    ]
    return report.median(found) if found else None


def render(raw: dict[str, Any]) -> str:
    runs = raw["runs"]
    of_ceiling = [run for run in runs if run["arm"] == CEILING]
    ordinary = [run["ended"] for run in of_ceiling if run["load"] == "ordinary" and run["limit_mb"] == 1200]
    targets = [
        report.target("good turns", sum(map(is_good, of_ceiling)) / len(of_ceiling) if of_ceiling else None, ">=", 1),
        report.target("ended of the ordinary load in 1200 MB", sum(ordinary) if ordinary else None, "<=", 0),
    ]
    tuned, ceiling = (answers_a_second(runs, arm) for arm in (TUNED, CEILING))
    if tuned and ceiling:
        name = f"answers a second of the ordinary load, beside a pool of {TUNED_PERCENT}%"
        targets.append(report.target(name, ceiling / tuned, ">=", 0.5))
    heads = ["load", "arm", "survived", "good", "answers", "ended", "lost", "other errors", "wrong", "SELECT 1, s"]
    return "\n".join(
        [
            "# The ceiling\n",
            f"{len(runs)} turns of {raw['settings']['seconds']:g} s, limits of {raw['settings']['limits_mb']} MB, a"
            f" buffer pool of {POOL_PERCENT}% of the limit.\n",
            report.table(heads, list(_rows(runs))),
            "\n## Targets\n",
            report.target_table(targets),
            report.front_matter(raw),
        ]
    )


def _turns(options: argparse.Namespace) -> list[Turn]:
    """Arms are interleaved within each case."""
    unknown = [name for name in options.loads if name not in KILLERS]
    if unknown:
        raise Problem(f"unknown load: {unknown[0]}; there are {', '.join(KILLERS)}")
    return [
        Turn(arm, load, clients, limit, quota, pages, number)
        for number in range(options.rounds)
        for load in options.loads
        for limit in options.limits_mb
        for quota in options.processors
        for pages in options.huge_pages
        for clients in options.clients or KILLERS[load].clients
        for arm in options.arms.split(",")
    ]


def _words(text: str) -> list[str]:
    return text.split(",")


def _integers(text: str) -> list[int]:
    return [int(word) for word in text.split(",")]


def _numbers(text: str) -> list[float]:
    return [float(word) for word in text.split(",")]


def main() -> int:
    parser = rounds.parser((__doc__ or "").splitlines()[0], rounds=1, arms=(CEILING, "debian"))
    parser.add_argument("--loads", type=_words, default=list(KILLERS), help=f"of: {', '.join(KILLERS)} (default: all)")
    parser.add_argument("--limits-mb", type=_integers, default=[1200], help="of the cgroup (default: %(default)s)")
    parser.add_argument("--processors", type=_numbers, default=[0.0], help="a quota; 0 is none (default: %(default)s)")
    parser.add_argument("--huge-pages", type=_words, default=[""], help='madvise, always; "" as it is (default)')
    parser.add_argument("--clients", type=_integers, default=[], help="instead of each load's own numbers")
    parser.add_argument("--seconds", type=float, default=10.0, help="of the load (default: %(default)s)")
    parser.add_argument("--turns", type=Path, help="the file of turns (default: one of this commit)")
    options = parser.parse_args()
    rounds.require_positive(options, "seconds")
    turns = _turns(options)
    arms = arm_list.choose(options.arms)
    file = options.turns or prepared.WORK / f"ceiling-{report.commit()}.jsonl"
    runs = [run for run in turns_of(file) if Turn.of(run) in turns]
    done = {Turn.of(run) for run in runs}
    rest = [turn for turn in turns if turn not in done]
    template = memory.template(Killers(), arms)
    say(f"{len(turns)} turns, {len(rest)} to do: about {len(rest) * (options.seconds + 12) / 60:.0f} min ({file})")
    unlimited_arm = arm_list.choose("dev")[0]
    with limited.Unlimited(unlimited_arm, template) as unlimited:
        for number, turn in enumerate(rest, 1):
            run, got = perform(turn, options.seconds, template)
            wrong = unlimited.wrong(got.rows) if KILLERS[turn.load].same_answers else []
            run["wrong"] = len(wrong)
            run["wrong_texts"] = wrong[:3]
            keep(file, run)
            runs.append(run)
            say(f"{number}/{len(rest)} {turn.name()}: {brief(run)}")
    raw = rounds.record(
        options,
        arms,
        {
            "limits_mb": options.limits_mb,
            "pool_percent": POOL_PERCENT,
            "tuned_percent": TUNED_PERCENT,
            "seconds": options.seconds,
            "processors": [quota or "all" for quota in options.processors],
            "huge_pages": [pages or "as the machine" for pages in options.huge_pages],
        },
    )
    raw["runs"] = runs
    report.save(report.stem("ceiling"), render(raw), options.save)
    return 0 if all(is_good(run) for run in runs if run["arm"] == CEILING) else 1


if __name__ == "__main__":
    run_main("ceiling", main)
