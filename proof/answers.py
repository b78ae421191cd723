#!/usr/bin/env python3
"""Runs generated programs of statements on this server, with settings of ours at random, and on Debian's, and compares.

  proof/answers.py [--statements 1000000] [--seed 1] [--arms dev,debian] [--program NUMBER]

Rows (in order where ORDER BY is total), columns, warnings, errors and affected rows have to be equal. A difference is
made as short as it can be, and goes to build/proof/answers-SEED.differences. An interrupted run goes on with the next
program. Each --seed has servers of its own, so that several runs may work side by side.
"""

import argparse
import contextlib
import random
import re
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.runner import arms as arm_list
from harness.common import say
from harness.problem import Problem, run_main
from harness.server import Server, initialise
from harness.sql import Connection, ConnectionLost, SqlError
from proof import settings
from proof.compare import LOST, Answer, Session, difference, shortest
from proof.places import Done, add_options, every, resumed, scratch
from proof.programs import Statement, program

OPTIONS = (
    "--innodb-buffer-pool-size=64M",
    "--innodb-redo-log-capacity=16M",
    "--innodb-log-buffer-size=1M",
    "--innodb-doublewrite=OFF",
    "--innodb-flush-log-at-trx-commit=0",
    "--disable-log-bin",
    "--innodb-stats-persistent=OFF",
    "--event-scheduler=OFF",
    "--innodb-buffer-pool-load-at-startup=OFF",
    "--innodb-buffer-pool-dump-at-shutdown=OFF",
    "--innodb-print-all-deadlocks=OFF",
    "--tls-version=",
)
LENGTH = 90  # of a program
PROGRAMS_OF_A_SERVER = 250  # then both start anew, ours with other options
PATIENCE = 120.0
TRIES = 120  # to make a program shorter
SESSIONS = 2
# InnoDB purges records of deleted rows by itself.
PURGES, PURGE_SECONDS = 5, 0.4
READS = re.compile("SELECT|WITH|EXECUTE")
_PREPARE = re.compile(r"PREPARE (\w+) FROM '(.*)'$", re.DOTALL)
_ESTIMATES = re.compile(r"  \(cost=[^)]*\)")
# The ceiling ends a statement, as its page says.
ENDED = frozenset((3170,))
NO_SUCH_TABLE = 1146
CTE_MAX_RECURSION_DEPTH = 3636
# As create_tmp_table() names the tables of a statement's own. Those of ALTER TABLE are named otherwise.
_HIDDEN = re.compile(r"#sql[0-9a-f]+_[0-9a-f]+_[0-9a-f]+\b")


@dataclass
class Counts(Done):
    programs: int = 0
    statements: int = 0
    errors: int = 0
    warnings: int = 0
    rows: int = 0
    ended: int = 0
    plans: int = 0
    searches: int = 0
    stock_errors: int = 0
    settings: int = 0
    stock_crashes: int = 0
    seconds: float = 0.0
    kinds: Counter[str] = field(default_factory=Counter)
    differences: dict[str, str] = field(default_factory=dict)  # by the number of the program


@dataclass(frozen=True)
class Found:
    """`position`: of the statement in its program."""

    position: int
    words: str


class Pair:
    """The two servers. The first is ours; the control session changes its settings."""

    def __init__(self, arms: Sequence[arm_list.Arm], folder: Path) -> None:
        self._arms, self._folder = arms, folder
        self.servers: list[Server] = []
        self.control: Connection | None = None
        self.tables: list[str] = []

    def prepare(self) -> None:
        """Both begin with the same data directory."""
        initialise(self._arms[-1].build(), self._folder / "data", OPTIONS[:2])

    def start(self, dice: random.Random) -> None:
        self.stop()
        for number, arm in enumerate(self._arms):
            home = self._folder / str(number)
            shutil.rmtree(home, ignore_errors=True)
            shutil.copytree(self._folder / "data", home / "data")
            own = settings.at_start(dice) if arm.ours and number == 0 else ()
            server = arm.server(home, [*OPTIONS, *own])
            self.servers.append(server)
            server.start()
        if self._arms[0].ours:
            self.control = self.servers[0].connect(timeout=PATIENCE)
            settings.require_all(self.control)
            self.tables = settings.names(self.control)

    def stop(self) -> None:
        with contextlib.suppress(OSError):
            if self.control:
                self.control.close()
        self.control = None
        for server in self.servers:
            server.stop()
        self.servers = []

    def disturb(self, dice: random.Random, count: int) -> int:
        """Changes settings of ours, reads our tables, purges.
        @return the number of settings"""
        if not self.control or not count:
            return 0
        try:
            changed = len(settings.change(self.control, dice, count))
            with contextlib.suppress(SqlError):
                settings.read_or_purge(self.control, dice, self.tables)
        except (ConnectionLost, OSError):
            return 0  # the program's sessions notice it as well
        return changed


