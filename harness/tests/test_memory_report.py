"""The report of the demonstration, from made-up snapshots."""

import unittest

from harness.memory_report import Snapshot, _figures, highest, pool_lines, table

MB = 2**20


def snapshot(rss: int, live: int | None, allocations: int = 0) -> Snapshot:
    figures = {"LIVE_BYTES": live, "ALLOCATIONS": allocations}
    return Snapshot(rss, {}, {"fts_query": figures}, {"fts_query": {}})


class Report(unittest.TestCase):
    def test_figures_are_whole_numbers_or_unknown(self):
        row = {"A": "12", "B": None, "C": "1.5", "D": "on", "E": "-1"}
        self.assertEqual(_figures(row), {"A": 12, "B": None, "E": -1})

    def test_highest_takes_each_figure_and_ignores_unknown_ones(self):
        series = [snapshot(1, None), snapshot(2, 7), snapshot(3, 5), snapshot(1, None)]
        top = highest(series, 9)
        self.assertEqual(top.rss_bytes, 9)
        self.assertEqual(top.pools["fts_query"]["LIVE_BYTES"], 7)

    def test_given_back_is_peak_less_last(self):
        columns = {
            "before": snapshot(100 * MB, MB),
            "peak": snapshot(300 * MB, 50 * MB),
            "5 s": snapshot(110 * MB, None),
        }
        lines = table(columns).splitlines()
        rss = next(line for line in lines if "RSS" in line)
        live = next(line for line in lines if "fts_query: live" in line)
        self.assertEqual(rss.split()[-4:], ["100.0", "300.0", "110.0", "190.0"])
        self.assertEqual(live.split()[-4:], ["1.0", "50.0", "-", "-"])
        # A measure that no snapshot has gets no line.
        self.assertNotIn("dirty", table(columns))

    def test_pool_lines_show_differences_and_unknowns(self):
        (line,) = pool_lines(snapshot(0, 0, 10), snapshot(0, 0, 1510))
        self.assertIn("1,500 allocations, ? frees", line)
