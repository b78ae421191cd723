#!/usr/bin/env python3
"""Workloads that show memory problems, with every allocator: memory taken, memory given back, and speed.

README.md explains the workloads and the figures.
"""

import argparse
import contextlib
import dataclasses
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.runner import arms as arm_list
from bench.runner import memory, prepared, report, rounds, run_report, soak
from bench.runner.arms import Arm
from bench.runner.idlers import FAILURES, Idlers, failed
from bench.runner.run_report import LIMIT_FACTOR, SURROUNDINGS
from bench.runner.stored import REPORT, Results, Step
from bench.workloads import WORKLOADS, chosen
from bench.workloads.base import HUGE_PAGES, LIMIT, PLAIN, Workload
from harness import huge_pages
from harness.commit import require_clean
from harness.common import say
from harness.problem import NotPossible, Problem, run_main

IDLE_SECONDS = (1, 5, 10, 60)
GROUPS = {
    "all": list(WORKLOADS),
    "memory": [name for name in WORKLOADS if not name.startswith("sysbench")],
    "sysbench": [name for name in WORKLOADS if name.startswith("sysbench")],
}
TURN_SECONDS = 25  # roughly, because idling overlaps with the next turn
# --resume may change these options, because figures stay comparable.
CHANGEABLE = ("rounds", "arms", "workloads", "surroundings", "idlers")
STORED = (*CHANGEABLE, "set", "seconds", "idle", "soak")


def chosen_workloads(names: str, settings: Sequence[str], seconds: int | None = None) -> list[Workload]:
    """`settings`: FIELD=VALUE for every workload that has the field, or WORKLOAD.FIELD=VALUE."""
    wanted = [workload for name in names.split(",") for workload in GROUPS.get(name, [name])]
    made = chosen(wanted)
    if seconds:
        made = [
            dataclasses.replace(workload, seconds=seconds) if "seconds" in workload.parameters() else workload
            for workload in made
        ]
    for setting in settings:
        left, _, value = setting.partition("=")
        owner, _, field = left.rpartition(".")
        fits = [
            number
            for number, workload in enumerate(made)
            if owner in ("", workload.name) and field in workload.parameters()
        ]
        if not fits:
            raise Problem(f"no workload that was chosen has what '{setting}' sets")
        for number in fits:
            kind = type(getattr(made[number], field))
            try:
                made[number] = dataclasses.replace(made[number], **{field: kind(value)})
            except ValueError:
                raise Problem(f"'{setting}' needs a number ({kind.__name__})") from None
    return made


def every_workload(options: argparse.Namespace) -> list[Workload]:
    """All workloads: the report shows everything measured, also what this part of the run leaves out."""
    return chosen_workloads("all", options.set, options.seconds)


def moments(idle: float) -> list[float]:
    return [*(moment for moment in IDLE_SECONDS if moment < idle), idle]


class Course:
    """All rounds of all workloads. A round visits every arm; the order rotates."""

    def __init__(self, results: Results, workloads: Sequence[Workload], options: argparse.Namespace) -> None:
        self._results = results
        self._workloads = workloads
        self._options = options
        self._arms = arm_list.choose(options.arms)

    def run(self) -> bool:
        """Runs all rounds. False: one of their turns failed."""
        steps = [
            step
            for number in range(self._options.rounds)
            for workload in self._workloads
            for surrounding in self._surroundings(workload)
            for step, _ in self._steps(workload, surrounding, number)
        ]
        minutes = len(steps) * TURN_SECONDS / 60
        say(f"{len(steps)} turns: about {minutes:.0f} min, and what preparing data takes")
        with Idlers[Step](self._options.idlers, self._store) as idlers:
            for number in range(self._options.rounds):
                for workload in self._workloads:
                    for surrounding in self._surroundings(workload):
                        self._visit(idlers, workload, surrounding, number)
        return not any(self._results.runs[step]["outcome"].startswith("failed") for step in steps)

    def _surroundings(self, workload: Workload) -> Sequence[str]:
        named = self._options.surroundings
        return named.split(",") if named else workload.surroundings

    def _steps(self, workload: Workload, surrounding: str, number: int) -> list[tuple[Step, Arm]]:
        """The steps of a round that are still to be done."""
        return [
            (step, arm)
            for arm in arm_list.rotated(self._arms, number)
            if not self._results.finished(step := Step(workload.name, surrounding, number + 1, arm.name))
        ]

    def _visit(self, idlers: Idlers[Step], workload: Workload, surrounding: str, number: int) -> None:
        steps = self._steps(workload, surrounding, number)
        if not steps:
            return
        say(f"\n{workload.name}, {surrounding}, round {number + 1}: {workload.shows}")
        for step, _ in steps:
            self._results.runs.pop(step, None)  # left by an earlier try
        try:
            template = memory.template(workload, self._arms)
            if surrounding == LIMIT:
                idlers.drain()  # the limit depends on a peak that one of them may reach
            limit = self._limit_kb(workload) if surrounding == LIMIT else 0
            with machine_of_huge_pages(idlers) if surrounding == HUGE_PAGES else nothing():
                for step, arm in steps:
                    self._turn(idlers, step, workload, arm, template, limit)
        except FAILURES as problem:
            reason = "not possible here" if isinstance(problem, NotPossible) else "failed"
            for step, _ in steps:
                if step not in self._results.runs:
                    self._store(step, failed(problem, reason))

    def _turn(
        self, idlers: Idlers[Step], step: Step, workload: Workload, arm: Arm, template: Path, limit_kb: int
    ) -> None:
        idlers.make_room()
        try:
            with contextlib.ExitStack() as stack:
                folder = stack.enter_context(prepared.copy(template, arm))
                turn = stack.enter_context(memory.Turn(workload, arm, folder, moments(self._options.idle), limit_kb))
                turn.start()
                with idlers.quiet() as neighbours:
                    turn.load()
                turn.note(neighbours)
                idlers.add(step, turn, stack.pop_all())
        except NotPossible:
            raise
        except FAILURES as problem:
            # The other arms' turns are still useful.
            self._store(step, failed(problem))

    def _store(self, step: Step, run: memory.Run) -> None:
        self._results.add(step, run)
        say(f"{step.workload} {step.surrounding} round {step.round} {step.arm}: {memory.brief(run)}")
        # Written after each turn, so there is a report at any time.
        run_report.write(self._results, every_workload(self._options))

    def _limit_kb(self, workload: Workload) -> int:
        runs = self._results.grouped(workload.name, PLAIN, ["dev"])
        return limit_kb(runs)


