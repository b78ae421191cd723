"""bench/steady.py: its report from literal figures."""

import unittest

from bench import steady


def rendered(faults: float, later: float) -> str:
    off = {"faults": 10.0, "us": 100.0, "cpu_us": 50.0, "purges": 0, "statements": 9}
    off |= {"purged_pages": 0.0, "own_purged_pages": 0.0}
    sorts = {
        "turns": {
            "off": [off] * 2,
            "on": [{**off, "faults": faults, "purges": 1, "purged_pages": pages} for pages in (0.0, 1.0)],
        },
        "after_burst": {"before_mb": 10.0, "mb": 30.0, "later_mb": later},
        "after_load": {"mb": 10.0, "later_mb": 0.0},
    }
    return steady.render({"runs": {"dev": [{"64": {"sorts": sorts}}]}, "machine": {}, "arms": {}, "settings": {}})


class Report(unittest.TestCase):
    def test_purging_on_is_compared_with_off(self) -> None:
        text = rendered(12.0, 20.0)
        self.assertRegex(text, r"64 +\| sorts +\| +10.0 → 12.0 \| 1.20 \(1.20 to 1.20\)")
        self.assertRegex(text, r"page faults of a statement.*1.200 +\| +<= 1.02 +\| +NOT MET")
        self.assertRegex(text, r"pages purged by page faults.*0.050 +\| +<= 0.02 +\| +NOT MET")
        self.assertRegex(text, r"left 2 s after.*0.500 +\| +<= 0.1 +\| +NOT MET")
        text = rendered(9.0, 10.5)
        self.assertRegex(text, r"page faults of a statement.*0.900 +\| +<= 1.02 +\| +met")
        self.assertRegex(text, r"left 2 s after.*0.025 +\| +<= 0.1 +\| +met")
