"""The program sees wrong answers, errors that say nothing, blocks that stay, and crashes."""

import contextlib
import re
from unittest import TestCase, mock

from harness.common import ROOT
from harness.problem import Problem
from harness.scratch import Scratch
from proof import cases, failing
from proof.cases import Case
from proof.compare import Answer, Part
from proof.failing import Counts, Trial, unlike
from proof.switch import FOREVER, IN_MALLOC, NOTHING, Run

CASE = Case("join", ("SELECT 1",))
RIGHT = [Answer([Part((("1", 8),), [("1",)], 0, 0, "")])]
OTHER = [Answer([Part((("1", 8),), [("2",)], 0, 0, "")])]
WARNED = [Answer([Part((("1", 8),), [("1",)], 0, 0, "", 1)])]


def error(code: int) -> list[Answer]:
    return [Answer(error=code, text="words")]


class _Server:
    """It takes so many blocks from each pool, and answers as `answers` says where one fails."""

    def __init__(self, blocks, answers=lambda way, skip: RIGHT):
        self.blocks, self.answers = blocks, answers
        self.pools, self.routes = [each for each in blocks if "/" not in each], [each for each in blocks if "/" in each]
        self.packets = self.starts = self.calls = self.failures = 0
        self.alive, self.grows = True, {}  # pools: by so much each time, by so much for each failure
        self.control = mock.Mock()
        self.control.query.return_value.rows = []
        self.server = mock.Mock(**{"error_log.read_text.return_value": "a stack"})

    def begin(self):
        pass

    def once(self, case, way=NOTHING, skip=0):
        there = sum(self.blocks.values()) if way.what == "" else self.blocks[way.what]
        failed = min(max(there - skip, 0), way.count)
        self.failures += failed > 0
        return Run(self.answers(way, skip) if failed else RIGHT, failed)

    def many(self, case, ways):
        self.packets += 1
        assert ways
        return [self.once(case, *each) for each in ways]

    def held(self):
        self.calls += 1
        return {name: self.calls * always + self.failures * failing for name, (always, failing) in self.grows.items()}

    def lives(self):
        return self.alive

    def start_again(self):
        self.alive, self.starts = True, self.starts + 1


