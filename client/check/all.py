#!/usr/bin/env python3
"""All checks of the client, four at a time; the last line adds them up. ./run-tests starts it.

The checks of states wait for servers for most of their time, and the others run beside them.
"""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "client")]

from harness.checks import run_all
from harness.problem import run_main

# Each row runs in its order, beside the others.
CHECKS = (
    (("states.py", "--part", "1/3"),),
    (("states.py", "--part", "2/3"),),
    (("states.py", "--part", "3/3"), ("packages.py",)),
    (("servers.py",), ("page.py",), ("heap_profile.py",)),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--preset", default="dev")
    preset = parser.parse_args().preset

    def command(name: str, *words: str) -> list[str]:
        return [sys.executable, str(Path(__file__).with_name(name)), "--preset", preset, *words]

    return run_all("client", [[command(*check) for check in row] for row in CHECKS])


if __name__ == "__main__":
    run_main("client", main)
