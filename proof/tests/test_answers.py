"""The generator makes what it promises, and the comparer finds a difference and makes its program short."""

import argparse
import contextlib
import functools
import random
import re
from pathlib import Path
from unittest import TestCase, mock

from harness import markdown
from harness.problem import Problem
from harness.scratch import Scratch
from proof import answers, settings
from proof.compare import Answer, Part, difference, shortest
from proof.programs import Statement, program

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = [program(f"test/{number}", 90) for number in range(150)]
TEXTS = [statement.text for made in PROGRAMS for statement in made]


class Generator(TestCase):
    def test_a_seed_makes_the_same_program_again(self):
        self.assertEqual(program("7/1", 90), program("7/1", 90))
        self.assertNotEqual(program("7/1", 90), program("7/2", 90))

    def test_a_program_has_its_length(self):
        for made in PROGRAMS:
            self.assertGreaterEqual(len(made), 90)
            self.assertLess(len(made), 130)

    def test_programs_have_statements_of_every_kind(self):
        for kind in (
            "LEFT JOIN",
            "GROUP BY .* WITH ROLLUP",
            "OVER (",
            "JSON_TABLE",
            "WITH RECURSIVE",
            "LATERAL",
            "IN BOOLEAN MODE",
            "WITH QUERY EXPANSION",
            "CREATE TEMPORARY TABLE",
            "PARTITION BY",
            "PREPARE p",
            "EXECUTE p",
            "CREATE PROCEDURE .* HANDLER FOR",
            "CREATE PROCEDURE .* CURSOR FOR",
            r"CREATE PROCEDURE (r\d+) .*CALL \1",
            "CREATE FUNCTION",
            "CREATE TRIGGER",
            "CREATE ALGORITHM = MERGE VIEW",
            "XA PREPARE",
            "ROLLBACK TO s",
            "ALTER TABLE .* ALGORITHM = INPLACE",
            "FOREIGN KEY",
            "EXCEPT",
            "LOCK TABLES",
            "HANDLER .* OPEN",
        ):
            pattern = re.compile(kind.replace("(", r"\(") if r"\1" not in kind else kind)
            self.assertTrue(any(pattern.search(text) for text in TEXTS), kind)

    def test_nothing_that_crashes_stock(self):
        for text in TEXTS:
            if re.match("CREATE (PROCEDURE|FUNCTION|TRIGGER)", text):
                self.assertNotIn("REGEXP", text)
                self.assertNotRegex(text, r"DECLARE \w+, \w+ \w+ DEFAULT \(SELECT")

    def test_order_counts_only_where_it_is_total(self):
        for made in PROGRAMS:
            for statement in made:
                if statement.ordered:
                    self.assertRegex(statement.text, r"ORDER BY|^HANDLER|^CALL|^EXECUTE")
                if re.match("SELECT.* LIMIT", statement.text):
                    self.assertIn("ORDER BY", statement.text)


def rows(*values, affected=0, warnings=()):
    made = [(str(value),) for value in values]
    return Answer([Part((("a", 3),), made, affected, 0, "")], list(warnings))


