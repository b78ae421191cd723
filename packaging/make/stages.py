"""Runs the stages of a long build. Each leaves a stamp: an interrupted run resumes, and a changed input redoes a stage.

A stage depends on its own inputs and on those of all stages before it. So the last stage whose stamp is right makes
the stages before it unnecessary, even if their products were removed.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.common import say
from harness.problem import Problem
from harness.state_file import read_state, write_state

Inputs = dict[str, str]


@dataclass(frozen=True)
class Stage:
    name: str
    minutes: int  # about, on two cores
    inputs: Callable[[], Inputs]  # beside those of the stages before it
    products: Callable[[], list[Path]]  # files that a finished stage has made
    stamp: Path
    work: Callable[[], None]


def states(paths: Iterable[Path]) -> dict[str, list[int]] | None:
    """Size and time of each file; None if one is missing, or if there is none."""
    found = {}
    try:
        for path in paths:
            status = path.stat()
            found[str(path)] = [status.st_size, status.st_mtime_ns]
    except FileNotFoundError:
        return None
    return found or None


def all_inputs(stages: Sequence[Stage]) -> list[Inputs]:
    """For each stage, its own and those of the stages before it."""
    found: list[Inputs] = []
    for stage in stages:
        found.append({**(found[-1] if found else {}), **stage.inputs()})
    return found


def is_done(stage: Stage, wanted: Inputs) -> bool:
    stamp, made = read_state(stage.stamp), states(stage.products())
    return made is not None and stamp.get("inputs") == wanted and stamp.get("products") == made


def number_done(stages: Sequence[Stage], wanted: Sequence[Inputs]) -> int:
    """How many stages, from the first, need not run."""
    for number in range(len(stages), 0, -1):
        if is_done(stages[number - 1], wanted[number - 1]):
            return number
    return 0


def changed(before: Inputs, after: Inputs) -> list[str]:
    return sorted(name for name in {*before, *after} if before.get(name) != after.get(name))


def reason(stage: Stage, wanted: Inputs) -> str:
    """Why a stage that was done runs again; empty if it was not done."""
    before = read_state(stage.stamp).get("inputs")
    if not isinstance(before, dict):
        return ""
    names = changed(before, wanted)
    return f"changed: {', '.join(names)}" if names else "its product is another now"


def shown(minutes: float) -> str:
    hours, rest = divmod(round(minutes), 60)
    return f"{hours} h {rest} min" if hours else f"{rest} min"


def perform(stages: Sequence[Stage], commit: str) -> None:
    """Runs the stages that are not done. `commit` goes into the stamps, for people."""
    wanted = all_inputs(stages)
    done = number_done(stages, wanted)
    for number, stage in enumerate(stages, 1):
        name = f"stage {number} of {len(stages)}, {stage.name}"
        if number <= done:
            say(f"== {name}: done before")
            continue
        left = sum(later.minutes for later in stages[number - 1 :])
        why = reason(stage, wanted[number - 1])
        say(
            f"== {time.strftime('%H:%M')} {name}: about {shown(stage.minutes)}, "
            f"{shown(left)} to the end{f'; {why}' * bool(why)}"
        )
        stage.stamp.unlink(missing_ok=True)
        began = time.monotonic()
        stage.work()
        seconds = time.monotonic() - began
        # The files changed meanwhile, so the products belong to neither state.
        if names := changed(wanted[number - 1], all_inputs(stages[:number])[-1]):
            raise Problem(f"{', '.join(names)} changed while {stage.name} ran; run the same command again")
        made = states(stage.products())
        if made is None:
            raise Problem(f"{stage.name} ended, but did not make what it should")
        write_state(
            stage.stamp,
            {
                "stage": stage.name,
                "commit": commit,
                "seconds": round(seconds),
                "inputs": wanted[number - 1],
                "products": made,
            },
        )
        say(f"-- {name}: took {shown(seconds / 60)}")
