#!/usr/bin/env python3
"""What else happens to a server below the ceiling while its clients work: the limit changes, a neighbour takes memory,
the buffer pool is resized, the server ends or is killed, the target is switched, the server is a replica.

Each scenario makes a cgroup of its own. Those of one commit are kept in a file, and a run that was interrupted goes on
behind the last one. README.md says what a good one is.
"""

import argparse
import contextlib
import functools
import itertools
import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.runner import arms as arm_list
from bench.runner import limited, memory, prepared, report, rounds
from bench.runner.turns import keep, turns_of
from bench.workloads.killers import KILLERS, Killers
from harness import cgroup
from harness.burst import Sampler
from harness.common import say
from harness.network import ON_LOOPBACK, free_port
from harness.problem import Problem, run_main
from harness.server import Server
from harness.sql import Connection, SqlError
from harness.waiting import until

ORDINARY = KILLERS["ordinary"]
MB = 1 << 20
# A statement of the administrator, and a step of the server, take no longer.
PATIENCE_SECONDS = 60.0
# A client whose statement takes longer counts as lost. It may be one of many that run one at a time.
STALLED_SECONDS = 300.0
RESIZES = 200
SWITCHES = 1000
# Two processors serve 33 clients, and perhaps other programs.
MOST_OF_A_SET_SECONDS = 5.0
NEIGHBOUR_MB = 200
NEIGHBOUR = """
import mmap, time
while True:
    taken = mmap.mmap(-1, SIZE)
    for at in range(0, SIZE, 4096):
        taken[at] = 1
    time.sleep(0.5)
    taken.close()
    time.sleep(0.5)
"""


def expect(true: object, words: str) -> None:
    if not true:
        raise Problem(words)