class Difference(TestCase):
    def test_equal_answers(self):
        self.assertEqual(difference(rows(1, 2), rows(1, 2), True), "")
        self.assertEqual(difference(Answer(error=1062, text="x"), Answer(error=1062, text="x"), False), "")

    def test_the_order_counts_only_where_it_is_total(self):
        self.assertEqual(difference(rows(1, 2), rows(2, 1), False), "")
        self.assertIn("a row", difference(rows(1, 2), rows(2, 1), True))

    def test_each_part_of_an_answer_counts(self):
        self.assertIn("a row", difference(rows(1), rows(2), False))
        self.assertIn("rows of", difference(rows(1), rows(1, 1), False))
        self.assertIn("affected", difference(rows(affected=1), rows(affected=2), False))
        self.assertIn("error: 1062", difference(Answer(error=1062, text="x"), rows(1), False))
        self.assertIn("error", difference(Answer(error=1062, text="x"), Answer(error=1062, text="y"), False))
        self.assertIn("results", difference(rows(1), Answer(), False))
        warning = ("Warning", "1265", "truncated")
        self.assertIn("warnings: 1", difference(rows(1, warnings=[warning]), rows(1), False))
        self.assertIn("warnings", difference(rows(1, warnings=[warning, warning]), rows(1, warnings=[warning]), False))
        other = Answer([Part((("b", 3),), [("1",)], 0, 0, "")])
        self.assertIn("columns", difference(rows(1), other, False))

    def test_a_lost_connection(self):
        self.assertIn("lost", difference(Answer(lost=True), rows(1), False))

    def test_names_of_internal_tables_have_the_number_of_the_process(self):
        one = Answer(error=1146, text="Table './tmp/#sql5fdf_71_0' doesn't exist")
        two = Answer(error=1146, text="Table './tmp/#sql6012_70_0' doesn't exist")
        self.assertEqual(difference(one, two, False), "")
        self.assertEqual(difference(rows(one.text), rows(two.text), False), "")
        self.assertNotEqual(difference(rows("#sql1 a"), rows("#sql2 b"), False), "")

    def test_the_shortest_list(self):
        self.assertEqual(shortest(range(100), lambda less: {17, 64} <= set(less), 200), [17, 64])
        self.assertEqual(shortest([5], lambda less: 5 in less, 10), [5])


class _Server:
    """One that answers each statement with 1 row, and after `fault` with another value."""

    def __init__(self, faulty):
        self.socket = self
        self.faulty = faulty

    def alive(self):
        return True


class _Session:
    def __init__(self, server, timeout):
        self.server, self.broken, self.text = server, False, ""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def send(self, text):
        self.text = text
        self.broken |= "XA PREPARE" in text

    def receive(self):
        wrong = self.server.faulty and self.broken and self.text.startswith("SELECT")
        return rows(2 if wrong else 1)

    def query(self, text):
        return mock.Mock(rows=[])


RECURSIVE = "WITH RECURSIVE r AS (SELECT 1 AS n UNION DISTINCT SELECT n + 1 FROM r WHERE n < 5) SELECT n FROM r"
HIDDEN = Answer(error=1146, text="Table './tmp/#sql4a6b_e2_0' doesn't exist")


