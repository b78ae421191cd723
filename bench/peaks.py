#!/usr/bin/env python3
"""The parts of RSS at the peak of six workloads of run.py, by the ledger and by the code that allocated them. And of
`poison`: single statements that people publish as killers.

The heap profiler is ON, and another process reads the ledger and the profile in one statement when RSS comes near the
peak that the same load had without the profiler. RECORD would cost no statement. But its file has no ledger, and it keeps
a new high only if that is 5% and 16 MB above the last one and two seconds later.

See README.md for what the figures mean.
"""

import contextlib
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from multiprocessing.connection import Connection as Sender
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.runner import arms as arm_list
from bench.runner import composition, memory, own_tables, prepared, report, rounds
from bench.workloads import EVERY, POISON, chosen
from bench.workloads.base import Workload
from harness.common import say
from harness.problem import Problem, run_main
from harness.server import Server
from harness.sql import Connection, SqlError

NAMES = ("triggers", "fk_cascade", "partitions", "connection_storm", "replica_rows", "dump_oltp")
OURS, PROFILED = "dev", "dev-profile"
# The allocators that have had the lowest peaks besides this server, in bench/run.py.
OTHERS = ("stock", "glibc-arenas2", "linked")

SETTLE_SECONDS = 2.0
IDLE_SECONDS = (1.0,)
POLL_SECONDS = 0.005

NEAR = 0.8  # of the peak without the profiler: below, nothing is read
STEP = 1.02  # above the highest reading
PAUSE = 4  # times as long as a reading took: readings take a fifth of the time at most

HALF = 0.5
THIRD = 0.333  # the goal of POISON
EXPLAINED = 0.9
CLOSE = 0.95  # of the peak: a reading below is not of the peak
SHOWN = 0.005  # of RSS: smaller pools share a row
SHOWN_OWN = 0.02  # of RSS: smaller contributions to a part have no row

INSTRUMENTS = """
SELECT EVENT_NAME, POOL, RESIDENT_BYTES, LIVE_BYTES FROM INFORMATION_SCHEMA.MEMDIAG_INSTRUMENTS
WHERE POOL IS NOT NULL ORDER BY RESIDENT_BYTES DESC LIMIT 10
"""


class Pace:
    """Decides when a reading is worth its cost."""

    def __init__(self, floor_kb: float) -> None:
        self._wanted_kb = floor_kb
        self._not_before = 0.0

    def due(self, rss_kb: float, now: float) -> bool:
        return now >= self._not_before and rss_kb >= self._wanted_kb

    def done(self, rss_kb: float, now: float, seconds: float) -> None:
        self._wanted_kb = max(self._wanted_kb, STEP * rss_kb)
        self._not_before = now + PAUSE * seconds


def read(session: Connection) -> composition.Reading | None:
    return composition.reading_of(session.query(composition.READ).rows)


def go_first(session: Connection) -> None:
    """Lets this process and its thread of the server go before the load: a reading is to be of one moment. Only root may."""
    with contextlib.suppress(PermissionError):
        for process in (0, own_tables.thread_of(session)):
            os.setpriority(os.PRIO_PROCESS, process, -15)


def read_highs(socket: str, pid: int, floor_kb: float, ready: Event, stop: Event, result: Sender) -> None:
    """Reads at rest, then at new highs until it is told to stop, and sends the composition at the highest."""
    statm, page_kb = Path(f"/proc/{pid}/statm"), os.sysconf("SC_PAGE_SIZE") // 1024
    pace, highest, seconds = Pace(floor_kb), None, []
    with Connection(socket) as session:
        go_first(session)
        rest = read(session)
        instruments = session.query(INSTRUMENTS).rows
        time.sleep(SETTLE_SECONDS)  # unused pages of this reading decay
        ready.set()
        while rest and not stop.is_set():
            time.sleep(POLL_SECONDS)
            rss_kb = int(statm.read_text().split()[1]) * page_kb
            if not pace.due(rss_kb, time.monotonic()):
                continue
            began = time.monotonic()
            now = read(session)
            seconds.append(time.monotonic() - began)
            pace.done(now.rss / 1024 if now else 0, time.monotonic(), seconds[-1])
            if now and (highest is None or now.rss > highest.rss):
                highest = now
    found = composition.composition(rest, highest) if rest and highest else {}
    result.send(found | {"instruments": instruments, "reading_seconds": seconds})


