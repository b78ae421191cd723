#!/usr/bin/env python3
"""Lets system calls of our code fail, the first, the second, and so on, each once and all from there on.

  proof/calls.py [--minutes M] [--arm dev] [--seed 1] [--case TEXT]

Files, mappings and threads: calls_shim.cc is preloaded. Statements that read our tables answer: a figure is NULL with a
warning, never 0. Statements that change something work or say clearly that they did not. The server starts, is right,
ends, and leaves no half of a file. An injection is a run in which something failed. It needs root, as it makes a control
group. An interrupted run goes on with the next kind of work.
"""

import argparse
import dataclasses
import math
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.runner import arms as arm_list
from harness.cgroup import memory_limit
from harness.common import say
from harness.problem import Problem, run_main
from harness.server import Server, initialise
from harness.sql import Connection, ConnectionLost, Result, SqlError
from proof import cases, settings
from proof.interposed import WAYS, Calls
from proof.places import Done, add_options, resumed, scratch
from proof.switch import FOREVER, OPTIONS

SHIM = "libmemdiag_calls_shim.so"
LIMIT_KB = 900 << 10
PATIENCE = 60.0
ALL_UP_TO, AT_MOST = 48, 96  # places of a sweep
SWEEP_SECONDS, START_SECONDS = 8.0, 120.0
USUAL = 3  # runs before and after a sweep, in which nothing fails
# A sample keeps what could not be read when it was taken, and rows of these come and go.
MOMENT = re.compile(r"SAMPLES|MEMDIAG_HISTORY|ADVICE|SESSIONS|DIGESTS|SURVIVORS|STACKS")
START = "a start and an end"
FORMER = "SELECT 1 FROM information_schema.memdiag_history WHERE RUN > 0 LIMIT 1"
LARGE = "SELECT COUNT(*) FROM (SELECT DISTINCT a.id, b.id AS i, c.id AS j, a.b FROM t a, t b, u c WHERE c.id < 5) AS q"
CHECK = "SELECT COUNT(*), SUM(CRC32(CONCAT_WS('/', id, i, s, d, j, b))) FROM d.t"


@dataclass(frozen=True)
class Work:
    """`after`: brings back what was before, while nothing fails. `errors`: that the texts may have."""

    texts: tuple[str, ...]
    after: tuple[str, ...] = ()
    errors: tuple[int, ...] = ()

    @property
    def reads(self) -> bool:
        return not self.after


def works(tables: Sequence[str]) -> Iterator[Work]:
    for table in tables:
        yield Work((f"SELECT * FROM information_schema.{table}",))
    yield Work(("SHOW STATUS LIKE 'memdiag%'",))
    yield Work(("SELECT memdiag_purge('all')",))
    interval, profile = ("SET GLOBAL memdiag_history_interval_ms = {}", "SET GLOBAL memdiag_profile = {}")
    target = "SET GLOBAL memdiag_memory_target = {}"
    usual = (interval.format(1000), profile.format("'OFF'"), target.format("'AUTO'"))
    of_profile = tuple(f"SELECT memdiag_profile('{name}')" for name in ("folded", "pprof", "svg"))
    yield Work((profile.format("'ON'"), LARGE, *of_profile), usual, (1105,))
    recorded = (interval.format(1), profile.format("'RECORD'"), LARGE, "DO SLEEP(0.6)")
    yield Work((*recorded, "SELECT COUNT(*) FROM information_schema.memdiag_profile_history"), usual, (1105,))
    yield Work((interval.format(1), "DO SLEEP(0.05)", "SELECT 1 FROM information_schema.memdiag_history"), usual)
    acts = ("DO SLEEP(0.02)", LARGE, "SELECT * FROM information_schema.memdiag_ceiling")
    for value in ("'85M'", "'150M'", "'WATCH'", "'AUTO'"):
        # Statements end where the target is below what the server needs.
        yield Work((target.format("'OFF'"), target.format(value), *acts), usual, (3170, 1041))
    plugin = "memdiag_native_table"
    yield Work((f"INSTALL PLUGIN {plugin} SONAME 'memdiag_native.so'", f"UNINSTALL PLUGIN {plugin}"), usual)
    for name, values in (*settings.PER_POOL.items(), *settings.ANY_TIME.items()):
        form = "'all={}'" if name in settings.PER_POOL else "{}"
        texts = [f"SET GLOBAL {name} = {form.format(value)}" for value in values if not value.startswith("'")]
        yield Work((profile.format("'ON'"), *texts), (f"SET GLOBAL {name} = DEFAULT", *usual), (1105,))


