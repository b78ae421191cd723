"""What gcov and libFuzzer say is added up."""

import contextlib
import io
import unittest
from pathlib import Path

from harness.common import ROOT
from tools import fuzz
from tools.coverage import Counts, Executed, is_ours, show


def line(number: int, count: int, *branches: tuple[int, bool]) -> dict:
    return {
        "line_number": number,
        "count": count,
        "branches": [{"count": taken, "throw": throw} for taken, throw in branches],
    }


class Coverage(unittest.TestCase):
    def test_an_object_adds_to_what_others_executed(self):
        header = Executed()
        header.add([line(1, 0), line(2, 1, (1, False), (0, False))])
        header.add([line(1, 3), line(2, 1, (0, False), (0, False)), line(3, 0)])
        self.assertEqual(header.counts(), Counts(1, 2, 3, 1, 2))

    def test_branches_of_exceptions_do_not_count(self):
        file = Executed()
        file.add([line(1, 1, (1, False), (0, True)), line(2, 1, (1, False), (0, False), (0, True))])
        self.assertEqual(file.counts(), Counts(1, 2, 2, 1, 2))

    def test_tests_and_libraries_are_not_ours(self):
        self.assertTrue(is_ours(ROOT / "mysys/memdiag/pools/pools.cc"))
        for other in (ROOT / "mysys/memdiag/unittest/test.h", ROOT / "build/coverage/a.h", Path("/usr/include/a.h")):
            self.assertFalse(is_ours(other))

    def test_files_that_are_hardly_executed_are_listed(self):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            words = show({"a/b.cc": Counts(1, 90, 100, 1, 2), "a/c.cc": Counts(1, 10, 20, 0, 0)})
        self.assertIn("less than 70% of the lines are executed: 1\n   50.0%  a/c.cc\n", out.getvalue())
        self.assertIn("a                                       2 files  83.3%", out.getvalue())
        self.assertEqual(" ".join(words.split()), "83.3% of 120 lines 50.0% of 2 branches")


class Fuzz(unittest.TestCase):
    def test_executions(self):
        done = "#2\tINITED\n#524288\tpulse\nDone 900000 runs\nstat::number_of_executed_units: 900000\nstat::peak: 1\n"
        self.assertEqual(fuzz.executions(done), 900_000)
        self.assertEqual(fuzz.executions("#2\tINITED cov: 5\n#31\tNEW cov: 6\n==1== ERROR: libFuzzer\n"), 31)
        self.assertEqual(fuzz.executions("no such file\n"), 0)

    def test_each_harness_has_seeds(self):
        for name in fuzz.names():
            self.assertTrue(name == fuzz.CLIENT or list((fuzz.SEEDS / name).iterdir()), name)
