"""Counting and showing checks."""

import contextlib
import io
import signal
import subprocess
import tempfile
import unittest
from unittest import mock

from harness import checks
from harness.checks import Checks, Failed, Total
from harness.problem import NotPossible, run_main
from tools import run_tests


class Counting(unittest.TestCase):
    def setUp(self):
        self.said: list[str] = []
        self.enterContext(mock.patch.object(checks, "say", self.said.append))

    def test_programs_are_added_up(self):
        total = Total()
        for status, words in (
            (0, "ok\none: 2 passed, 0 failed, 1 skipped: no root\n"),
            (1, "two: 3 passed, 0 failed, 0 skipped\n"),  # it broke off later
            (0, "nothing\n"),
        ):
            total.add(subprocess.CompletedProcess([], status, words))
        self.assertEqual(total.finish("all"), 1)
        self.assertEqual(self.said[-1], "all: 5 passed, 2 failed, 1 skipped")
        self.assertEqual(self.said[2], "nothing")

    def test_rows_of_programs_run_beside_each_other(self):
        # Each of the first two ends when the other has begun.
        with tempfile.TemporaryDirectory() as folder:
            meet = "touch {0}; until [ -e {1} ]; do sleep 0.02; done; echo 1 passed, 0 failed, 0 skipped"
            commands = [["sh", "-c", f"cd {folder}; " + meet.format(*pair)] for pair in (("a", "b"), ("b", "a"))]
            after = ["sh", "-c", f"cd {folder}; [ -e a ] && echo 1 passed, 0 failed, 0 skipped"]
            status = checks.run_all("all", [[commands[0], after], [commands[1], ["/no/such/program"]]])
        self.assertEqual((status, self.said[-1]), (1, "all: 3 passed, 1 failed, 0 skipped"))

    def test_a_line_for_each(self):
        made = Checks("thing")
        made.check("one", True, 5)
        made.check("two", False, "broken")
        made.skip("three", "no root")
        self.assertEqual(made.finish(), 1)
        self.assertEqual(
            self.said,
            [
                "ok      one: 5",
                "FAILED  two: broken",
                "skipped three: no root",
                "thing: 1 passed, 1 failed, 1 skipped: no root",
            ],
        )

    def test_a_machine_that_allows_no_check_skips_the_rest(self):
        def run(made: Checks) -> None:
            made.check("one", False)
            raise NotPossible("no root")

        self.assertEqual(checks.run_checks("thing", "a group", run), 1)
        self.assertIn("skipped a group: no root", self.said)
        self.assertEqual(self.said[-1], "thing: 0 passed, 1 failed, 1 skipped: no root")

    def test_what_was_found_is_shown(self):
        made = Checks()
        made.equal("one", 1, 1)
        made.equal("two", None, 2)
        made.nothing("three", [])
        made.nothing("four", ["a", "b"])
        made.nothing("five", "words")
        self.assertEqual(
            self.said, ["ok      one: 1", "FAILED  two", "ok      three", "FAILED  four: a; b", "FAILED  five: words"]
        )

    def test_failures_at_the_end(self):
        made = Checks(show=False)
        made.check("one", True)
        made.check("two", False)
        self.assertEqual(self.said, [])
        made.finish()
        self.assertEqual(self.said, ["FAILED  two", "1 passed, 1 failed, 0 skipped"])

    def test_a_block(self):
        made = Checks()
        with made.checking("good"):
            pass
        for error in (Failed("no"), OSError("no"), AssertionError("no")):
            with made.checking("bad"):
                raise error
        self.assertEqual((made.passed, len(made.failures)), (1, 3))
        with self.assertRaises(ValueError), made.checking("a mistake of ours"):
            raise ValueError

    def test_outside_of_a_check_it_is_a_message(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            self.addCleanup(signal.signal, number, signal.getsignal(number))
        said = io.StringIO()
        with contextlib.redirect_stderr(said), self.assertRaises(SystemExit):
            run_main("podman", mock.Mock(side_effect=Failed("no storage")))
        self.assertEqual(said.getvalue(), "podman: no storage\n")

    def test_run_tests_reads_the_last_line(self):
        for name in ("", "thing"):
            made = Checks(name)
            made.check("one", True)
            made.skip("two", "no root; no swap")
            self.assertEqual(made.finish(), 0)
            result = run_tests.parse_own("thing", 0, "\n".join(self.said))
            self.assertEqual((result.passed, result.failed, result.skipped), (1, 0, 1))
