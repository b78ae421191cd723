#!/usr/bin/env python3
"""The memory of one more connection, first query, prepared statement, cached procedure, open table and open partition.
And that of a server that has just started, with default settings.

README.md explains the figures.
"""

import contextlib
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.runner import arms as arm_list
from bench.runner import memory, objects, prepared, report, rounds
from harness import huge_pages
from harness.common import say
from harness.problem import Problem, run_main
from harness.server import Server
from harness.sql import Connection, SqlError

SHOWN_KIB = 0.2  # the report leaves smaller parts out
START = "start_kb"  # beside the kinds of objects in a run
START_SECONDS = 5.0  # after the server is ready
START_GOAL_MB = 96.0
_UNKNOWN_TABLE = 1109


def ledger(session: Connection) -> dict[str, float]:
    """Resident kB of each part of the ledger; empty if the server has none."""
    try:
        rows = session.query("SELECT COMPONENT, NAME, RESIDENT_BYTES FROM INFORMATION_SCHEMA.MEMDIAG_LEDGER_EXACT").rows
    except SqlError as error:
        if error.code == _UNKNOWN_TABLE:
            return {}
        raise
    found: Counter[str] = Counter()
    for component, name, resident in rows:
        if resident is None:
            raise Problem("MEMDIAG_LEDGER_EXACT could not be read: see its warnings")
        found[f"{component} {name}".strip()] += int(resident)
    return {part: resident / 1024 for part, resident in found.items()}


def reading(server: Server, session: Connection, kind: objects.Kind, count: int) -> dict[str, Any]:
    time.sleep(kind.idle_seconds)
    # Pages of the buffer pool serve everybody. They are no part of an object.
    rss_kb = objects.rest(server)
    pages_kb = memory.buffer_pool_kb(session)
    return {"count": count, "kb": rss_kb - pages_kb, "parts": ledger(session)}


def series(server: Server, kind: objects.Kind) -> list[dict[str, Any]]:
    """Readings at several numbers of objects."""
    with contextlib.ExitStack() as stack:
        session = stack.enter_context(server.connect())
        sessions: objects.Sessions = []
        stack.callback(lambda: [one.close() for one in sessions])
        objects.connect(server, sessions, range(kind.sessions()))
        # The first objects also take memory that all of them share.
        kind.make(server, sessions, range(kind.step))
        reading(server, session, kind, kind.step)
        readings = [reading(server, session, kind, kind.step)]
        for number in range(1, objects.STEPS + 1):
            there = number * kind.step
            kind.make(server, sessions, range(there, there + kind.step))
            readings.append(reading(server, session, kind, there + kind.step))
        return readings


