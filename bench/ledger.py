#!/usr/bin/env python3
"""The share of VmRSS that the ledgers do not explain, before, in and after each workload of run.py.

README.md explains the figures.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.runner import arms as arm_list
from bench.runner import memory, prepared, report, rounds
from bench.workloads import WORKLOADS, chosen
from bench.workloads.base import Workload
from harness.burst import Sampler
from harness.problem import Problem, run_main
from harness.server import Server

FORMS = {"MEMDIAG_LEDGER": 2.0, "MEMDIAG_LEDGER_EXACT": 0.5}  # target, percent
MOMENTS = ("before", "after", "5 s later")


def unexplained(server: Server) -> dict[str, float]:
    """The unexplained percentage of VmRSS, by form of the ledger."""
    percent = {}
    with server.connect() as session:
        for form in FORMS:
            found = memory.unexplained(session, form)
            if found is None:
                raise Problem(f"{form} could not be read: see its warnings")
            percent[form] = found
    return percent


def measure(workload: Workload, arm: arm_list.Arm, folder: Path) -> dict[str, Any]:
    with arm.server(folder, workload.mysqld_options()) as server:
        server.start()
        found: dict[str, Any] = {"workload": workload.name}
        found["before"] = unexplained(server)
        with Sampler(2.0, lambda: unexplained(server)) as sampler:
            workload.load(server)
        found["after"] = unexplained(server)
        time.sleep(5)
        found["5 s later"] = unexplained(server)
        found["in"] = [figures for _, figures in sampler.samples]
        return found


def measure_round(arms: Sequence[arm_list.Arm], workloads: Sequence[Workload]) -> Iterator[tuple[str, dict[str, Any]]]:
    for arm in arms:
        for workload in workloads:
            with prepared.copy(memory.template(workload, arms), arm) as folder:
                measured = measure(workload, arm, folder)
            yield arm.name, measured


def render(raw: dict[str, Any]) -> str:
    (runs,) = raw["runs"].values()
    rows = []
    for found in runs:
        for form in FORMS:
            loaded = [abs(figures[form]) for figures in found["in"]]
            rows.append(
                [
                    f"{found['workload']} {form}",
                    *(f"{found[moment][form]:.2f}" for moment in MOMENTS),
                    f"{report.median(loaded):.2f}",
                    f"{max(loaded):.2f}",
                ]
            )
    targets = [
        report.target(
            f"{form}, percent, the most at rest",
            max(abs(found[moment][form]) for found in runs for moment in MOMENTS),
            "<=",
            bound,
        )
        for form, bound in FORMS.items()
    ]
    head = ["workload", *MOMENTS, "in it: median", "most"]
    return "\n".join(
        [
            "# What the ledger does not explain, percent of VmRSS\n",
            report.table(head, rows),
            "\n## Targets\n",
            report.target_table(targets),
            report.front_matter(raw),
        ]
    )


def main() -> int:
    parser = rounds.parser(__doc__.splitlines()[0], rounds=1, arms=("dev",), one_arm=True, one_round=True)
    parser.add_argument("--workloads", default=",".join(WORKLOADS), help="default: all of run.py's")
    options = parser.parse_args()
    workloads = chosen(options.workloads.split(","))

    return rounds.run(
        "ledger",
        options,
        settings={"workloads": [workload.name for workload in workloads]},
        prepare=lambda arms: memory.templates(workloads, arms),
        measure=lambda arms, _template: measure_round(arms, workloads),
        brief=lambda run: f"{run['workload']} {run['after']}",
        render=render,
        seconds_each=35 * len(workloads),
    )


if __name__ == "__main__":
    run_main("ledger", main)