def run(pair: Pair, statements: Sequence[Statement], dice: random.Random, counts: Counts) -> Found | None:
    """One program in a database of its own, on both servers.
    @return the first difference"""
    with contextlib.ExitStack() as stack:
        sessions = [
            [stack.enter_context(Session(server.socket, timeout=PATIENCE)) for server in pair.servers]
            for _ in range(SESSIONS)
        ]
        ask(sessions[0], "DROP DATABASE IF EXISTS p")
        ask(sessions[0], "CREATE DATABASE p")
        for each in sessions:
            ask(each, "USE p")
        counts.settings += pair.disturb(dice, dice.choice((0, 1, 4)))
        found = None
        prepared: dict[str, str] = {}
        for position, statement in enumerate(statements):
            if dice.random() < 0.03:
                counts.settings += pair.disturb(dice, 1)
            mine, other = ask(sessions[statement.session], statement.text)
            counts.statements += 1
            counts.errors += mine.error != 0
            counts.warnings += len(mine.warnings)
            counts.rows += sum(len(part.rows) for part in mine.parts)
            counts.kinds[statement.text.split(" ", 1)[0]] += 1
            words = difference(mine, other, statement.ordered)
            explained(statement.text, prepared)
            if words and mine.error in ENDED:
                counts.ended += 1
                break
            if words and by_stock(statement.text, mine, other):
                counts.stock_errors += 1
                break  # stock lacks the rows, and later statements may ask for them, for their number or the error
            if words and by_plan(sessions[statement.session], statement, prepared, mine, other, words):
                counts.plans += 1
                if READS.match(statement.text):
                    continue
                break  # the servers may have changed different rows
            if words and "AGAINST" in statement.text and same_search(sessions[statement.session], statement):
                counts.searches += 1
                continue
            if words:
                found = Found(position, words)
                break
        clean_up(sessions[0])
    return found


def ask(sessions: Sequence[Session], text: str) -> list[Answer]:
    for session in sessions:
        session.send(text)
    return [session.receive() for session in sessions]


def explained(text: str, prepared: dict[str, str]) -> str:
    """The statement that EXPLAIN takes for it. `prepared`: those of the program so far, by name."""
    if match := _PREPARE.match(text):
        values = iter(("@v1", "@v2"))
        prepared[match[1]] = re.sub(r"\?", lambda _: next(values, "@v2"), match[2].replace("''", "'"))
    words = text.split(" ")
    return prepared.get(words[1], text) if words[0] == "EXECUTE" else text


def by_stock(statement: str, mine: Answer, other: Answer) -> bool:
    """True if stock does not find the table of a recursive UNION DISTINCT, and ours goes on. Programs and prepared
    statements of the generator have none, so the text that was sent has the words.

    The name in the message is all there is to tell it from a table of the program: the number is that of any table, and
    the other words are of the server's language.
    """
    return (
        not mine.lost
        and mine.error in (0, CTE_MAX_RECURSION_DEPTH)
        and other.error == NO_SUCH_TABLE
        and _HIDDEN.search(other.text) is not None
        and "WITH RECURSIVE" in statement
        and "UNION DISTINCT" in statement
    )


