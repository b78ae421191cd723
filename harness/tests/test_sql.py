"""Sessions, with a stand-in for pymysql; the demonstration's smoke run has the real one and a server."""

import socket
import unittest
from unittest import mock

import harness.sql
from harness.libraries import library
from harness.problem import Problem
from harness.scratch import Scratch
from harness.sql import Connection, ConnectionLost, Result, SqlError


class DriverError(Exception):
    """In the place of pymysql.MySQLError."""


class Session(Scratch):
    def setUp(self):
        super().setUp()
        self.path = self.root / "socket"
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(str(self.path))
        listener.listen()
        self.driver = mock.MagicMock(MySQLError=DriverError)
        self.session = self.driver.connect.return_value
        self.session.connect.side_effect = lambda link: self.addCleanup(link.close)
        self.cursor = self.session.cursor.return_value.__enter__.return_value
        # A mock's __exit__ would swallow what the block raises.
        self.session.cursor.return_value.__exit__.return_value = False
        self.enterContext(mock.patch.object(harness.sql, "library", return_value=self.driver))

    def test_every_value_is_text_or_none(self):
        self.cursor.execute.return_value = 2
        self.cursor.description = (("a",), ("b",))
        self.cursor.fetchall.return_value = (("1", None), (b"x\xff", ""))
        with Connection(self.path) as session:
            result = session.query("SELECT")
        self.assertEqual(result.rows, [("1", None), ("x\N{REPLACEMENT CHARACTER}", "")])
        self.assertEqual(result.dicts()[0], {"a": "1", "b": None})
        self.assertEqual(self.driver.connect.call_args.kwargs["conv"], {})

    def test_a_statement_without_rows(self):
        self.cursor.execute.return_value = 3
        self.cursor.description = None
        self.cursor.fetchall.return_value = ()
        with Connection(self.path) as session:
            self.assertEqual(session.query("DELETE"), Result([], [], 3))

    def test_the_servers_errors_have_their_number(self):
        self.cursor.execute.side_effect = DriverError(1109, "Unknown table")
        with Connection(self.path) as session, self.assertRaises(SqlError) as caught:
            session.query("SELECT")
        self.assertEqual(caught.exception.code, 1109)
        self.assertEqual(caught.exception.message, "Unknown table")

    def test_a_server_that_goes_away(self):
        for words in ((2013, "Lost connection"), (0, ""), ("Packet number",), ()):
            self.cursor.execute.side_effect = DriverError(*words)
            with self.subTest(words), Connection(self.path) as session, self.assertRaises(ConnectionLost):
                session.query("SELECT 1")

    def test_closing_after_the_server_went_away(self):
        self.session.open = False
        self.session.close.side_effect = DriverError("Already closed")
        Connection(self.path).close()
        self.session.close.assert_not_called()

    def test_an_account_that_may_not_log_in(self):
        self.session.connect.side_effect = DriverError(1045, "Access denied")
        with self.assertRaises(SqlError):
            Connection(self.path)

    def test_without_a_server(self):
        with self.assertRaises(FileNotFoundError):
            Connection(self.root / "none")


class Answers(unittest.TestCase):
    def test_scalar_wants_one_value(self):
        self.assertEqual(Result(["a"], [("1",)]).scalar(), "1")
        for result in (Result([], []), Result(["a", "b"], [("1", "2")])):
            with self.assertRaises(ValueError):
                result.scalar()


class Libraries(unittest.TestCase):
    def test_a_missing_one_names_its_package(self):
        with self.assertRaisesRegex(Problem, "apt-get install python3-nothing$"):
            library("memdiag_has_no_such_library", "python3-nothing")
