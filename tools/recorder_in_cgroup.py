#!/usr/bin/env python3
"""The flight recorder of a server that the OOM killer ends: the next start names the code and the statement that grew.

User variables fill the server's memory cgroup. Near the limit the recorder must still write its snapshots.
"""

import contextlib
import itertools
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness import cgroup
from harness.checks import Checks, run_checks
from harness.common import ROOT, preset_of_arguments
from harness.problem import run_main
from harness.server import Build, Server, initialise
from harness.sql import SqlError
from harness.waiting import until

LIMIT_MB = 640
# 80 MB a second: the recorder takes two seconds from one high to the next.
STEP_MB = 4
PAUSE = 0.05
# The server grows so far in steps, each of which waits for the recorder: it may stall longer than the growth. Then it
# goes on to its end.
WAITS_MB = (100, 200, 300)
# A new high is 16 MB or 5% of RSS above the last, whose record REPEAT()'s copy was in as well.
LEAST_GROWTH_MB = 250
RECORD = ("--memdiag-profile=RECORD", "--memdiag-profile-sample-bytes=65536")


def statement(number: int) -> str:
    return f"SET @v{number} = REPEAT('v', {STEP_MB} << 20)"


FIRST = f"""SELECT POOL, FRAMES, GROWTH_BYTES, DIGEST <=> STATEMENT_DIGEST("{statement(1)}") AS IS_DIGEST
  FROM information_schema.MEMDIAG_LAST_RUN_PROFILE LIMIT 1"""


RECORDED = """SELECT COALESCE(MAX(BYTES), 0) FROM (SELECT SUM(STACK_BYTES) AS BYTES
  FROM information_schema.MEMDIAG_PROFILE_HISTORY WHERE RUN = 0 AND POOL = 'session' GROUP BY TIME) AS records"""


def grow(server: Server) -> None:
    """Until the server has gone."""
    with contextlib.suppress(SqlError, OSError), server.connect() as session:
        for number in itertools.count():
            session.query(statement(number))
            time.sleep(PAUSE)
            held_mb = (number + 1) * STEP_MB
            if held_mb in WAITS_MB:
                until(lambda held_mb=held_mb: int(float(session.query(RECORDED).scalar() or 0)) >> 20 >= held_mb - 50)
    until(lambda: not server.alive())


def check_last_run(checks: Checks, server: Server) -> None:
    rows = server.query(FIRST).dicts()
    checks.check("the last run has a profile", len(rows) == 1)
    if not rows:
        return
    row = rows[0]
    growth_mb = int(row["GROWTH_BYTES"] or 0) >> 20
    frames = row["FRAMES"] or ""
    checks.check("it names the code that grew", "user_var_entry::store" in frames, frames)
    checks.equal("it names the pool", row["POOL"], "session")
    checks.check("it names the statement", row["IS_DIGEST"] == "1")
    checks.check("it was recorded near the limit", growth_mb >= LEAST_GROWTH_MB, f"{growth_mb} MB")


def run(checks: Checks, preset: str) -> None:
    build = Build.of_preset(ROOT, preset)
    with tempfile.TemporaryDirectory(prefix="memdiag-") as name, cgroup.memory_limit(LIMIT_MB << 10) as limit:
        folder = Path(name)
        initialise(build, folder / "data", cgroup.OPTIONS[:2])
        with Server(build, folder, (*cgroup.OPTIONS, *RECORD), None, limit.wrapper()) as server:
            server.start()
            grow(server)
            kills = limit.figures()["oom_kills"]
            checks.check("the kernel kills the server", kills > 0 and not server.alive(), kills)
        with Server(build, folder, cgroup.OPTIONS) as server:
            server.start()
            with checks.checking("the next start reads what was recorded"):
                check_last_run(checks, server)


def main() -> int:
    preset = preset_of_arguments(__doc__)
    return run_checks("recorder_in_cgroup", "a memory cgroup", lambda checks: run(checks, preset))


if __name__ == "__main__":
    run_main("recorder_in_cgroup", main)