@contextlib.contextmanager
def highs(server: Server, floor_kb: float) -> Iterator[dict[str, Any]]:
    """Another process reads during the block; this one is busy with the load. What it found is there after the block."""
    spawn = multiprocessing.get_context("spawn")
    ready, stop = spawn.Event(), spawn.Event()
    ours, theirs = spawn.Pipe(duplex=False)
    child = spawn.Process(
        target=read_highs, args=(str(server.socket), server.pid, floor_kb, ready, stop, theirs), daemon=True
    )
    child.start()
    theirs.close()
    found: dict[str, Any] = {}
    try:
        if not ready.wait(60):
            raise Problem("the reader of the heap profile read nothing")
        yield found
    finally:
        stop.set()
        with contextlib.suppress(EOFError):
            found.update(ours.recv())
        child.join()
    if not found:
        raise Problem("the reader of the heap profile failed: see its message above")


def turn(workload: Workload, arm: arm_list.Arm, floor_kb: float | None) -> dict[str, Any]:
    """`floor_kb`: RSS from which readings begin; None: none."""
    found: dict[str, Any] = {}
    with (
        prepared.copy(memory.template(workload, [arm]), arm) as folder,
        memory.Turn(workload, arm, folder, IDLE_SECONDS) as whole,
    ):
        whole.start()
        if floor_kb is None:
            whole.load()
        else:
            with highs(whole.server, floor_kb) as found:
                whole.load()
        run = whole.end()
    return {
        "start_kb": run["start_rss_kb"],
        "peak_kb": run["peak_rss_kb"],
        "left_kb": list(run["idle"].values())[-1]["rss_kb"],
        "pages_kb": run["after"]["buffer_pool_kb"],
        "per_second": run["per_second"],
        **({"found": found} if found else {}),
    }


def order(arms: Sequence[arm_list.Arm], number: int) -> list[arm_list.Arm]:
    """The profiled arm comes last: its readings begin near the peak of the same server without the profiler."""
    plain = [arm for arm in arms if arm.name != PROFILED]
    return [*arm_list.rotated(plain, number), *(arm for arm in arms if arm.name == PROFILED)]


def round_of(arms: Sequence[arm_list.Arm], workloads: Sequence[Workload]) -> Iterator[tuple[str, dict[str, Any]]]:
    """One round: all arms of a workload follow each other."""
    measured: dict[str, dict[str, Any]] = {arm.name: {} for arm in arms}
    for number, workload in enumerate(workloads):
        try:
            for arm in order(arms, number):
                floor_kb = NEAR * measured[OURS][workload.name]["peak_kb"] if arm.name == PROFILED else None
                run = turn(workload, arm, floor_kb)
                measured[arm.name][workload.name] = run
                say(f"{workload.name}, {arm.name}: peak {run['peak_kb'] // 1024} MB")
        except (Problem, SqlError, OSError) as problem:
            # The other workloads are still useful.
            say(f"{workload.name} failed: {problem}")
            for runs in measured.values():
                runs.pop(workload.name, None)
    yield from measured.items()


# The report.


def mb(size: float | None) -> str:
    return "-" if size is None else f"{size / 2**20:.1f}"


def part_size(parts: Mapping[str, Mapping[str, int]], name: str) -> int:
    return sum(parts.get(name, {}).values())


def part_rows(found: Mapping[str, Any]) -> list[list[str]]:
    """A row for each part of the ledger, the largest first; small pools share one."""
    rest, peak = found["rest"]["parts"], found["peak"]["parts"]
    rss = found["peak"]["rss"]
    live = {composition.pool_part(pool): size for pool, size in found["allocated"].items()}
    rows: list[list[str]] = []

    def row(name: str, before: float, size: float, live: float | None = None) -> None:
        rows.append([name, "", mb(before), mb(size), f"{100 * size / rss:.1f}", mb(live), ""])

    small_before, small = 0, 0
    for name in sorted(peak, key=lambda name: -part_size(peak, name)):
        before, size = part_size(rest, name), part_size(peak, name)
        if name.startswith("pool ") and max(before, size) < SHOWN * rss:
            small_before, small = small_before + before, small + size
            continue
        row(name, before, size, live.get(name))
        for own, size in sorted(peak[name].items(), key=lambda item: -item[1]):
            if own and size >= SHOWN_OWN * rss:
                before = rest.get(name, {}).get(own, 0)
                rows.append([f"- of these: {own}", "", mb(before), mb(size), f"({100 * size / rss:.1f})", "", ""])
    row("other pools", small_before, small)
    return rows