def limit_kb(runs: dict[str, list[memory.Run]]) -> int:
    peak = memory.medians(runs.get("dev", [])).get("peak")
    if peak is None:
        raise NotPossible("the limit follows from the peak of the arm 'dev', plain")
    return int(LIMIT_FACTOR * peak * 1024)


@contextlib.contextmanager
def machine_of_huge_pages(idlers: Idlers[Step]) -> Iterator[None]:
    """Changes the setting of the whole machine, and first lets all servers end that idle."""
    idlers.drain()
    with huge_pages.always():
        yield
        idlers.drain()


nothing = contextlib.nullcontext


def arguments() -> argparse.Namespace:
    parser = rounds.parser(__doc__.splitlines()[0], rounds=None, arms=arm_list.ALLOCATORS)
    parser.add_argument(
        "--workloads", default="all", help=f"comma-separated; groups: {', '.join(GROUPS)} (default: %(default)s)"
    )
    parser.add_argument("--list", action="store_true", help="show the workloads and what can be set")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="[WORKLOAD.]SIZE=VALUE",
        help="another size than the default; may be given several times",
    )
    parser.add_argument("--seconds", type=int, help="of load, where the workload has a time")
    parser.add_argument(
        "--idle", type=float, default=IDLE_SECONDS[-1], help="seconds of idling after the load (default: %(default)s)"
    )
    parser.add_argument(
        "--idlers",
        type=int,
        default=4,
        help="servers that idle while others are under load, at most (default: %(default)s)",
    )
    parser.add_argument(
        "--surroundings",
        help=f"comma-separated, of: {', '.join(SURROUNDINGS)} (default: plain for all, the others for those that they"
        " matter most to)",
    )
    parser.add_argument(
        "--soak",
        action="store_true",
        help="rounds of workloads 1 to 8 in one server (default: 10 rounds of dev and stock)",
    )
    parser.add_argument(
        "--resume",
        type=Path,
        metavar="FOLDER",
        help=f"continue a run with its own options; {', '.join(CHANGEABLE)} may be given anew",
    )
    options = parser.parse_args()
    if options.resume:
        stored = Results.open(options.resume).head["options"]
        parser.set_defaults(**stored)
        options = parser.parse_args()
        for name in STORED:
            if name not in CHANGEABLE and getattr(options, name) != stored[name]:
                parser.error(f"--{name} cannot be changed in a run that has begun")
    if options.rounds is None:
        options.rounds = soak.ROUNDS if options.soak else 3
    if options.soak and options.arms == ",".join(arm_list.ALLOCATORS):
        options.arms = ",".join(soak.ARMS)
    if options.surroundings and (unknown := set(options.surroundings.split(",")) - SURROUNDINGS.keys()):
        parser.error(f"unknown surroundings: {', '.join(unknown)}")
    rounds.require_positive(options, "idle", "idlers")
    return options


def opened(options: argparse.Namespace) -> Results:
    """Opens a new folder, or that of an earlier run."""
    arms = arm_list.choose(options.arms)
    settings = {name: getattr(options, name) for name in STORED}
    head = rounds.record(options, arms, {"idle_seconds": options.idle, "settle_seconds": memory.SETTLE_SECONDS})
    head["options"] = settings
    head = json.loads(json.dumps(head))  # as a reader gets it: lists, no tuples
    if not options.resume:
        kind = "soak" if options.soak else "memory"
        name = f"{kind}-{time.strftime('%Y%m%d-%H%M%S')}"
        results = Results(report.RESULTS / name, head)
    else:
        results = Results.open(options.resume)
        if options.save:
            require_clean(results.head["machine"]["commit"])
        former = results.head["arms"]
        for name, arm in head["arms"].items():
            if former.get(name, arm) != arm:
                raise Problem(f"the arm '{name}' is another than when the run began; begin a new run")
        results.head |= {"arms": former | head["arms"], "settings": head["settings"], "options": settings}
    results.save_head()
    return results


def main() -> int:
    options = arguments()
    if options.soak:
        return soak.run(opened(options), options)
    workloads = chosen_workloads(options.workloads, options.set, options.seconds)
    if options.list:
        for workload in workloads:
            say(f"{workload.name}: {workload.shows}")
            for name, value in workload.parameters().items():
                say(f"    {name}={value}")
        return 0
    results = opened(options)
    say(f"finished turns go to {os.path.relpath(results.folder)}; --resume continues there")
    succeeded = Course(results, workloads, options).run()
    say("\n" + run_report.write(results, every_workload(options)))
    say(f"\nwritten: {os.path.relpath(results.folder)}/{REPORT}")
    if options.save:
        results.publish()
    return int(not succeeded)


if __name__ == "__main__":
    run_main("run", main)
