"""The code that allocated an object."""

import unittest
from collections import Counter

from bench import object_stacks
from bench.runner import composition


class Growth(unittest.TestCase):
    def test_only_stacks_that_changed_count_for_the_object(self):
        shared, own, freed = ("start", "share"), ("start", "own"), ("start", "free")
        before = Counter(
            {("session", shared): 500, ("session", own): 100, ("session", freed): 70}
        )
        after = Counter(
            {("session", shared): 500, ("session", own): 300, ("statement", own): 40}
        )
        self.assertCountEqual(
            object_stacks.growth(before, after),
            [
                composition.Stack("session", own, 200.0, 0),
                composition.Stack("statement", own, 40.0, 0),
                composition.Stack("session", freed, -70.0, 0),
            ],
        )
