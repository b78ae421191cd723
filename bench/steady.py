#!/usr/bin/env python3
"""Steady loads of few statements, with purging off and on in turn: its cost, and what stays after a burst.

A shim (cpu_shim.cc) makes the server see other processors than the machine has.

See README.md for what the figures mean.
"""

import statistics
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.runner import arms as arm_list
from bench.runner import prepared, report, rounds
from bench.runner.quiet import priority
from bench.runner.resampling import interval
from bench.runner.shim import STAY, Machine, chosen, shimmed
from bench.workloads import steady, sysbench_program
from bench.workloads.sysbench_program import DATABASE
from harness.problem import Problem, run_main

LOADS = {load.name: load for load in steady.LOADS}
# Turns of each arm on a machine.
TURNS = 4
RATIO_TARGET = 1.02
PURGED_TARGET = 0.02
# A burst or a load leaves unused pages beyond the steady load's. This share of them may stay for two seconds.
LEFT_TARGET = 0.1


def measure(arm: arm_list.Arm, template: Path, machine: Machine, names: Sequence[str]) -> dict[str, Any]:
    """{load: its figures}"""
    with (
        prepared.copy(template, arm) as folder,
        shimmed(arm, machine).server(folder, sysbench_program.MYSQLD_OPTIONS, priority()) as server,
    ):
        server.start()
        sysbench_program.read_all(server)
        steady.prepare(server, DATABASE)
        return {name: steady.measure(server, DATABASE, LOADS[name], TURNS) for name in names}


