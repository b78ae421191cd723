"""The report of bench/profile_reading.py, from literal figures and from this process."""

from __future__ import annotations

import os
import sys
import threading
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from bench import profile_cost, profile_reading
from bench.profile_reading import READS, Task, figures, render
from bench.runner import resampling, switching


class ProfileReading(unittest.TestCase):
    def test_what_is_as_long_without_reading_does_not_count(self) -> None:
        def run(other: float, profile: float) -> dict:
            longest = {"another load": other, "MEMDIAG_PROFILE": profile}
            return {"samples": 9, "reads": {name: figures([0.0, longest.get(name, 0.5)], [1.0, 2.0]) for name in READS}}

        text = render(
            {"runs": {"dev": [run(3, 2), run(1, 4.5)]}, "machine": {}, "arms": {}, "settings": {"sessions": 5}}
        )
        self.assertRegex(text, r"with MEMDIAG_PROFILE, ms above that without +\| +1\.5\d* \| <= 1.0 \| NOT MET")
        self.assertRegex(text, r"with MEMDIAG_SAMPLES, ms above that without +\| +-2\.5\d* \| <= 1.0 \| +met")

    def test_a_percentile_is_of_the_nearest_rank(self) -> None:
        stalls = [float(n) for n in range(1, 1001)]
        found = figures(stalls, [1.0, 2.0, 3.0])
        self.assertEqual((999, 2), (found["p999"], found["total_median"]))

    def test_a_thread_that_waits_gives_its_processor_up(self) -> None:
        task = Task("/proc/thread-self")
        before, ran = task.switches(), task.clock()[0]
        read, write = os.pipe()
        waker = threading.Timer(0.05, os.write, (write, b"x"))
        waker.start()
        os.read(read, 1)
        waker.join()
        for end in (read, write):
            os.close(end)
        self.assertGreater(task.switches(), before)
        end_of_work = time.thread_time() + 0.02
        while time.thread_time() < end_of_work:
            pass
        time.sleep(0.001)
        self.assertGreater(task.clock()[0] - ran, 15_000_000)

    def test_each_table_that_needs_the_profile_is_read(self) -> None:
        self.assertLess({"MEMDIAG_PROFILE", "MEMDIAG_SAMPLES", "MEMDIAG_PINNED"}, set(READS))
        self.assertEqual("", next(iter(profile_reading.READS.values())))


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


if __name__ == "__main__":
    unittest.main()