def by_plan(
    sessions: Sequence[Session], statement: Statement, prepared: dict[str, str], mine: Answer, other: Answer, words: str
) -> bool:
    """True if the difference is only one of plans: warnings, types of columns, or the number of the row that an error
    names. Other differences have to be gone when both servers have the same statistics.

    Statistics of a table change when it is closed, as a server of ours does that is short of memory.
    """
    if not other_plan(sessions, explained(statement.text, prepared)):
        return False
    if words.startswith(("warnings", "columns")) or (mine.error and mine.error == other.error):
        return True
    if not READS.match(statement.text):
        return False
    for name in base_tables(sessions):
        ask(sessions, f"ANALYZE TABLE {name}")
    return not difference(*ask(sessions, statement.text), statement.ordered)


def same_search(sessions: Sequence[Session], statement: Statement) -> bool:
    """True if the search has the same answer when it is asked again, or when all words are in the index.

    InnoDB takes words from its cache before they are in the index: a search between them finds neither. A deleted row
    counts in a rank until its words are dropped and its record is purged, sooner or later on stock as well.
    """

    def again() -> bool:
        return not difference(*ask(sessions, statement.text), statement.ordered)

    if again():
        return True
    names = base_tables(sessions)
    ask(sessions, "SET GLOBAL innodb_optimize_fulltext_only = ON")
    for name in names:
        ask(sessions, f"OPTIMIZE TABLE {name}")
    ask(sessions, "SET GLOBAL innodb_optimize_fulltext_only = OFF")
    for _ in range(PURGES):
        for name in names:
            ask(sessions, f"ANALYZE TABLE {name}")
        if again():
            return True
        time.sleep(PURGE_SECONDS)
    return False


def base_tables(sessions: Sequence[Session]) -> list[str]:
    names = "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'p' AND TABLE_TYPE = 'BASE TABLE'"
    return [str(row[0]) for row in ask(sessions, names)[0].parts[0].rows]


def other_plan(sessions: Sequence[Session], text: str) -> bool:
    """True if the servers choose different plans."""
    plans = []
    for answer in ask(sessions, f"EXPLAIN FORMAT=TREE {text}"):
        rows = [str(row[0]) for part in answer.parts for row in part.rows]
        plans.append(_ESTIMATES.sub("", "\n".join(rows)))
    return plans[0] != plans[1]


def clean_up(sessions: Sequence[Session]) -> None:
    """Ends what a program has left that DROP DATABASE would wait for."""
    for session in sessions:
        with contextlib.suppress(SqlError, OSError):
            for text in ("ROLLBACK", "UNLOCK TABLES"):
                session.query(text)
            for row in session.query("XA RECOVER").rows:
                session.query(f"XA ROLLBACK '{row[3]}'")


def alive(pair: Pair) -> bool:
    """False soon after a server has crashed."""
    end = time.monotonic() + 2
    while time.monotonic() < end:
        if not all(server.alive() for server in pair.servers):
            return False
        time.sleep(0.1)
    return True


def shorten(pair: Pair, statements: Sequence[Statement], seed: str, found: Found) -> tuple[list[Statement], Found]:
    """The same difference, by fewer statements. The server keeps the settings that it has."""
    last = found

    def shows(less: Sequence[Statement]) -> bool:
        nonlocal last
        again = run(pair, less, random.Random(seed), Counts())
        if again is not None and LOST in again.words and not alive(pair):
            pair.start(random.Random(seed))
        if again is None or again.words.split(":")[0] != found.words.split(":")[0]:
            return False
        last = again
        return True

    whole = list(statements[: found.position + 1])
    if not shows(whole):
        return whole, found
    return shortest(whole, shows, TRIES), last


def tell(number: int, seed: str, statements: Sequence[Statement], found: Found, log: Path) -> None:
    lines = [f"-- program {number} (seed {seed}): {found.words}"]
    lines += [f"/* session {each.session} */ {each.text};" for each in statements]
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a") as file:
        file.write("\n".join(lines) + "\n\n")
    say("\n".join(line[:600] for line in lines[:1] + lines[-6:]))


