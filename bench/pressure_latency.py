#!/usr/bin/env python3
"""Time until the pressure watcher gives memory back when a memory cgroup comes near its limit.

The server keeps unused pages. Another process of the same group grows until the group's use is above
memdiag_pressure_limit. README.md explains the figures.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.runner import arms as arm_list
from bench.runner import prepared, report, rounds
from harness import cgroup
from harness.problem import Problem, run_main
from harness.server import Server

OPTIONS = (
    "--memdiag-pressure-watcher=ON",
    "--innodb-buffer-pool-size=64M",
    "--max-allowed-packet=1G",
    # The stalls are those of the whole machine.
    "--memdiag-pressure-stall-percent=0",
)
LIMIT_MB = 1500
LIMIT_PERCENT = 80
UNUSED_MB = 400
TARGET_SECONDS = 1.0
PATIENCE_SECONDS = 20.0
# This process holds as many megabytes as the last line of its input says.
HOG = "import sys\nfor line in sys.stdin: held = b'x' * (int(line) << 20)"


def react(server: Server, limit: cgroup.Limit, hog: Popen[bytes]) -> float:
    """Seconds from the moment when use exceeds the limit to the end of the first purge."""
    assert hog.stdin
    bound = (LIMIT_MB << 20) * LIMIT_PERCENT // 100
    with server.connect() as session:
        session.query(f"SET @a = REPEAT('a', {UNUSED_MB} << 20)")
        session.query("SET @a = NULL")
        session.query("DO SLEEP(1)")
        began = float(session.query("SELECT UNIX_TIMESTAMP(NOW(6))").scalar() or 0)
        room = bound - limit.used_bytes()
        if room <= 0:
            raise Problem("the group is above the watcher's limit without any growth")
        hog.stdin.write(b"%d\n" % ((room >> 20) + 100))
        hog.stdin.flush()
        while limit.used_bytes() < bound:
            if time.time() > began + PATIENCE_SECONDS:
                raise Problem(f"the group has {limit.used_bytes()} bytes and does not reach the watcher's {bound}")
        passed = time.time()
        while True:
            first = session.query(
                "SELECT MIN(UNIX_TIMESTAMP(TIME)) FROM information_schema.MEMDIAG_PURGES"
                f" WHERE REASON = 'pressure' AND UNIX_TIMESTAMP(TIME) > {began} AND RELEASED_BYTES > 0"
            ).scalar()
            if first is not None:
                break
            if time.time() > passed + PATIENCE_SECONDS:
                raise Problem("the watcher did nothing")
            time.sleep(0.2)
    return float(first) - passed


def measure(arm: arm_list.Arm, folder: Path) -> dict[str, Any]:
    with (
        cgroup.memory_limit(LIMIT_MB << 10) as limit,
        arm.server(folder, OPTIONS, limit.wrapper()) as server,
        Popen([*limit.wrapper(), sys.executable, "-c", HOG], stdin=PIPE) as hog,
    ):
        server.start()
        server.query(f"SET GLOBAL memdiag_pressure_limit = {LIMIT_PERCENT}")
        server.query("SET GLOBAL memdiag_quiet_ms = 'session=0'")
        server.query("SET GLOBAL memdiag_dirty_decay_ms = 'session=-1'")
        try:
            return {"seconds": react(server, limit, hog)}
        finally:
            hog.kill()


def render(raw: dict[str, Any]) -> str:
    (runs,) = raw["runs"].values()
    seconds = sorted(run["seconds"] for run in runs)
    return "\n".join(
        [
            "# Time until memory goes back under pressure\n",
            f"{len(seconds)} times: median {report.median(seconds):.3f} s, longest {seconds[-1]:.3f} s.\n",
            report.target_table(
                [report.target("seconds until memory has gone back, the longest", seconds[-1], "<=", TARGET_SECONDS)]
            ),
            report.front_matter(raw),
        ]
    )


def main() -> int:
    # A new server for each: one that was under pressure a moment ago acts more slowly.
    parser = rounds.parser(__doc__.splitlines()[0], rounds=10, arms=("dev",), one_arm=True)
    options = parser.parse_args()
    rounds.require_positive(options)
    return rounds.run(
        "pressure_latency",
        options,
        settings={"limit_mb": LIMIT_MB, "limit_percent": LIMIT_PERCENT},
        prepare=lambda arms: prepared.template("pressure_latency", {}, arms, (), lambda server: None),
        measure=rounds.one_by_one(measure),
        brief=lambda run: f"{run['seconds']:.3f} s",
        render=render,
        seconds_each=12,
    )


if __name__ == "__main__":
    run_main("pressure_latency", main)