class A_trial(Scratch):
    def trial(self, server, case=CASE):
        trial = Trial(server, Counts(), self.root / "log")
        with contextlib.redirect_stdout(None):
            trial.several([case])
        return trial.counts

    def test_each_allocation_fails_once_and_all_from_there_on(self):
        seen = []

        def answers(way, skip):
            seen.append((way.what, way.kind, skip, way.count))
            return RIGHT

        counts = self.trial(_Server({"ddl": 20, "memory/sql/x": 2}, answers))
        for count in (1, FOREVER):
            for skip in range(20):
                self.assertIn(("ddl", "own", skip, count), seen)
            for skip in range(2):
                self.assertIn(("memory/sql/x", "hard", skip, count), seen)
        self.assertEqual((counts.injections, counts.hard, counts.faults), (2 + 2 * 20 + 1 + 2 * 2, 4, {}))
        self.assertEqual(counts.failed, 20 + 2 + 20 + sum(range(21)) + 22 + 2 + 3)

    def test_a_soft_failure_is_invisible(self):
        for wrong in (OTHER, WARNED, error(5)):
            bad = lambda way, skip, wrong=wrong: wrong if (way.kind, skip) == ("own", 17) else RIGHT  # noqa: E731
            counts = self.trial(_Server({"ddl": 20}, bad))
            self.assertIn("own ddl 17", *counts.faults.values())

    def test_a_hard_failure_is_an_error_that_says_so(self):
        for wrong, good in (
            (OTHER, False),
            (error(1064), False),
            (error(1030), False),
            (error(5), True),
            (WARNED, True),
            (RIGHT, True),
        ):
            bad = lambda way, skip, wrong=wrong: wrong if way.kind == "hard" else RIGHT  # noqa: E731
            self.assertEqual(not self.trial(_Server({"memory/sql/x": 1}, bad)).faults, good)

    def test_a_refused_block_is_the_error_of_the_ceiling(self):
        route = cases.REFUSED[0]
        for wrong, good in ((OTHER, False), (error(5), False), (error(3170), True), (RIGHT, True)):
            bad = lambda way, skip, wrong=wrong: wrong if way.kind == "refused" else RIGHT  # noqa: E731
            self.assertEqual(not self.trial(_Server({route: 1}, bad)).faults, good)
        counts = self.trial(_Server({route: 1}), Case("join", ("SELECT 1",), hard=False))
        self.assertEqual((counts.hard, counts.refused), (0, 2))
        counts = self.trial(_Server({route: 1}), Case("ALTER", ("SELECT 1",), after=("SELECT 1",)))
        self.assertEqual((counts.hard, counts.refused), (2, 0))

    def test_what_a_session_keeps_fails_one_packet_after_the_other(self):
        server = _Server({"session": 9})
        self.assertEqual(self.trial(server).injections, 1 + 2 * 9 + 1)
        self.assertEqual(server.packets, 0)
        server = _Server({"ddl": 9})
        self.assertEqual(self.trial(server).injections, 1 + 2 * 9 + 1)
        self.assertEqual(server.packets, 2)

    def test_with_many_allocations_not_all_begin_a_series(self):
        n = 80
        counts = self.trial(_Server({"ddl": n}))
        self.assertEqual(counts.injections, 1 + n + n // failing.STEP + 1)

    def test_a_statement_that_never_fails_hard(self):
        counts = self.trial(_Server({"ddl": 2, "memory/sql/x": 2}), Case("join", ("SELECT 1",), hard=False))
        self.assertEqual((counts.injections, counts.hard), (1 + 2 * 2 + 1, 0))

    def test_a_crash(self):
        server = _Server({"memory/sql/x": 3})

        def answers(way, skip):
            server.alive = way.kind != "hard" or skip < 1
            return RIGHT if server.alive else [Answer(lost=True)]

        server.answers = answers
        counts = self.trial(server)
        self.assertEqual((counts.crashes, server.starts, server.routes), (1, 1, []))
        self.assertIn("hard memory/sql/x 1: the server crashed", *counts.faults.values())
        self.assertIn("a stack", (self.root / "log").read_text())

    def test_blocks_that_stay(self):
        for name, always, failing_ones, good in (
            (f"ddl{IN_MALLOC}", 0, 1, False),
            ("ddl", 100, 0, True),
            ("ddl", 9000, 0, True),
            ("ddl", 0, 9000, False),
            ("ddl", 9000, 9000, False),
        ):
            server = _Server({"ddl": 1})
            server.grows = {name: (always, failing_ones)}
            with mock.patch("time.sleep"):
                faults = self.trial(server).faults
            self.assertEqual(not faults, good, (name, always, failing_ones, faults))


class Of_cases(TestCase):
    def test_there_are_many_of_many_kinds(self):
        made = list(cases.fixed("/folder"))
        self.assertGreater(len(made), 250)
        self.assertGreater(len({case.kind for case in made}), 40)
        self.assertEqual(len({(case.before, case.texts) for case in made}), len(made))

    def test_tables_of_ours_are_those_that_there_are(self):
        known = set(re.findall(r"^## INFORMATION_SCHEMA\.(\w+)", (ROOT / "docs" / "reference.md").read_text(), re.M))
        texts = " ".join(text for case in cases.fixed("") for text in case.texts)
        asked = set(re.findall(r"information_schema\.(memdiag_\w+)", texts))
        self.assertEqual({name.upper() for name in asked}, known)
        for path in (ROOT / "proof").glob("*.py"):
            others = re.findall(r"information_schema\.(MEMDIAG_\w+)", path.read_text())
            self.assertLessEqual(set(others), known, path.name)

    def test_a_seed_makes_the_same_queries(self):
        self.assertEqual(list(cases.at_random("1/2", 20)), list(cases.at_random("1/2", 20)))
        self.assertNotEqual(list(cases.at_random("1/2", 20)), list(cases.at_random("1/3", 20)))

    def test_what_is_fatal_on_stock_does_not_fail_hard(self):
        for route in ("memory/innodb/fts", "mem_heap/row", "memory/sql/THD::main_mem_root", "memory/sql/dd::objects"):
            self.assertIsNone(cases.HARD.fullmatch(route), route)
        self.assertTrue(cases.HARD.fullmatch("memory/sql/user_var_entry::value"))

    def test_figures_of_the_moment_differ(self):
        self.assertEqual(unlike(Case("moment", ("x",), same=False), OTHER, RIGHT), "")
        self.assertIn("error", unlike(Case("moment", ("x",), same=False), error(5), RIGHT))


class Of_arguments(TestCase):
    def test_one_error_for_a_bad_one(self):
        for words in (["--injections", "0"], ["--arm", "nothing"]):
            with mock.patch("sys.argv", ["failing", *words]), self.assertRaises(Problem):
                failing.main()

    def test_the_line_at_the_end(self):
        line = failing.render(Counts(injections=5, faults={"SELECT 1": "own"}))
        self.assertIn("5 injections in 0 statements of 0 kinds: 1 statements with a fault", line)
        self.assertNotIn("\n", line)
