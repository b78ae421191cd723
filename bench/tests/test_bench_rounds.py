"""The course of a benchmark: what it refuses before it measures, and what a failure leaves."""

import argparse
import importlib
import json
import sys
import unittest
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

from bench.runner import arms, report, rounds
from harness.problem import Problem
from harness.scratch import Scratch

ONE_ARM = ("processors", "profile_cost", "scrape_cost", "steady")


class Refused(unittest.TestCase):
    def refused(self, name: str, *words: str) -> object:
        program = importlib.import_module(f"bench.{name}")
        with (
            mock.patch.object(sys, "argv", [name, *words]),
            mock.patch.object(arms, "choose", side_effect=AssertionError("too late")),
            mock.patch("sys.stderr"),
            self.assertRaises((Problem, SystemExit)) as caught,
        ):
            program.main()
        return caught.exception

    def test_several_arms_where_the_report_has_one(self) -> None:
        for name in ONE_ARM:
            with self.subTest(name):
                words = str(self.refused(name, "--arms=dev,stock"))
                self.assertIn("one arm", words)


class Kept(Scratch):
    def left(self, *turns: dict | BaseException, render: Callable = str) -> dict:
        """The measurements that are there after a run of one arm with these turns, which fails."""
        coming = iter(turns)

        def measure(chosen: list[arms.Arm], _: Path) -> Iterator[tuple[str, dict]]:
            turn = next(coming)
            if isinstance(turn, BaseException):
                raise turn
            yield chosen[0].name, turn

        chosen = [arms.ARMS["dev"]]
        with (
            mock.patch.object(report, "RESULTS", self.root),
            mock.patch.object(arms, "choose", return_value=chosen),
            mock.patch.object(rounds, "record", return_value={}),
            mock.patch("sys.stdout"),
            self.assertRaises((Problem, KeyboardInterrupt)),
        ):
            rounds.run(
                "some",
                argparse.Namespace(arms="dev", rounds=len(turns), save=False),
                settings={},
                prepare=lambda _: self.root,
                measure=measure,
                brief=str,
                render=render,
                seconds_each=1,
            )
        (written,) = self.root.iterdir()
        return json.loads(written.read_text())

    def test_rounds_before_a_failure(self) -> None:
        left = self.left({"figure": 1}, Problem("no"))
        self.assertEqual({"runs": {"dev": [{"figure": 1}]}}, left)

    def test_rounds_before_an_interruption(self) -> None:
        left = self.left({"figure": 1}, KeyboardInterrupt())
        self.assertEqual({"runs": {"dev": [{"figure": 1}]}}, left)

    def test_all_rounds_if_there_is_no_report(self) -> None:
        render = mock.Mock(side_effect=Problem("no report"))
        left = self.left({"figure": 1}, {"figure": 2}, render=render)
        self.assertEqual({"runs": {"dev": [{"figure": 1}, {"figure": 2}]}}, left)
