"""Figures of snapshots."""

import unittest

from harness.snapshots import Snapshot, _figures, highest


def snapshot(rss: int, live: int | None) -> Snapshot:
    return Snapshot(rss, {}, {"fts_query": {"LIVE_BYTES": live}})


class Figures(unittest.TestCase):
    def test_figures_are_whole_numbers_or_unknown(self):
        row = {"A": "12", "B": None, "C": "1.5", "D": "on", "E": "-1"}
        self.assertEqual(_figures(row), {"A": 12, "B": None, "E": -1})

    def test_highest_takes_each_figure_and_ignores_unknown_ones(self):
        series = [snapshot(1, None), snapshot(2, 7), snapshot(3, 5), snapshot(1, None)]
        top = highest(series, 9)
        self.assertEqual(top.rss_bytes, 9)
        self.assertEqual(top.pools["fts_query"]["LIVE_BYTES"], 7)
