#!/usr/bin/env python3
"""Ends a server under load again and again, by SIGKILL or by a loss of power, and looks for what it had acknowledged.

  proof/kills.py [--kills 500] [--power 100] [--arm dev] [--seed 1]

Clients change rows, tables and full-text indexes, switch our variables, and our files are truncated. After each start
every acknowledged row has to be there, and no other; the error log has no [ERROR]; MEMDIAG_HISTORY can be read.
A loss of power drops what the server had not synced (volume.py); it needs root. An interrupted run goes on with the
next end. A server that lost something stays in its folder.
"""

import argparse
import contextlib
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.runner import arms as arm_list
from harness.common import say
from harness.problem import NotPossible, Problem, run_main
from harness.server import Server, initialise
from harness.sql import Connection, ConnectionLost, SqlError
from proof import clients, settings
from proof.clients import Client, Definer, Lost, Writer
from proof.places import STATES, Done, add_options, resumed, scratch
from proof.volume import Volume, volume

OPTIONS = (
    "--innodb-buffer-pool-size=64M",
    "--innodb-redo-log-capacity=32M",
    "--innodb-log-buffer-size=1M",
    "--innodb-ft-cache-size=1600000",
    "--log-bin=binlog",
    "--max-binlog-size=1M",
    "--binlog-expire-logs-seconds=1",
    "--table-open-cache=64",
)
DEFINERS = 2
FILES = ("memdiag_history.bin", "memdiag_profile.bin")
CHECK_EVERY = 10
VOLUME_MB = 700
START_SECONDS = 120.0


@dataclass
class Counts(Done):
    kills: int = 0
    while_starting: int = 0
    power: int = 0
    starts: int = 0
    acknowledged: int = 0
    verified_rows: int = 0
    words: int = 0
    words_lost: int = 0
    check_tables: int = 0
    last_runs: int = 0
    settings: int = 0
    truncated: int = 0
    faults: int = 0
    seconds: float = 0.0
    errors: Counter[str] = field(default_factory=Counter)  # of the clients, by code
    refused: int = 0  # reads and purges of the operator


