"""The parts of bench/admission.py that need no server."""

import itertools
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from bench import admission
from harness.sql import SqlError


def raising(error: Exception):
    def ask() -> None:
        raise error

    return ask


class Answers(unittest.TestCase):
    def test_an_answer_the_error_and_a_lost_connection_differ(self):
        got = admission.Answers()
        self.assertTrue(got.ask(lambda: None))
        self.assertTrue(got.ask(raising(SqlError(admission.REFUSED, "short"))))
        self.assertTrue(got.ask(raising(SqlError(1064, "syntax"))))
        self.assertFalse(got.ask(raising(ConnectionResetError())))
        self.assertFalse(got.ask(raising(TimeoutError())))
        figures = got.figures()
        figures.pop("slowest_s")
        self.assertEqual(figures, {"answers": 1, "refused": 1, "other_errors": {1064: 1}, "lost": 2})

    def test_a_round_is_good_only_if_all_clients_were_answered(self):
        run = {"outcome": "survived", "lost": 0, "other_errors": {}, "answers": 5}
        self.assertTrue(admission.good({**run, "refused": 3}))
        for change in ({"outcome": "killed"}, {"lost": 1}, {"other_errors": {2013: 1}}, {"answers": 0}):
            self.assertFalse(admission.good({**run, **change}), change)


class Crowds(unittest.TestCase):
    def test_each_client_sends_the_same_in_every_run(self):
        for name, crowd in admission.crowds(3).items():
            firsts = [
                [list(itertools.islice(statements, 4)) for statements in itertools.islice(crowd.sessions(number), 2)]
                for number in (1, 1, 2)
            ]
            self.assertEqual(firsts[0], firsts[1], name)
            self.assertNotEqual(firsts[0], firsts[2], name)


class Report(unittest.TestCase):
    def test_the_target_counts_good_rounds(self):
        run = {
            "outcome": "survived",
            "lost": 0,
            "other_errors": {},
            "answers": 5,
            "refused": 1,
            "limit_kb": 800 << 10,
            "peak_kb": 700 << 10,
            "free_answers": 9,
            "free_start_kb": 100 << 10,
            "slowest_s": 2.0,
        }
        raw = {
            "machine": {},
            "arms": {},
            "settings": {"loads": ["storm"], "factor": 0.8, "seconds": 15.0},
            "runs": {"dev-admission": [{"storm": run}, {"storm": {**run, "lost": 1}}]},
        }
        text = admission.render(raw)
        self.assertIn("1 of 2", text)
        self.assertIn("NOT MET", text)


if __name__ == "__main__":
    unittest.main()
