#!/usr/bin/env python3
"""Changes the limit of a server's memory cgroup while the server is under load.

It shrinks the limit to the safe limit, twenty times unless --rounds says otherwise, in turns in the server's own group
and in the one above. The server must survive each time. Then it shrinks the limit further. The output shows at which
part of the safe limit the kernel refuses or kills.
"""

import argparse
import contextlib
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness import burst, cgroup
from harness.checks import Checks, Failed, run_checks
from harness.common import ROOT, known_preset, say
from harness.problem import run_main
from harness.server import Build, Server, initialise
from harness.snapshots import of_cgroup
from harness.sql import Connection, SqlError
from harness.waiting import PATIENCE, until

CLIENTS = 6
WIDE_KB = 4 << 20
# The longest wait for a figure, and the longest time that is good: MEMDIAG_HISTORY has a sample each second.
HOST_SECONDS = 1.0
HISTORY_SECONDS = 3.0
DATABASE = "test"
# 70 MB of rows, which is more than the buffer pool.
LOAD = (
    "CREATE DATABASE test",
    "CREATE TABLE test.t (id INT AUTO_INCREMENT PRIMARY KEY, n INT, pad VARCHAR(1000))",
    "INSERT INTO test.t (n, pad) VALUES (1, REPEAT('p', 1000))",
    *["INSERT INTO test.t (n, pad) SELECT RAND() * 1000000, pad FROM test.t"] * 16,
    "CREATE TABLE test.log (id INT AUTO_INCREMENT PRIMARY KEY, text VARCHAR(1000))",
)
STATEMENTS = (
    "SELECT id, n FROM t WHERE id < 40000 ORDER BY n",
    "SELECT n % 5000 AS part, COUNT(*), MAX(pad) FROM t WHERE id < 40000 GROUP BY part",
    "INSERT INTO log (text) SELECT pad FROM t LIMIT 2000",
    "SELECT LENGTH(GROUP_CONCAT(pad)) FROM t WHERE id < 4000",
    "DO LENGTH(REPEAT('x', 4 << 20))",
)


class Load:
    """Clients that run statements until stop(); what ended them early is in `failure`."""

    def __init__(self, server: Server) -> None:
        self.failure: Exception | None = None
        self.statements = 0
        self._stop = threading.Event()
        self._server = server
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        def steps(number: int):  # noqa: ANN202 - burst.crowd has the type
            with Connection(self._server.socket, DATABASE) as session:
                yield 0
                while not self._stop.is_set():
                    for at in range(len(STATEMENTS)):
                        statement = STATEMENTS[(at + number) % len(STATEMENTS)]
                        yield len(session.query(statement).rows)
                        self.statements += 1

        try:
            burst.crowd(steps, CLIENTS)
        except Exception as error:  # noqa: BLE001 - shown by the caller
            self.failure = error

    def warm_up(self) -> None:
        """Until each client has run each statement, on a busy machine too: the safe limit knows what was seen."""
        time.sleep(5)
        until(lambda: self.statements >= 2 * CLIENTS * len(STATEMENTS) or self.failure)

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()


def follows(session: Connection, limit_bytes: int) -> tuple[float, float]:
    """Seconds for which MEMDIAG_HOST and MEMDIAG_HISTORY still have another limit: until the begin of the last statement
    that shows it, and until the last sample with it. A busy machine, which answers late, makes them no longer. PATIENCE:
    it does not end."""
    changed = time.time()
    host = history = PATIENCE
    shown = 0.0
    of_samples = f"""SELECT (SELECT LIMIT_BYTES FROM {{0}} ORDER BY TIME DESC LIMIT 1) AS NEWEST,
        COALESCE(UNIX_TIMESTAMP(MAX(TIME)), 0) AS UNTIL FROM {{0}} WHERE NOT LIMIT_BYTES <=> {limit_bytes}"""
    while PATIENCE in (host, history) and time.time() < changed + PATIENCE:
        if host == PATIENCE:
            asked = time.time() - changed
            if of_cgroup(session, "effective_limit") == limit_bytes:
                host = shown
            shown = asked
        if history == PATIENCE:
            ((newest, last),) = session.query(of_samples.format("information_schema.MEMDIAG_HISTORY")).rows
            if int(newest or 0) == limit_bytes:
                history = max(float(last) - changed, 0.0)
        time.sleep(0.02)
    return host, history


def rounded(limit_bytes: float) -> int:
    """As the kernel keeps it."""
    return int(limit_bytes) // 4096 * 4096


