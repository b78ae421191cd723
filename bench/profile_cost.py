#!/usr/bin/env python3
"""The cost of the heap profiler under load. memdiag_profile is switched within one server, every second.

See README.md for what the figures mean.
"""

import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.runner import arms as arm_list
from bench.runner import memory, prepared, report, rounds
from bench.runner.resampling import interval
from bench.runner.switching import block_seconds, blocks_under_load, ratios
from bench.workloads.base import Workload
from bench.workloads.connection_storm import ConnectionStorm
from bench.workloads.phrase_burst import PhraseBurst
from bench.workloads.sysbench import PointSelect, ReadWrite, Sysbench
from harness.common import say
from harness.problem import Problem, run_main
from harness.sql import Connection

WORKLOADS: dict[str, Workload] = {
    load.name: load for load in (PointSelect(), ReadWrite(), PhraseBurst(), ConnectionStorm())
}
MODES = ("OFF", "ON", "RECORD")
TARGET = 0.99


def measure(arm: arm_list.Arm, load: Workload, folder: Path, blocks: int, seconds: float) -> dict[str, Any]:
    def switch(session: Connection, mode: str) -> None:
        session.query(f"SET GLOBAL memdiag_profile = {mode}")

    with prepared.copy(folder, arm) as copy, arm.server(copy, load.mysqld_options()) as server:
        server.start()
        found = blocks_under_load(
            server, lambda whole: dataclasses.replace(load, seconds=whole).load(server), switch, MODES, blocks, seconds
        )
    for mode in MODES[1:]:
        middle, low, high = interval(ratios(found, mode, "OFF", "rate"))
        say(f"{load.name}, {mode}: statements/s to OFF {middle:.4f} ({low:.4f} to {high:.4f})")
    return {"blocks": found}


def render(raw: dict[str, Any]) -> str:
    (turns,) = raw["runs"].values()
    rows, targets = [], []
    for name in turns[0]:
        blocks = [block for turn in turns for block in turn[name]["blocks"]]
        for mode in MODES[1:]:
            rate = interval(ratios(blocks, mode, "OFF", "rate"))
            cpu = interval(ratios(blocks, mode, "OFF", "cpu_us"))
            rows.append([f"{name}, {mode}", str(len(blocks)), *(f"{value:.4f}" for value in (*rate, *cpu))])
            targets += [
                report.target(f"{name}, {mode}: statements", rate[0], ">=", TARGET),
                report.target(f"{name}, {mode}: processor time", cpu[0], "<=", 2 - TARGET),
            ]
    head = ["load, mode", "blocks", "statements/s to OFF", "from", "to", "CPU each to OFF", "from", "to"]
    return "\n".join(
        [
            "# The cost of the heap profiler under load\n",
            "Medians of the ratios of each block, with their 95% intervals.\n",
            report.table(head, rows),
            "\n## Targets\n",
            report.target_table(targets),
            report.front_matter(raw),
        ]
    )


def main() -> int:
    parser = rounds.parser(__doc__.splitlines()[0], rounds=1, arms=("dev",), one_arm=True)
    parser.add_argument("--blocks", type=int, default=60, help="of one window for each mode (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each window (default: %(default)s)")
    parser.add_argument("--workloads", default=",".join(WORKLOADS), help="comma-separated (default: %(default)s)")
    options = parser.parse_args()
    rounds.require_positive(options, "blocks", "seconds")
    names = options.workloads.split(",")
    if unknown := set(names) - set(WORKLOADS):
        raise Problem(f"unknown workload '{min(unknown)}'; there are: {', '.join(WORKLOADS)}")
    templates: dict[str, Path] = {}

    def prepare(arms: Sequence[arm_list.Arm]) -> Path:
        for name in names:
            load = WORKLOADS[name]
            # The tests of sysbench use the same tables.
            templates[name] = prepared.sysbench(arms) if isinstance(load, Sysbench) else memory.template(load, arms)
        return templates[names[0]]

    def measure_round(arms: Sequence[arm_list.Arm], _template: Path) -> Any:
        for arm in arms:
            yield (
                arm.name,
                {
                    name: measure(arm, WORKLOADS[name], templates[name], options.blocks, options.seconds)
                    for name in names
                },
            )

    return rounds.run(
        "profile_cost",
        options,
        settings={"blocks": options.blocks, "seconds": options.seconds, "workloads": names},
        prepare=prepare,
        measure=measure_round,
        brief=lambda run: ", ".join(run),
        render=render,
        seconds_each=len(names) * (options.blocks * block_seconds(len(MODES), options.seconds) + 20),
    )


if __name__ == "__main__":
    run_main("profile_cost", main)
