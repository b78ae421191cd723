"""The demonstration in a memory cgroup, without a server."""

import unittest
from unittest import mock

from harness.checks import Checks
from harness.corpus import Corpus
from harness.problem import Problem
from tools import demo_in_cgroup

TEXTS = Corpus([("a", "some words of a text")] * 3, "the test")


class DemoInCgroup(unittest.TestCase):
    def starts(self, has_just_started: bool, loads: bool) -> list[str]:
        """What is asked of the server before the burst that measures the peak."""
        server = mock.MagicMock()
        server.__enter__.return_value = server
        with (
            mock.patch.object(demo_in_cgroup, "Server", return_value=server),
            mock.patch.object(demo_in_cgroup, "Build"),
            mock.patch.object(demo_in_cgroup.corpus, "load", return_value=TEXTS),
            mock.patch.multiple(
                demo_in_cgroup.phrase_searches,
                start=mock.Mock(return_value=has_just_started),
                load=mock.Mock(return_value=loads),
                searching=mock.Mock(return_value=["SELECT 1"]),
            ),
            mock.patch.object(demo_in_cgroup, "searches", side_effect=Problem("as far as here")),
            self.assertRaisesRegex(Problem, "as far as here"),
        ):
            demo_in_cgroup.run(Checks("demo_in_cgroup"), "dev")
        return [name for name, _, _ in server.method_calls]

    def test_a_server_that_has_only_started_measures_the_peak(self):
        self.assertEqual(self.starts(has_just_started=True, loads=False), [])

    def test_one_that_has_done_more_starts_anew(self):
        for state in ((True, True), (False, False)):
            self.assertEqual(self.starts(*state), ["stop", "start"], state)