class MadeDifference(Scratch):
    """The second server answers every SELECT wrongly after an XA PREPARE of the session."""

    def setUp(self):
        super().setUp()
        self.enterContext(mock.patch.object(answers, "Session", _Session))
        self.enterContext(mock.patch.object(answers, "say"))
        self.pair = answers.Pair((), self.root)
        self.pair.servers = [_Server(False), _Server(True)]
        number, self.made = next(
            (number, made)
            for number, made in enumerate(PROGRAMS)
            if answers.run(self.pair, made, random.Random(1), answers.Counts())
        )
        self.number = number

    def test_it_is_found_and_its_program_is_made_short(self):
        found = answers.run(self.pair, self.made, random.Random(1), answers.Counts())
        self.assertIn("a row of result 0: ('1',) | ('2',)", found.words)
        short, _ = answers.shorten(self.pair, self.made, "1", found)
        self.assertEqual(len(short), 2)
        self.assertIn("XA PREPARE", short[0].text)
        self.assertTrue(short[1].text.startswith("SELECT"))

    def test_it_is_written_with_its_seed(self):
        log = self.root / "found"
        counts = answers.Counts()
        options = argparse.Namespace(seed="test")
        answers.one_program(self.pair, self.number, options, counts, log)
        self.assertEqual(len(counts.differences), 1)
        self.assertIn(f"-- program {self.number} (seed test/{self.number}): a row", log.read_text())
        self.assertIn("XA PREPARE", log.read_text())

    def test_equal_servers_have_none(self):
        self.pair.servers[1].faulty = False
        counts = answers.Counts()
        self.assertIsNone(answers.run(self.pair, self.made, random.Random(1), counts))
        self.assertEqual(counts.statements, len(self.made))

    def test_the_ceiling_may_end_a_statement_of_ours(self):
        refused = Answer(error=3170, text="memory")
        counts = answers.Counts()
        with mock.patch.object(answers, "ask", lambda sessions, text: [refused, rows(1)]):
            self.assertIsNone(answers.run(self.pair, [Statement("SELECT 1")], random.Random(1), counts))
        self.assertEqual(counts.ended, 1)

    def answered(self, text, mine, other, counts):
        """The first difference of a program whose first statement the servers answer so."""

        def ask(_, asked):
            return [mine, other] if asked == text else [rows("t"), rows("t")]

        with mock.patch.object(answers, "ask", ask):
            return answers.run(self.pair, [Statement(text), Statement("SHOW WARNINGS")], random.Random(1), counts)

    def test_stock_may_not_find_the_hidden_table_of_a_recursion(self):
        french = Answer(error=1146, text="La table '/tmp/#sql1f4_16a_0' n'existe pas")
        for text in (
            RECURSIVE,
            f"DO (SELECT COUNT(*) FROM ({RECURSIVE}) x)",
            f"CREATE TEMPORARY TABLE c AS {RECURSIVE}",
        ):
            too_deep = Answer(error=3636, text="Recursive query aborted")
            for mine, other in ((rows(1), HIDDEN), (rows(1), french), (too_deep, HIDDEN)):
                with self.subTest(text, mine=mine, other=other.text):
                    counts = answers.Counts()
                    self.assertIsNone(self.answered(text, mine, other, counts))
                    self.assertEqual(counts.stock_errors, 1)
                    # The rest of the program may differ by it.
                    self.assertEqual(counts.statements, 1)
                    self.assertIn("did not find a hidden table in 1 programs", answers.render(counts))

    def test_no_other_error_of_stock_is_let_pass(self):
        for text, mine, other in (
            (RECURSIVE, HIDDEN, rows(1)),
            (RECURSIVE, Answer(error=1222, text="x"), HIDDEN),
            (RECURSIVE, Answer(lost=True), HIDDEN),
            (RECURSIVE, rows(1), Answer(error=1146, text="Table 'p.t1' doesn't exist")),
            (RECURSIVE, rows(1), Answer(error=1146, text="Table 'p.#sql-4a6b_e2' doesn't exist")),
            (RECURSIVE, rows(1), Answer(error=1114, text="The table './tmp/#sql4a6b_e2_0' is full")),
            (RECURSIVE, rows(1), rows(2)),
            (RECURSIVE.replace("DISTINCT", "ALL"), rows(1), HIDDEN),
            (RECURSIVE.replace("RECURSIVE ", ""), rows(1), HIDDEN),
        ):
            with self.subTest(text, mine=mine, other=other):
                counts = answers.Counts()
                self.assertIsNotNone(self.answered(text, mine, other, counts))
                self.assertEqual(counts.stock_errors, 0)

    def test_the_generator_sends_such_a_recursion_itself(self):
        """by_stock() looks at the text that is sent."""
        for text in TEXTS:
            if "WITH RECURSIVE" in text:
                self.assertRegex(text, r"^(WITH RECURSIVE|DO \(SELECT|CREATE TEMPORARY TABLE)")

    def test_warnings_may_differ_by_the_plan(self):
        plans = ["-> Table scan on t  (cost=1 rows=2)", "-> Table scan on t  (cost=9 rows=2)"]
        differ = [rows(1, warnings=[("Warning", "1292", "x")]), rows(1)]

        def ask(_, text):
            return [rows(plan) for plan in plans] if text.startswith("EXPLAIN") else differ

        with mock.patch.object(answers, "ask", ask):
            run = functools.partial(answers.run, self.pair, [Statement("SELECT 1")], random.Random(1))
            self.assertIn("warnings", run(answers.Counts()).words)
            plans[1] = "-> Index lookup on t  (cost=1 rows=2)"
            counts = answers.Counts()
            self.assertIsNone(run(counts))
            self.assertEqual(counts.plans, 1)

    def test_rows_may_not_differ_by_the_plan_where_statistics_are_equal(self):
        for after, found in ((1, False), (2, True)):
            answered = iter([[rows(1), rows(2)], [rows(1), rows(after)]])

            def ask(_, text, answered=answered):
                if text.startswith("EXPLAIN"):
                    return [rows("a"), rows("b")]
                return next(answered) if text == "SELECT 1" else [rows("t"), rows("t")]

            with mock.patch.object(answers, "ask", ask):
                result = answers.run(self.pair, [Statement("SELECT 1")], random.Random(1), answers.Counts())
            self.assertEqual(result is not None, found)

    def test_a_prepared_statement_is_explained_by_its_text(self):
        prepared = {}
        answers.explained("PREPARE p1 FROM 'SELECT ''a'', ? FROM t WHERE id = ?'", prepared)
        self.assertEqual(
            answers.explained("EXECUTE p1 USING @v1, @v2", prepared), "SELECT 'a', @v1 FROM t WHERE id = @v2"
        )
        self.assertEqual(answers.explained("SELECT 1", prepared), "SELECT 1")

    def test_a_search_that_differs_is_asked_again(self):
        asked = [[rows(1), rows(2)], [rows(2), rows(2)]]
        counts = answers.Counts()
        search = [Statement("SELECT 1 FROM t WHERE MATCH (a) AGAINST ('b')")]
        clean = [rows(), rows()]
        # Four answers come before, of statements that make a database and use it, and one of EXPLAIN between.
        follow = iter([clean] * 4 + [asked[0], clean, asked[1]])
        with mock.patch.object(answers, "ask", lambda *_: next(follow)):
            self.assertIsNone(answers.run(self.pair, search, random.Random(1), counts))
        self.assertEqual(counts.searches, 1)
        self.written(search, asked[0], self.assertIsNotNone)

    def test_a_rank_that_differs_is_asked_again_when_all_words_are_in_the_index(self):
        search = [Statement("SELECT MATCH (a) AGAINST ('b') FROM t")]
        self.written(search, [rows(2), rows(2)], self.assertIsNone)
        self.written(search, [rows(2), rows(3)], self.assertIsNotNone)

    def written(self, search, at_last, check):
        """Checks what is found by a search that differs until the words are in the index."""
        texts = []

        def ask(_, text):
            texts.append(text)
            if "AGAINST" in text and not text.startswith("EXPLAIN"):
                return at_last if "OPTIMIZE TABLE t" in texts else [rows(1), rows(2)]
            return [rows("t"), rows("t")]

        with mock.patch.object(answers, "ask", ask), mock.patch("time.sleep"):
            check(answers.run(self.pair, search, random.Random(1), answers.Counts()))
        self.assertIn("SET GLOBAL innodb_optimize_fulltext_only = OFF", texts)


class Arguments(TestCase):
    def test_one_error_for_a_bad_argument(self):
        for words in (["--statements", "0"], ["--arms", "nothing,debian"], ["--program", "-1"]):
            with (
                mock.patch("sys.argv", ["answers", *words]),
                mock.patch.object(answers.arm_list, "choose", _choose),
                self.assertRaises(Problem),
                contextlib.redirect_stdout(None),
            ):
                answers.main()


def _choose(names):
    if "nothing" in names:
        raise Problem("unknown arm")
    return names.split(",")


class Settings(TestCase):
    def test_every_variable_of_ours_is_there(self):
        tables = markdown.tables((ROOT / "docs/reference.md").read_text(), "System variables")
        listed = {row[0] for table in tables for row in table}
        self.assertEqual({*settings.PER_POOL, *settings.ANY_TIME, *settings.AT_START}, listed)

    def test_settings_are_at_random(self):
        dice = random.Random(1)
        found = {settings.one(dice) for _ in range(2000)}
        self.assertIn(("memdiag_memory_target", "'AUTO'"), found)
        self.assertIn(("memdiag_profile", "RECORD"), found)
        self.assertEqual({name for name, _ in found}, {*settings.PER_POOL, *settings.ANY_TIME})