class Load:
    """Everything that works on one server until it ends."""

    def __init__(self, server: Server, everyone: list[Client], ours: bool, dice: random.Random, counts: Counts) -> None:
        self._server, self._ours, self._dice, self._counts = server, ours, dice, counts
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=each.run, args=(server, self._stop)) for each in everyone]
        if ours:
            self._threads.append(threading.Thread(target=self._operator))

    def run(self, seconds: float) -> None:
        """The threads go on until the server has ended: join() then."""
        for thread in self._threads:
            thread.start()
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(left, 0.2))
            if not self._server.alive():
                raise Lost(f"the server ended by itself:\n{self._server.log_tail()}")
            if self._ours and self._dice.random() < 0.15:
                self.damage()

    def damage(self) -> None:
        """Truncates, overwrites or removes a file of ours."""
        path = self._server.data / self._dice.choice(FILES)
        with contextlib.suppress(FileNotFoundError):
            length = path.stat().st_size
            way = self._dice.randrange(4)
            if way == 0:
                path.unlink()
            elif way == 1:
                with path.open("r+b") as file:
                    file.seek(self._dice.randrange(length + 1))
                    file.write(self._dice.randbytes(200))
            else:
                os.truncate(path, 0 if way == 2 else self._dice.randrange(length + 1))
            self._counts.truncated += 1

    def join(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _operator(self) -> None:
        dice = random.Random(self._dice.random())
        with contextlib.suppress(ConnectionLost, OSError), self._server.connect(timeout=60) as session:
            tables = settings.names(session)
            while not self._stop.wait(0.05):
                verb = "SET PERSIST" if dice.random() < 0.1 else "SET GLOBAL"
                self._counts.settings += len(settings.change(session, dice, 1, verb))
                try:
                    settings.read_or_purge(session, dice, tables)
                except SqlError:
                    self._counts.refused += 1


class Trial:
    """One server with its clients, over many ends."""

    def __init__(self, arm: arm_list.Arm, folder: Path, seed: int, counts: Counts, power: Volume | None) -> None:
        self.arm, self.folder, self.counts, self.power = arm, folder, counts, power
        self.dice = random.Random(seed)
        self.everyone: list[Client] = [Writer(number, seed) for number in range(clients.WRITERS)]
        self.everyone += [Definer(clients.WRITERS + number, seed) for number in range(DEFINERS)]

    def prepare(self) -> None:
        initialise(self.arm.build(), self.folder / "data", OPTIONS[:2])
        os.sync()  # it may be a copy, which the first loss of power would take
        with self.arm.server(self.folder, OPTIONS) as server:
            server.start()
            with server.connect() as session:
                if self.arm.ours:
                    settings.require_all(session)
                for statement in clients.SCHEMA:
                    session.query(statement)

    def end(self, seconds: float, check: bool) -> None:
        """One start, what is there, a load, and one end. Raises Lost."""
        options = [*OPTIONS, *(settings.at_start(self.dice) if self.arm.ours else ())]
        server = self.arm.server(self.folder, options)
        try:
            self._start(server)
            self._look(server, check)
            load = Load(server, self.everyone, self.arm.ours, self.dice, self.counts)
            try:
                load.run(seconds)
            finally:
                self._end(server)
                load.join()
            if self.arm.ours and self.dice.random() < 0.1:
                load.damage()  # before the next start
        finally:
            server.stop()

    def look_once_more(self) -> None:
        with self.arm.server(self.folder, OPTIONS) as server:
            self._start(server)
            self._look(server, True)

    def _start(self, server: Server) -> None:
        if self.dice.random() < 0.1:
            self._end_while_starting(server, self.dice.uniform(0, 1.5))
        try:
            server.start(START_SECONDS)
        except Problem as problem:
            raise Lost(f"it did not start: {problem}") from None
        self.counts.starts += 1

    def _end_while_starting(self, server: Server, after: float) -> None:
        def end() -> None:
            while not server.pid and not given_up.is_set():
                time.sleep(0.005)
            given_up.wait(after)
            if server.pid:
                self._end(server)

        given_up = threading.Event()
        killer = threading.Thread(target=end)
        killer.start()
        try:
            server.start(START_SECONDS)
        except Problem as problem:
            if "-9" not in str(problem) and not self.power:
                raise Lost(f"it did not start: {problem}") from None
        finally:
            killer.join()
            server.stop()
        self.counts.while_starting += 1

    def _end(self, server: Server) -> None:
        if self.power:
            os.kill(server.pid, signal.SIGSTOP)  # so that it tells nobody of errors, and acknowledges nothing after
            time.sleep(0.05)
            self.power.lose_power()
            self.counts.power += 1
        else:
            self.counts.kills += 1
        os.kill(server.pid, signal.SIGKILL)
        while server.alive():
            time.sleep(0.005)
        if self.power:
            self.power.restore()

    def _look(self, server: Server, check: bool) -> None:
        errors = [line for line in server.error_log.read_text(errors="replace").splitlines() if "[ERROR]" in line]
        if errors:
            raise Lost("the error log has\n" + "\n".join(errors[:5]))
        with server.connect(clients.DATABASE, timeout=120) as session:
            for client in self.everyone:
                client.verify(session)
                if isinstance(client, Writer):
                    self.counts.verified_rows += len(client.rows)
            left = session.query("XA RECOVER").rows
            if left:
                raise Lost(f"prepared transactions of nobody: {left}")
            if self.arm.ours:
                self._last_run(session)
            if check:
                self._check_tables(session)

    def _last_run(self, session: Connection) -> None:
        found = int(
            session.query("SELECT COUNT(*) FROM information_schema.MEMDIAG_HISTORY WHERE RUN > 0").scalar() or 0
        )
        session.query("SELECT COUNT(*) FROM information_schema.MEMDIAG_LAST_RUN_PROFILE")
        self.counts.last_runs += found > 0

    def _check_tables(self, session: Connection) -> None:
        names = [str(row[0]) for row in session.query("SHOW TABLES").rows]
        for row in session.query(f"CHECK TABLE {', '.join(names)}").rows:
            if row[3] not in ("OK", "Table is already up to date"):
                raise Lost(f"CHECK TABLE says {row}")
        self.counts.check_tables += len(names)


@contextlib.contextmanager
def place(folder: Path, power: bool) -> Iterator[tuple[Path, Volume | None]]:
    """The server's folder, on a file system of its own where that is to lose power."""
    if not power:
        yield folder / "server", None
        return
    with volume(folder, VOLUME_MB) as made:
        yield made.mount / "server", made


def trial(options: argparse.Namespace, counts: Counts, power: bool, wanted: int, keep: Any) -> None:
    """Ends of one kind until there were so many. `keep` is called after each."""
    arm = arm_list.choose(options.arm)[0]

    def done() -> int:
        return counts.power if power else counts.kills

    if done() >= wanted:
        return
    with scratch() as folder, place(folder, power) as (home, lost_power):
        one = Trial(arm, home, options.seed * 1_000_000 + done(), counts, lost_power)
        one.prepare()
        number = 0
        try:
            while done() < wanted:
                began = time.monotonic()
                one.end(one.dice.uniform(0.3, options.seconds * 2), number % CHECK_EVERY == 0)
                number += 1
                counts.seconds += time.monotonic() - began
                now = clients.total(one.everyone)
                keep(now)
                if now.unexpected:
                    raise Lost(f"a client got what nothing explains: {now.unexpected[0]}")
                if number % CHECK_EVERY == 0:
                    say(f"{done()}/{wanted} {'losses of power' if power else 'kills'}: {brief(counts)}")
            one.look_once_more()
        except (Lost, SqlError) as lost:
            counts.faults += 1
            keep(clients.total(one.everyone))
            kept = Path(tempfile.mkdtemp(prefix="lost-", dir=STATES))
            shutil.copytree(home, kept / "server", ignore=shutil.ignore_patterns("*.sock*"))
            raise Problem(f"after {done()} ends (seed {options.seed}): {lost}\nthe server is kept in {kept}") from None


def brief(counts: Counts) -> str:
    return (
        f"{counts.acknowledged} acknowledged, {counts.verified_rows} rows found, {counts.words_lost} of"
        f" {counts.words} searches missed a row (stock does it too), {counts.check_tables} tables checked,"
        f" {counts.settings} settings, {counts.truncated} files damaged, {counts.last_runs} of {counts.starts} starts"
        f" with a last run, {counts.faults} faults"
    )


def render(counts: Counts) -> str:
    errors = ", ".join(f"{code}: {number}" for code, number in sorted(counts.errors.items())) or "none"
    return (
        f"{counts.kills} kills ({counts.while_starting} of all ends while the server started) and {counts.power} losses"
        f" of power in {counts.seconds / 60:.0f} min: {brief(counts)}. Errors that clients got: {errors};"
        f" {counts.refused} reads of our tables were refused."
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=500, help="in all (default: %(default)s)")
    parser.add_argument("--power", type=int, default=100, help="losses of power in all (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=1.5, help="of load before an end, on average")
    add_options(parser, "arm")
    options = parser.parse_args()
    if min(options.kills, options.power) < 0 or options.kills + options.power < 1 or options.seconds <= 0:
        raise Problem("--kills and --power must not be below zero, and --seconds must be above it")
    arm_list.choose(options.arm)
    name = f"kills-{options.arm}-{options.seed}"
    with resumed(name, Counts, options, "killing servers with this seed") as (counts, save, _):
        impossible = False
        for power, wanted in ((False, options.kills), (True, options.power)):
            base, errors = (counts.acknowledged, counts.words, counts.words_lost), Counter(counts.errors)

            def keep(now: clients.Tally, base: tuple[int, ...] = base, errors: Counter[str] = errors) -> None:
                counts.acknowledged = base[0] + now.acknowledged
                counts.words, counts.words_lost = base[1] + now.words, base[2] + now.words_lost
                counts.errors = errors + Counter({str(code): number for code, number in now.errors.items()})
                save()

            try:
                trial(options, counts, power, wanted, keep)
            except NotPossible as reason:
                impossible = True
                say(f"losses of power are not possible here: {reason}. --power 0 leaves them out")
    say(render(counts))
    return 1 if counts.faults or impossible else 0  # also those of the runs that this one goes on from


if __name__ == "__main__":
    run_main("kills", main)
