#!/usr/bin/env python3
"""Runs all checks of monitoring/, one after the other; the last line adds them up. ./run-tests starts it."""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from harness.checks import Total
from harness.problem import run_main
from harness.programs import CLEAN_UP, Programs
from monitoring import programs

CHECKS = ("rules.py", "server.py", "otlp.py")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--preset", default="dev")
    preset = parser.parse_args().preset
    programs.all_present()
    checks = Programs(CLEAN_UP)
    total = Total()
    for name in CHECKS:
        command = [sys.executable, str(Path(__file__).with_name(name))]
        if name != "rules.py":
            command += ["--preset", preset]
        total.add(checks.run(command))
    return total.finish("monitoring")


if __name__ == "__main__":
    run_main("monitoring", main)