@dataclass
class Counts(Done):
    place: int = 0
    injections: int = 0
    failed: int = 0  # calls
    starts: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    sites: dict[str, list[int]] = field(default_factory=dict)  # how often called, how often failed
    faults: dict[str, str] = field(default_factory=dict)


@dataclass
class Said:
    """The server's answer to a text. An error is a code and its words."""

    rows: Result = field(default_factory=lambda: Result([], []))
    warnings: list[str] = field(default_factory=list)
    error: int = 0
    words: str = ""


def cells(result: Result) -> dict[tuple[str, ...], str | None]:
    """By the row's words at its beginning, its place among rows with the same, and the column."""
    found: dict[tuple[str, ...], str | None] = {}
    seen: Counter[tuple[str, ...]] = Counter()
    for row in result.rows:
        key = tuple(str(word) for word in row[:2] if not re.fullmatch(r"-?[\d.]+", word or "1")) or (str(row[0]),)
        for column, value in zip(result.columns, row, strict=True):
            found[*key, str(seen[key]), column] = value
        seen[key] += 1
    return found


def untrue(usual: Sequence[Said], now: Said) -> str:
    """Returns the first cell of `now` that is not true, or "". `usual` are answers without a failure."""
    before = [cells(each.rows) for each in usual]
    mine = cells(now.rows)
    for key, value in before[0].items():
        values = [each.get(key) for each in before]
        # The rest may be nothing: without PAGEMAP_SCAN, mincore() counts pages of zeros as well.
        if None in values or key[0] == "unexplained":
            continue
        if mine.get(key) is None and not now.warnings:
            return f"{key} is {'empty' if key in mine else 'not there'} without a warning, and was {value}"
        zero = re.compile(r"-?0*\.?0*")
        if zero.fullmatch(mine.get(key) or "1") and not any(zero.fullmatch(each or "") for each in values):
            return f"{key} is 0, and was {value}"
        is_limit = "limit" in "/".join(key).lower() and re.fullmatch(r"[\d.]+", value or "")
        if is_limit and len(set(values)) == 1 and mine.get(key) not in (None, value):
            return f"{key} is {mine[key]}, and was {value}"
    return ""


