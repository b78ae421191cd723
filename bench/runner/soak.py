"""Rounds of workloads 1 to 8 in one server: is what it keeps accounted for? `bench/run.py --soak`."""

import argparse
import dataclasses
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.runner import arms as arm_list
from bench.runner import memory, prepared, report
from bench.runner.arms import Arm
from bench.runner.idlers import FAILURES, failed
from bench.runner.stored import REPORT, Results, Step
from bench.workloads import WORKLOADS
from bench.workloads.base import PLAIN, Workload
from harness.common import say
from harness.problem import Problem
from harness.server import Server

ROUNDS = 10
ARMS = ("dev", "stock")
IDLE_SECONDS = (5, 30)
TARGET = 1.10
NAME = "soak"

# So small that all ten rounds of an arm take some five minutes.
SIZES: dict[str, dict[str, float]] = {
    "phrase_burst": {"seconds": 3, "documents": 20_000},
    "connection_storm": {"seconds": 3},
    "triggers": {"seconds": 3},
    "partitions": {"seconds": 3, "pause": 0.5, "partitions": 200},
    "fk_cascade": {"rows": 100_000},
    "range_optimizer": {"seconds": 5},
    "online_ddl": {"rows": 100_000, "cycles": 1},
    "dump_oltp": {"seconds": 4, "tables": 200},
}
_LARGEST = "--innodb-buffer-pool-size=512M"


def workloads() -> list[Workload]:
    return [dataclasses.replace(WORKLOADS[name](), **sizes) for name, sizes in SIZES.items()]


def mysqld_options(chosen: Sequence[Workload]) -> tuple[str, ...]:
    every = [option for workload in chosen for option in workload.mysqld_options()]
    named = {option.partition("=")[0]: option for option in (*every, _LARGEST)}
    return tuple(named.values())


def template(chosen: Sequence[Workload], arms: Sequence[Arm]) -> Path:
    def fill(server: Server) -> None:
        for workload in chosen:
            server.query(f"CREATE DATABASE {workload.name}")
            workload.fill(server)

    key = {workload.name: workload.data_key() for workload in chosen}
    return prepared.template(NAME, key, arms, mysqld_options(chosen), fill)


def turn(chosen: Sequence[Workload], arm: Arm, folder: Path, rounds: int) -> memory.Run:
    server = arm.server(folder, mysqld_options(chosen))
    with server:
        server.start()
        time.sleep(memory.SETTLE_SECONDS)
        server.reset_peak()
        moments: list[dict[str, Any]] = [state(server, "start")]
        failures: list[str] = []
        began = time.monotonic()
        for number in range(rounds):
            for workload in chosen:
                try:
                    if number:
                        workload.renew(server)
                    workload.load(server)
                except FAILURES as problem:
                    # The other rounds are still useful, unless the server is gone.
                    if not server.alive():
                        raise Problem(f"{problem}\n{server.log_tail()}") from None
                    failures.append(f"round {number + 1}, {workload.name}: {problem}")
                    say(failures[-1])
            moments.append(state(server, f"round {number + 1}"))
            say(f"{arm.name}: {brief(moments[-1])}")
        ended = time.monotonic()
        peak = server.memory().peak_kb
        for idle in IDLE_SECONDS:
            time.sleep(max(0.0, ended + idle - time.monotonic()))
            moments.append(state(server, f"{idle} s idle"))
        return {
            "outcome": "survived",
            "peak_rss_kb": peak,
            "seconds": ended - began,
            "moments": moments,
            "failures": failures,
        }


def state(server: Server, moment: str) -> dict[str, Any]:
    """RSS, read before any statement, and its known parts. `live_kb`: by the allocator, or by Performance Schema."""
    now = server.memory()
    with server.connect() as session:
        # The buffer pool counts by the pages that it holds, not by its size.
        chunks = session.query(
            "SELECT SUM(current_number_of_bytes_used) FROM performance_schema.memory_summary_global_by_event_name"
            " WHERE event_name = 'memory/innodb/buf_buf_pool'"
        ).scalar()
    asked = memory.ask(server)
    allocated = asked["allocated_bytes"]
    return {
        "moment": moment,
        "rss_kb": now.rss_less_lazy_kb,
        "anon_kb": now.anon_kb,
        "live_kb": allocated // 1024 if allocated is not None else asked["known_kb"] - int(chunks or 0) // 1024,
        "live_by": "allocator" if allocated is not None else "Performance Schema",
        **asked,
    }