def round_of(
    arms: Sequence[arm_list.Arm], template: Path, kinds: Sequence[objects.Kind]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """One round: a fresh server of each arm for each kind. The arms follow each other directly."""
    measured: dict[str, dict[str, Any]] = {arm.name: {} for arm in arms}
    for arm in arms:
        with prepared.copy(objects.without_tables(arms), arm) as folder, arm.server(folder, ()) as server:
            server.start()
            time.sleep(START_SECONDS)
            measured[arm.name][START] = server.rss_kb()
        say(f"{arm.name}: {measured[arm.name][START] * 1024 / 1e6:.1f} MB after the start")
    for number, kind in enumerate(kinds):
        for arm in arm_list.rotated(arms, number):
            with prepared.copy(template, arm) as folder, arm.server(folder, objects.OPTIONS) as server:
                server.start()
                readings = series(server, kind)
            measured[arm.name][kind.name] = readings
            say(f"{arm.name}: one more {kind.name} {line(readings).slope:.1f} KiB")
    yield from measured.items()


def line(readings: Sequence[dict[str, Any]]) -> objects.Line:
    return objects.Line.through([(point["count"], point["kb"]) for point in readings])


def parts(runs: Sequence[dict[str, Any]], kind: str) -> dict[str, float]:
    """The median slope of each part of the ledger, the largest first."""
    slopes: dict[str, list[float]] = {}
    for run in runs:
        names = {name for point in run[kind] for name in point["parts"]}
        for name in names:
            points = [(point["count"], point["parts"].get(name, 0.0)) for point in run[kind]]
            slopes.setdefault(name, []).append(objects.Line.through(points).slope)
    found = {name: report.median(values) for name, values in slopes.items()}
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def render(raw: dict[str, Any]) -> str:
    runs = {arm: done for arm, done in raw["runs"].items() if done}
    rows, starts, targets, details = [], [], [], []
    for arm, done in runs.items():
        at_start = [run[START] * 1024 / 1e6 for run in done]
        starts.append([arm, *(f"{of(at_start):.1f}" for of in (report.median, min, max))])
        if arm == "dev":
            targets.append(report.target("RSS of a fresh server, MB", report.median(at_start), "<=", START_GOAL_MB))
    for kind in raw["settings"]["kinds"]:
        medians = {}
        for arm, done in runs.items():
            lines = [line(run[kind]) for run in done]
            slopes = [found.slope for found in lines]
            medians[arm] = report.median(slopes)
            rows.append(
                [
                    f"{kind}, {arm}",
                    f"{medians[arm]:.1f}",
                    f"{report.median(found.error for found in lines):.1f}",
                    f"{min(slopes):.1f}",
                    f"{max(slopes):.1f}",
                ]
            )
            for name, slope in parts(done, kind).items():
                if abs(slope) >= SHOWN_KIB:
                    details.append([f"{kind}, {arm}: {name}", f"{slope:.1f}"])
        if "dev" in medians:
            targets.append(report.target(f"KiB of one more {kind}", medians["dev"], "<=", objects.KINDS[kind].goal_kib))
    head = ["one more", "KiB", "standard error", "lowest", "highest"]
    blocks = [
        "# What one more costs in RSS\n",
        f"Slopes over {objects.STEPS + 1} counts, medians of {raw['settings']['rounds']} rounds.\n",
        report.table(head, rows),
        f"\nRSS in MB {START_SECONDS:.0f} seconds after the start, with default settings:\n",
        report.table(["server", "RSS", "lowest", "highest"], starts),
    ]
    if targets:
        blocks += ["\n## Targets\n", report.target_table(targets)]
    if details:
        blocks += ["\n## Where it lies: MEMDIAG_LEDGER_EXACT\n", report.table(["part", "KiB"], details)]
    blocks.append(report.front_matter(raw))
    return "\n".join(blocks)


def chosen(names: str) -> list[objects.Kind]:
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    unknown = [name for name in wanted if name not in objects.KINDS]
    if unknown or not wanted:
        raise Problem(f"unknown object {', '.join(unknown) or '(none given)'}; there are: {', '.join(objects.KINDS)}")
    return [objects.KINDS[name] for name in wanted]


def main() -> int:
    parser = rounds.parser(__doc__.splitlines()[0], rounds=3, arms=("dev", "dev-no-pools", "debian"))
    parser.add_argument("--objects", default=",".join(objects.KINDS), help="comma-separated (default: %(default)s)")
    parser.add_argument("--huge-pages", default="", help='of the machine: always, madvise; "" as it is (default)')
    options = parser.parse_args()
    rounds.require_positive(options)
    kinds = chosen(options.objects)

    def measure(arms: Sequence[arm_list.Arm], template: Path) -> Iterator[tuple[str, dict[str, Any]]]:
        with huge_pages.set_to(options.huge_pages):
            yield from round_of(arms, template, kinds)

    return rounds.run(
        "per_object",
        options,
        settings={
            "kinds": [kind.name for kind in kinds],
            "counts": {kind.name: kind.step * (objects.STEPS + 1) for kind in kinds},
            "mysqld": objects.OPTIONS,
            "huge_pages": options.huge_pages,
        },
        prepare=objects.template,
        measure=measure,
        brief=lambda run: ", ".join(f"{kind.name} {line(run[kind.name]).slope:.1f} KiB" for kind in kinds),
        render=render,
        seconds_each=30 * len(kinds),
    )


if __name__ == "__main__":
    run_main("per_object", main)
