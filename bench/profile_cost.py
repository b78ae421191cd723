#!/usr/bin/env python3
"""The cost of the heap profiler under load. memdiag_profile is switched within one server, every second.

See README.md for what the figures mean.
"""

from __future__ import annotations

import dataclasses
import random
import statistics
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.runner import arms as arm_list
from bench.runner import prepared, report, rounds
from bench.workloads.base import Workload
from bench.workloads.connection_storm import ConnectionStorm
from bench.workloads.phrase_burst import PhraseBurst
from bench.workloads.sysbench import PointSelect, ReadWrite
from harness.common import say
from harness.problem import Problem, run_main
from harness.server import Server
from harness.sql import Connection

WORKLOADS: dict[str, Workload] = {
    load.name: load
    for load in (PointSelect(), ReadWrite(), PhraseBurst(), ConnectionStorm())
}
MODES = ("OFF", "ON", "RECORD")
WARM_SECONDS = 5.0
SETTLE_SECONDS = 0.4  # after a switch, before counting begins
LEAST_STATEMENTS = 20  # in a window; a window lasts longer to get them
MOST_READINGS = 30  # in a window
RESAMPLES = 2000
TARGET = 0.99


def progress(session: Connection) -> int:
    """The number of statements that the server has begun."""
    query = "SHOW GLOBAL STATUS LIKE 'Questions'"
    return int(session.query(query).rows[0][1] or 0)


Window = dict[str, float]


def window(server: Server, session: Connection, mode: str, seconds: float) -> Window:
    """Statements per second, and microseconds of processor time of each, while the profiler is in this mode."""
    session.query(f"SET GLOBAL memdiag_profile = {mode}")
    time.sleep(SETTLE_SECONDS)
    began, count, cpu = time.monotonic(), progress(session), cpu_seconds(server)
    done = own = 0
    while done < LEAST_STATEMENTS and own < MOST_READINGS:
        time.sleep(seconds)
        own += 1
        done = progress(session) - count - own
    took, cpu = time.monotonic() - began, cpu_seconds(server) - cpu
    return {"rate": done / took, "cpu_us": cpu / max(done, 1) * 1e6}


def cpu_seconds(server: Server) -> float:
    """CPU seconds of the process, with the threads that have ended. It reads the clock of clock_getcpuclockid(3)."""
    return time.clock_gettime((~server.pid << 3) | 2)


def measure(arm: arm_list.Arm, load: Workload, folder: Path, blocks: int, seconds: float) -> dict[str, Any]:  # fmt: skip
    """Measures blocks while the load lasts. A block has one window for each mode. The order is random, but the same in
    every run."""
    chooser = random.Random(1)
    whole = WARM_SECONDS + blocks * len(MODES) * (seconds + SETTLE_SECONDS + 0.2)
    failed: list[BaseException] = []
    found: list[dict[str, Window]] = []

    def run_load() -> None:
        try:
            dataclasses.replace(load, seconds=round(whole)).load(server)
        except BaseException as error:  # noqa: BLE001 - raised below
            failed.append(error)

    with prepared.copy(folder, arm) as copy, arm.server(copy, load.mysqld_options()) as server:  # fmt: skip
        server.start()
        thread = threading.Thread(target=run_load, daemon=True)
        thread.start()
        with server.connect() as session:
            time.sleep(WARM_SECONDS)
            for _ in range(blocks):
                order = chooser.sample(MODES, len(MODES))
                block = {mode: window(server, session, mode, seconds) for mode in order}
                if not thread.is_alive():
                    break  # the load ended in this block
                found.append(block)
            session.query("SET GLOBAL memdiag_profile = OFF")
        thread.join()
    if failed:
        raise failed[0]
    if not found:
        raise Problem(f"{load.name} ended before a block did; give it more blocks")
    for mode in MODES[1:]:
        middle, low, high = interval(ratios(found, mode, "rate"))
        say(f"{load.name}, {mode}: statements/s to OFF {middle:.4f} ({low:.4f} to {high:.4f})")  # fmt: skip
    return {"blocks": found}


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """The median, and the ends of its 95% interval by bootstrap."""
    chooser = random.Random(1)
    medians = sorted(
        statistics.median(chooser.choices(values, k=len(values)))
        for _ in range(RESAMPLES)
    )
    low, high = medians[int(0.025 * RESAMPLES)], medians[int(0.975 * RESAMPLES)]
    return statistics.median(values), low, high


