"""Adding up what the runners print."""

import subprocess
import sys
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))
from harness.common import ROOT, presets
from harness.scratch import Scratch
from tools import run_tests
from tools.run_tests import Result

MTR = """\
[ 25%] memdiag.pools                             w1  [ pass ]   120
[ 50%] memdiag.purge                             w2  [ fail ]
[ 75%] memdiag.linux                             w1  [ skipped ]  Need linux
[ 75%] memdiag.old                               w1  [ disabled ]   BUG#1
[100%] shutdown_report                           [ pass ]
Completed: Failed 1/3 tests, 66.67% were successful.

1 tests were skipped, 1 by the test itself.
"""


class Parsers(unittest.TestCase):
    def check(self, result: Result, passed, failed, skipped, *words):
        self.assertEqual(
            (result.passed, result.failed, result.skipped), (passed, failed, skipped)
        )
        for word in words:
            self.assertIn(word, result.words)

    def test_mtr(self):
        result = run_tests.parse_mtr(1, MTR)
        self.check(result, 2, 1, 2, "Failed 1/3", "1 tests were skipped")

    def test_mtr_that_does_not_start(self):
        text = "mysql-test-run: *** ERROR: Could not find mysqld\n"
        self.check(run_tests.parse_mtr(1, text), 0, 1, 0, "Could not find mysqld")

    def test_mtr_that_fails_after_all_tests_passed(self):
        text = "[100%] main.1st  [ pass ]  1\nCompleted: All 1 tests were successful.\n"
        self.check(run_tests.parse_mtr(1, text), 1, 1, 0)
        self.check(run_tests.parse_mtr(0, text), 1, 0, 0)

    def test_ctest(self):
        text = (
            "88% tests passed, 9 tests failed out of 72\n\n"
            "Total Test time (real) =  97.00 sec\n\n"
            "The following tests did not run:\n"
            "\t 50 - PoolFallback.Much (Skipped)\n\t 51 - Fork.Child (Disabled)\n\n"
            "The following tests FAILED:\n\t  2 - Snapshot.Adds (Failed)\n"
        )
        self.check(run_tests.parse_ctest(8, text), 61, 9, 2, "out of 72", "97.00")

    def test_ctest_without_tests(self):
        result = run_tests.parse_ctest(8, "No tests were found!!!\n")
        self.check(result, 0, 1, 0, "No tests were found")

    def test_unittest(self):
        text = "....\nRan 5 tests in 1.0s\n\nFAILED (failures=1, errors=1, skipped=1)\n"
        self.check(run_tests.parse_unittest(1, text), 2, 2, 1, "Ran 5", "FAILED")
        text = "Ran 5 tests in 1.0s\n\nOK\n"
        self.check(run_tests.parse_unittest(0, text), 5, 0, 0, "OK")
        self.check(run_tests.parse_unittest(1, "Traceback\n"), 0, 1, 0)

    def test_demo(self):
        text = "...\ndemo: 17 passed, 2 failed\n"
        self.check(run_tests.parse_own("demo", 1, text), 17, 2, 0, "17 passed")
        self.check(
            run_tests.parse_own("demo", 1, "demo: no server\n"), 0, 1, 0, "no server"
        )
        text = "demo_in_cgroup: 2 passed, 0 failed, 1 skipped: no group\n"
        self.check(run_tests.parse_own("demo_in_cgroup", 0, text), 2, 0, 1, "no group")


class Resuming(Scratch):
    def setUp(self):
        super().setUp()
        self.path = self.root / "state.json"
        self.step = run_tests.STEPS[0]

    def progress(self, print_, fresh=False):
        with mock.patch.object(run_tests, "fingerprint", lambda: print_):
            return run_tests.Progress(self.path, fresh)

    def test_same_files_go_on(self):
        self.progress("a").add(self.step, Result(3, 0, 1, "x"))
        self.assertEqual(list(self.progress("a").done), [self.step.name])

    def test_changed_files_start_over(self):
        self.progress("a").add(self.step, Result(3))
        for other in (self.progress("b"), self.progress("a", fresh=True)):
            self.assertEqual(other.done, {})

    def test_a_finished_run_leaves_nothing(self):
        progress = self.progress("a")
        progress.add(self.step, Result(3))
        progress.finish()
        self.assertEqual(self.progress("a").done, {})


class CommandLine(unittest.TestCase):
    def run_tests(self, *args):
        command = [sys.executable, ROOT / "tools/run_tests.py", *args]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def test_unknown_preset_names_the_known(self):
        done = self.run_tests("--check-arguments", "--preset", "nope")
        self.assertEqual(done.returncode, 1)
        self.assertIn("'nope'; there are: dev, profile, optimised, debug", done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1)

    def test_unknown_step_names_the_known(self):
        done = self.run_tests("--check-arguments", "--only", "nope")
        self.assertEqual(done.returncode, 1)
        self.assertIn("patches", done.stderr)

    def test_every_preset_has_steps(self):
        for preset in presets():
            self.assertTrue(run_tests.steps_of(preset), preset)


if __name__ == "__main__":
    unittest.main()