def ratio(moment: dict[str, Any]) -> float:
    return moment["rss_kb"] / (moment["live_kb"] + moment["buffer_pool_kb"])


def growth_ratio(start: dict[str, Any], moment: dict[str, Any]) -> float | None:
    """As ratio(), of the growth since the start: pages that were allocated but never touched do not lower it."""
    known = sum(moment[key] - start[key] for key in ("live_kb", "buffer_pool_kb"))
    return report.ratio(moment["rss_kb"] - start["rss_kb"], known)


def brief(moment: dict[str, Any]) -> str:
    return (
        f"{moment['moment']}: RSS {moment['rss_kb'] // 1024} MB, live {moment['live_kb'] // 1024},"
        f" buffer pool holds {moment['buffer_pool_kb'] // 1024}: {ratio(moment):.3f}"
    )


def render(results: Results) -> str:
    runs = {arm: mine[-1] for arm, mine in results.grouped(NAME, PLAIN, results.head["arms"]).items()}
    whole = {arm: run for arm, run in runs.items() if run["outcome"] == "survived"}
    ours = whole.get("dev")
    at_five = next(
        (
            ratio(moment)
            for moment in (ours["moments"] if ours else ())
            if moment["moment"] == f"{IDLE_SECONDS[0]} s idle"
        ),
        None,
    )
    parts = [
        f"# {results.head['settings']['rounds']} rounds of workloads 1 to 8 in one server\n",
        report.target_table(
            [report.target(f"RSS of dev after {IDLE_SECONDS[0]} s / (live + buffer pool)", at_five, "<=", TARGET)]
        ),
        (
            "\nRSS is less LazyFree, in MB; anonymous: without the program's own file. Live: allocated bytes by"
            " MEMDIAG_ALLOCATOR; in an arm that has none, Performance Schema's total less the buffer pool's chunks."
            " The ratio is RSS / (live + what the buffer pool holds). Live bytes that were never touched take no"
            " memory and make it smaller than it should be; the ratio of growth, the same of what came since the start,"
            " does not have them.\n"
        ),
    ]
    for arm, run in runs.items():
        parts.append(f"\n## {arm}\n")
        if arm not in whole:
            parts.append(run["outcome"])
            continue
        parts.append(
            f"Peak {run['peak_rss_kb'] // 1024} MB, {run['seconds']:.0f} s; live by {run['moments'][0]['live_by']}.\n"
        )
        rows = [
            [
                moment["moment"],
                *(f"{moment[key] / 1024:.0f}" for key in ("rss_kb", "anon_kb", "live_kb", "buffer_pool_kb")),
                f"{ratio(moment):.3f}",
                report.show(growth_ratio(run["moments"][0], moment), 3),
                report.show(memory.named_share(moment["pools"]), 1),
            ]
            for moment in run["moments"]
        ]
        heads = ["moment", "RSS", "anonymous", "live", "buffer pool holds", "ratio", "of growth"]
        parts.append(report.table([*heads, "named pools %"], rows))
        parts += [f"\nFailed: {failure}" for failure in run["failures"]]
    parts.append(report.front_matter(results.head))
    return "\n".join(parts)


def write(results: Results) -> str:
    text = render(results)
    (results.folder / REPORT).write_text(text + "\n")
    return text


def run(results: Results, options: argparse.Namespace) -> int:
    chosen = workloads()
    arms = arm_list.choose(options.arms)
    results.head["settings"] |= {**SIZES, "mysqld": mysqld_options(chosen)}
    results.save_head()
    source = template(chosen, arms)
    for arm in arms:
        step = Step(NAME, PLAIN, 1, arm.name)
        if results.finished(step):
            continue
        say(f"\n{NAME}: {options.rounds} rounds in one server of arm {arm.name}")
        try:
            with prepared.copy(source, arm) as folder:
                done = turn(chosen, arm, folder, options.rounds)
        except FAILURES as problem:
            done = failed(problem)
            say(done["outcome"])
        results.add(step, done)
        write(results)
    say("\n" + write(results))
    say(f"\nwritten: {os.path.relpath(results.folder)}/{REPORT}")
    if options.save:
        results.publish()
    runs = [results.runs[Step(NAME, PLAIN, 1, arm.name)] for arm in arms]
    return int(any(run["outcome"] != "survived" or run["failures"] for run in runs))
