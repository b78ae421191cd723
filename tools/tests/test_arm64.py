"""What tools/arm64.py reads of ctest's words, and its list."""

import unittest

from tools import arm64

SAID = """
97% tests passed, 2 tests failed out of 4

The following tests did not run:
	 12 - Loose.IsLeftOut (Skipped)

The following tests FAILED:
	140 - Mallctl.ReadsOfTheListedType (Failed)
	1002 - other_profilers (Timeout)
Errors while running CTest
"""


class Words(unittest.TestCase):
    def test_names_of_what_failed(self):
        self.assertEqual(arm64.failures(SAID), {"Mallctl.ReadsOfTheListedType", "other_profilers"})
        self.assertEqual(arm64.failures("100% tests passed, 0 tests failed out of 4\n"), set())

    def test_no_test_is_listed_twice(self):
        names = [name for group in arm64.EXPECTED.values() for name in group]
        self.assertEqual(len(names), len(set(names)))
