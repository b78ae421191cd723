"""The code that allocated an object."""

import unittest
from collections import Counter

from bench import object_stacks
from bench.runner import composition


class Growth(unittest.TestCase):
    def test_only_stacks_that_changed_count_for_the_object(self):
        shared, own, freed = ("start", "share"), ("start", "own"), ("start", "free")
        before = Counter({("session", shared): 500, ("session", own): 100, ("session", freed): 70})
        after = Counter({("session", shared): 500, ("session", own): 300, ("statement", own): 40})
        self.assertCountEqual(
            object_stacks.growth(before, after),
            [
                composition.Stack("session", own, 200.0, 0),
                composition.Stack("statement", own, 40.0, 0),
                composition.Stack("session", freed, -70.0, 0),
            ],
        )

    def test_grouping_ends_although_the_sum_is_negative(self):
        stacks = [
            composition.Stack("session", ("start", name), size, 0)
            for name, size in (("own", 8.0), ("small", 2.0), ("free", -100.0))
        ]
        (group,) = composition.grouped(stacks, 1)
        self.assertEqual((group.path, group.bytes), (("start", "own"), 8.0))
