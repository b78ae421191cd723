"""bench/per_object.py: its line through the readings, its report from literal figures, its statements."""

import re
import unittest
from unittest import mock

from bench import per_object
from bench.runner import objects
from harness.problem import Problem

IDLE, TABLE = "idle connection", "open table"


def readings(slope: float, part: float = 0.0) -> list[dict]:
    """Six, exactly on a line, with one part of the ledger from the third on."""
    return [
        {"count": 100 * n, "kb": 5000 + slope * 100 * n, "parts": {"pool session": part * 100 * n} if part else {}}
        for n in range(1, 7)
    ]


def rendered(**runs: list[dict]) -> str:
    return per_object.render(
        {
            "runs": {name.replace("_", "-"): found for name, found in runs.items()},
            "machine": {},
            "arms": {},
            "settings": {
                "rounds": 1,
                "kinds": [kind for kind in next(iter(runs.values()))[0] if kind != per_object.START],
            },
        }
    )


class Line(unittest.TestCase):
    def test_exact_points_have_no_error(self) -> None:
        line = objects.Line.through([(0, 7), (10, 27), (20, 47)])
        self.assertAlmostEqual(2.0, line.slope)
        self.assertAlmostEqual(0.0, line.error)

    def test_the_error_is_that_of_the_slope(self) -> None:
        # By hand: slope 1, residuals -1/3, 2/3, -1/3 twice mirrored.
        line = objects.Line.through([(0, 0), (1, 2), (2, 2)])
        self.assertAlmostEqual(1.0, line.slope)
        self.assertAlmostEqual((2 / 3 / 1 / 2) ** 0.5, line.error)

    def test_two_points_tell_no_error(self) -> None:
        with self.assertRaises(ValueError):
            objects.Line.through([(0, 1), (1, 2)])


class Rest(unittest.TestCase):
    def test_waits_until_the_allocator_is_done(self) -> None:
        now = [0.0]

        class Falling:
            def rss_kb(self) -> int:
                return 9000 - int(min(now[0], 5) * 1000)

        def sleep(seconds: float) -> None:
            now[0] += seconds

        with (
            mock.patch.object(objects.time, "monotonic", lambda: now[0]),
            mock.patch.object(objects.time, "sleep", sleep),
        ):
            self.assertEqual(4000, objects.rest(Falling()))
        self.assertLess(now[0], objects.PATIENCE_SECONDS)

    def test_gives_up_where_it_never_rests(self) -> None:
        now = [0.0]

        class Moving:
            def rss_kb(self) -> int:
                return int(now[0] * 10_000)

        def sleep(seconds: float) -> None:
            now[0] += seconds

        with (
            mock.patch.object(objects.time, "monotonic", lambda: now[0]),
            mock.patch.object(objects.time, "sleep", sleep),
        ):
            objects.rest(Moving())
        self.assertAlmostEqual(objects.PATIENCE_SECONDS, now[0], delta=0.2)


class Ledger(unittest.TestCase):
    def test_parts_are_sums_of_their_rows(self) -> None:
        session = mock.MagicMock()
        session.query.return_value.rows = [
            ("pool", "session", "2048"),
            ("pool", "session", "1024"),
            ("program", "", "512"),
        ]
        self.assertEqual({"pool session": 3, "program": 0.5}, per_object.ledger(session))

    def test_a_part_that_cannot_be_read_is_not_empty(self) -> None:
        session = mock.MagicMock()
        session.query.return_value.rows = [("pool", "session", "2048"), ("pool", "session", None)]
        with self.assertRaisesRegex(Problem, "could not be read"):
            per_object.ledger(session)


class Report(unittest.TestCase):
    def test_medians_targets_and_parts(self) -> None:
        text = rendered(
            dev=[
                {IDLE: readings(64, 12), TABLE: readings(61), per_object.START: 100_000},
                {IDLE: readings(64, 12), TABLE: readings(61), per_object.START: 90_000},
            ],
            debian=[{IDLE: readings(490), TABLE: readings(100), per_object.START: 500_000}],
        )
        self.assertRegex(text, r"dev +\| +97.3 \| +92.2 \| +102.4 ")
        self.assertRegex(text, r"debian +\| +512.0 ")
        self.assertRegex(text, r"RSS of a fresh server, MB +\| +97.280 .*\| NOT MET")
        self.assertRegex(text, r"idle connection, dev +\| +64.0 \| +0.0 ")
        self.assertRegex(text, r"idle connection, debian +\| +490.0 ")
        self.assertRegex(text, r"one more idle connection +\| +64.000 .*\| +met")
        self.assertRegex(text, r"one more open table +\| +61.000 .*\| NOT MET")
        self.assertRegex(text, r"idle connection, dev: pool session +\| +12.0")

    def test_without_our_server_there_are_no_targets(self) -> None:
        text = rendered(debian=[{IDLE: readings(490), per_object.START: 500_000}])
        self.assertNotIn("Targets", text)
        self.assertNotIn("MEMDIAG_LEDGER", text)


class Objects(unittest.TestCase):
    def test_there_is_data_for_the_most_of_each(self) -> None:
        most = {name: kind.step * (objects.STEPS + 1) for name, kind in objects.KINDS.items()}
        self.assertLessEqual(most["open table"], objects.TABLES)
        self.assertLessEqual(most["open partition"], objects.PARTITIONED * objects.PARTITIONS)
        self.assertLessEqual(
            most["first query of a connection"], objects.KINDS["first query of a connection"].sessions()
        )
        self.assertLessEqual(
            most["cached procedure"], objects.KINDS["cached procedure"].sessions() * objects.PROCEDURES
        )

    def test_a_wide_table_has_30_columns_and_4_indexes(self) -> None:
        text = objects.wide_table("wide")
        self.assertEqual(29, len(re.findall(r"\bc\d+ [A-Z]", text)))
        self.assertIn("(id INT PRIMARY KEY, ", text)
        self.assertEqual(4, text.count("KEY"))

    def test_a_procedure_has_40_ifs(self) -> None:
        text = objects.procedure("many")
        self.assertEqual(40, text.count("IF a ="))
        self.assertEqual(40, text.count("END IF"))

    def test_an_unknown_object_is_a_problem(self) -> None:
        self.assertEqual([IDLE], [kind.name for kind in per_object.chosen(IDLE)])
        for names in ("", "table", f"{IDLE},nonsense"):
            with self.assertRaisesRegex(Problem, "unknown object"):
                per_object.chosen(names)
