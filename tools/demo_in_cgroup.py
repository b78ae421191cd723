#!/usr/bin/env python3
"""The phrase burst of ./run-demo in a memory cgroup of 1.3 times the peak of this server.

This server survives. The kernel kills stock, which takes part if its preset has been built. Both start on the same
data: those of the smoke run of tools/demo.py, or data that this program loads.
"""

import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness import burst, cgroup, corpus, phrase_searches
from harness.checks import Checks, run_checks
from harness.common import ROOT, lock, preset_of_arguments, say
from harness.problem import Problem, run_main
from harness.server import Build, Server
from harness.sql import SqlError

DOCUMENTS = 5_000
CLIENTS = 8
SECONDS = 5.0
FACTOR = 1.3


def searches(server: Server, statements: Sequence[str]) -> None:
    burst.run(server.socket, phrase_searches.DATABASE, statements, CLIENTS, SECONDS)


def survives(build: Build, folder: Path, statements: Sequence[str], limit_kb: int) -> str | None:
    """The level of its ceiling, if a server in a group of its own gets through the burst and still answers; "": it has
    none."""
    with (
        cgroup.memory_limit(limit_kb) as limit,
        Server(build, folder, phrase_searches.MYSQLD_OPTIONS, None, limit.wrapper()) as server,
    ):
        with contextlib.suppress(Problem, SqlError, OSError):
            server.start()
            searches(server, statements)
            if server.alive() and server.query("SELECT 1").scalar() == "1":
                level = server.query("SHOW GLOBAL STATUS LIKE 'Memdiag_ceiling_level'").rows
                return None if limit.figures()["oom_kills"] else str(level[0][1]) if level else ""
        if limit.figures()["oom_kills"] == 0:
            raise Problem(f"the server failed, and the kernel killed nothing: see {server.error_log}")
        return None


def run(checks: Checks, preset: str) -> None:
    folder = ROOT / "build" / preset / "demo-smoke"
    ours = Build.of_preset(ROOT, preset)
    with Server(ours, folder, phrase_searches.MYSQLD_OPTIONS) as server:
        texts = corpus.load().sample(DOCUMENTS)
        has_just_started = phrase_searches.start(server)
        if phrase_searches.load(server, texts) or not has_just_started:
            # The peak has no part of the server's work until now.
            server.stop()
            server.start()
        statements = phrase_searches.searching(texts)
        # Without a limit: this run measures the peak.
        searches(server, statements)
        peak_kb = server.memory().peak_kb
    limit_kb = int(FACTOR * peak_kb)
    say(f"== the burst takes {peak_kb >> 10} MB; now in a group of {limit_kb >> 10} MB")

    level = survives(ours, folder, statements, limit_kb)
    checks.check("ours survives", level is not None)
    checks.check("its ceiling is at work", level in ("1", "2", "3"), f"level {level}")
    try:
        stock = Build.of_preset(ROOT, "stock")
    except Problem:
        checks.skip("stock is killed", "preset stock is not built")
    else:
        checks.check("stock is killed", survives(stock, folder, statements, limit_kb) is None)


def main() -> int:
    preset = preset_of_arguments(__doc__)
    guard = ROOT / "build" / preset / "demo-smoke.lock"
    with lock(guard, "running the demonstration in this checkout"):
        return run_checks("demo_in_cgroup", "a memory cgroup", lambda checks: run(checks, preset))


if __name__ == "__main__":
    run_main("demo_in_cgroup", main)
