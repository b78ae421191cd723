#!/usr/bin/env python3
"""Lets allocations of statements fail, the first, the second, and so on, each once and all from there on.

  proof/failing.py [--injections 1000000] [--arm dev] [--seed 1] [--case TEXT]

Soft: a pool has no page. Nobody may notice. Hard: malloc has none either. The client gets an error that says so, or the
right answer; then the same statement answers as ever. Refused: the ceiling ends the statement, and it gets no large
block any more. The client gets the ceiling's error, whatever the statement computes. No block stays, and the tables are good. Sources of our figures
fail, too. An injection is a run in which something failed. An interrupted run goes on with the next statement.
"""

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.runner import arms as arm_list
from harness.common import say
from harness.problem import Problem, run_main
from proof import cases
from proof.cases import CONNECT, Case
from proof.compare import Answer, difference
from proof.places import Done, add_options, every, resumed, scratch
from proof.switch import FOREVER, IN_MALLOC, NOTHING, Run, Switched, Way

AT_RANDOM = 300  # queries of a round; the first round has the fixed statements, too
IN_A_PACKET = 64  # runs
GROUP = 10  # statements, after which pools and tables are looked at
MANY, STEP = 64, 8  # with more allocations than this, every eighth is the first of those that fail from there on
SETTLE_SECONDS = 0.5  # InnoDB's threads give back later
# A session keeps blocks of these between the statements of a packet: packets of one run show more.
KEPT = ("statement", "session")
TIMES = 4  # that something has to grow
# That a pool may grow by: a cache takes another page.
SLACK = 4096
# Those of memdiag_fault() whose failures need no interruption.
SOURCES = (
    *("stats.resident", "stats.arenas.pdirty", "stats.arenas.bins.curregs", "arenas.narenas", "regions"),
    *("/proc/meminfo", "innodb", "variables", "profile"),
)
# Out of memory, in the words of mysys, the server, and the engines.
CLEAR = frozenset((5, 1037, 1038, 1041, 1114, 3950))
OF_ENGINE = 1030
# The ceiling puts its own error in the place of the second one.
OF_CEILING = frozenset((3170, 1317))
WITHOUT = ("hard", "refused")


@dataclass
class Counts(Done):
    rounds: int = 0
    place: int = 0  # in the round
    statements: int = 0
    injections: int = 0
    hard: int = 0
    refused: int = 0
    tolerated: int = 0  # of these two, and the answer was right
    reads: int = 0
    failed: int = 0  # allocations
    crashes: int = 0
    tables: int = 0
    seconds: float = 0.0
    kinds: Counter[str] = field(default_factory=Counter)
    pools: Counter[str] = field(default_factory=Counter)  # and routes
    errors: Counter[str] = field(default_factory=Counter)
    faults: dict[str, str] = field(default_factory=dict)  # by the statement


def unlike(case: Case, mine: Sequence[Answer], right: Sequence[Answer]) -> str:
    """What differs first, in words; empty where nothing does."""
    if len(mine) != len(right):
        return f"answers: {len(mine)} | {len(right)}"
    for one, two in zip(mine, right, strict=True):
        if not (case.same or one.error or one.lost):
            continue
        # In a packet, the number of warnings is known, and their texts are not.
        warned = [[part.warned for part in each.parts] for each in (one, two)]
        words = difference(one, two, ordered=True) or (
            warned[0] != warned[1] and f"warnings: {warned[0]} | {warned[1]}"
        )
        if words:
            return words
    return ""


def more(before: dict[str, int], now: dict[str, int]) -> dict[str, int]:
    """By how much it grew, where it did."""
    slack = {name: 0 if IN_MALLOC in name else SLACK for name in now}
    return {name: now[name] - before[name] for name in now if now[name] > before[name] + slack[name]}


