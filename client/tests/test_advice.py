"""The client knows rules of the server by words of its sentences. These are read from the server's source."""

import re
import unittest
from pathlib import Path

from memdiag.judge import advice
from memdiag.judge.advice import statements
from memdiag.judge.findings import findings
from memdiag.model.view import View

from tests.builder import MIB, snapshot

SOURCE = Path(__file__).resolve().parents[2] / "plugin/memdiag/advice/advisor.cc"
_LITERAL = r'"((?:[^"\\]|\\.)*)"'


def sentences() -> list[str]:
    """Adjacent literals as one; a number for each number that is filled in."""
    code = re.sub(r"//[^\n]*|/\*.*?\*/", "", SOURCE.read_text(), flags=re.S)
    code = re.sub(r'%"\s*PRI[iux]64(\s*")?', lambda one: "7" if one[1] else '7"', code)
    return ["".join(re.findall(_LITERAL, one[0])) for one in re.finditer(rf"(?:{_LITERAL}\s*)+", code)]


def row(**more: str) -> dict[str, str]:
    return {"SEVERITY": "note", "SUBSYSTEM": "session", "VERDICT": "cache", "EVIDENCE": "", "REMEDY": ""} | more


class Contract(unittest.TestCase):
    def setUp(self):
        if not SOURCE.exists():
            self.skipTest("the client alone")

    def test_the_server_says_what_is_looked_for(self):
        known = sentences()
        for words, _ in advice.SAME:
            with self.subTest(words):
                self.assertEqual(len([one for one in known if words in one]), 1)
        self.assertEqual(len([one for one in known if advice.SESSION.match(one)]), 1)

    def test_each_statement_of_the_server_can_be_run(self):
        """It ends where the sentence goes on, and none is lost."""
        whole = re.compile(
            r"SELECT memdiag_purge\('(?:\w+'\))?|FLUSH LOCAL TABLES|KILL 7|SET (?:GLOBAL|PERSIST) \w+ = (?:7|ON)(?:, \w+ = ON)?"
            r"|SELECT [A-Z_*(), ]+ FROM \w+\.\w+(?: [A-Z_(),0-9=>]+| '[%\w]*'?| \w+\.\w+)*"
        )
        seen = set()
        for sentence in sentences():
            found = statements(sentence)
            for one in found:
                with self.subTest(one):
                    self.assertRegex(one, rf"^(?:{whole.pattern})$")
                    seen.add(one.split()[0])
            begun = [
                one
                for one in sentence.split(";")
                if re.search(r"\b(?:SET GLOBAL|SET PERSIST|FLUSH|KILL \d|SELECT)\b", one) and "<" not in one
            ]
            self.assertEqual(len(found), len(begun), sentence)
        self.assertEqual(seen, {"SELECT", "SET", "FLUSH", "KILL"})


class Statements(unittest.TestCase):
    def test_words_are_no_statement(self):
        for remedy, expected in (
            ("KILL one of these, or have its application close its statements", []),
            (
                "SELECT memdiag_purge('all'); then SET GLOBAL innodb_buffer_pool_size = <less>, or raise the limit",
                ["SELECT memdiag_purge('all')"],
            ),
            (
                "SELECT A FROM b.C WHERE D = 'low, x' ORDER BY 1 DESC tells more",
                ["SELECT A FROM b.C WHERE D = 'low, x' ORDER BY 1 DESC"],
            ),
            (
                "SET GLOBAL stored_program_cache = 128 bounds it; FLUSH LOCAL TABLES frees those",
                ["SET GLOBAL stored_program_cache = 128", "FLUSH LOCAL TABLES"],
            ),
            ("lower max_connections", []),
            ("KILL 7; SET GLOBAL max_prepared_stmt_count = 100 bounds them", ["KILL 7"]),
        ):
            with self.subTest(remedy):
                self.assertEqual(statements(remedy), expected)


class Findings(unittest.TestCase):
    SESSION = row(EVIDENCE="session 9 holds up to 300 MiB", REMEDY="SELECT 1; KILL 9 frees what it still holds")

    def of(self, **sources):
        return [one for one in findings(View(snapshot("memdiag", **sources))) if one.source.endswith("ADVICE")]

    def test_a_session_is_named_unless_a_holder_is(self):
        kills = {"cgroup": [{"folder": "/g", "limit": None, "usage": 5, "oom_kills": 2}]}
        (one,) = self.of(memdiag_advice=[self.SESSION], **kills)
        self.assertEqual(one.statements, ["SELECT 1", "KILL 9"])
        ledger = [
            {"COMPONENT": "pool", "NAME": "session", "STATE": state, "RESIDENT_BYTES": 300 * MIB, "PERCENT": 50}
            for state in ("live", "fragmentation")
        ]
        self.assertEqual(self.of(memdiag_advice=[self.SESSION], memdiag_ledger=ledger), [])

    def test_a_thread_of_replication_is_not_killed(self):
        (one,) = self.of(memdiag_advice=[self.SESSION], system_threads=[{"SYSTEM_SESSION": 9}])
        self.assertEqual(one.statements, ["SELECT 1"])


if __name__ == "__main__":
    unittest.main()
