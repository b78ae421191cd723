#!/usr/bin/env python3
"""All checks of the client, four at a time; the last line adds them up. ./run-tests starts it.

The checks of states wait for servers for most of their time, and the others run beside them.
"""

import argparse
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "client")]

from harness.checks import Total
from harness.problem import run_main
from harness.programs import CLEAN_UP, Programs

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
    ended: Queue[subprocess.CompletedProcess[str]] = Queue()

    def run_row(row: tuple[tuple[str, ...], ...]) -> None:
        for name, *words in row:
            command = [sys.executable, str(Path(__file__).with_name(name)), "--preset", preset, *words]
            try:
                ended.put(checks.run(command))
            except OSError as error:  # no process or no memory is left
                ended.put(subprocess.CompletedProcess(command, 1, str(error)))

    total = Total()
    # An interruption first ends the checks, then the pool waits for the rows. A row starts no check after that.
    with ThreadPoolExecutor(len(CHECKS)) as pool, Programs(CLEAN_UP) as checks:
        for row in CHECKS:
            pool.submit(run_row, row)
        for _ in range(sum(map(len, CHECKS))):
            total.add(ended.get())
    return total.finish("client")


if __name__ == "__main__":
    run_main("client", main)
