"""The reports of bench/lock_waits.py and bench/busy_bursts.py, from literal figures."""

from __future__ import annotations

import re
import sys
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from bench import busy_bursts, lock_waits
from harness.common import ROOT
from harness.problem import Problem


def record(runs: dict, **settings: object) -> dict:
    return {"runs": runs, "machine": {"cpus": 1}, "arms": {}, "settings": settings}


class LockWaits(unittest.TestCase):
    def test_the_longest_of_all_rounds_counts(self) -> None:
        def run(idle: float, read: float, mutex: float, kill: float) -> dict:
            waits = {
                "times": 3,
                "connect_ms": read,
                "mutex_ms": mutex,
                "without_connect_ms": idle,
                "without_mutex_ms": 99.0,
            }
            return {
                "waits": {"MEMDIAG_POOLS": waits, "SET GLOBAL long_query_time": {**waits, "mutex_ms": 0.5}},
                "ends": {"MEMDIAG_POOLS": {"kill_ms": kill, "limit_ms": 1.0}},
                "samples": 100,
            }

        text = lock_waits.render(record({"dev": [run(5, 6, 1, 7), run(4, 30, 21, 101)]}, sessions=200, readers=1000))
        self.assertRegex(text, r"connecting or ending, ms +\| +21\.\d+ \| +<= 20.0 \| +NOT MET")
        self.assertRegex(text, r"own variables are set +\| +20\.5\d* \| +<= 20.0 \| +NOT MET")
        self.assertRegex(text, r"without looking +\| +25\.\d+ \| +<= 20.0 \| +NOT MET")
        self.assertRegex(text, r"killed read, ms +\| +101\.\d+ \| +<= 100.0 \| +NOT MET")
        self.assertRegex(text, r"time limit, ms +\| +1\.\d+ \| +<= 100.0 \| +met")

    def test_slices_without_the_action_lie_in_between(self) -> None:
        done = []

        def waits(_server, _session, statements, seconds: float) -> dict:
            done.append((statements, seconds))
            longest = 9.0 if len(done) == 4 else 2.0
            return {"times": 5, "connect_ms": longest, "mutex_ms": 1.0}

        with mock.patch.object(lock_waits, "waits", waits):
            found = lock_waits.in_turn(None, None, ("SHOW",), 3.0, 2)
        self.assertEqual([(lock_waits.NOTHING, 1.5), (("SHOW",), 1.5)] * 2, done)
        self.assertEqual(10, found["times"])
        self.assertEqual(9.0, found["connect_ms"])
        self.assertEqual(2.0, found["without_connect_ms"])

    def test_a_connect_that_fails_is_no_short_wait(self) -> None:
        session, server = mock.MagicMock(), mock.MagicMock()
        session.query.return_value.scalar.return_value = "1"
        found = lock_waits.waits(server, session, ("SHOW",), 0.01)
        self.assertGreater(found["connect_ms"], 0)
        server.connect.side_effect = ConnectionRefusedError("nobody there")
        with self.assertRaisesRegex(Problem, "nobody there"):
            lock_waits.waits(server, session, ("SHOW",), 0.01)

    def test_a_client_that_ends_too_soon_is_a_problem(self) -> None:
        spawn = mock.MagicMock()
        with (
            mock.patch.object(lock_waits.multiprocessing, "get_context", return_value=spawn),
            mock.patch.object(lock_waits, "threads", return_value="200"),
        ):
            with lock_waits.churning(mock.MagicMock(), 200):
                pass
            spawn.Process.return_value.is_alive.return_value = False
            with self.assertRaisesRegex(Problem, "has ended"), lock_waits.churning(mock.MagicMock(), 200):
                pass

    def test_no_variable_is_left_out(self) -> None:
        declared = ROOT / "plugin/memdiag/tables/variable_list.h"
        names = re.findall(r'\{"(memdiag_\w+)", \w+, any_time', declared.read_text())
        self.assertEqual(sorted(names), sorted(lock_waits.VARIABLES))

    def test_each_variable_is_set_and_set_back(self) -> None:
        for name, (changed, back) in lock_waits.VARIABLES.items():
            self.assertNotEqual(changed, back, name)


class BusyBursts(unittest.TestCase):
    def measured(self, oltp) -> dict:
        server = mock.MagicMock()
        server.rss_kb.return_value = 2048
        with (
            mock.patch.object(busy_bursts, "oltp", oltp),
            mock.patch.object(busy_bursts, "sort_burst", return_value=0.5),
            mock.patch.object(busy_bursts, "PERIOD_SECONDS", 0.2),
            mock.patch.object(busy_bursts, "SETTLE_SECONDS", 0.05),
            mock.patch.object(busy_bursts, "SAMPLE_SECONDS", 0.001),
        ):
            return busy_bursts.measure(server, 100, 3)

    def test_rss_between_bursts(self) -> None:
        found = self.measured(lambda *_: {"tps": 9.0, "p95_ms": 3.0})
        self.assertEqual((2.0, 2.0, 9.0), tuple(found[name] for name in ("between_mb", "peak_mb", "tps")))
        self.assertTrue(all(0.2 <= at < 0.4 for at, _ in found["rss"]))

    def test_the_reason_of_a_load_that_failed_is_said(self) -> None:
        with self.assertRaisesRegex(Problem, "FATAL"):
            self.measured(mock.Mock(side_effect=Problem("sysbench: FATAL")))

    def test_dev_is_compared_with_linked(self) -> None:
        def run(between: float, tps: float) -> dict:
            return {"tps": tps, "p95_ms": 3.0, "burst_seconds": 0.5, "peak_mb": 900.0, "between_mb": between}

        text = busy_bursts.render(
            record(
                {
                    "linked": [run(600, 100), run(610, 101), run(590, 99)],
                    "dev": [run(300, 99), run(330, 98), run(290, 97)],
                }
            )
        )
        self.assertRegex(text, r"RSS between bursts.*\| +0.500 \| +<= 1.0 \| +met")
        self.assertRegex(text, r"per second.*\| +0.980 \| +>= 1.0 \| +NOT MET")


if __name__ == "__main__":
    unittest.main()
