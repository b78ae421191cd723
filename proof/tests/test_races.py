"""Reports are read and told apart, and bad arguments are one error."""

import contextlib
from unittest import TestCase, mock

from harness.problem import Problem
from harness.scratch import Scratch
from proof import races
from proof.sanitizer_reports import grouped, reports_in

ACCESS = """==================
WARNING: ThreadSanitizer: data race (pid=7)
  Write of size 8 at 0x7b0400000800 by thread T4 (mutexes: write M1):
    #0 std::__atomic_base<int>::store(int) /usr/include/c++/12/bits/atomic_base.h:460 (mysqld+0x11)
    #1 memdiag::history::note(int) memdiag/plugin/memdiag/history/history.cc:12 (mysqld+0x12)
    #2 do_command(THD*) mysql/sql/sql_parse.cc:9 (mysqld+0x13)

  Previous read of size 8 at 0x7b0400000800 by thread T{thread}:
    #0 memdiag::history::read() memdiag/plugin/memdiag/history/history.cc:{line} (mysqld+0x14)

  Location is heap block of size 8 at 0x7b0400000800 allocated by main thread:
    #0 operator new(unsigned long) <null> (libtsan.so.2+0x1)
    #1 memdiag::other() memdiag/sql/memdiag/other.cc:1 (mysqld+0x2)

SUMMARY: ThreadSanitizer: data race memdiag/plugin/memdiag/history/history.cc:12 in note
==================
"""
UPSTREAM = """==================
WARNING: ThreadSanitizer: data race (pid=7)
  Read of size 4 at 0x1 by thread T4:
    #0 THD::peek() mysql/sql/sql_class.h:1 (mysqld+0x11)
    #1 {caller} (mysqld+0x12)

  Previous write of size 4 at 0x1 by thread T5:
    [failed to restore the stack]

  Mutex M1 (0x2) created at:
    #0 memdiag::start() memdiag/plugin/memdiag/plugin.cc:1 (mysqld+0x2)
==================
"""


ORDER = """==================
WARNING: ThreadSanitizer: lock-order-inversion (potential deadlock) (pid=7)
  Cycle in lock order graph: M1 (0x01) => M2 (0x02) => M1

  Mutex M2 acquired here while holding mutex M1 in thread T35:
    #0 pthread_mutex_lock sanitizer_common_interceptors.inc:4324 (libtsan.so.2+0x1)
    #1 memdiag::ceiling::round() memdiag/plugin/memdiag/server/threads/ceiling_giver.cc:466 (mysqld+0x1)

  Mutex M1 previously acquired by the same thread here:
    #0 pthread_mutex_lock sanitizer_common_interceptors.inc:4324 (libtsan.so.2+0x1)
==================
"""


class Reports(TestCase):
    def test_what_raced_is_told_from_what_is_said_of_it(self):
        (report,) = reports_in(ACCESS.format(thread=9, line=30))
        self.assertEqual(report.kind, "data race")
        self.assertEqual([len(stack) for stack in report.stacks], [3, 1])
        self.assertEqual(report.ours, "access")
        self.assertIn("memdiag::history::note (plugin/memdiag/history/history.cc:12)", report.group)

    def test_the_same_lines_are_one_group(self):
        text = ACCESS.format(thread=9, line=30) + ACCESS.format(thread=8, line=30) + ACCESS.format(thread=9, line=31)
        self.assertEqual([len(same) for same in grouped(reports_in(text)).values()], [2, 1])

    def test_code_of_ours_that_only_calls(self):
        for caller, ours in (
            ("memdiag::rows() memdiag/plugin/memdiag/server/tables/rows.cc:3", "caller"),
            ("limit() memdiag/components/group_replication_resource_manager/memdiag_memory.cc:3", "caller"),
            ("mysql_execute(THD*) mysql/sql/sql_parse.cc:3", ""),
        ):
            (report,) = reports_in(UPSTREAM.format(caller=caller))
            self.assertEqual(report.ours, ours)

    def test_mutexes_in_two_orders(self):
        (report,) = reports_in(ORDER)
        self.assertEqual(([len(stack) for stack in report.stacks], report.ours), ([2, 1], "access"))

    def test_the_end_of_a_file_is_none(self):
        self.assertEqual(reports_in("==================\nThreadSanitizer: reported 5 warnings\n"), [])


class OfVerdicts(Scratch):
    def verdict(self, text):
        with contextlib.redirect_stdout(None):
            return races.verdict(reports_in(text), self.root / "reports")

    def test_only_code_of_ours_is_a_fault(self):
        self.assertTrue(self.verdict(UPSTREAM.format(caller="f() mysql/sql/f.cc:3")))
        self.assertFalse(self.verdict(ACCESS.format(thread=9, line=30)))
        self.assertIn("#### 1 x data race: memdiag::history", (self.root / "reports").read_text())


class OfArguments(TestCase):
    def test_one_error_for_a_bad_argument(self):
        for words in (["--seconds", "0"], ["--clients", "3"], ["--preset", "nothing"]):
            arguments = mock.patch("sys.argv", ["races", *words])
            with arguments, contextlib.redirect_stdout(None), self.assertRaises(Problem):
                races.main()
