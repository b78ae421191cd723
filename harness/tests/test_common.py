"""Programs that a step runs."""

import signal
import subprocess
import sys
import time

from harness.common import ROOT, run_step
from harness.problem import Problem
from harness.scratch import Scratch

CALLER = """
import sys
from harness.common import run_step
from harness.problem import run_main
run_main("caller", lambda: run_step(sys.argv[1:]))
"""


class Steps(Scratch):
    def test_failures_are_named(self):
        for command, words in ((["false"], "'false' failed"), (["no-such-program"], "no-such-program is missing")):
            with self.subTest(command), self.assertRaisesRegex(Problem, words):
                run_step(command)
        run_step(["true"])

    def test_an_interruption_ends_what_was_started(self):
        # As in a terminal. Under nohup programs ignore SIGHUP.
        before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
        self.addCleanup(signal.signal, signal.SIGHUP, before)
        for number in (signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number):
                self.interrupt(number)

    def interrupt(self, number: int) -> None:
        begun, ended = self.root / f"begun-{number}", self.root / f"ended-{number}"
        script = f"trap ': >{ended}; exit' TERM; : >{begun}; while :; do sleep 0.05; done"
        process = subprocess.Popen(
            [sys.executable, "-c", CALLER, "sh", "-c", script], cwd=ROOT, stderr=subprocess.DEVNULL
        )
        try:
            deadline = time.monotonic() + 120
            while not begun.exists() and time.monotonic() < deadline:
                time.sleep(0.02)
            process.send_signal(number)
            self.assertEqual(process.wait(120), 130)
        finally:
            process.kill()
        self.assertTrue(ended.exists())
