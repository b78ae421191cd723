"""bench/processors.py: its machines, and its report from literal figures."""

import unittest

from bench import processors
from bench.runner import own_tables, shim
from harness.problem import Problem


def figures(start: float, everyday: float, cached: float, large: int) -> dict:
    named = own_tables.everyday()
    return {
        "start_rss_mb": start,
        "start_arenas": 30,
        "start_metadata_mb": 20.0,
        "start_perfschema_mb": start / 100,
        "start_resident_metadata_mb": 6.0,
        "start_unused_mb": 1.0,
        "threads": 40,
        "idle_percent": 0.5,
        "own_idle_percent": 0.1,
        "burst_rss_mb": 300.0,
        "burst_arenas": 60,
        "burst_metadata_mb": 30.0,
        "cached_kb": 1000.0,
        "cached_rested_kb": cached,
        "thread_cached_kb": 2000.0,
        "thread_cached_rested_kb": 100.0,
        "collisions": {4: {"per_thousand": 0.25, "tps": 100.0, "blocks": 1000.0}},
        "purge_ms": 1.0,
        "purge_released_mb": 30.0,
        "purge_refreshes": 0,
        "sample_ms": 1.0,
        "sample_at_rest_ms": 0.1,
        "large_arenas": large,
        "everyday_ms": everyday,
        "everyday_cpu_ms": everyday / 2,
        "everyday_alone_ms": 3 * everyday,
        "tables": {
            **{name: {"ms": 1.0, "cpu_ms": 0.5, "alone_ms": 2.0, "alone_cpu_ms": 1.0} for name in named},
            "MEMDIAG_SIZE_CLASSES": {"alone_ms": 2.0, "alone_cpu_ms": 1.0},
        },
    }


def rendered(few: dict, many: dict) -> str:
    return processors.render(
        {
            "runs": {"dev": [{"2": few, "64": many}]},
            "machine": {},
            "arms": {},
            "settings": {"machines": {"2": 2, "64": 64}, "connections": 1000},
        }
    )


class Machines(unittest.TestCase):
    def test_sparse_ones_have_gaps(self) -> None:
        self.assertEqual("0,8,16,24", shim.sparse(4, 8).cpus)
        self.assertEqual(4, shim.sparse(4, 8).count)

    def test_an_unknown_one_is_a_problem(self) -> None:
        self.assertEqual(["2", "64"], [m.name for m in shim.chosen("2;64")])
        with self.assertRaises(Problem):
            shim.chosen("3")

    def test_everyday_tables_are_those_of_the_plugin(self) -> None:
        self.assertIn("MEMDIAG_SUMMARY", own_tables.everyday())
        self.assertNotIn("MEMDIAG_SIZE_CLASSES", own_tables.everyday())


class Report(unittest.TestCase):
    def test_growth_is_for_each_processor_more(self) -> None:
        text = rendered(figures(150, 10, 0, 1), figures(181, 26, 64 * 65, 16))
        self.assertRegex(text, r"each processor more +\| +0.500 \| +<= 0.25 \| +NOT MET")
        self.assertRegex(text, r"the same without Performance Schema +\| +0.495 \|")
        self.assertRegex(text, r"everyday tables together on 64, ms +\| +26.000 \| .*NOT MET")
        self.assertRegex(text, r"10 s after a burst +\| +65.000 \| .*NOT MET")
        # The small machine has one arena for large blocks, and need not have more.
        self.assertRegex(text, r"16 processors or more +\| +16.000 \| +>= 2 \| +met")
