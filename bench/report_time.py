#!/usr/bin/env python3
"""How long `memdiag report` takes on a server with many sessions.

See README.md for what the figures mean.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.runner import arms as arm_list
from bench.runner import prepared, report, rounds
from harness.problem import Problem, run_main
from harness.server import Server

OPTIONS = ("--innodb-buffer-pool-size=64M", "--max-connections=1100")
FORMS = ("html", "text", "json")
TARGET_SECONDS = 3.0


def processor_seconds(server: Server) -> float:
    """Processor seconds of the server, and of children of this process that have ended."""
    used = os.times()
    return server.usage().cpu_seconds + used.children_user + used.children_system


def make(server: Server, form: str) -> tuple[dict[str, float], str]:
    command = [
        sys.executable,
        "-m",
        "memdiag",
        "report",
        "--no-defaults",
        "-S",
        server.socket,
        "-u",
        "root",
        f"--{form}",
        "-o",
        "-",
    ]
    environment = {**os.environ, "PYTHONPATH": str(arm_list.TOP / "client")}
    began, used = time.monotonic(), processor_seconds(server)
    done = subprocess.run([str(word) for word in command], env=environment, capture_output=True, text=True, check=False)
    took = {"seconds": time.monotonic() - began, "cpu": processor_seconds(server) - used}
    if done.returncode:
        raise Problem(f"memdiag report failed: {done.stderr.strip()}")
    return took, done.stdout


def measure(arm: arm_list.Arm, folder: Path, sessions: int) -> dict[str, Any]:
    with arm.server(folder, OPTIONS) as server, contextlib.ExitStack() as held:
        server.start()
        for _ in range(sessions):
            held.enter_context(server.connect())
        make(server, "json")  # a warm-up: the system reads the program's files
        found = {form: make(server, form) for form in FORMS}
    page = json.loads(found["json"][1])
    seen = page["snapshots"][0]["sources"]["sessions"]["rows"][0]["SESSIONS"]
    if int(seen) < sessions:
        raise Problem(f"the report saw {seen} sessions of {sessions}")
    return {form: took for form, (took, _) in found.items()}


def render(raw: dict[str, Any]) -> str:
    rows, targets = [], []
    for arm, runs in raw["runs"].items():
        for form in FORMS:
            seconds = [run[form]["seconds"] for run in runs]
            middle = report.median(seconds)
            cpu = report.median(run[form]["cpu"] for run in runs)
            rows.append([f"{arm}, {form}", f"{middle:.2f}", f"{max(seconds):.2f}", f"{cpu:.2f}"])
            targets.append(report.target(f"{arm}, {form}: seconds", middle, "<=", TARGET_SECONDS))
    return "\n".join(
        [
            "# The time of a report\n",
            f"{raw['settings']['sessions']} sessions, seconds.\n",
            report.table(["arm, form", "median", "longest", "processors"], rows),
            "\n## Targets\n",
            report.target_table(targets),
            report.front_matter(raw),
        ]
    )


def main() -> int:
    parser = rounds.parser(__doc__.splitlines()[0], rounds=5, arms=("dev", "debian"))
    parser.add_argument("--sessions", type=int, default=1000, help="default: %(default)s")
    options = parser.parse_args()
    rounds.require_positive(options, "sessions")
    return rounds.run(
        "report_time",
        options,
        settings={"sessions": options.sessions, "mysqld": OPTIONS},
        prepare=lambda arms: prepared.template("empty", {}, arms, OPTIONS, lambda server: None),
        measure=rounds.one_by_one(lambda arm, folder: measure(arm, folder, options.sessions)),
        brief=lambda run: ", ".join(f"{form} {run[form]['seconds']:.2f} s" for form in FORMS),
        render=render,
        seconds_each=30,
    )


if __name__ == "__main__":
    run_main("report_time", main)
