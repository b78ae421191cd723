"""bench/scale.py: its arguments, its data, its exponents and verdicts, and its report from literal figures."""

import resource
import unittest
from collections.abc import Callable
from pathlib import Path
from unittest import mock

from bench import scale
from bench.runner import arms
from bench.scale import AXES, FULL, QUICK, Growth
from harness.problem import Problem

SIZES = (1, 10, 100, 1000, 10_000)


def growth(*curves: Callable[[int], float], sizes: tuple[int, ...] = SIZES) -> Growth:
    """Each curve is a round."""
    return Growth.of([{size: curve(size) for size in sizes} for curve in curves])


class Exponents(unittest.TestCase):
    def test_of_a_power(self) -> None:
        found = growth(lambda size: 3 * size**1.5)
        self.assertAlmostEqual(1.5, found.whole.slope)
        self.assertAlmostEqual(0, found.whole.error)
        self.assertAlmostEqual(1.5, found.step)
        self.assertTrue(found.faster())

    def test_a_line_is_as_fast_as_its_work(self) -> None:
        found = growth(lambda size: 170 + 0.4 * size)
        self.assertLess(found.whole.slope, 0.5)
        self.assertAlmostEqual(1, found.grown.slope)
        self.assertFalse(found.faster())
        self.assertFalse(growth(lambda size: 2.0 * size).faster())

    def test_what_is_there_at_first_does_not_hide_growth(self) -> None:
        found = growth(lambda size: 100 + size**1.4, sizes=(10, 100, 1000, 5000))
        self.assertGreater(found.grown.slope, 1.3)
        self.assertTrue(Growth(None, found.grown, None).faster())
        self.assertFalse(Growth(found.whole, None, None).faster())

    def test_growth_that_begins_late_is_seen(self) -> None:
        found = growth(lambda size: 10 if size < 10_000 else 2000)
        self.assertIsNone(found.grown)
        self.assertLess(found.whole.slope, 1)
        self.assertTrue(found.faster())

    def test_noise_is_no_growth(self) -> None:
        figures = dict(zip(SIZES, (10.0, 10.01, 10.2, 10.9, 10.99), strict=True))
        found = Growth.of([figures])
        self.assertIsNone(found.grown)
        self.assertFalse(found.faster())

    def test_an_exponent_within_its_error_is_not_above(self) -> None:
        scattered = dict(zip(SIZES, (1.0, 2.0, 300.0, 400.0, 60_000.0), strict=True))
        found = Growth.of([scattered]).whole
        self.assertGreater(found.slope, scale.EXPONENT)
        self.assertFalse(Growth(found, None, None).faster())

    def test_what_rounds_differ_by_is_no_step(self) -> None:
        def one(size: int) -> float:
            return 15.0 if size == 10 else 1.0

        self.assertTrue(growth(one).faster())
        self.assertFalse(growth(one, lambda _: 1.0).faster())

    def test_few_sizes_have_no_line(self) -> None:
        found = growth(lambda size: size**3.0, sizes=(1, 10))
        self.assertEqual((None, None), (found.whole, found.grown))
        self.assertAlmostEqual(3, found.step)
        self.assertFalse(growth(lambda size: 5.0, sizes=(1,)).faster())
        self.assertEqual(["-"] * 5, Growth.of([{}]).cells())

    def test_a_figure_of_zero_has_no_exponent(self) -> None:
        found = growth(lambda size: size - 1.0)
        self.assertIsNone(found.whole)
        self.assertAlmostEqual(1, found.grown.slope)