def ratios(blocks: Sequence[dict[str, Window]], mode: str, figure: str) -> list[float]:  # fmt: skip
    """The ratio to OFF within each block, where the machine's speed changes less."""
    return [block[mode][figure] / block["OFF"][figure] for block in blocks]


def render(raw: dict[str, Any]) -> str:
    (turns,) = raw["runs"].values()
    rows, targets = [], []
    for name in turns[0]:
        blocks = [block for turn in turns for block in turn[name]["blocks"]]
        for mode in MODES[1:]:
            rate = interval(ratios(blocks, mode, "rate"))
            cpu = interval(ratios(blocks, mode, "cpu_us"))
            rows.append([f"{name}, {mode}", str(len(blocks)), *(f"{value:.4f}" for value in (*rate, *cpu))])  # fmt: skip
            targets += [
                report.target(f"{name}, {mode}: statements", rate[0], ">=", TARGET),
                report.target(f"{name}, {mode}: processor time", cpu[0], "<=", 2 - TARGET),
            ]  # fmt: skip
    head = ["load, mode", "blocks", "statements/s to OFF", "from", "to", "CPU each to OFF", "from", "to"]  # fmt: skip
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
    parser = rounds.parser(__doc__.splitlines()[0], rounds=1, arms=("dev",))
    parser.add_argument("--blocks", type=int, default=60, help="of one window for each mode (default: %(default)s)")  # fmt: skip
    parser.add_argument("--seconds", type=float, default=1.0, help="of each window (default: %(default)s)")  # fmt: skip
    parser.add_argument("--workloads", default=",".join(WORKLOADS), help="comma-separated (default: %(default)s)")  # fmt: skip
    options = parser.parse_args()
    rounds.require_positive(options, "blocks", "seconds")
    names = options.workloads.split(",")
    if unknown := set(names) - set(WORKLOADS):
        raise Problem(f"unknown workload '{min(unknown)}'; there are: {', '.join(WORKLOADS)}")  # fmt: skip
    templates: dict[str, Path] = {}

    def prepare(arms: Sequence[arm_list.Arm]) -> Path:
        for name in names:
            load = WORKLOADS[name]
            # The tests of sysbench use the same tables.
            folder = "sysbench" if name.startswith("sysbench") else name
            templates[name] = prepared.template(folder, load.data_key(), arms, load.mysqld_options(), lambda server, load=load: fill(server, load))  # fmt: skip
        return templates[names[0]]

    def measure_round(arms: Sequence[arm_list.Arm], _template: Path) -> Any:
        for arm in arms:
            yield arm.name, {name: measure(arm, WORKLOADS[name], templates[name], options.blocks, options.seconds) for name in names}  # fmt: skip

    return rounds.run(
        "profile_cost",
        options,
        settings={"blocks": options.blocks, "seconds": options.seconds, "workloads": names},
        prepare=prepare,
        measure=measure_round,
        brief=lambda run: ", ".join(run),
        render=render,
        seconds_each=len(names) * (options.blocks * len(MODES) * (options.seconds + SETTLE_SECONDS) + 20),
    )  # fmt: skip


def fill(server: Server, load: Workload) -> None:
    if not load.name.startswith("sysbench"):  # sysbench makes its own database
        server.query(f"CREATE DATABASE {load.name}")
    load.fill(server)


if __name__ == "__main__":
    run_main("profile_cost", main)
