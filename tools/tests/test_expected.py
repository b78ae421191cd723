"""Skips and floors of tools/expected.toml."""

import sys
import unittest
from unittest import mock

from harness.checks import Checks
from harness.common import ROOT
from harness.problem import Problem
from harness.programs import captured
from tools import expected, run_tests
from tools.runner_output import Result, parse_mtr, parse_own, parse_unittest

TEXT = """
[dev]
skips = [{ steps = ["memdiag"], names = ["memdiag.numa*"], reason = "one node" }]
[dev.floors]
memdiag = 2
"""


class Judging(unittest.TestCase):
    def judge(self, result: Result, step: str = "memdiag") -> Result:
        wanted = expected.load(TEXT, "dev")
        assert wanted
        return expected.judge(step, result, wanted)

    def test_what_is_listed_passes(self):
        self.assertEqual(self.judge(Result(2, 0, 1, skips=["memdiag.numa_nodes"])).failed, 0)

    def test_a_skip_that_is_not_listed(self):
        result = self.judge(Result(2, 0, 2, skips=["memdiag.numa_nodes", "memdiag.linux"]))
        self.assertEqual(result.failed, 1)
        self.assertIn("memdiag.linux", result.failures[0])

    def test_more_skips_than_names(self):
        result = self.judge(Result(2, 0, 2, skips=["memdiag.numa_nodes"]))
        self.assertIn(expected.NO_NAME, result.failures[0])

    def test_a_skip_that_has_no_name(self):
        result = self.judge(Result(2, 0, 3))
        self.assertEqual(result.failed, 1)
        self.assertIn(expected.NO_NAME, result.failures[0])

    def test_below_the_floor(self):
        result = self.judge(Result(1, 0, 0))
        self.assertEqual(result.failures, ["1 passed; tools/expected.toml wants 2 at least"])

    def test_a_step_without_a_floor(self):
        self.assertEqual(self.judge(Result(9, 0, 0), "other").failed, 1)

    def test_a_failed_step_keeps_its_count(self):
        self.assertEqual(self.judge(Result(0, 1, 1)).failed, 1)

    def test_skips_of_an_older_kernel(self):
        text = TEXT.replace(
            "skips = [",
            'skips = [{ steps = ["memdiag"], names = ["memdiag.pages"], reason = "no ioctl", kernel_below = "6.7" }, ',
        )
        for kernel, failed in (("6.1.0-40-amd64", 0), ("6.6", 0), ("6.7.1", 1), ("6.18.44", 1), ("10.1", 1)):
            with self.subTest(kernel):
                wanted = expected.load(text, "dev", kernel)
                assert wanted
                # The floor is that of a machine that skips none of them.
                self.assertEqual(wanted.floors["memdiag"], 2 if failed else 1)
                result = expected.judge("memdiag", Result(2, 0, 1, skips=["memdiag.pages"]), wanted)
                self.assertEqual(result.failed, failed)

    def test_another_preset_has_no_list(self):
        self.assertIsNone(expected.load(TEXT, "stock"))

    def test_a_skip_without_a_reason(self):
        self.assertRaises(Problem, expected.load, TEXT.replace('"one node"', '""'), "dev")


class Names(unittest.TestCase):
    def test_a_program_of_programs_names_each_skip(self):
        text = (
            "ok      one\nskipped stock: /x is not there (client/check/peers.py)\nservers: 1 passed, 0 failed, 1 skipped:"
            " /x is not there\nskipped top: no tmux\npage: 2 passed, 0 failed, 1 skipped: no tmux\n"
            "client: 3 passed, 0 failed, 2 skipped\n"
        )
        result = parse_own("client", 0, text)
        self.assertEqual((result.skipped, result.skips), (2, ["stock", "top"]))

    def test_checks_that_show_only_failures_name_their_skips(self):
        said: list[str] = []
        with mock.patch("harness.checks.say", said.append):
            checks = Checks("quiet", show=False)
            checks.skip("a state", "no root")
            checks.finish()
        self.assertEqual(parse_own("quiet", 0, "\n".join(said)).skips, ["a state"])

    def test_unittest_names_the_reasons(self):
        text = (
            "test_a (m.C.test_a) ... ok\ntest_b (m.C.test_b)\nWhat it says. ... skipped 'matplotlib is missing'\n"
            'test_c (m.C.test_c) ... skipped "it\'s old"\n\n'
            "-----\nRan 3 tests in 0.1s\n\nOK (skipped=2)\n"
        )
        result = parse_unittest(0, text)
        self.assertEqual((result.passed, result.skipped), (1, 2))
        self.assertEqual(result.skips, ["matplotlib is missing", "it's old"])

    def test_mtr_names_its_skips(self):
        text = "[ 50%] memdiag.linux  w1  [ skipped ]  Need linux\n[100%] memdiag.old  w1  [ disabled ]  BUG#1\n"
        self.assertEqual(parse_mtr(0, text).skips, ["memdiag.linux", "memdiag.old"])

    def test_a_program_of_ours_gives_its_reason(self):
        self.assertEqual(
            parse_own("otlp", 0, "otlp: 3 passed, 0 failed, 1 skipped: no network\n").skips, ["no network"]
        )


class Shipped(unittest.TestCase):
    def test_every_step_has_a_floor(self):
        wanted = expected.load(expected.TABLE.read_text(), "dev")
        assert wanted
        self.assertEqual(set(wanted.floors), {step.name for step in run_tests.steps_of("dev")})
        self.assertTrue(all(floor >= 1 for floor in wanted.floors.values()))

    def test_no_floor_falls_behind(self):
        """Of the steps whose cases can be counted without a build: below a floor that stays behind, tests can vanish."""
        wanted = expected.load(expected.TABLE.read_text(), "dev")
        assert wanted
        # Those of the driver run twice, with two versions of it.
        tools = sum(cases_of(folder, top) for _, folder, top in run_tests.UNIT_TESTS) + cases_of_the_driver()
        memdiag = len(list(ROOT.glob("mysql-test/suite/memdiag/t/*.test")))
        for step, there in (("tools", tools), ("memdiag", memdiag)):
            with self.subTest(step):
                self.assertGreaterEqual(wanted.floors[step], 0.9 * there)


def cases_of(folder: str, top: str) -> int:
    """Python's own loader counts them, in a process of its own: folders have modules of the same name."""
    program = "import sys, unittest; print(unittest.TestLoader().discover(*sys.argv[1:]).countTestCases())"
    python = run_tests.DEBIANS_PYTHON if top == "client" else sys.executable
    done = captured([python, "-c", program, folder, "test*.py", top], cwd=ROOT)
    return int(done.stdout)


def cases_of_the_driver() -> int:
    program = "import sys, unittest; print(unittest.TestLoader().loadTestsFromNames(sys.argv[1:]).countTestCases())"
    command = [run_tests.DEBIANS_PYTHON, "-c", program, *run_tests.OF_THE_DRIVER]
    return int(captured(command, cwd=ROOT / "client").stdout)
