"""The course of a benchmark: its common options, the rounds of interleaved arms, the record of everything measured."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench import arms as arm_list
from bench import report
from bench.arms import Arm
from tools.common import say
from tools.problem import Problem

Run = dict[str, Any]


def parser(description: str, rounds: int) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=description)
    made.add_argument(
        "--arms",
        default=",".join(arm_list.DEFAULT),
        help=f"comma-separated, of: {', '.join(arm_list.ARMS)} (default: %(default)s)",
    )
    made.add_argument("--rounds", type=int, default=rounds, help="default: %(default)s")
    made.add_argument(
        "--save",
        action="store_true",
        help="put the results where they are meant to be committed",
    )
    return made


def require_positive(options: argparse.Namespace, *names: str) -> None:
    for name in ("rounds", *names):
        if getattr(options, name) <= 0:
            raise Problem(f"--{name} must be above zero")


def run(
    name: str,
    options: argparse.Namespace,
    settings: Mapping[str, object],
    prepare: Callable[[Sequence[Arm]], dict[str, Path]],
    measure: Callable[[Arm, Path], Run],
    brief: Callable[[Run], str],
    render: Callable[[dict[str, Any]], str],
    seconds_each: float,
) -> int:
    """All rounds, then the report.

    `prepare` gives every arm its folder, `measure` makes one arm's turn, `brief` says
    in a line what came out, `render` makes the report from the record.
    """
    arms = arm_list.choose(options.arms)
    raw: dict[str, Any] = {
        "machine": report.machine(),
        "arms": {arm.name: arm.describe() for arm in arms},
        "settings": {"rounds": options.rounds, **settings},
        "runs": {arm.name: [] for arm in arms},
    }
    folders = prepare(arms)
    minutes = options.rounds * len(arms) * seconds_each / 60
    say(f"{options.rounds} rounds of {len(arms)} arms: about {minutes:.0f} min")
    for number in range(options.rounds):
        for arm in arm_list.rotated(arms, number):
            measured = measure(arm, folders[arm.name])
            raw["runs"][arm.name].append(measured)
            say(f"round {number + 1} {arm.name}: {brief(measured)}")
    report.save(name, raw, render(raw), options.save)
    return 0
