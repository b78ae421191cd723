"""The report of bench/profile_cost.py, from literal figures and from this process."""

import os
import threading
import time
import unittest

from bench import profile_cost
from bench.runner import resampling, switching


class ProfileCost(unittest.TestCase):
    @staticmethod
    def block(speed: float, cost: float) -> dict[str, dict[str, float]]:
        def of(share: float) -> dict[str, float]:
            return {"rate": speed / (1 + share), "cpu_us": (1 + share) / speed}

        return {"OFF": of(0), "ON": of(cost), "RECORD": of(2 * cost)}

    def test_the_machines_own_speed_does_not_count(self) -> None:
        blocks = [self.block(speed, 0.02) for speed in (1, 5, 2, 9, 3)]
        median, low, high = resampling.interval(switching.ratios(blocks, "ON", "OFF", "cpu_us"))
        for value in (median, low, high):
            self.assertAlmostEqual(1.02, value)

    def test_a_cost_above_the_target_is_said(self) -> None:
        blocks = [self.block(1000, 0.006)] * 9
        text = profile_cost.render(
            {"runs": {"dev": [{"load": {"blocks": blocks}}]}, "machine": {}, "arms": {}, "settings": {}}
        )
        self.assertRegex(text, r"load, ON: statements +\| +0.994 \| >= 0.99 +\| +met")
        self.assertRegex(text, r"load, RECORD: statements +\| +0.988 \| >= 0.99 +\| NOT MET")

    def test_processor_time_of_ended_threads_counts(self) -> None:
        class This:
            pid = os.getpid()

        def work() -> None:
            end = time.thread_time() + 0.02
            while time.thread_time() < end:
                pass

        before = switching.cpu_seconds(This)  # type: ignore[arg-type]
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        self.assertGreater(switching.cpu_seconds(This) - before, 0.019)  # type: ignore[arg-type]
