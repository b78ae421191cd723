#!/usr/bin/env python3
"""Runs all checks of monitoring/, two at a time; the last line adds them up. ./run-tests starts it."""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from harness.checks import run_all
from harness.problem import run_main
from monitoring import programs

# Each row runs in its order, beside the others. The rules need no server.
CHECKS = (("rules.py",), ("server.py", "otlp.py"))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--preset", default="dev")
    preset = parser.parse_args().preset
    programs.all_present()

    def command(name: str) -> list[str]:
        needs_server = name != "rules.py"
        return [sys.executable, str(Path(__file__).with_name(name)), *(["--preset", preset] if needs_server else [])]

    return run_all("monitoring", [[command(name) for name in row] for row in CHECKS])


if __name__ == "__main__":
    run_main("monitoring", main)