class Trial:
    """All ways of failing, of one statement after the other."""

    def __init__(self, server: Switched, counts: Counts, log: Path) -> None:
        self.server, self.counts, self.log = server, counts, log
        self.case = Case("", ())
        self.right: list[Answer] = []

    def several(self, group: Sequence[Case]) -> None:
        for case in group:  # caches keep what a first run makes
            self.server.begin()
            self.server.once(case)
        before = self.server.held()
        for case in group:
            self.one(case, closely=case.commits)
        grown = more(before, self.server.held())
        if grown:
            time.sleep(SETTLE_SECONDS)
            grown = more(before, self.server.held())
        for case in group if grown else ():
            if not case.commits:
                self.one(case, closely=True)
        self.check_tables()
        self.counts.statements += len(group)

    def one(self, case: Case, closely: bool = False) -> None:
        """`closely`: looks also for blocks that stay."""
        server = self.server
        server.begin()
        server.once(case)
        self.case, self.right = case, server.once(case).answers
        if any(answer.lost for answer in self.right):
            self.crashed("before anything failed")
            return
        if words := unlike(case, server.once(case).answers, self.right):
            raise Problem(f"'{'; '.join(case.texts)}' does not answer the same each time: {words}")
        packs = CONNECT not in case.texts and not any(each.error for each in self.right)
        packed = [pool for pool in server.pools if pool not in KEPT]
        others = [pool for pool in server.pools if pool in KEPT]
        routes = server.routes if case.hard else []
        refused = [] if case.commits else [route for route in server.routes if route in cases.REFUSED]
        for names, kind, fast in (
            *((packed, "own", packs), (others, "own", False)),
            *((routes, "hard", packs), (refused, "refused", False)),
        ):
            used = self.used(names, fast)
            ways = [Way(name, kind, count) for name in used for count in (1, FOREVER)]

            def go(ways: Sequence[Way] = ways, used: dict[str, int] = used, fast: bool = fast and kind == "own") -> int:
                if fast:
                    return self.packets(ways, used)
                return sum(self.sweep(way) for way in ways if way.kind == "own" or way.what in server.routes)

            if closely and not any(way.what in cases.STAYS_ON_STOCK for way in ways):
                self.without_rest(go)
            else:
                go()
        self.sweep(Way("", "soft", FOREVER), most=1)
        if not case.same:
            self.reads()

    def used(self, names: Sequence[str], fast: bool) -> dict[str, int]:
        """The pools or routes from which it takes blocks, and how many."""
        every = [(Way(name, "own", FOREVER), 0) for name in names]
        runs = (fast and every and self.server.many(self.case, every)) or [
            self.server.once(self.case, *each) for each in every
        ]
        for (way, _), run in zip(every, runs, strict=True):
            if run.failed:
                self.judge(way, 0, run)
        return {name: run.failed for name, run in zip(names, runs, strict=True) if run.failed}

    def without_rest(self, go: Callable[[], int]) -> None:
        """Goes all ways, and looks for blocks that stay, again and again."""
        before = self.server.held()
        leaks = set(before)
        if self.case.commits:
            leaks -= {f"{pool}{IN_MALLOC}" for pool in cases.KEPT_AFTER_DDL}
        for _ in range(TIMES):
            runs = go()
            now = self.server.held()
            if not leaks & set(more(before, now)):
                return
            for _ in range(-(-runs // IN_A_PACKET)):
                self.server.many(self.case, [(NOTHING, 0)] * IN_A_PACKET)
            then = self.server.held()
            # A pool may grow when nothing fails, and caches keep what malloc served until they make it anew.
            grown, usual = more(before, {name: min(now[name], then[name]) for name in now}), more(now, then)
            leaks = {name for name in leaks if grown.get(name, 0) > (IN_MALLOC not in name and usual.get(name, 0))}
            before = then
            if not leaks:
                return
        self.fault(f"after {runs} failures there is more each time: { ({name: grown[name] for name in leaks}) }")

    def sweep(self, way: Way, skip: int = 0, most: int = FOREVER) -> int:
        """One run after the other. @return the number of those in which something failed"""
        for number in range(skip, most):
            run = self.server.once(self.case, way, number)
            if not run.failed or not self.judge(way, number, run):
                return number - skip
        return most - skip

    def packets(self, ways: Sequence[Way], used: dict[str, int]) -> int:
        """The same for all these ways, many runs at a time."""
        every: list[tuple[Way, int]] = []
        for way in ways:
            step = STEP if way.count == FOREVER and used[way.what] > MANY else 1
            every += [(way, skip) for skip in range(0, used[way.what] + step, step)]
        number = 0
        last: dict[Way, tuple[int, int]] = {}
        for begin in range(0, len(every), IN_A_PACKET):
            part = every[begin : begin + IN_A_PACKET]
            runs: Iterable[Run] = self.server.many(self.case, part)
            if not runs or any(run.failed and unlike(self.case, run.answers, self.right) for run in runs):
                if not self.server.lives():
                    self.server.start_again()
                self.server.begin()
                runs = (self.server.once(self.case, *each) for each in part)  # to see which it is
            for (way, skip), run in zip(part, runs, strict=True):
                last[way] = skip, run.failed
                if run.failed:
                    number += 1
                    self.judge(way, skip, run)
        # It may take more than it did at first.
        return number + sum(self.sweep(way, skip + 1) for way, (skip, failed) in last.items() if failed)

    def judge(self, way: Way, skip: int, run: Run) -> bool:
        """False: it crashed."""
        counts, where = self.counts, f"{way.kind} {way.what} {skip}{' on' * (way.count > 1)}"
        counts.injections += 1
        counts.failed += run.failed
        counts.hard += way.kind == "hard"
        counts.refused += way.kind == "refused"
        counts.kinds[self.case.kind] += 1
        counts.pools[way.what or "all"] += 1
        lost = any(answer.lost for answer in run.answers)
        words = unlike(self.case, run.answers, self.right)
        if lost and not self.server.lives():
            self.crashed(where)
            if way.what in self.server.routes:
                self.server.routes.remove(way.what)  # a start takes seconds
            return False
        if way.kind not in WITHOUT:
            if words:
                self.fault(f"{where}: {words}")
                self.server.begin()
            return True
        pairs = zip(run.answers, self.right, strict=False)
        error, text = next(((mine.error, mine.text) for mine, other in pairs if mine.error != other.error), (0, ""))
        if not error and (not words or words.startswith("warnings")):
            self.counts.tolerated += 1
            return True
        self.counts.errors["lost" if lost else str(error)] += 1
        # A packet that cannot be read ends the session.
        if way.kind == "refused":
            clear = error in OF_CEILING
        else:
            clear = error in CLEAR or (error == OF_ENGINE and ("emory" in text or way.what in cases.UNCLEAR_ON_STOCK))
        if not clear and not (lost and "NET::" in way.what):
            self.fault(f"{where}: {words}")
        if lost or self.case.before or len(self.case.texts) > 1:
            self.server.begin()
        if words := unlike(self.case, self.server.once(self.case).answers, self.right):
            self.fault(f"after {where}: {words}")
        return True

    def crashed(self, where: str) -> None:
        self.counts.crashes += 1
        log = self.server.server.error_log.read_text(errors="replace")
        self.fault(f"{where}: the server crashed", log[-6000:])
        self.server.start_again()

    def reads(self) -> None:
        """Sources of our figures fail."""
        for source in SOURCES:
            self.server.control.query(f"DO memdiag_fault('read', '{source}')")
            answers = self.server.once(self.case).answers
            self.server.control.query("DO memdiag_fault('read', '')")
            self.counts.injections += 1
            self.counts.reads += 1
            if words := unlike(self.case, answers, self.right):
                self.fault(f"'{source}' cannot be read: {words}")

    def check_tables(self) -> None:
        rows = self.server.control.query("SHOW FULL TABLES FROM d WHERE Table_type = 'BASE TABLE'").rows
        for row in self.server.control.query(f"CHECK TABLE {', '.join(f'd.{row[0]}' for row in rows)}").rows:
            if row[3] not in ("OK", "Table is already up to date"):
                self.fault(f"CHECK TABLE says {row}")
        self.counts.tables += len(rows)

    def fault(self, words: str, more: str = "") -> None:
        statement = "; ".join((*self.case.before, *self.case.texts))
        self.counts.faults.setdefault(statement[:200], words[:400])
        with self.log.open("a") as file:
            file.write(f"-- {self.case.kind}: {words}\n{statement[:2000]}\n{more}\n")
        say(f"{self.case.kind}: {words[:300]}: {statement[:120]}")


def render(counts: Counts) -> str:
    errors = ", ".join(f"{code}: {number}" for code, number in counts.errors.most_common()) or "none"
    kinds = ", ".join(f"{kind} {number}" for kind, number in counts.kinds.most_common(12))
    return (
        f"{counts.injections} injections in {counts.statements} statements of {len(counts.kinds)} kinds:"
        f" {len(counts.faults)} statements with a fault, {counts.crashes} crashes. {counts.failed} allocations of"
        f" {len(counts.pools)} pools and routes failed; {counts.hard} injections were hard, and in {counts.refused} the"
        f" ceiling refused a block; {counts.tolerated} of these the statement did without, the others had the errors {errors}; {counts.reads} were of sources of figures;"
        f" {counts.tables} tables were good. {kinds}."
    )


def work(options: argparse.Namespace, counts: Counts, keep: Callable[[], None], log: Path) -> None:
    with scratch() as folder:
        server = Switched(arm_list.choose(options.arm)[0], folder)
        try:
            server.prepare()
            trial = Trial(server, counts, log)
            due = every(20)
            while counts.injections < options.injections:
                seed = f"{options.seed}/{counts.rounds}"
                of_round = list(cases.at_random(seed, AT_RANDOM))
                if counts.rounds == 0 or options.case:
                    of_round += cases.fixed(str(folder))
                of_round = [case for case in of_round if (options.case or "") in "; ".join(case.texts)]
                random.Random(seed).shuffle(of_round)
                of_round.sort(key=lambda case: case.commits)  # a run of these takes a hundred times as long
                for place in range(counts.place, len(of_round), GROUP):
                    began = time.monotonic()
                    trial.several(of_round[place : place + GROUP])
                    counts.seconds += time.monotonic() - began
                    counts.place += GROUP
                    keep()
                    if due():
                        say(
                            f"{counts.injections}/{options.injections} injections, {counts.statements} statements,"
                            f" {counts.injections / counts.seconds:.0f} a second, {len(counts.faults)} with a fault"
                        )
                counts.rounds, counts.place = counts.rounds + 1, 0
                if options.case:
                    return
        finally:
            server.stop()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--injections", type=int, default=1_000_000, help="in all (default: %(default)s)")
    add_options(parser, "arm", "case")
    options = parser.parse_args()
    if options.injections < 1:
        raise Problem("--injections must be above zero")
    if not arm_list.choose(options.arm)[0].ours:
        raise Problem("--arm must name a server of this project: no other has pools")
    name = f"failing-{options.arm}-{options.seed}"
    doing = "failing allocations with this seed"
    with resumed(name, Counts, options, doing, keeps=not options.case) as (counts, keep, log):
        work(options, counts, keep, log)
    say(render(counts))
    return 1 if counts.faults else 0


if __name__ == "__main__":
    run_main("failing", main)