class Arguments(unittest.TestCase):
    def chosen(self, *words: str) -> scale.Points:
        found = scale.arguments().parse_args(words)
        return scale.chosen(found.axes, found.points, found.quick)

    def test_all_axes_and_sizes(self) -> None:
        self.assertEqual({name: axis.sizes for name, axis in AXES.items()}, self.chosen())
        self.assertEqual(10_000, max(AXES["connections"].sizes))
        self.assertEqual(100_000, max(AXES["tables"].sizes))
        self.assertEqual((128, 12 * 1024), AXES["buffer_pool"].sizes[::3])

    def test_sizes_grow_and_are_enough_for_a_line(self) -> None:
        for axis in AXES.values():
            for sizes in (axis.sizes, axis.quick):
                self.assertEqual(sorted(set(sizes)), list(sizes))
                self.assertGreaterEqual(len(sizes), 3)

    def test_others(self) -> None:
        self.assertEqual(
            {"tables": (5, 50, 500)}, self.chosen("--axes", "tables", "--points", "tables=50,5,500,5", "--quick")
        )
        self.assertEqual(
            {"connections": (1, 2), "buffer_pool": (64,)},
            self.chosen(
                "--axes", "buffer_pool,connections", "--points", "connections=1,2", "--points", "buffer_pool=64"
            ),
        )

    def test_faults_are_problems(self) -> None:
        for words, message in (
            (("--axes", "threads"), "unknown axis 'threads'"),
            (("--axes", ""), "unknown axis ''"),
            (("--axes", "tables", "--points", "connections=1"), "none of tables"),
            (("--points", "1,2"), "none of"),
            (("--points", "tables=1,many"), "AXIS=SIZE"),
            (("--points", "tables="), "AXIS=SIZE"),
            (("--points", "tables=0,1"), "above zero"),
        ):
            with self.subTest(words), self.assertRaisesRegex(Problem, message):
                self.chosen(*words)

    def test_quick_takes_less_than_three_minutes_for_two_arms(self) -> None:
        quick, full = self.chosen("--quick"), self.chosen()
        self.assertLess(2 * scale.seconds_each(quick, QUICK), 180)
        self.assertGreater(scale.seconds_each(full, FULL), 600)