def one_program(pair: Pair, number: int, options: argparse.Namespace, counts: Counts, log: Path) -> None:
    seed = f"{options.seed}/{number}"
    statements = program(seed, LENGTH)
    found = run(pair, statements, random.Random(seed), counts)
    if found is None:
        return
    if LOST in found.words and not alive(pair):
        dead = [index for index, server in enumerate(pair.servers) if not server.alive()]
        logs = [pair.servers[index].error_log.read_text(errors="replace")[-6000:] for index in dead]
        kept = log.with_name(f"crash-{options.seed}-{number}.log")
        kept.write_text("\n\n".join(logs))
        pair.start(random.Random(seed))
        if dead == [1]:
            counts.stock_crashes += 1
            tell(number, seed, statements[: found.position + 1], Found(found.position, "stock crashed"), log)
            return
        found = Found(found.position, f"a server crashed: {dead} ({kept})")
        tell(number, seed, statements[: found.position + 1], found, log)
    else:
        short, found = shorten(pair, statements, seed, found)
        tell(number, seed, short, found, log)
    counts.differences[str(number)] = found.words[:300]


def render(counts: Counts) -> str:
    kinds = ", ".join(f"{kind} {number}" for kind, number in counts.kinds.most_common(16))
    each = counts.statements / counts.seconds if counts.seconds else 0
    return (
        f"{counts.statements} statements in {counts.programs} programs, {each:.0f} a second:"
        f" {len(counts.differences)} differences. {counts.rows} rows, {counts.errors} errors and {counts.warnings}"
        f" warnings were equal; settings of ours were changed {counts.settings} times; the ceiling ended"
        f" {counts.ended} programs; {counts.plans} statements differed by another plan, {counts.searches}"
        f" searches differed for a moment; stock did not find a hidden table in {counts.stock_errors} programs, and"
        f" crashed {counts.stock_crashes} times. {kinds}."
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--statements", type=int, default=1_000_000, help="in all (default: %(default)s)")
    parser.add_argument("--arms", default="dev,debian", help="two, of bench/runner/arms.py (default: %(default)s)")
    parser.add_argument("--program", type=int, help="only this one, of the seed")
    add_options(parser)
    options = parser.parse_args()
    arms = arm_list.choose(options.arms)
    if len(arms) != 2:
        raise Problem(f"--arms needs two servers, not '{options.arms}'")
    if options.statements < 1 or (options.program or 0) < 0:
        raise Problem("--statements must be above zero, and --program not below it")
    one = options.program is not None
    doing = "comparing answers with this seed"
    with (
        resumed(f"answers-{options.seed}", Counts, options, doing, "differences", not one) as (counts, keep, log),
        scratch() as folder,
    ):
        pair = Pair(arms, folder)
        try:
            pair.prepare()
            if one:
                pair.start(random.Random(f"{options.seed}/{options.program}"))
                one_program(pair, options.program, options, counts, log)
            else:
                compare(pair, options, counts, keep, log)
        finally:
            pair.stop()
    say(render(counts))
    return 1 if counts.differences else 0


def compare(pair: Pair, options: argparse.Namespace, counts: Counts, keep: Callable[[], None], log: Path) -> None:
    for number in list(counts.differences):
        # A change may have mended it since.
        pair.start(random.Random(f"{options.seed}/{number}"))
        again = Counts()
        one_program(pair, int(number), options, again, log)
        if not again.differences:
            del counts.differences[number]
            say(f"program {number} differs no more")
    due = every(20)
    while counts.statements < options.statements:
        if not pair.servers or counts.programs % PROGRAMS_OF_A_SERVER == 0:
            pair.start(random.Random(f"{options.seed}/start/{counts.programs}"))
        began = time.monotonic()
        one_program(pair, counts.programs, options, counts, log)
        counts.programs += 1
        counts.seconds += time.monotonic() - began
        keep()
        if due():
            left = (options.statements - counts.statements) * counts.seconds / counts.statements / 60
            say(
                f"{counts.statements}/{options.statements} statements, {counts.statements / counts.seconds:.0f} a"
                f" second, {left:.0f} min left, {counts.errors} errors, {len(counts.differences)} differences"
            )


if __name__ == "__main__":
    run_main("answers", main)
