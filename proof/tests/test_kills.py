"""A client notices what the server has lost, and accepts each state that the server may have."""

import contextlib
import io
import re
from types import SimpleNamespace
from unittest import TestCase, mock

from harness.problem import Problem
from harness.scratch import Scratch
from harness.sql import SqlError
from proof import kills, places
from proof.clients import DOCS, Definer, Lost, Writer, body


class _Rows:
    """A session with a server that has these rows of client 0."""

    def __init__(self, rows, prepared=(), found=True):
        self.rows, self.prepared, self.found = dict(rows), list(prepared), found
        self.said = []

    def query(self, text):
        self.said.append(text)
        if text == "XA RECOVER":
            return SimpleNamespace(rows=[("1", "1", "0", xid) for xid in self.prepared])
        if "MATCH" in text:
            number = re.search(r"w0x(\d+)v", text)[1]
            return SimpleNamespace(rows=[("0", number)] if self.found else [])
        if match := re.match(r"SELECT number, version, body FROM (\w+)", text):
            mine = [(key[1], version) for key, version in self.rows.items() if key[0] == match[1]]
            return SimpleNamespace(rows=[(str(n), str(v), body(0, n, v)) for n, v in mine])
        return SimpleNamespace(rows=[])


BEFORE = {("plain", 1): 1, (DOCS[0], 2): 3}
AFTER = {**BEFORE, ("parts", 3): 1}


class OfWriters(TestCase):
    def setUp(self):
        self.writer = Writer(0, 1)
        self.writer.rows = dict(BEFORE)

    def test_what_was_acknowledged_is_there(self):
        self.writer.verify(_Rows(BEFORE))

    def test_a_lost_row(self):
        with self.assertRaisesRegex(Lost, "1 acknowledged rows are lost"):
            self.writer.verify(_Rows({("plain", 1): 1}))

    def test_an_older_version(self):
        with self.assertRaises(Lost):
            self.writer.verify(_Rows({**BEFORE, (DOCS[0], 2): 2}))

    def test_a_row_that_nobody_committed(self):
        with self.assertRaisesRegex(Lost, "1 were not acknowledged"):
            self.writer.verify(_Rows(AFTER))

    def test_a_commit_on_its_way_is_done_or_not(self):
        for rows in (BEFORE, AFTER):
            self.writer.rows, self.writer.after = dict(BEFORE), dict(AFTER)
            self.writer.verify(_Rows(rows))
            self.assertEqual(self.writer.rows, rows)
            self.assertIsNone(self.writer.after)

    def test_half_a_commit(self):
        self.writer.after = {**AFTER, ("plain", 9): 1}
        with self.assertRaises(Lost):
            self.writer.verify(_Rows(AFTER))

    def test_a_prepared_transaction_must_not_vanish(self):
        self.writer.after, self.writer.xid, self.writer.prepared = dict(AFTER), "x", True
        with self.assertRaises(Lost):
            self.writer.verify(_Rows(BEFORE))

    def test_another_text(self):
        session = _Rows(BEFORE)
        with mock.patch("proof.clients.body", lambda *_: "other"), self.assertRaisesRegex(Lost, "another text"):
            self.writer.verify(SimpleNamespace(query=lambda text: _with_text(session.query(text))))

    def test_a_row_without_its_word_is_counted_and_deleted(self):
        session = _Rows(BEFORE, found=False)
        self.writer.verify(session)
        self.assertEqual(self.writer.tally.words_lost, 1)
        self.assertIn(f"DELETE FROM {DOCS[0]} WHERE client = 0 AND number IN (2)", session.said)
        self.assertEqual(self.writer.rows, {("plain", 1): 1})


def _with_text(result):
    return SimpleNamespace(rows=[(*row[:2], "text") if len(row) == 3 else row for row in result.rows])


class OfDefiners(TestCase):
    def verify(self, tables):
        def query(text):
            if text.startswith("SHOW"):
                return SimpleNamespace(rows=[(name,) for name in tables])
            return SimpleNamespace(scalar=lambda: str(tables[text.rsplit(" ", 1)[1]]))

        definer = Definer(6, 1)
        definer.tables, definer.after = {"own6_1": 4}, {"own6_2": 4}
        definer.verify(SimpleNamespace(query=query))

    def test_the_states_that_may_be(self):
        self.verify({"own6_1": 4})
        self.verify({"own6_2": 4})

    def test_the_others(self):
        for tables in ({}, {"own6_1": 3}, {"own6_1": 4, "own6_2": 4}):
            with self.assertRaises(Lost):
                self.verify(tables)


class OfErrors(TestCase):
    def test_an_error_that_nothing_explains_is_kept(self):
        writer = Writer(0, 1)
        writer.tally.error(SqlError(1213, "deadlock"))
        self.assertEqual(writer.tally.unexpected, [])
        writer.tally.error(SqlError(1034, "damaged"))
        self.assertEqual(len(writer.tally.unexpected), 1)

    def test_one_error_for_a_bad_argument(self):
        for words in (["--kills", "-1"], ["--kills", "0", "--power", "0"], ["--seconds", "0"], ["--arm", "nothing"]):
            arguments = mock.patch("sys.argv", ["kills", *words])
            with arguments, contextlib.redirect_stdout(None), self.assertRaises(Problem):
                kills.main()


class OfFaults(Scratch):
    def test_what_an_earlier_run_lost_is_lost(self):
        """The gate goes on after a fault, and passed when there were kills enough."""
        (self.root / "kills-dev-1.json").write_text('{"kills": 5, "power": 5, "faults": 1}')
        arguments = mock.patch("sys.argv", ["kills", "--kills", "5", "--power", "5"])
        arms, states = mock.patch.object(kills, "arm_list"), mock.patch.object(places, "STATES", self.root)
        with arguments, arms, states, contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(kills.main(), 1)
            (self.root / "kills-dev-1.json").write_text('{"kills": 5, "power": 5}')
            self.assertEqual(kills.main(), 0)

    def test_losses_of_power_that_are_not_possible_are_none(self):
        arguments = mock.patch("sys.argv", ["kills", "--kills", "0", "--power", "1"])
        impossible = mock.Mock(side_effect=kills.NotPossible("no loop device"))
        replaced = mock.patch.multiple(kills, arm_list=mock.DEFAULT, trial=impossible)
        with (
            arguments,
            replaced,
            mock.patch.object(places, "STATES", self.root),
            contextlib.redirect_stdout(io.StringIO()),
        ):
            self.assertEqual(kills.main(), 1)

    def test_a_server_that_does_not_start_has_lost_its_data(self):
        server = mock.Mock(start=mock.Mock(side_effect=Problem("mysqld ended while starting")))
        dice = mock.Mock(random=lambda: 0.5)
        with self.assertRaisesRegex(Lost, "it did not start: mysqld ended"):
            kills.Trial._start(mock.Mock(dice=dice), server)
