"""Parts of packaging/tests that need no server."""

import threading
from unittest import TestCase, mock

from tests import cluster, group

from harness.checks import Checks
from harness.problem import Problem
from harness.scratch import Scratch


class Cluster(TestCase):
    def different(self, *sums: dict[str, str]) -> bool:
        """Whether members with these sums of their tables are found to differ."""
        members = [mock.MagicMock() for _ in sums]
        for number, member in enumerate(members):
            member.name = f"m{number}"
        report = Checks(show=False)
        with (
            mock.patch.object(cluster, "missing", return_value=""),
            mock.patch.object(cluster, "table_sums", side_effect=sums),
        ):
            cluster.compare(report, mock.Mock(members=members), mock.Mock(), "now")
        self.assertEqual(report.passed + len(report.failures), len(sums) + 1)
        return bool(report.failures)

    def test_members_with_the_same_rows(self):
        self.assertFalse(self.different({"t": "1"}, {"t": "1"}))

    def test_members_that_differ(self):
        for second in ({"t": "2"}, {}, {"t": "1", "more": "1"}):
            self.assertTrue(self.different({"t": "1"}, second), second)


class Groups(Scratch):
    def setUp(self):
        super().setUp()
        self.group = group.Group(self.root)
        self.done: list[str] = []
        all_start = threading.Barrier(group.MEMBERS, timeout=180)

        def start(member: group.Member, _build: object) -> None:
            member.server = mock.Mock()
            member.server.stop.side_effect = lambda: self.done.append(f"{member.name} stops")
            all_start.wait()
            if member.name == self.broken:
                raise Problem("no memory")

        def join(member: group.Member, first: bool = False) -> None:
            self.done.append(f"{member.name} {'founds' if first else 'joins'}")

        self.broken = ""
        self.enterContext(mock.patch.multiple(group.Member, start=start, join=join))

    def test_all_start_together_and_join_in_turn(self):
        with self.group.running(mock.Mock()):
            self.assertEqual(self.done, ["member 1 founds", "member 2 joins", "member 3 joins"])
        self.assertEqual(self.done[3:], ["member 1 stops", "member 2 stops", "member 3 stops"])

    def test_one_that_does_not_start_ends_all(self):
        self.broken = "member 2"
        with self.assertRaisesRegex(Problem, "no memory"), self.group.running(mock.Mock()):
            self.fail("there is no group")
        self.assertEqual(self.done, ["member 1 stops", "member 2 stops", "member 3 stops"])
