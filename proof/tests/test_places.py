"""A run goes on with the counts of the one before, and shows them now and then."""

import argparse
from collections import Counter
from dataclasses import dataclass, field
from unittest import mock

from harness.scratch import Scratch
from proof import answers, calls, failing, kills, places


@dataclass
class Some(places.Done):
    number: int = 0
    kinds: Counter[str] = field(default_factory=Counter)


class Resumed(Scratch):
    def run_once(self, fresh: bool = False, keeps: bool = True) -> tuple[int, int]:
        """The counts after it."""
        options = argparse.Namespace(fresh=fresh)
        with (
            mock.patch.object(places, "STATES", self.root),
            places.resumed("some-1", Some, options, "trying", "differences", keeps) as (counts, keep, log),
        ):
            self.assertEqual(log, self.root / "some-1.differences")
            counts.number += 1
            counts.kinds.update(["a"])
            keep()
        return counts.number, counts.kinds["a"]

    def test_counts_go_on(self) -> None:
        log = self.make_file("some-1.differences", "before")
        self.assertEqual([self.run_once() for _ in range(2)], [(1, 1), (2, 2)])
        self.assertEqual([self.run_once(keeps=False), self.run_once()], [(1, 1), (3, 3)])
        self.assertTrue(log.exists())
        self.assertEqual(self.run_once(fresh=True), (1, 1))
        self.assertFalse(log.exists())

    def test_counters_of_all_programs_are_read_as_such(self) -> None:
        for program, names in ((answers, ["kinds"]), (kills, ["errors"]), (calls, ["errors"]), (failing, ["pools"])):
            counts = program.Counts.of(dict.fromkeys(names, {"a": 2}))
            for name in names:
                self.assertEqual(getattr(counts, name).most_common(1), [("a", 2)])

    def test_now_and_then(self) -> None:
        with mock.patch.object(places.time, "monotonic", side_effect=(0, 20, 21, 22, 45)):
            due = places.every(20)
            self.assertEqual([due() for _ in range(5)], [True, False, True, False, True])
