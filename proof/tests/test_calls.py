"""The judgement of answers to a server whose call has failed."""

from unittest import TestCase

from harness.sql import Result
from proof.calls import ALL_UP_TO, AT_MOST, Said, places, untrue, works

COLUMNS = ["NAME", "BYTES", "LIMIT_BYTES"]


def said(*rows, warnings=()):
    return Said(Result(COLUMNS, list(rows)), list(warnings))


USUAL = [said(("a", "5", "9"), ("b", "0", "9")), said(("a", "6", "9"), ("b", "1", "9"))]


class Untrue(TestCase):
    def test_figures_of_the_moment_are_right(self):
        self.assertEqual(untrue(USUAL, said(("a", "7", "9"), ("b", "0", "9"), ("c", "1", "9"))), "")

    def test_null_needs_a_warning(self):
        rows = (("a", None, "9"), ("b", "0", "9"))
        self.assertIn("without a warning", untrue(USUAL, said(*rows)))
        self.assertEqual(untrue(USUAL, said(*rows, warnings=["it cannot be read"])), "")

    def test_a_row_that_is_missing_needs_one_too(self):
        self.assertIn("not there", untrue(USUAL, said(("a", "5", "9"))))

    def test_0_is_no_figure(self):
        for zero in ("0", "0.00"):
            rows = (("a", zero, "9"), ("b", "0", "9"))
            self.assertIn("is 0, and was 5", untrue(USUAL, said(*rows, warnings=["it cannot be read"])))

    def test_another_limit_is_none(self):
        self.assertIn("is 24, and was 9", untrue(USUAL, said(("a", "5", "24"), ("b", "0", "9"), warnings=["a file"])))

    def test_rows_of_one_name_are_told_apart(self):
        rows = [("a", "1", "9"), ("a", "0", "9")]
        self.assertEqual(untrue([said(*rows)], said(*rows)), "")


class Works(TestCase):
    def test_what_changes_something_brings_it_back(self):
        every = list(works(["memdiag_pools"]))
        self.assertEqual({work.reads for work in every}, {True, False})
        for work in every:
            self.assertEqual(work.reads, not any(text.startswith("SET") for text in (*work.texts, *work.after)))


class Places(TestCase):
    def test_all_of_few_and_some_of_many(self):
        self.assertEqual(sorted(places(7)), list(range(7)))
        many = places(10_000)
        self.assertLessEqual(set(range(ALL_UP_TO)), set(many))
        self.assertLessEqual(len(many), AT_MOST + 1)
