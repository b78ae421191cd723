"""The parts of bench/ceiling.py and bench/ceiling_scenarios.py that need no server."""

import json
import os
import sys
import time
import unittest
from types import ModuleType, SimpleNamespace
from unittest import mock

from bench import ceiling
from bench import ceiling_scenarios as scenarios
from bench.runner import limited, turns
from harness.problem import Problem
from harness.scratch import Scratch
from harness.waiting import until

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

    def test_the_second_client_is_another_process(self) -> None:
        stage, here = scenarios.Stage(mock.Mock(), mock.Mock(), 1200, 0, 0), os.getpid()
        session = mock.MagicMock()
        session.__enter__.return_value.query = lambda _: time.sleep(0.2 if os.getpid() != here else 0)
        with mock.patch.object(limited, "Connection", return_value=session), stage.load():
            # Known before the end: a scenario may take the answers of a moment.
            self.assertTrue(until(lambda: stage.got.figures()["longest_probe_s"] >= 0.2, pause=0.02))


class Turns(Scratch):
    TURN = vars(ceiling.Turn("dev", "ordinary", 32, 1200, 0.0, "", 0))

    def made(self, program: ModuleType, *options: str) -> int:
        """How many turns it makes, of which each ends well."""
        run = {**GOOD, **self.TURN, "outcome": "survived", "load_s": 10.0}
        result = (run, limited.Answers()) if program is ceiling else run
        with (
            mock.patch.object(sys, "argv", ["program", "--turns", str(self.root / "turns.jsonl"), *options]),
            mock.patch.object(program.arm_list, "choose", return_value=[mock.Mock()]),
            mock.patch.object(program.memory, "template"),
            mock.patch.object(program.report, "save"),
            mock.patch.object(program, "say"),
            mock.patch.object(program, "perform", return_value=result) as performed,
        ):
            self.assertEqual(program.main(), 0)
        return performed.call_count

    def test_a_run_goes_on_behind_its_last_whole_turn(self) -> None:
        for program, options in (
            (ceiling, ("--arms=dev", "--loads=ordinary", "--clients=32")),
            (scenarios, ("--scenarios=neighbour",)),
        ):
            file = self.root / "turns.jsonl"
            other = {**GOOD, **self.TURN, "scenario": "replica", "load": "sorts"}
            file.write_text(json.dumps(other) + '\n{"scenario": "neigh')
            self.assertEqual([self.made(program, *options) for _ in range(2)], [1, 0])
            self.assertEqual(len(turns.turns_of(file)), 2)

    def test_a_damaged_file_is_named(self) -> None:
        file = self.root / "turns.jsonl"
        file.write_text('{"load": \n{}\n')
        with self.assertRaisesRegex(Problem, "is damaged"):
            turns.turns_of(file)
