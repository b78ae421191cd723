"""What our server found is shown as it is."""

import unittest

from memdiag.judge.findings import findings
from memdiag.model.view import View

from tests import fixtures
from tests.builder import GIB, MIB, snapshot


def row(**more):
    return {
        "SEVERITY": "warning",
        "SUBSYSTEM": "session",
        "VERDICT": "cache",
        "EVIDENCE": "user variables hold 200 MiB",
        "REMEDY": "have the application set its variables to NULL",
        "RULE": "user_variables",
        "HOLDER": "user variables",
        "BYTES": 200 * MIB,
        "ALLOCATED_BYTES": None,
        "STATEMENT": "SELECT CONCAT('KILL ', PROCESSLIST_ID) AS RUN FROM performance_schema.threads",
    } | more


def found(*rows, **sources):
    return findings(View(snapshot("memdiag", memdiag_advice=list(rows), **sources)))


class Shown(unittest.TestCase):
    def test_each_column(self):
        (one,) = found(row(ALLOCATED_BYTES=256 * MIB))
        self.assertEqual((one.severity, one.holder, one.verdict), ("warning", "user variables", "cache"))
        self.assertEqual((one.rule, one.bytes, one.statements), ("user_variables", 200 * MIB, [row()["STATEMENT"]]))
        self.assertEqual(one.headline, "User variables hold 200 MiB")
        self.assertEqual(one.remedy, row()["REMEDY"])
        self.assertIn("user_variables", one.evidence)
        self.assertIn("200 MiB are resident of 256 MiB allocated", one.evidence)

    def test_the_servers_order(self):
        rows = [row(SEVERITY=severity, BYTES=held) for severity, held in (("note", 5), ("critical", None), ("note", 9))]
        self.assertEqual([one.bytes for one in found(*rows)], [5, None, 9])

    def test_prose_has_no_statement(self):
        """Whatever its words are."""
        words = "KILL 7; SELECT memdiag_purge('all'); SET GLOBAL max_connections = 5"
        (one,) = found(row(STATEMENT=None, REMEDY=words))
        self.assertEqual((one.statements, one.remedy), ([], words))

    def test_a_statement_is_shown_once(self):
        (one,) = found(row(REMEDY="FLUSH LOCAL TABLES", STATEMENT="FLUSH LOCAL TABLES"))
        self.assertEqual((one.statements, one.remedy), (["FLUSH LOCAL TABLES"], ""))

    def test_what_is_not_known_stays_so(self):
        (one,) = found(row(HOLDER=None, BYTES=None, ALLOCATED_BYTES=None))
        self.assertEqual((one.holder, one.bytes), ("session", None))
        self.assertNotIn("resident", one.evidence)

    def test_a_severity_of_a_later_server(self):
        self.assertEqual(found(row(SEVERITY="disaster"))[0].severity, "warning")

    def test_recorded_rows(self):
        """Of servers in all driven states."""
        seen = set()
        for name in fixtures.names():
            data = fixtures.snapshot(name)
            rows = data["sources"].get("memdiag_advice", {}).get("rows", ())
            with self.subTest(name):
                made = [one for one in findings(View(data)) if one.source.endswith("ADVICE")]
                self.assertEqual(
                    [(one.severity, one.verdict, one.rule, one.bytes) for one in made],
                    [(row["SEVERITY"], row["VERDICT"], row["RULE"], row["BYTES"]) for row in rows],
                )
                self.assertEqual([one.holder for one in made], [row["HOLDER"] or row["SUBSYSTEM"] for row in rows])
                self.assertEqual(
                    [one.statements for one in made], [[row["STATEMENT"]] if row["STATEMENT"] else [] for row in rows]
                )
                for one, row in zip(made, rows, strict=True):
                    self.assertEqual(one.remedy, "" if row["REMEDY"] == row["STATEMENT"] else row["REMEDY"])
                    seen.add((bool(row["HOLDER"]), bool(row["STATEMENT"]), row["BYTES"] is not None))
        # A holder that a statement frees or only words do, a rule about no holder with bytes, and one with words alone.
        wanted = {(True, True, True), (True, False, True), (False, True, True), (False, False, False)}
        self.assertLessEqual(wanted, seen)

    def test_nothing_of_our_own_beside_it(self):
        """The server has judged this already, or found it usual."""
        ledger = [
            {"COMPONENT": "pool", "NAME": "session", "STATE": state, "RESIDENT_BYTES": 900 * MIB, "PERCENT": 30}
            for state in ("live", "dirty", "fragmentation")
        ]
        instruments = [
            {
                "EVENT_NAME": "memory/sql/user_var_entry::value",
                "POOL": "session",
                "LIVE_BYTES": 900 * MIB,
                "COUNTED_BYTES": 900 * MIB,
                "RESIDENT_BYTES": 900 * MIB,
                "NOTE": "exact",
            }
        ]
        group = [{"folder": "/g", "limit": 3 * GIB, "usage": 3 * GIB - 5, "oom_kills": 7}]
        sources = {"memdiag_ledger": ledger, "memdiag_instruments": instruments, "cgroup": group}
        self.assertEqual(found(**sources), [])
        self.assertEqual([one.rule for one in found(row(), **sources)], ["user_variables"])

    def test_without_the_advice_the_kernel_still_tells(self):
        """An account without PROCESS."""
        group = [{"folder": "/g", "limit": 3 * GIB, "usage": 3 * GIB - 5, "reclaimable_cache": 0, "oom_kills": 0}]
        data = snapshot("memdiag", cgroup=group, memdiag_advice=[])
        data["sources"]["memdiag_advice"]["error"] = "this account may not read it: it lacks PROCESS"
        self.assertEqual([one.holder for one in findings(View(data))], ["cgroup"])

    def test_what_the_server_cannot_say(self):
        run = {"RUN": 1, "SHUT_DOWN": "NO", "MAX_RSS_BYTES": GIB, "RSS_PEAK_BYTES": GIB, "PROCESS": 7}
        data = snapshot("memdiag", memdiag_advice=[row()], memdiag_last_run=[run])
        data["gone"] = True
        holders = [one.holder for one in findings(View(data))]
        self.assertEqual(holders, ["the server itself", "user variables", "the last run"])