def wait(words: str, true: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> float:
    """The seconds until it is true."""
    began = time.monotonic()
    expect(until(true, seconds, 0.02), f"{words} after {seconds:.0f} s")
    return time.monotonic() - began


@dataclass
class Stage:
    """A server in a group of its own."""

    server: Server
    limit: cgroup.Limit
    limit_mb: int
    clients: int
    steps: int  # 0: as many as the scenario has
    got: limited.Answers = field(default_factory=limited.Answers)
    over: threading.Event = field(default_factory=threading.Event)
    # Beside the clients' answers.
    figures: dict[str, Any] = field(default_factory=dict)

    def number(self, of_scenario: int) -> int:
        return self.steps or of_scenario

    def status(self, name: str) -> int:
        return int(limited.status(self.server)[name] or 0)

    def parked(self) -> None:
        wait("no frame is parked", lambda: self.status("parked_bytes") >= 32 * MB)

    @contextlib.contextmanager
    def load(self) -> Iterator[None]:
        """Ordinary clients and a probe, until the end of the block."""
        self.over.clear()
        threads = [threading.Thread(target=self._client, args=(number,), daemon=True) for number in range(self.clients)]
        with limited.probing(self.server, math.inf, self.got):
            for thread in threads:
                thread.start()
            try:
                yield
            finally:
                self.over.set()
                end = time.monotonic() + STALLED_SECONDS
                for thread in threads:
                    thread.join(max(0.0, end - time.monotonic()))
        expect(not any(thread.is_alive() for thread in threads), "clients were not answered")

    def connection(self) -> Connection:
        return Connection(self.server.socket, Killers.name, limited.ACCOUNT, STALLED_SECONDS)

    def _client(self, number: int) -> None:
        got = self.got
        try:
            with contextlib.suppress(OSError), self.connection() as session:
                for text in ORDINARY.statements(number):
                    if self.over.is_set() or not got.ask(session, text):
                        return
        except SqlError as error:
            with got.lock:
                got.count(error.code)


# --- the scenarios ---------------------------------------------------------------------------


def _lower(limit: cgroup.Limit, to_mb: int) -> None:
    """As an administrator does it: as low as the kernel lets the limit go without a kill, and again."""
    began = time.monotonic()
    while not limit.resize(to_mb * MB):
        expect(time.monotonic() < began + PATIENCE_SECONDS, f"the limit cannot be lowered to {to_mb} MB")
        limit.resize(max(to_mb * MB, limit.used_bytes() + to_mb * MB // 8))
        time.sleep(0.1)


def changed_limit(stage: Stage) -> None:
    slowest = 0.0
    with stage.load():
        for number in range(stage.number(RESIZES)):
            began = time.monotonic()
            _lower(stage.limit, stage.limit_mb * 2 // 3)
            slowest = max(slowest, time.monotonic() - began)
            time.sleep(0.25)
            expect(stage.limit.resize(stage.limit_mb * MB), "the limit cannot be raised")
            # Now and then long enough for frames to come back.
            time.sleep(0.25 if number % 20 else 13)
            expect(stage.server.alive(), "the server is gone")
    stage.figures["slowest_s"] = slowest


def neighbour(stage: Stage) -> None:
    program = NEIGHBOUR.replace("SIZE", str(NEIGHBOUR_MB * MB))
    other = subprocess.Popen([*stage.limit.wrapper(), sys.executable, "-c", program])
    try:
        with stage.load():
            for _ in range(stage.number(60)):
                time.sleep(0.5)
                expect(other.poll() is None, "the neighbour is gone")
                expect(stage.server.alive(), "the server is gone")
    finally:
        other.kill()
        other.wait()


def resized_pool(stage: Stage) -> None:
    server = stage.server
    sizes = (512, 1024, 640)
    slowest = 0.0
    with stage.load():
        for number in range(stage.number(9)):
            stage.parked()
            size = sizes[number % len(sizes)] * MB
            began = time.monotonic()
            server.query(f"SET GLOBAL innodb_buffer_pool_size = {size}")
            wait(
                f"the resize to {size >> 20} MB goes on",
                lambda: (
                    server.query(
                        "SELECT VARIABLE_VALUE FROM performance_schema.global_status"
                        " WHERE VARIABLE_NAME = 'Innodb_buffer_pool_resize_status_code'"
                    ).scalar()
                    == "0"
                ),
                2 * PATIENCE_SECONDS,
            )
            slowest = max(slowest, time.monotonic() - began)
            got = int(server.query("SELECT @@GLOBAL.innodb_buffer_pool_size").scalar() or 0)
            expect(got == size, f"the pool has {got >> 20} MB")
            time.sleep(2)
    stage.figures["slowest_s"] = slowest


class Writer:
    """Notes the rows that were acknowledged."""

    def __init__(self, stage: Stage, number: int) -> None:
        self.acknowledged: list[int] = []
        self._stage = stage
        self._number = number
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        with contextlib.suppress(OSError, SqlError), self._stage.connection() as session:
            for each in itertools.count():
                if self._stage.over.is_set():
                    return
                id_ = each * 100 + self._number
                session.query(f"INSERT INTO kept VALUES ({id_}, REPEAT('{id_ % 10}', 2000))")
                self.acknowledged.append(id_)


def _ended(stage: Stage, number: signal.Signals) -> None:
    """Ends the server by a signal while frames are parked, starts it again, and looks for the rows."""
    server = stage.server
    server.query("CREATE TABLE kept (id INT PRIMARY KEY, body TEXT)", Killers.name)
    slowest = slowest_start = 0.0
    acknowledged: set[int] = set()
    for round_ in range(stage.number(3)):
        with stage.load():
            writers = [Writer(stage, 10 * round_ + each) for each in range(4)]
            stage.parked()
            time.sleep(2)
            expect(stage.status("parked_bytes"), "no frame is parked any more")
            # The signal ends the clients' connections. Their answers are counted before it.
            figures = stage.got.figures()
            rows = {text: set(found) for text, found in stage.got.rows.items()}
            stage.over.set()
            os.kill(server.pid, number)
            slowest = max(slowest, wait("the server does not end", lambda: not server.alive()))
        for writer in writers:
            writer.thread.join()
            acknowledged |= set(writer.acknowledged)
        if number == signal.SIGTERM:
            log = server.error_log.read_text(errors="replace")
            expect("Shutdown complete" in log, f"the shutdown was not clean:\n{server.log_tail()}")
        server.stop()
        began = time.monotonic()
        server.start()
        slowest_start = max(slowest_start, time.monotonic() - began)
        there = {int(str(id_)) for (id_,) in server.query("SELECT id FROM kept", Killers.name).rows}
        expect(acknowledged <= there, f"{len(acknowledged - there)} acknowledged rows are lost")
        damaged = server.query("SELECT COUNT(*) FROM kept WHERE body <> REPEAT(id % 10, 2000)", Killers.name)
        expect(damaged.scalar() == "0", "rows are damaged")
        checked = server.query("CHECK TABLE kept, things", Killers.name).rows
        expect(all(row[-1] == "OK" for row in checked), str(checked))
        stage.got = _with(stage.got, figures, rows)
    expect(acknowledged, "no row was written")
    stage.figures.update(slowest_s=slowest, slowest_start_s=slowest_start, acknowledged=len(acknowledged))


def _with(before: limited.Answers, figures: dict[str, Any], rows: dict[str, set[str]]) -> limited.Answers:
    """The answers as they were then. Clients that still run count in the former object."""
    got = limited.Answers(rows=rows, said=set(figures["said"]))
    got.longest_probe.value = figures["longest_probe_s"]
    got.answers, got.lost, got.no_memory = figures["answers"], figures["lost"], figures["ended"]
    got.other_errors.update(figures["other_errors"])
    return got


def switched_target(stage: Stage) -> None:
    """The group has room for all: the ceiling is at work below a target of bytes alone."""
    targets = itertools.cycle(("OFF", "WATCH", "AUTO", "1100M", "OFF", "1100M", "WATCH", "1G"))
    slowest = 0.0
    with stage.load(), stage.server.connect() as session:
        for number in range(stage.number(SWITCHES)):
            began = time.monotonic()
            session.query(f"SET GLOBAL memdiag_memory_target = '{next(targets)}'")
            slowest = max(slowest, time.monotonic() - began)
            time.sleep(0.02 + 0.5 * (number % 20 == 0))
        session.query("SET GLOBAL memdiag_memory_target = OFF")
        wait("frames stay parked", lambda: stage.status("parked_bytes") == 0)
        session.query("SET GLOBAL memdiag_memory_target = AUTO")
    stage.figures["slowest_s"] = slowest
    expect(slowest < MOST_OF_A_SET_SECONDS, f"a SET took {slowest:.1f} s")


def replica(stage: Stage, template: Path) -> None:
    """It applies transactions of large rows while clients read; its source is outside of the group."""
    arm = arm_list.choose("dev")[0]
    port = free_port()
    network = (*ON_LOOPBACK, f"--port={port}", "--max-allowed-packet=256M")
    rows, megabytes = 12, 8
    with (
        prepared.copy(template, arm) as folder,
        arm.server(folder, (*Killers(pool_mb=256).mysqld_options(), *network, "--server-id=1", *_BINLOG)) as source,
    ):
        (folder / "data" / "auto.cnf").unlink()
        source.start()
        with source.connect() as session:
            session.query("SET sql_log_bin = 0")
            session.query("CREATE USER copier IDENTIFIED BY 'copier'")
            session.query("GRANT REPLICATION SLAVE ON *.* TO copier")
        stage.server.query(
            f"CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = {port}, SOURCE_USER = 'copier',"
            " SOURCE_PASSWORD = 'copier', GET_SOURCE_PUBLIC_KEY = 1"
        )
        stage.server.query("START REPLICA")
        with stage.load():
            with source.connect(Killers.name) as session:
                session.query("CREATE TABLE large (id INT PRIMARY KEY AUTO_INCREMENT, n INT, body LONGBLOB)")
                for number in range(stage.number(12)):
                    session.query("BEGIN")
                    for _ in range(rows):
                        session.query(
                            f"INSERT INTO large (n, body) VALUES (0, REPEAT('{number % 10}', {megabytes * MB}))"
                        )
                    session.query("COMMIT")
                    # Its events have the rows before and after.
                    session.query(f"UPDATE large SET n = n + 1 WHERE id > {number * rows}")
            logs = source.query("SHOW BINARY LOG STATUS").rows[0]
            stage.figures["caught_up_s"] = wait(
                "the replica does not catch up", functools.partial(_has_applied, stage, logs[0], logs[1]), 300
            )
        sums = "SELECT COUNT(*), SUM(n), SUM(LENGTH(body)), SUM(CRC32(body)) FROM large"
        expect(
            source.query(sums, Killers.name).rows == stage.server.query(sums, Killers.name).rows,
            "the rows are different",
        )
        of_replication = stage.server.query(
            "SELECT ACTION, DURATION_MICROSECONDS FROM information_schema.MEMDIAG_CEILING JOIN performance_schema.threads USING"
            " (PROCESSLIST_ID) WHERE NAME LIKE 'thread/sql/replica%'"
        ).rows
        expect(not of_replication, f"replication: {of_replication}")
        stage.server.query("STOP REPLICA")


def _has_applied(stage: Stage, file: str | None, position: str | None) -> bool:
    (status,) = stage.server.query("SHOW REPLICA STATUS").dicts()
    errors = {status["Last_SQL_Error"], status["Last_IO_Error"]} - {""}
    expect(not errors, f"the replica: {errors}")
    expect(status["Replica_SQL_Running"] == "Yes", "the replica has stopped")
    return (status["Relay_Source_Log_File"], status["Exec_Source_Log_Pos"]) == (file, position)


_BINLOG = ("--skip-disable-log-bin", "--log-bin=binlog", "--sync-binlog=0", "--max-binlog-size=1G")


@dataclass(frozen=True)
class Scenario:
    run: Callable[..., None]
    # The cgroup's limit is so many times --limit-mb.
    limit: float = 1.0
    options: tuple[str, ...] = ()
    # run() takes the template of the data, too.
    takes_data: bool = False


SCENARIOS: dict[str, Scenario] = {
    "changed_limit": Scenario(changed_limit),
    "neighbour": Scenario(neighbour),
    "resized_pool": Scenario(resized_pool),
    "sigterm": Scenario(lambda stage: _ended(stage, signal.SIGTERM)),
    "sigkill": Scenario(lambda stage: _ended(stage, signal.SIGKILL)),
    "switched_target": Scenario(switched_target, limit=4.0),
    "replica": Scenario(
        replica, options=("--server-id=2", "--relay-log=relay-bin", "--sync-relay-log=0"), takes_data=True
    ),
}


# --- the course ------------------------------------------------------------------------------


def perform(name: str, options: argparse.Namespace, template: Path, unlimited: limited.Unlimited) -> dict[str, Any]:
    scenario = SCENARIOS[name]
    arm = arm_list.choose(options.arms)[0]
    # The pool fits the limit that is lowest in the scenario at its floor, and not as a whole.
    workload = Killers(pool_mb=options.limit_mb * 3 // 4)
    run: dict[str, Any] = {"scenario": name, "problem": ""}
    began = time.monotonic()
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(prepared.copy(template, arm))
        limit = stack.enter_context(cgroup.memory_limit(int(options.limit_mb * scenario.limit) << 10))
        server = stack.enter_context(
            arm.server(folder, (*workload.mysqld_options(), *scenario.options), limit.wrapper())
        )
        stage = Stage(server, limit, options.limit_mb, options.clients, options.steps)
        used = Sampler(0.05, limit.used_bytes)
        try:
            server.start()
            limited.prepare(server)
            with used:
                scenario.run(stage, template) if scenario.takes_data else scenario.run(stage)
            run["status"] = limited.status(server)
            run["actions"] = limited.rows_by(server, "ACTION", "MEMDIAG_CEILING")
            server.query("SELECT 1")
        except (Problem, SqlError, OSError) as problem:
            run["problem"] = str(problem)
        run["alive"] = server.alive()
        run["oom_kills"] = limit.figures()["oom_kills"]
        run["peak_kb"] = max((bytes_ for _, bytes_ in used.samples), default=0) >> 10
        if server.alive():
            server.stop()
    run["seconds"] = time.monotonic() - began
    wrong = unlimited.wrong(stage.got.rows)
    return {**run, **stage.got.figures(), **stage.figures, "wrong": len(wrong), "wrong_texts": wrong[:3]}


def is_good(run: dict[str, Any]) -> bool:
    return (
        not run["problem"]
        and run["alive"]
        and not run["oom_kills"]
        and not run["lost"]
        and not run["other_errors"]
        and not run["wrong"]
        and run["answers"] > 0
    )


def _own(run: dict[str, Any]) -> str:
    """The figures that only this scenario has."""
    names = ("slowest_s", "slowest_start_s", "caught_up_s", "acknowledged")
    shown = [f"{name.removesuffix('_s').replace('_', ' ')} {run[name]:.4g}" for name in names if name in run]
    return ", ".join([*shown, *([run["problem"].splitlines()[0]] if run["problem"] else [])])


def brief(run: dict[str, Any]) -> str:
    errors = f", errors {run['other_errors']}" if run["other_errors"] else ""
    return (
        f"{'good' if is_good(run) else 'BAD'}; {run['seconds']:.0f} s, peak {run['peak_kb'] >> 10} MB,"
        f" {run['oom_kills']} OOM kills; {run['answers']} answers, {run['ended']} ended, {run['lost']} lost{errors},"
        f" {run['wrong']} wrong, SELECT 1 {run['longest_probe_s']:.2f} s; {_own(run)}; {run.get('actions', {})}"
    )


def render(raw: dict[str, Any]) -> str:
    heads = ["scenario", "good", "OOM kills", "answers", "ended", "lost", "other errors", "wrong", "SELECT 1, s", "own"]
    rows = [
        [
            run["scenario"],
            "yes" if is_good(run) else "NO",
            f"{run['oom_kills']}",
            f"{run['answers']}",
            f"{run['ended']}",
            f"{run['lost']}",
            f"{sum(run['other_errors'].values())}",
            f"{run['wrong']}",
            f"{run['longest_probe_s']:.2f}",
            _own(run),
        ]
        for run in raw["runs"]
    ]
    good = sum(map(is_good, raw["runs"])) / len(raw["runs"]) if raw["runs"] else None
    return "\n".join(
        [
            "# The ceiling: scenarios\n",
            f"{raw['settings']['clients']} ordinary clients, a limit of {raw['settings']['limit_mb']} MB.\n",
            report.table(heads, rows),
            "\n## Targets\n",
            report.target_table([report.target("good scenarios", good, ">=", 1)]),
            report.front_matter(raw),
        ]
    )


def _chosen(text: str) -> list[str]:
    names = text.split(",")
    if unknown := [name for name in names if name not in SCENARIOS]:
        raise Problem(f"unknown scenario: {unknown[0]}; there are {', '.join(SCENARIOS)}")
    return names


def main() -> int:
    parser = rounds.parser((__doc__ or "").splitlines()[0], rounds=1, arms=("dev",), one_arm=True)
    parser.add_argument("--scenarios", type=_chosen, default=list(SCENARIOS), help=f"of: {', '.join(SCENARIOS)}")
    parser.add_argument("--limit-mb", type=int, default=1200, help="of the cgroup (default: %(default)s)")
    parser.add_argument("--clients", type=int, default=32, help="default: %(default)s")
    parser.add_argument("--steps", type=int, default=0, help="of each scenario, instead of its own number")
    parser.add_argument("--turns", type=Path, help="the file of scenarios (default: one of this commit)")
    options = parser.parse_args()
    rounds.require_positive(options, "limit_mb", "clients")
    arms = arm_list.choose(options.arms)
    file = options.turns or prepared.WORK / f"ceiling-scenarios-{report.commit()}.jsonl"
    runs = [run for run in turns_of(file) if run["scenario"] in options.scenarios]
    done = [run["scenario"] for run in runs]
    rest = [name for name in options.scenarios for _ in range(options.rounds - done.count(name))]
    template = memory.template(Killers(), arms)
    say(f"{len(rest)} of {options.rounds * len(options.scenarios)} scenarios to do, about two minutes each ({file})")
    with limited.Unlimited(arm_list.choose("dev")[0], template) as unlimited:
        for number, name in enumerate(rest, 1):
            run = perform(name, options, template, unlimited)
            keep(file, run)
            runs.append(run)
            say(f"{number}/{len(rest)} {name}: {brief(run)}")
    raw = rounds.record(options, arms, {"limit_mb": options.limit_mb, "clients": options.clients})
    raw["runs"] = runs
    report.save(report.stem("ceiling_scenarios"), render(raw), options.save)
    return 0 if all(map(is_good, runs)) else 1


if __name__ == "__main__":
    run_main("ceiling_scenarios", main)
