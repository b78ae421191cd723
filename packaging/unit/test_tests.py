"""Parts of packaging/tests that need no server."""

from unittest import TestCase, mock

from tests import cluster

from harness.checks import Checks


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