class Settings(unittest.TestCase):
    def test_are_those_of_all_points_of_an_axis(self) -> None:
        points = {name: axis.sizes for name, axis in AXES.items()}
        for name, sizes in points.items():
            made = {scale.options(name, points, size) for size in sizes}
            self.assertEqual(len(sizes) if name == "buffer_pool" else 1, len(made))
        (least, *_, most) = AXES["buffer_pool"].sizes
        for size in (least, most):
            wanted = f"--innodb-buffer-pool-size={size}M"
            self.assertIn(wanted, scale.options("buffer_pool", points, size))
        wanted = f"--max-connections={10_000 + scale.SPARE}"
        self.assertIn(wanted, scale.options("connections", points, 1))

    def test_files_are_enough_for_what_the_server_keeps(self) -> None:
        allowed = 10_000 + scale.SPARE
        given = scale.files(allowed)
        # adjust_max_connections() and adjust_table_cache_size() of upstream's mysqld.cc
        self.assertGreaterEqual(given - 10 - 2 * 400, allowed)
        self.assertGreaterEqual((given - 10 - allowed) // 2, scale.CACHED_TABLES)

    def test_limits_are_only_raised(self) -> None:
        endless = resource.RLIM_INFINITY
        self.assertEqual((500, 2000), scale.limits(500, 100, 2000))
        self.assertEqual((900, 2000), scale.limits(500, 900, 2000))
        self.assertEqual((500, 500), scale.limits(500, 100, 400))
        self.assertEqual((500, endless), scale.limits(500, 100, endless))
        self.assertEqual((endless, endless), scale.limits(500, endless, endless))

    def test_a_limit_that_cannot_be_raised_is_a_problem(self) -> None:
        with (
            mock.patch.object(scale.resource, "getrlimit", lambda _: (100, 400)),
            mock.patch.object(scale.resource, "setrlimit", side_effect=ValueError),
            self.assertRaisesRegex(Problem, "at most 400 files"),
        ):
            scale.allow_files(500)

    def test_a_server_that_lowered_a_limit_is_a_problem(self) -> None:
        session = mock.Mock()
        session.query.return_value.scalar.return_value = "4000"
        with self.assertRaisesRegex(Problem, "lowered max_connections to 4000"):
            scale.require_granted(arms.ARMS["dev"], session, 4001)


class Server:
    def __init__(self) -> None:
        self.statements: list[str] = []

    def query(self, sql: str) -> None:
        self.statements.append(sql)


class Data(unittest.TestCase):
    def test_each_directory_grows_from_the_one_before(self) -> None:
        made, server = [], Server()

        def template(name, key, _arms, _options, fill, base):
            made.append((name, key["tables"], base))
            fill(server)
            return Path(name)

        def each(_server, numbers, _step) -> None:
            server.statements.append(f"{numbers.start} to {numbers.stop}")

        with (
            mock.patch.object(scale.prepared, "template", template),
            mock.patch.object(scale, "each", each),
            mock.patch.object(scale, "require_disk"),
        ):
            found = scale.templates({"tables": (10, 50), "connections": (7,)}, ())
        self.assertEqual([0, 10, 50], list(found))
        self.assertEqual(
            [("scale-0", 0, None), ("scale-10", 10, Path("scale-0")), ("scale-50", 50, Path("scale-10"))], made
        )
        filled = [text for text in server.statements if " to " in text]
        self.assertEqual(["0 to 10", "10 to 50"], filled)
        self.assertEqual(1, sum("CREATE DATABASE" in text for text in server.statements))
        redo = [text for text in server.statements if "REDO_LOG" in text]
        self.assertEqual(["DISABLE", "ENABLE"] * 2, [text.split()[2] for text in redo])

    def test_without_tables_one_directory_is_enough(self) -> None:
        self.assertEqual([0], scale.counts({"connections": (1, 10), "buffer_pool": (128,)}))

    def test_several_clients_make_each_table_once(self) -> None:
        done: list[int] = []

        class Connecting:
            @staticmethod
            def connect(_database: str) -> mock.MagicMock:
                return mock.MagicMock()

        scale.each(Connecting(), range(3, 20), lambda _, number: done.append(number))
        self.assertEqual(list(range(3, 20)), sorted(done))

    def test_the_usual_tables_need_some_ten_gigabytes(self) -> None:
        points = {name: axis.sizes for name, axis in AXES.items()}
        self.assertAlmostEqual(12.6, scale.disk_gb(points, 3), delta=1)


def figures(rss: float, everyday: float | None = None) -> dict:
    found = {"start_s": 1.0, "start_mb": 100.0, "rss_mb": rss, "pages_mb": 5.0}
    if everyday is None:
        return found
    tables = {
        "MEMDIAG_POOLS": {"ms": everyday / 4, "cpu_ms": 0.5},
        "MEMDIAG_SESSIONS": {"ms": everyday, "cpu_ms": 0.75},
    }
    return {
        **found,
        "everyday_ms": everyday,
        "everyday_cpu_ms": everyday / 2,
        "purge_ms": 2.0,
        "purge_cpu_ms": 1.5,
        "purge_mb": 32.0,
        "tables": tables,
    }


class Report(unittest.TestCase):
    def rendered(self, times: tuple[float, ...]) -> str:
        sizes = (100, 1000, 10_000)
        ours = {str(size): figures(100, ms) for size, ms in zip(sizes, times, strict=True)}
        theirs = {str(size): figures(200.0) for size in sizes}
        return scale.render(
            {
                "runs": {"stock": [{"tables": theirs}], "dev": [{"tables": ours}]},
                "machine": {},
                "arms": {},
                "settings": {"rounds": 1, "points": {"tables": sizes}},
            }
        )

    def test_more_than_its_work_is_said(self) -> None:
        text = self.rendered((10, 200, 4000))
        self.assertIn("- tables: everyday_ms of dev", text)
        self.assertRegex(text, r"everyday tables ms, dev +\| +1.30 \| +0.00 .* 1.30 \| +FASTER")
        self.assertRegex(text, r"tables: figures of dev .*\| +2.000 \| +<= 0 \| +NOT MET")

    def test_as_fast_as_its_work_is_fine(self) -> None:
        text = self.rendered((10, 100, 1000))
        self.assertIn("Nothing.", text)
        self.assertNotIn("| FASTER |", text)
        self.assertRegex(text, r"tables: figures of dev .*\| +0.000 \| +<= 0 \| +met")

    def test_the_curves_compare_with_stock(self) -> None:
        text = self.rendered((10, 100, 1000))
        self.assertRegex(text, r"10000 dev +\| +1.00 \| +100.0 \| +- \| +100.0 \| +1000.0 \| +500.0 .* 0.50 \|")
        self.assertRegex(text, r"10000 stock +\| +1.00 \| +100.0 \| +- \| +200.0 \| +- \| +- .* 1.00 \|")

    def test_tables_stand_by_themselves_the_slowest_first(self) -> None:
        text = self.rendered((10, 100, 1000))
        self.assertRegex(text, r"MEMDIAG_SESSIONS +\| +10.00 \| +100.00 \| +1000.00 \| +0.75 \|")
        self.assertLess(text.index("MEMDIAG_SESSIONS"), text.index("MEMDIAG_POOLS"))

    def test_progress_has_what_was_measured(self) -> None:
        self.assertEqual("start s 1.00, RSS MB at start 100.0, RSS MB at work 200.0", scale.brief(figures(200.0)))