def code_rows(found: Mapping[str, Any]) -> list[list[str]]:
    """Parts of the pools' rows: what is older than the profiler, then the code."""
    rss = found["peak"]["rss"]
    before, older = (
        sum(size for pool, size in found[when]["older"].items() if pool != "perfschema") for when in ("rest", "peak")
    )
    rows = [
        ["allocated before the profiler began", "several", mb(before), mb(older), f"({100 * older / rss:.1f})", "", ""]
    ]
    for code in found["code"]:
        name = code["text"]
        if code["stacks"] > 1:
            name += f" ({code['stacks']} stacks)"
        rows.append(
            [
                name,
                code["pool"],
                "",
                mb(code["resident"]),
                f"({100 * code['resident'] / rss:.1f})",
                mb(code["live"]),
                mb(code["error"]),
            ]
        )
    return rows


def middle(runs: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """The profiled turn with the middle peak, of those with a reading."""
    read_ones = [run for run in runs if "peak" in run.get("found", {})]
    read_ones.sort(key=lambda run: run["peak_kb"])
    return read_ones[len(read_ones) // 2] if read_ones else None


class Case:
    """The figures of a workload over all rounds. Units: bytes."""

    def __init__(self, name: str, runs: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        of_all = {arm: [run[name] for run in done if name in run] for arm, done in runs.items()}
        self.name = name
        self.goal = THIRD if name in POISON else HALF
        self.profiled = middle(of_all.pop(PROFILED, []))
        self.peaks, self.pages = (
            {arm: 1024 * report.median(run[figure] for run in done) for arm, done in of_all.items() if done}
            for figure in ("peak_kb", "pages_kb")
        )
        self.grown, self.left = (
            {
                arm: 1024 * report.median(run[figure] - run["start_kb"] for run in done)
                for arm, done in of_all.items()
                if done
            }
            for figure in ("peak_kb", "left_kb")
        )
        self.others = [arm for arm in self.peaks if not arm_list.ARMS[arm].ours]
        self.lowest = min(self.others, key=self.peaks.__getitem__, default=None)

    def growth(self) -> list[str]:
        """Of this server and of the other: at the peak, their ratio, and after the load."""
        both = [OURS] + [self.lowest] * bool(self.lowest)
        grown, left = (", ".join(mb(figures[arm]) for arm in both) for figures in (self.grown, self.left))
        ratio = self.lowest and report.ratio(self.grown[OURS], self.grown[self.lowest])
        return [grown, report.show(ratio or None), left]

    @property
    def ratio(self) -> float | None:
        return self.lowest and self.peaks[OURS] / self.peaks[self.lowest]

    def fixed(self) -> tuple[int, float]:
        """Program and files, and the pages of the buffer pool that every arm holds."""
        assert self.profiled
        parts = self.profiled["found"]["peak"]["parts"]
        pages = min(part_size(parts, composition.PAGES), *self.pages.values())
        return part_size(parts, composition.PROGRAM), pages

    def bound(self) -> str:
        """The bytes that the goal leaves for all that a diet can lower."""
        program, pages = self.fixed()
        text = f"{mb(program)} MB are the program and files. {mb(pages)} MB are pages of the buffer pool"
        if self.lowest is None:
            return f"{text}. No other arm was measured."
        text += f"; so many are in {', '.join(self.others)}, too. "
        share = "half" if self.goal == HALF else "a third"
        goal = self.goal * self.peaks[self.lowest]
        left, taken = goal - program - pages, self.peaks[OURS] - program - pages
        if self.peaks[OURS] <= goal:
            return text + f"The peak is at most {share} of that of {self.lowest}."
        if left <= 0:
            return text + f"These alone exceed {share} of the peak of {self.lowest}, {mb(goal)} MB."
        return text + (
            f"{share.capitalize()} of the peak of {self.lowest} is {mb(goal)} MB. It leaves {mb(left)} MB for all else,"
            f" which takes {mb(taken)} MB."
        )

    def section(self) -> list[str]:
        lines = [f"\n## {self.name}\n", f"{EVERY[self.name].shows}.\n"]
        if self.profiled is None:
            return [
                *lines,
                f"Not read: RSS stayed below {NEAR:.0%} of the peak without the profiler, or a figure was missing.",
            ]
        found, peak = self.profiled["found"], 1024 * self.profiled["peak_kb"]
        seconds = found["reading_seconds"]
        rss = found["peak"]["rss"]
        missing = [
            f"{name} {mb(size)} MB"
            for name, size in sorted(found["missing"].items(), key=lambda item: -item[1])
            if size >= SHOWN * rss
        ]
        head = ["part of RSS", "pool", "at rest, MB", "at the peak", "% of RSS", "live, MB", "± MB"]
        return [
            *lines,
            f"The peak was {mb(self.peaks[OURS])} MB without the profiler and {mb(peak)} MB with it. The reading is of"
            f" {mb(rss)} MB, {rss / peak:.1%} of the latter"
            f"{'' if rss >= CLOSE * peak else ': NOT of the peak'}. {len(seconds)} readings took"
            f" {1000 * report.median(seconds):.0f} ms each.\n",
            self.bound() + "\n",
            report.table(head, part_rows(found) + code_rows(found)),
            f"\nThe rows explain {composition.explained(found):.1%} of RSS. Missing: {', '.join(missing) or 'nothing of 0.5% or more'}.",
        ]


def render(raw: dict[str, Any]) -> str:
    cases, absent = [], []
    for name in raw["settings"]["workloads"]:
        case = Case(name, raw["runs"])
        if OURS in case.peaks:
            cases.append(case)
        else:
            absent.append(name)
    rows, targets, sections = [], [], []
    for case in cases:
        lowest = case.lowest and f"{mb(case.peaks[case.lowest])} {case.lowest}"
        rows.append([case.name, mb(case.peaks[OURS]), lowest or "-", report.show(case.ratio), *case.growth()])
        found = case.profiled and case.profiled["found"]
        targets += [
            report.target(f"{case.name}: peak to the lowest other", case.ratio, "<=", case.goal),
            report.target(
                f"{case.name}: explained share of RSS", found and composition.explained(found), ">=", EXPLAINED
            ),
        ]
        sections += case.section()
    read_ones = [case.profiled["found"] for case in cases if case.profiled]
    if read_ones:
        instruments = [
            [name, pool, mb(float(resident or 0)), mb(float(live or 0))]
            for name, pool, resident, live in read_ones[0]["instruments"]
        ]
        sections += [
            "\n## At rest: the largest instruments\n",
            f"Before the load of {next(case.name for case in cases if case.profiled)}. They also name what the server"
            " allocated before the profiler began.\n",
            report.table(["instrument", "pool", "at rest, MB", "live, MB"], instruments),
        ]
    if absent:
        sections.insert(0, f"\nFailed, see the output of the run: {', '.join(absent)}.")
    return "\n".join(
        [
            "# The parts of RSS at the peak\n",
            f"Peaks are medians of {raw['settings']['rounds']} rounds, in MB.\n",
            report.table(
                [
                    "workload",
                    OURS,
                    "lowest other",
                    "ratio",
                    "both less the start",
                    "ratio",
                    f"{IDLE_SECONDS[-1]:g} s later",
                ],
                rows,
            ),
            "\n## Targets\n",
            report.target_table(targets),
            *sections,
            report.front_matter(raw),
        ]
    )


def main() -> int:
    parser = rounds.parser(__doc__.splitlines()[0], rounds=1, arms=(*OTHERS, OURS, PROFILED))
    parser.add_argument(
        "--workloads",
        default=",".join(NAMES),
        help=f"comma-separated, of run.py's and of: {', '.join(POISON)}; 'poison': all of the latter (default: %(default)s)",
    )
    options = parser.parse_args()
    rounds.require_positive(options)
    if missing := {OURS, PROFILED} - set(options.arms.split(",")):
        raise Problem(f"the arm '{min(missing)}' is needed")
    names = list(POISON) if options.workloads == "poison" else options.workloads.split(",")
    workloads = chosen(names)

    return rounds.run(
        "peaks",
        options,
        settings={"workloads": [workload.name for workload in workloads]},
        prepare=lambda arms: memory.templates(workloads, arms),
        measure=lambda arms, _template: round_of(arms, workloads),
        brief=lambda run: ", ".join(f"{name} {one['peak_kb'] // 1024} MB" for name, one in run.items()),
        render=render,
        seconds_each=30 * len(workloads),
    )


if __name__ == "__main__":
    run_main("peaks", main)
