"""The parts of bench/ceiling.py and bench/ceiling_scenarios.py that need no server."""

import json
import threading
import unittest
from types import SimpleNamespace
from unittest import mock

from bench import ceiling
from bench import ceiling_scenarios as scenarios
from harness.problem import Problem
from harness.scratch import Scratch

GOOD = {
    "scenario": "neighbour",
    "problem": "",
    "alive": True,
    "oom_kills": 0,
    "peak_kb": 1 << 20,
    "seconds": 30.0,
    "answers": 5,
    "ended": 1,
    "lost": 0,
    "other_errors": {},
    "wrong": 0,
    "longest_probe_s": 0.5,
}
CHANGES = (
    {"problem": "rows are lost"},
    {"alive": False},
    {"oom_kills": 1},
    {"answers": 0},
    {"lost": 1},
    {"other_errors": {1205: 1}},
    {"wrong": 1},
)


class Report(unittest.TestCase):
    def test_a_scenario_is_good_only_if_nothing_is_wrong(self):
        self.assertTrue(scenarios.is_good(GOOD))
        for change in CHANGES:
            self.assertFalse(scenarios.is_good({**GOOD, **change}), change)
            self.assertIn("BAD", scenarios.brief({**GOOD, **change}))

    def test_the_target_counts_good_ones(self):
        raw = {"machine": {}, "arms": {}, "settings": {"limit_mb": 1200, "clients": 32}, "runs": [GOOD]}
        self.assertIn("| met", " ".join(scenarios.render(raw).split()))
        raw["runs"] = [GOOD, {**GOOD, "lost": 1}]
        self.assertIn("NOT MET", scenarios.render(raw))

    def test_an_unknown_scenario_is_refused(self):
        with self.assertRaisesRegex(Problem, "unknown scenario: flood"):
            scenarios._chosen("neighbour,flood")


class Course(Scratch):
    def test_what_is_done_is_not_done_again(self):
        file = self.root / "runs.jsonl"
        self.assertEqual(scenarios._runs(file, ["neighbour"]), [])
        other = {**GOOD, "scenario": "replica"}
        file.write_text("".join(json.dumps(run) + "\n" for run in (GOOD, other)))
        self.assertEqual(scenarios._runs(file, ["neighbour"]), [GOOD])

    def test_a_limit_that_the_kernel_refuses_is_lowered_in_steps(self):
        limit = mock.Mock()
        limit.used_bytes.side_effect = [900 * scenarios.MB, 650 * scenarios.MB]
        limit.resize.side_effect = [False, True, False, True, True]
        with mock.patch.object(scenarios.time, "sleep"):
            scenarios._lower(limit, 700)
        asked = [call.args[0] >> 20 for call in limit.resize.call_args_list]
        self.assertEqual(asked, [700, 987, 700, 737, 700])

    def test_clients_that_run_on_after_a_signal_do_not_count(self):
        server = SimpleNamespace()
        stage = scenarios.Stage(server, mock.Mock(), 1200, 0, 0)
        before = stage.got
        before.answers = 3
        stage.got = scenarios._with(before, before.figures(), {"SELECT 1": {"x"}})
        with before.lock:
            before.count(None)
        self.assertEqual((stage.got.answers, stage.got.lost), (3, 0))
        self.assertIsInstance(stage.over, threading.Event)


class Turns(Scratch):
    def test_a_turn_whose_line_was_cut_is_made_again(self):
        file = self.root / "turns.jsonl"
        file.write_text('{"load": "a"}\n{"load": "b')
        self.assertEqual(ceiling.turns_of(file), [{"load": "a"}])
        self.assertEqual(file.read_text(), '{"load": "a"}\n')
        file.write_text('{"load": \n{}\n')
        with self.assertRaisesRegex(Problem, "is damaged"):
            ceiling.turns_of(file)