def shrink(checks: Checks, server: Server, groups: list[cgroup.Limit], load: Load, rounds: int) -> None:
    """Shrinks a limit to the safe limit, again and again."""
    slowest = [0.0, 0.0]
    limits = []
    before = load.statements
    with server.connect() as session:
        for number in range(rounds):
            group = groups[number % 2]
            safe = of_cgroup(session, "safe_limit")
            assert safe is not None, "the safe limit is not known"
            limits.append(safe)
            if not group.resize(safe):
                raise Failed(f"round {number}: the kernel refuses {safe}")
            took = follows(session, rounded(safe))
            slowest = [max(pair) for pair in zip(slowest, took, strict=True)]
            time.sleep(0.5)
            kills = groups[0].figures()["oom_kills"] + groups[1].figures()["oom_kills"]
            assert server.alive(), f"round {number}: not alive"
            assert not kills, f"round {number}: killed"
            assert load.failure is None, f"round {number}: {load.failure}"
            if not group.resize(WIDE_KB << 10):
                raise Failed(f"round {number}: the kernel refuses the wide limit")
            time.sleep(0.1)
    done = load.statements - before
    checks.check(
        f"it survives {rounds} times",
        True,
        f"safe limit {min(limits) >> 20} to {max(limits) >> 20} MB, {done} statements meanwhile",
    )
    checks.check("the load goes on meanwhile", done >= rounds, done)
    checks.check("MEMDIAG_HOST follows", slowest[0] < HOST_SECONDS, f"within {slowest[0]:.2f} s")
    checks.check("MEMDIAG_HISTORY follows", slowest[1] < HISTORY_SECONDS, f"within {slowest[1]:.2f} s")


def below(checks: Checks, server: Server, group: cgroup.Limit, load: Load) -> None:
    """Shows what happens below the safe limit, beginning with 0.9 of it."""
    parts = (0.9, 0.8, 0.7, 0.6, 0.5)
    ended = ""
    with contextlib.suppress(SqlError, OSError), server.connect() as session:
        for part in parts:
            safe = of_cgroup(session, "safe_limit")
            assert safe is not None, "the safe limit is not known"
            kept = session.query("SHOW GLOBAL STATUS LIKE 'Memdiag_safe_limit'").rows[0][1]
            if not group.resize(rounded(part * safe)):
                ended = "the kernel refuses it"
            else:
                time.sleep(2)
                if load.failure is not None or not server.alive():
                    ended = "the kernel kills the server"
            say(f"   at {part} of {safe >> 20} MB ({kept} in the status variable): {ended or 'it survives for 2 s'}")
            if ended:
                break
            group.resize(WIDE_KB << 10)
    if not ended and not server.alive():
        ended = "the kernel kills the server"
    checks.check("below, there is no room: it is not much too high", bool(ended), ended)


def watch(checks: Checks, server: Server) -> None:
    """The floor of the buffer pool is promised while the ceiling acts, as long as the pool has not written it."""
    with server.connect() as session:

        def promised() -> int:
            return int(session.query("SHOW GLOBAL STATUS LIKE 'Memdiag_ceiling_promised_bytes'").rows[0][1] or 0)

        session.query("SET GLOBAL memdiag_memory_target = AUTO")
        checks.check("AUTO promises the floor", until(lambda: promised() >= 2 << 20), promised())
        session.query("SET GLOBAL memdiag_memory_target = WATCH")
        checks.check("WATCH takes that back", until(lambda: promised() < 2 << 20), promised())
        session.query("SET GLOBAL memdiag_memory_target = OFF")


def run(checks: Checks, preset: str, rounds: int) -> None:
    build = Build.of_preset(ROOT, preset)
    with (
        tempfile.TemporaryDirectory(prefix="memdiag-") as folder,
        cgroup.memory_limit(WIDE_KB) as above,
        cgroup.memory_limit(WIDE_KB, above) as own,
    ):
        initialise(build, Path(folder) / "data", cgroup.OPTIONS[:2])
        with Server(build, Path(folder), cgroup.OPTIONS, None, own.wrapper()) as server:
            server.start()
            with checks.checking("switches from AUTO to WATCH"):
                watch(checks, server)
            for statement in LOAD:
                server.query(statement)
            load = Load(server)
            load.warm_up()
            with checks.checking("shrinks to the safe limit"):
                shrink(checks, server, [own, above], load, rounds)
            with checks.checking("shrinks below"):
                below(checks, server, own, load)
            load.stop()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--preset", default="dev", help="default: %(default)s")
    parser.add_argument("--rounds", type=int, default=20, help="default: %(default)s")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds must be 1 or more")
    preset = known_preset(options.preset)
    return run_checks("resize_in_cgroup", "a memory cgroup", lambda checks: run(checks, preset, options.rounds))


if __name__ == "__main__":
    run_main("resize_in_cgroup", main)