def measure_round(
    arms: Sequence[arm_list.Arm], template: Path, machines: Sequence[Machine], names: Sequence[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    for arm in arms:
        yield (arm.name, {machine.name: measure(arm, template, machine, names) for machine in machines})


def turns(runs: Sequence[dict[str, Any]], machine: str, load: str) -> list[dict[str, dict[str, float]]]:
    """Pairs of neighbouring turns, one without purging and one with it."""
    return [
        {"off": off, "on": on}
        for run in runs
        for off, on in zip(*(run[machine][load]["turns"][arm] for arm in ("off", "on")), strict=True)
    ]


def ratio(pairs: Sequence[dict[str, dict[str, float]]], figure: str) -> float:
    """The median with purging by that without."""
    off, on = (report.median(pair[arm][figure] for pair in pairs) for arm in ("off", "on"))
    return report.ratio(on, off) or 1.0


def left(one: dict[str, Any]) -> float:
    """The largest share of what a burst, or the load, left unused that was still there two seconds later."""
    burst, load = one["after_burst"], one["after_load"]
    more = burst["mb"] - burst["before_mb"]
    return max(
        (burst["later_mb"] - burst["before_mb"]) / more if more >= 1 else 0.0,
        load["later_mb"] / load["mb"] if load["mb"] >= 1 else 0.0,
    )


def figures(runs: Sequence[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    """{(machine, load): figures}"""
    found = {}
    for machine, loads in runs[0].items():
        for load in loads:
            pairs = turns(runs, machine, load)
            found[machine, load] = {
                **{
                    f"{figure}_{arm}": report.median(pair[arm][figure] for pair in pairs)
                    for figure in ("us", "cpu_us", "faults")
                    for arm in ("off", "on")
                },
                # Purges are rare, so a median would not see them.
                **{
                    figure: statistics.fmean(pair["on"][figure] for pair in pairs)
                    for figure in ("purged_pages", "own_purged_pages")
                },
                **{
                    f"{figure}_ratio": interval(pairs, lambda drawn, figure=figure: ratio(drawn, figure))
                    for figure in ("us", "cpu_us", "faults")
                },
                "purges": sum(pair["on"]["purges"] for pair in pairs) * 60 / (len(pairs) * steady.TURN_SECONDS),
                "left": max(left(run[machine][load]) for run in runs),
                "unused_mb": report.median(run[machine][load]["after_burst"]["mb"] for run in runs),
            }
    return found


COLUMNS = (
    "page faults, off → on",
    "ratio",
    "pages purged",
    "of its pool",
    "CPU us",
    "ratio",
    "us by the clock",
    "ratio",
    "purges a minute",
    "unused MB after a burst",
    "left",
)


def targets(found: dict[tuple[str, str], dict[str, Any]]) -> list[tuple[str, ...]]:
    """Each is of the load that does worst. Ratios are medians: the interval in the table says how exact they are."""
    words = {"faults": "page faults of a statement", "cpu_us": "its processor time", "us": "its time by the clock"}
    purged = [one["purged_pages"] / one["faults_off"] for one in found.values() if one["faults_off"]]
    return [
        report.target(name, max(values, default=None), "<=", target)
        for name, values, target in (
            ("steady loads: pages purged by page faults with purging off, most", purged, PURGED_TARGET),
            *(
                (
                    f"steady loads: {name}, purging on by off, most",
                    [one[f"{figure}_ratio"][0] for one in found.values()],
                    RATIO_TARGET,
                )
                for figure, name in words.items()
            ),
            (
                f"share of unused pages left {steady.RETURN_SECONDS:g} s after a burst or a load, most",
                [one["left"] for one in found.values()],
                LEFT_TARGET,
            ),
        )
    ]


def render(raw: dict[str, Any]) -> str:
    (runs,) = raw["runs"].values()
    found = figures(runs)

    def compared(one: dict[str, Any], figure: str, digits: int) -> list[str]:
        middle, low, high = one[f"{figure}_ratio"]
        values = " → ".join(f"{one[f'{figure}_{arm}']:.{digits}f}" for arm in ("off", "on"))
        return [values, f"{middle:.2f} ({low:.2f} to {high:.2f})"]

    rows = [
        [
            machine,
            load,
            *compared(one, "faults", 1),
            f"{one['purged_pages']:.3f}",
            f"{one['own_purged_pages']:.3f}",
            *compared(one, "cpu_us", 0),
            *compared(one, "us", 0),
            f"{one['purges']:.0f}",
            f"{one['unused_mb']:.0f}",
            f"{one['left']:.2f}",
        ]
        for (machine, load), one in found.items()
    ]
    parts = [
        "# Steady loads of few statements\n",
        f"{steady.SESSIONS} sessions, each with a statement every {steady.PAUSE_SECONDS:g} s. Purging is on for"
        f" {steady.LEARNING_SECONDS:g} s, then off and on in turn, {steady.TURN_SECONDS:g} s each. `pages purged` of a"
        " statement is the mean of the turns with purging: it can have caused so many faults at most. Medians of a"
        " statement, and the ratio with the interval of 95% of resampled"
        f" ratios. Then {steady.BURST_SESSIONS} more sessions for {steady.BURST_SECONDS:g} s: `left` is the share of what"
        f" they, or the load, left unused that was still there {steady.RETURN_SECONDS:g} s after they ended.\n",
        report.table(["processors", "load", *COLUMNS], rows),
        "\n## Targets\n",
        report.target_table(targets(found)),
        report.front_matter(raw),
    ]
    return "\n".join(parts)


def main() -> int:
    parser = rounds.parser(__doc__.splitlines()[0], rounds=1, arms=("dev",), one_arm=True)
    parser.add_argument("--machines", default="16;64", help="separated by semicolons (default: %(default)s)")
    parser.add_argument("--loads", default=";".join(LOADS), help="separated by semicolons (default: %(default)s)")
    options = parser.parse_args()
    rounds.require_positive(options)
    machines, names = chosen(options.machines), options.loads.split(";")
    if unknown := set(names) - set(LOADS):
        raise Problem(f"no load '{min(unknown)}'; there are: {'; '.join(LOADS)}")
    return rounds.run(
        "steady",
        options,
        settings={
            "sysbench": sysbench_program.version(),
            "stay": STAY,
            "priority": " ".join(priority()),
            "machines": {machine.name: machine.count for machine in machines},
        },
        prepare=prepared.sysbench,
        measure=lambda arms, template: measure_round(arms, template, machines, names),
        brief=lambda run: "; ".join(f"{name}: {len(found)} steady loads" for name, found in run.items()),
        render=render,
        seconds_each=180 * len(machines) * len(names),
    )


if __name__ == "__main__":
    run_main("steady", main)
