"""The statements of queries.libsonnet, on rows that a server seldom has."""

import re
import sqlite3
import unittest

from monitoring import running

SOURCE = (running.FOLDER / "queries.libsonnet").read_text()
YAML = running.FOLDER / "debian/prometheus-sql-exporter.yml"


class Statements(unittest.TestCase):
    def rows(self, name: str, columns: str, rows: list[tuple], **variables: int) -> list[dict]:
        """What the statement finds in these rows of its table. SQLite reads it, but for MySQL's times."""
        text = re.findall(rf"\n    {name}: {{.*?query: \|\|\|\n(.*?)\|\|\|", SOURCE, re.S)[0]
        text = text.replace("information_schema.", "")
        text = re.sub(r"NOW\(6\) - INTERVAL (.*?) MICROSECOND", r"NOW(6) - (\1)", text)
        text = text.replace("NOW(6)", "1e9")
        for variable, value in variables.items():
            text = text.replace(f"@@{variable}", str(value))
        base = sqlite3.connect(":memory:")
        base.row_factory = sqlite3.Row
        base.create_function("IF", 3, lambda condition, one, other: one if condition else other)
        base.create_function("LEAST", -1, min)
        (table,) = re.findall(r"FROM (MEMDIAG_\w+)", text)
        base.execute(f"CREATE TABLE {table} ({columns})")
        base.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(columns.split(',')))})", rows)
        return [dict(row) for row in base.execute(text)]

    def test_a_file_that_could_not_be_read_once_is_no_other_counter(self):
        """The machine has stalled for longer than the group. An increase by the difference would be an alert."""

        def stalled(*rows):
            found = self.rows("host", "SUBJECT, NAME, NUMBER", [("pressure", *row) for row in rows])
            return found[0]["stalled_seconds_total"]

        machine = ("machine.some.total", 9e9)
        self.assertEqual(stalled(machine, ("cgroup.some.total", 3e6)), 3)
        self.assertIsNone(stalled(machine, ("cgroup.some.total", None)))
        self.assertEqual(stalled(machine), 9000)

    def test_tables_that_are_kept_on_purpose_are_no_leak(self):
        """Rows of MEMORY tables outlive their statement."""
        rows = [
            ("memory/memory/HP_PTRS", "temp_table", "statement", 500, 9),
            ("temptable", "temp_table", "statement", 70, 5),
            ("memory/sql/user_var_entry::value", "session", "session", 30, 7),
        ]
        found = self.rows("survivors", "ROUTE, POOL, SCOPE, BYTES, AGE_SECONDS", rows)
        self.assertEqual(
            {(one["pool"], one["bytes"], one["oldest_seconds"]) for one in found},
            {("session", 30, 7), ("temp_table", 70, 5)},
        )
        self.assertEqual(self.rows("survivors", "ROUTE, POOL, SCOPE, BYTES, AGE_SECONDS", rows[:1]), [])

    def test_an_old_sample_is_not_the_present(self):
        """Of an interval of an hour, and from before the clock was set back."""
        columns = "RUN, TIME, RSS_BYTES, RSS_PEAK_BYTES, LIMIT_BYTES, TREND_BYTES_PER_SECOND, SECONDS_UNTIL_LIMIT"

        def resident(interval_ms, *ages):
            rows = [(0, 1e9 - 1e6 * age, 1000 + age, 0, 0, 0, 0) for age in ages]
            found = self.rows("process", columns, rows, memdiag_history_interval_ms=interval_ms)
            return [row["resident_bytes"] for row in found]

        self.assertEqual(resident(1000, 1, 2), [1001])
        self.assertEqual(resident(1000, 4), [])
        self.assertEqual(resident(5000, 14), [1014])
        self.assertEqual(resident(3_600_000, 16), [])
        self.assertEqual(resident(3_600_000, 2), [1002])
        self.assertEqual(resident(1000, -60), [])
        self.assertEqual(resident(1000, -60, 1), [1001])
        self.assertEqual(resident(0, 1), [])

    def test_an_hour_that_comes_twice_is_none_of_the_session(self):
        """At the end of summer time a sample of an hour ago is later than NOW()."""
        connections = re.findall(r"mysql://\S+", YAML.read_text())
        self.assertTrue(connections)
        for connection in connections:
            self.assertIn("?time_zone=%27%2B00%3A00%27", connection)

    def test_no_answer_is_cut_or_refused(self):
        """By the GLOBAL sql_select_limit or max_join_size of an application."""
        for connection in re.findall(r"mysql://\S+", YAML.read_text()):
            self.assertIn("&sql_select_limit=18446744073709551615&sql_big_selects=1", connection)


class Account(unittest.TestCase):
    def test_an_account_with_the_published_password_does_not_keep_it_silently(self):
        """A second run, with a password of one's own, is an error."""
        text = (running.FOLDER / "exporter.sql").read_text()
        self.assertIn("CREATE USER memdiag_exporter@", text)
        self.assertEqual(text.count("CHANGE-ME"), 1)
