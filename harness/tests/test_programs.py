"""Programs that a program runs, and signals that interrupt it."""

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

from harness.common import ROOT
from harness.scratch import Scratch

# A check that cleans up for a while after an interruption.
CHECK = """
import pathlib, sys, time
sys.path.insert(0, {root!r})
from harness.problem import run_main

def main():
    folder = pathlib.Path(__file__).parent
    with open(folder / "begun", "a") as begun:
        begun.write(pathlib.Path(__file__).name + "\\n")
    try:
        time.sleep(60)
    finally:
        (folder / "ending").touch()
        time.sleep(0.5)
        with open(folder / "ended", "a") as ended:
            ended.write(pathlib.Path(__file__).name + "\\n")

run_main("check", main)
"""


class Interrupting(Scratch):
    def setUp(self):
        super().setUp()
        for name in ("rules.py", "later.py"):
            (self.root / name).write_text(CHECK.format(root=str(ROOT)))

    @contextlib.contextmanager
    def started(self, *command: object) -> Iterator[subprocess.Popen[bytes]]:
        """A program that has begun its check."""
        process = subprocess.Popen(
            [sys.executable, *map(str, command)],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            until((self.root / "begun").exists)
            yield process
        finally:
            process.kill()
            process.wait()

    def said(self, name: str) -> str:
        path = self.root / name
        return path.read_text() if path.exists() else ""

    def test_sigterm_after_an_interruption_does_not_stop_the_clean_up(self):
        for first in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(first), self.started(self.root / "rules.py") as process:
                process.send_signal(first)
                until((self.root / "ending").exists)
                process.terminate()
                self.assertEqual(process.wait(20), 130)
                self.assertEqual(self.said("ended"), "rules.py\n")
            for name in ("begun", "ending", "ended"):
                (self.root / name).unlink(missing_ok=True)


def until(true) -> None:
    deadline = time.monotonic() + 20
    while not true():
        if time.monotonic() > deadline:
            raise AssertionError("it takes too long")
        time.sleep(0.02)