def places(count: int) -> list[int]:
    """Chooses which of `count` calls fail, each in a run of its own."""
    step = max((count - ALL_UP_TO) // (AT_MOST - ALL_UP_TO), 1)
    return [*range(min(count, ALL_UP_TO)), *range(ALL_UP_TO, count, step)]


class Trial:
    def __init__(self, server: Server, calls: Calls, counts: Counts, log: Path) -> None:
        self.server, self.calls, self.counts, self.log = server, calls, counts, log
        self.session: Connection
        self.right: Result
        self.tables: list[str] = []

    def start(self) -> None:
        self.server.start()
        self.session = self.server.connect("d" if self.tables else "", PATIENCE)

    def prepare(self) -> None:
        self.start()
        for text in ("CREATE DATABASE d", "USE d", *cases.SCHEMA[:4]):
            self.session.query(text)
        settings.require_all(self.session)
        self.tables = settings.names(self.session)
        self.right = self.session.query(CHECK)

    def say(self, texts: Sequence[str]) -> list[Said]:
        """@throws ConnectionLost"""
        said = []
        for text in texts:
            one = Said()
            try:
                one.rows = self.session.query(text)
                one.warnings = [str(row[2]) for row in self.session.query("SHOW WARNINGS").rows]
            except SqlError as error:
                one.error, one.words = error.code, error.message
            said.append(one)
        return said

    def sweep(self, work: Work, way: str, forever: bool) -> None:
        errors, count = WAYS[way][0], FOREVER if forever else 1
        where = f"{way}{' from there on' * forever}"

        def run(skip: int, only: int = 0) -> tuple[list[Said], int, int]:
            self.calls.arm(errors, skip, count, only)
            said = self.say(work.texts)
            seen, failed = self.calls.disarm()
            self.judge(work.after, (), f"after {where} {skip}", self.say(work.after))
            return said, seen, failed

        try:
            usual = [run(FOREVER) for _ in range(USUAL - 1)]
            before = self.calls.sites()
            usual.append(run(FOREVER))
            began, runs = time.monotonic(), []
            for place in self.choose(usual[-1][1], before):
                if time.monotonic() - began < SWEEP_SECONDS:
                    runs.append((place, *run(*place)))
            usual += [run(FOREVER) for _ in range(USUAL)]
            answers = [said for said, _, _ in usual] if work.reads and not MOMENT.search(work.texts[0]) else []
            for place, said, _, failed in runs:
                self.counts.failed += failed
                self.counts.injections += failed > 0
                if failed and answers and untrue([each[0] for each in answers], said[0]):
                    # Figures move: once more.
                    answers.append(run(FOREVER)[0])
                    said = run(*place)[0]
                if failed:
                    self.judge(work.texts, work.errors, f"{where} {self.name(place)}", said, *answers)
            self.judge(work.texts, work.errors, f"when nothing fails after {where}", usual[-1][0])
            if self.session.query(CHECK) != self.right:
                self.fault(work.texts[0], f"{where}: rows differ")
        except (ConnectionLost, OSError) as error:
            self.calls.disarm()
            self.fault("; ".join(work.texts), f"{where}: {error}", self.end_of_log())
            self.server.stop()
            self.start()

    def judge(
        self, texts: Sequence[str], errors: Sequence[int], where: str, said: Sequence[Said], *usual: Sequence[Said]
    ) -> None:
        """`usual`: what it says when nothing fails. `errors`: that it may have."""
        for text, one, *before in zip(texts, said, *usual, strict=True):
            if one.error:
                self.counts.errors[f"{one.error} {one.words[:90]}"] += 1
            if one.error and one.error not in errors:
                self.fault(text, f"{where}: error {one.error} {one.words}")
            elif not one.error and before and (words := untrue(before, one)):
                self.fault(text, f"{where}: {words} {one.warnings[:3]}")

    def choose(self, seen: int, before: dict[int, tuple[int, int]]) -> list[tuple[int, int]]:
        """Numbers of calls that fail, of so many, and sites whose calls do, of those that called since `before`."""
        sites = [site for site, (count, _) in self.calls.sites().items() if count > before.get(site, (0, 0))[0]]
        every = [*((skip, 0) for skip in places(seen)), *((0, site) for site in sites)]
        random.shuffle(every)
        return every

    def name(self, place: tuple[int, int]) -> str:
        return f"{place[0]} {self.calls.name(place[1]) if place[1] else ''}"

    def start_and_end(self, way: str, forever: bool, place: tuple[int, int]) -> int:
        """@return calls that could have failed in the start"""
        where = f"{way}{' from there on' * forever} {self.name(place)}"
        arm = WAYS[way][0], place[0], FOREVER if forever else 1, place[1]
        process, at_start, failed = None, 0, 0
        try:
            self.calls.arm(*arm)
            self.start()
            process = self.server._process
            at_start, failed = self.calls.disarm()
            if self.session.query(CHECK) != self.right:
                self.fault(START, f"{where}: rows differ")
            texts = [f"SELECT * FROM information_schema.{name}" for name in self.tables]
            self.judge(texts, (), where, self.say(texts))
            if not failed and not self.session.query(FORMER).rows:
                self.fault(START, f"{where}: there is no run before this one")
            self.session.close()
            self.calls.arm(*arm)
        except (Problem, ConnectionLost, SqlError, OSError) as error:
            self.fault(START, f"{where}: {error}", self.end_of_log())
        self.server.stop()
        failed += self.calls.disarm()[1]
        self.counts.starts += 1
        self.counts.injections += failed > 0
        self.counts.failed += failed
        if process is not None and process.returncode:
            self.fault(START, f"{where}: mysqld ended with {process.returncode}", self.end_of_log())
        if wrong := re.search(r".*\[ERROR\].*", self.end_of_log()):
            self.fault(START, f"{where}: {wrong[0]}")
        if not failed and list(self.server.data.glob("memdiag*.new")):
            self.fault(START, f"{where}: a file stays half made")
        return at_start

    def starts(self, way: str, forever: bool, until: float) -> None:
        """At random places, as there are too many for all. The next start finds nothing of one that failed."""
        self.session.close()
        self.server.stop()
        before = self.calls.sites()
        every = self.choose(self.start_and_end(way, forever, (FOREVER, 0)), before)
        while every and time.monotonic() < until:
            self.start_and_end(way, forever, every.pop())
            self.start_and_end(way, forever, (FOREVER, 0))
        self.start()

    def end_of_log(self) -> str:
        return self.server.error_log.read_text(errors="replace")[-8000:]

    def fault(self, text: str, words: str, more: str = "") -> None:
        kind = re.sub(r"\d+", "N", f"{text[:80]}: {words.partition(': ')[2]}")[:160]
        if kind not in self.counts.faults:
            self.counts.faults[kind] = words[:400]
            say(f"{text[:160]}: {words[:400]}")
        with self.log.open("a") as file:
            file.write(f"{text}: {words}\n{more}\n" if more else f"{text}: {words}\n")

    def note_sites(self, at_start: dict[str, list[int]]) -> None:
        for site, (seen, failed) in self.calls.sites().items():
            name = self.calls.name(site)
            before = at_start.get(name, [0, 0])
            self.counts.sites[name] = [before[0] + seen, before[1] + failed]


def render(counts: Counts) -> str:
    failed = sum(1 for _, failed in counts.sites.values() if failed)
    errors = "; ".join(f"{words}: {number}" for words, number in counts.errors.most_common(8)) or "none"
    return (
        f"{counts.injections} injections, {counts.failed} calls failed, from {failed} of the {len(counts.sites)} places"
        f" that called; {counts.starts} starts and ends; {len(counts.faults)} kinds of faults. Errors: {errors}."
    )


def work_until(options: argparse.Namespace, counts: Counts, keep: Callable[[], None], log: Path) -> None:
    until = time.monotonic() + 60 * options.minutes
    arm = arm_list.choose(options.arm)[0]
    build = arm.build()
    shim = build.directory.parent / "unittest" / SHIM
    if not shim.exists():
        raise Problem(
            f"{shim} is missing; build it with: cmake --build --preset {arm.preset} --target memdiag_calls_shim"
        )
    with scratch() as folder, ExitStack() as stack:
        calls = Calls(folder / "calls", build.mysqld)
        limit = stack.enter_context(memory_limit(LIMIT_KB))
        arm = dataclasses.replace(arm, env={**arm.env, **calls.environment}, preload=(str(shim),))
        server = arm.server(folder, [*OPTIONS, "--memdiag-history-interval-ms=200"], limit.wrapper())
        initialise(build, server.data, OPTIONS[:2])
        trial = Trial(server, calls, counts, log)
        before = {name: list(both) for name, both in counts.sites.items()}
        try:
            trial.prepare()
            every = [
                (work, way, forever)
                for work in (*works(trial.tables), None)
                for way, (_, for_ever) in WAYS.items()
                for forever in (False, True)[: 1 + for_ever]
                if (options.case or "").lower() in (START if work is None else "; ".join(work.texts)).lower()
            ]
            random.Random(options.seed).shuffle(every)
            while time.monotonic() < until and counts.place < len(every):
                work, way, forever = every[counts.place]
                if work is None:
                    trial.starts(way, forever, min(until, time.monotonic() + START_SECONDS))
                else:
                    trial.sweep(work, way, forever)
                counts.place += 1
                trial.note_sites(before)
                keep()
                if counts.place % 10 == 0:
                    say(f"{counts.place}/{len(every)} sweeps, {render(counts)}")
        finally:
            calls.disarm()
            server.stop()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=math.inf, help="at most")
    add_options(parser, "arm", "case")
    options = parser.parse_args()
    name = f"calls-{options.arm}-{options.seed}"
    doing = "failing calls with this seed"
    with resumed(name, Counts, options, doing, keeps=not options.case) as (counts, keep, log):
        random.seed(f"{options.seed}/{counts.place}")
        work_until(options, counts, keep, log)
    say(render(counts))
    return 1 if counts.faults else 0


if __name__ == "__main__":
    run_main("calls", main)
