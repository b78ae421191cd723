"""The course of a benchmark: its common options, the rounds of interleaved arms, the record of everything measured."""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.runner import arms as arm_list
from bench.runner import prepared, report
from bench.runner.arms import Arm
from harness.commit import require_clean
from harness.common import say
from harness.problem import Problem

Run = dict[str, Any]
# One round. Arguments: the arms in the round's order, the template of the data. It yields each arm's name and figures.
Round = Callable[[Sequence[Arm], Path], Iterator[tuple[str, Run]]]


class _Save(argparse.Action):
    """A flag that is refused before anything is measured, rather than after it."""

    def __init__(self, option_strings: Sequence[str], dest: str, **named: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, default=False, **named)

    def __call__(
        self,
        _parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        _values: object,
        _option: str | None = None,
    ) -> None:
        require_clean(report.commit())
        setattr(namespace, self.dest, True)


def _one_arm(name: str) -> str:
    if "," in name:
        raise Problem("--arms takes one arm here")
    return name


def parser(
    description: str, rounds: int | None, arms: Sequence[str] = arm_list.DEFAULT, one_arm: bool = False
) -> argparse.ArgumentParser:
    """`one_arm`: the report has no place for more."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument(
        "--arms",
        type=_one_arm if one_arm else str,
        default=",".join(arms),
        help=f"{'one' if one_arm else 'comma-separated,'} of: {', '.join(arm_list.ARMS)} (default: %(default)s)",
    )
    made.add_argument("--rounds", type=int, default=rounds, help="default: %(default)s")
    made.add_argument(
        "--save",
        action=_Save,
        help="also keep them in bench/results/saved, which git takes; not from a tree with changes",
    )
    return made


def require_positive(options: argparse.Namespace, *names: str) -> None:
    for name in ("rounds", *names):
        if getattr(options, name) <= 0:
            raise Problem(f"--{name} must be above zero")


def record(options: argparse.Namespace, arms: Sequence[Arm], settings: Mapping[str, object]) -> dict[str, Any]:
    """The part of the results that is known before the first turn."""
    return {
        "machine": report.machine(),
        "arms": {arm.name: arm.describe() for arm in arms},
        "settings": {"rounds": options.rounds, **settings},
    }


def one_by_one(measure: Callable[[Arm, Path], Run]) -> Round:
    """A round in which each arm has the machine for itself during its turn, on a copy of the template."""

    def measure_round(arms: Sequence[Arm], template: Path) -> Iterator[tuple[str, Run]]:
        for arm in arms:
            with prepared.copy(template, arm) as folder:
                measured = measure(arm, folder)
            yield arm.name, measured

    return measure_round


def turns(
    arms: Sequence[Arm],
    rounds: int,
    template: Path,
    measure: Round,
    brief: Callable[[Run], str],
    runs: dict[str, list[Run]],
) -> None:
    """All rounds of interleaved arms. Adds each turn to `runs`."""
    for number in range(rounds):
        for name, measured in measure(arm_list.rotated(arms, number), template):
            runs[name].append(measured)
            say(f"round {number + 1} {name}: {brief(measured)}")


def run(
    name: str,
    options: argparse.Namespace,
    settings: Mapping[str, object],
    prepare: Callable[[Sequence[Arm]], Path],
    measure: Round,
    brief: Callable[[Run], str],
    render: Callable[[dict[str, Any]], str],
    seconds_each: float,
) -> int:
    """All rounds, then the report. After a failure or an interruption, the file with the finished turns is still written.

    `prepare` makes the template of the data, `measure` makes a round, `brief` sums up
    an arm's turn in one line, `render` makes the report from the record.
    """
    arms = arm_list.choose(options.arms)
    raw = record(options, arms, settings)
    template = prepare(arms)
    minutes = options.rounds * len(arms) * seconds_each / 60
    say(f"{options.rounds} rounds of {len(arms)} arms: about {minutes:.0f} min")
    raw["runs"] = {arm.name: [] for arm in arms}
    stem = report.stem(name)
    try:
        turns(arms, options.rounds, template, measure, brief, raw["runs"])
    finally:
        if any(raw["runs"].values()):
            report.save_figures(stem, raw)
    report.save(stem, render(raw), options.save)
    return 0
