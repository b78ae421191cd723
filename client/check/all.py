#!/usr/bin/env python3
"""All checks of the client, one after the other; the last line adds them up. ./run-tests starts it."""

import argparse
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "client")]

from harness.common import say
from harness.problem import run_main

CHECKS = ("servers.py", "states.py", "page.py", "heap_profile.py", "packages.py")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--preset", default="dev")
    preset = parser.parse_args().preset
    sums = [0, 0, 0]
    for name in CHECKS:
        command = [sys.executable, str(Path(__file__).with_name(name)), "--preset", preset]  # fmt: skip
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        say(done.stdout.rstrip())
        found = re.search(r"(\d+) passed, (\d+) failed, (\d+) skipped[^\n]*\s*\Z", done.stdout)  # fmt: skip
        counts = [int(found[n]) for n in (1, 2, 3)] if found else [0, 1, 0]
        if done.returncode and not counts[1]:
            counts[1] = 1
        sums = [total + one for total, one in zip(sums, counts, strict=True)]
    say(f"client: {sums[0]} passed, {sums[1]} failed, {sums[2]} skipped")
    return 1 if sums[1] else 0


if __name__ == "__main__":
    run_main("client", main)
