"""The report of bench/scale.py, from literal figures."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from bench.scale import CURVES, render


class Scale(unittest.TestCase):
    @staticmethod
    def report(everyday: tuple[float, float]) -> str:
        curve = {
            size: {"start_s": 1.0, "start_mb": 100.0, "rss_mb": 110.0, "everyday_ms": ms, "purge_ms": 2.0}
            for size, ms in zip(("100", "1000"), everyday, strict=True)
        }  # fmt: skip
        other = {size: dict.fromkeys(("start_s", "start_mb", "rss_mb"), 1.0) for size in curve}  # fmt: skip
        return render({"runs": {"dev": [{"tables": curve}], "debian": [{"tables": other}]}, "machine": {}, "arms": {}, "settings": {}})  # fmt: skip

    def test_more_than_its_work_is_said(self) -> None:
        self.assertIn("everyday_ms of dev grows by 20.0 from 100 to 1000", self.report((10, 200)))  # fmt: skip
        self.assertIn("Nothing grows faster", self.report((10, 100)))

    def test_an_arm_without_our_tables_has_no_times_of_them(self) -> None:
        self.assertRegex(self.report((10, 100)), r"1000 debian +\| +1.00 \| +1.0 \| +1.0 \| +- \| +- \|")  # fmt: skip

    def test_each_curve_grows(self) -> None:
        for curve in CURVES.values():
            self.assertEqual(list(curve.sizes), sorted(set(curve.sizes)))


if __name__ == "__main__":
    unittest.main()
