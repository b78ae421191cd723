#!/usr/bin/env python3
"""Runs all checks of monitoring/, one after the other; the last line adds them up. ./run-tests starts it."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from harness.common import say
from harness.problem import Problem, run_main
from harness.programs import CLEAN_UP, Programs
from monitoring import programs

CHECKS = ("rules.py", "server.py", "otlp.py")
SUM = re.compile(r"(\d+) passed, (\d+) failed, (\d+) skipped[^\n]*\s*\Z")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--preset", default="dev")
    preset = parser.parse_args().preset
    try:
        programs.all_present()
    except Problem as problem:
        say(f"monitoring: 0 passed, 0 failed, 1 skipped: {problem}")
        return 0
    checks = Programs(CLEAN_UP)
    sums = [0, 0, 0]
    for name in CHECKS:
        command = [sys.executable, str(Path(__file__).with_name(name))]
        if name != "rules.py":
            command += ["--preset", preset]
        done = checks.run(command)
        say(done.stdout.rstrip())
        found = SUM.search(done.stdout)
        counts = [int(found[n]) for n in (1, 2, 3)] if found else [0, 1, 0]
        if done.returncode and not counts[1]:
            counts[1] = 1
        sums = [total + one for total, one in zip(sums, counts, strict=True)]
    say(f"monitoring: {sums[0]} passed, {sums[1]} failed, {sums[2]} skipped")
    return 1 if sums[1] else 0


if __name__ == "__main__":
    run_main("monitoring", main)
