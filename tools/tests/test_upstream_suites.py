"""Upstream's suites: what counts as a difference."""

import json
import os
import pwd
import subprocess
import sys
import unittest
from pathlib import Path
from unittest import mock

from harness import markdown, mtr
from harness.common import ROOT
from harness.problem import Problem
from harness.scratch import Scratch
from tools import upstream_suites
from tools.upstream_suites import (
    DIFFERENCES,
    Server,
    arguments,
    as_nobody,
    disabled_everywhere,
    keyrings,
    lent_to_nobody,
    mysqld,
    outdated,
    read_differences,
    report,
    verdicts,
    worst_by_test,
)

OUTPUT = """\
[  7%] rpl.rpl_a 'mix'                           w1  [ pass ]   120
[ 14%] rpl.rpl_a 'row'                           w2  [ fail ]
        Test ended at 2026-01-01 00:00:00
[ 21%] rpl.rpl_b                                 w1  [ skipped ]  Need linux
[ 28%] rpl.rpl_c 'mix'                           w1  [ skipped ]  Doesn't support
[ 35%] rpl.rpl_c 'row'                           w1  [ pass ]   7
[ 42%] rpl.rpl_d                                 w1  [ disabled ]   BUG#1
[100%] shutdown_report                           [ pass ]
"""


class Arguments(unittest.TestCase):
    def test_stock_is_not_compared_with_itself(self):
        """It would wait for its own lock for ever."""
        with (
            mock.patch.object(sys, "argv", ["upstream_suites", "--preset", "stock"]),
            self.assertRaisesRegex(Problem, "compared with stock"),
        ):
            arguments()


class Lines(unittest.TestCase):
    def test_a_combination_that_fails_fails_the_test(self):
        found = worst_by_test(mtr.parse(OUTPUT))
        results = {test: entry["result"] for test, entry in found.items()}
        self.assertEqual(
            results,
            {
                "rpl.rpl_a": "fail",
                "rpl.rpl_b": "skipped",
                "rpl.rpl_c": "pass",
                "rpl.rpl_d": "disabled",
                "shutdown_report": "pass",
            },
        )
        self.assertEqual(found["rpl.rpl_b"]["comment"], "Need linux")


class Servers(Scratch):
    def setUp(self):
        super().setUp()
        self.enterContext(mock.patch.object(upstream_suites, "ROOT", self.root))
        self.driver = self.root / "build/dev/bld/mysql-test/mysql-test-run.pl"
        for file in (mysqld("dev"), self.driver):
            file.parent.mkdir(parents=True)
            file.touch()

    def test_results_of_this_server_that_are_whole(self):
        server = Server("dev", 1)
        server.results["main.a"] = {"result": "pass", "comment": ""}
        server.save()
        self.assertEqual(Server("dev", 1).results, server.results)
        server.path.write_text(server.path.read_text()[:-3])
        self.assertEqual(Server("dev", 1).results, {})

    def test_those_that_need_a_debug_build(self):
        folder = self.root / "build" / "dev" / "mysql" / "mysql-test"
        tests = folder / "suite" / "innodb" / "t"
        tests.mkdir(parents=True)
        (folder / "collections").mkdir()
        (folder / "collections" / "disabled.def").write_text("innodb.off : why\n")
        (tests / "all.test").write_text("SELECT 1;\n")
        (tests / "points.test").write_text("--source include/have_debug.inc\n")
        (tests / "sync.test").write_text("-- source include/have_debug_sync.inc\n")
        (tests / "off.test").write_text("--source include/have_debug.inc\n")
        server = Server("dev", 1)
        self.assertEqual(server.tests_of("innodb"), ["innodb.all", "innodb.points", "innodb.sync"])
        self.assertEqual(server.tests_of("innodb", need_debug=True), ["innodb.points", "innodb.sync"])

    def test_results_under_other_options_are_others(self):
        server = Server("dev", 1)
        server.results["main.a"] = {"result": "pass", "comment": ""}
        server.save()
        self.assertEqual(Server("dev", 1, ["--loose-x=1"]).results, {})

    def test_options_of_the_server_reach_the_driver(self):
        server = Server("dev", 1, ["--loose-x=1", "--loose-y"])
        self.driver.write_text(r'die "$ARGV[-2] $ARGV[-1]\n"')
        with (
            mock.patch.object(os, "geteuid", return_value=1000),
            self.assertRaisesRegex(Problem, "--mysqld=--loose-x=1 --mysqld=--loose-y"),
        ):
            server.run(["main.a"], server.results, 1)

    def test_a_call_of_the_driver(self):
        server = Server("dev", 1)
        self.driver.write_text(r'print "[ 50%] main.a  w1  [ pass ]  1\n"; exit 1')
        with mock.patch.object(os, "geteuid", return_value=1000):
            server.run(["main.a", "main.b"], server.results, 1)
            results = {test: x["result"] for test, x in server.results.items()}
            self.assertEqual(results, {"main.a": "pass", "main.b": "skipped"})
            self.driver.write_text(r'$| = 1; print "[ 50%] main.c  w1  [ pass ]  1\n"; kill 9, $$')
            with self.assertRaisesRegex(Problem, "preset dev failed"):
                server.run(["main.c", "main.d"], server.results, 1)
            self.assertNotIn("main.d", server.results)
            self.driver.write_text('print STDERR "no port"; exit 1')
            with self.assertRaisesRegex(Problem, "preset dev failed:\nno port"):
                server.run(["main.c"], server.results, 1)


class Account(Scratch):
    """The account that runs the driver."""

    def folders(self) -> list[Path]:
        names = ("mysql-test", "runtime_output_directory", "plugin_output_directory")
        found = [self.root / "bld" / name for name in names]
        found.append(self.root / "mysql" / "mysql-test")
        for folder in found:
            folder.mkdir(parents=True)
        (self.root / "left").mkdir()
        (found[0] / "var").symlink_to(self.root / "left")
        return found

    def test_others_run_it_themselves(self):
        folders = self.folders()
        with mock.patch.object(os, "geteuid", return_value=1000):
            self.assertEqual(as_nobody(), [])
            with lent_to_nobody(self.root):
                self.assertTrue((folders[0] / "var").is_dir())

    @unittest.skipIf(os.geteuid(), "only root can give a folder away")
    def test_root_has_it_run_by_nobody(self):
        folders = self.folders()
        nobody = pwd.getpwnam("nobody")
        self.assertIn(f"--reuid={nobody.pw_uid}", as_nobody())
        with self.assertRaises(KeyboardInterrupt), lent_to_nobody(self.root):
            self.assertEqual({path.stat().st_gid for path in folders}, {nobody.pw_gid})
            self.assertEqual(list(folders[0].iterdir()), [])
            raise KeyboardInterrupt
        self.assertEqual({path.stat().st_gid for path in folders}, {0})
        self.assertEqual({path.stat().st_mode for path in folders}, {0o40755})
        self.assertFalse((self.root / "left").exists())

    @unittest.skipIf(os.geteuid(), "only root can give a folder away")
    def test_nobody_makes_files_and_replaces_none_of_root(self):
        folders = self.folders()
        self.root.chmod(0o755)
        program = folders[1] / "mysqld"
        program.touch()
        with lent_to_nobody(self.root):
            self.assertEqual(0, self.as_nobody("touch", folders[1] / "new"))
            self.assertNotEqual(0, self.as_nobody("mv", folders[1] / "new", program))

    @unittest.skipIf(os.geteuid(), "only root can give a folder away")
    def test_root_follows_no_link_of_nobody(self):
        folders = self.folders()
        self.root.chmod(0o755)
        precious = self.root / "precious"
        precious.mkdir()
        with lent_to_nobody(self.root):
            var = folders[0] / "var"
            self.assertEqual(0, self.as_nobody("ln", "-s", precious, var))
        self.assertTrue(precious.exists())
        self.assertFalse(os.path.lexists(var))

    def as_nobody(self, *command: object) -> int:
        words = [*as_nobody(), *map(str, command)]
        return subprocess.run(words, stderr=subprocess.DEVNULL, check=False).returncode


class Keyrings(Scratch):
    def test_the_files_end_with_the_driver(self):
        plugin = self.root / "component_keyring_file.so"
        plugin.touch()
        program = self.root / "mysqld"
        with self.assertRaises(KeyboardInterrupt), keyrings(program, self.root):
            for name, word in (
                ("mysqld.my", "read_local_manifest"),
                ("component_keyring_file.cnf", "read_local_config"),
            ):
                text = (self.root / name).read_text()
                self.assertEqual(json.loads(text), {word: True})
            raise KeyboardInterrupt
        self.assertEqual(list(self.root.iterdir()), [plugin])


class Verdicts(unittest.TestCase):
    def test_each(self):
        words = verdicts(
            ["m.flaky", "m.machine", "m.known", "m.new", "m.lone", "m.skipped"],
            {
                **{"m.flaky": "pass", "m.machine": "fail", "m.known": "fail", "m.new": "fail", "m.lone": "fail"},
                "m.skipped": "skipped",
            },
            {"m.machine": "fail", "m.new": "pass", "m.skipped": "skipped"},
            {"m.known": "because"},
        )
        self.assertEqual(
            words,
            {
                "m.flaky": "passes by itself",
                "m.machine": "fails on stock too",
                "m.known": "because",
                "m.new": "UNEXPLAINED",
                "m.lone": "UNEXPLAINED: preset stock is not built",
                "m.skipped": "UNEXPLAINED",
            },
        )


class Report(unittest.TestCase):
    def test_counts_by_suite_and_each_failure(self):
        results = {
            test: {"result": result, "comment": ""}
            for test, result in (
                ("main.a", "pass"),
                ("main.b", "fail"),
                ("main.c", "disabled"),
                ("rpl.a", "skipped"),
                ("rpl.b", "pass"),
            )
        }
        page = report("abc1234", "dev", results, {"main.b": "fails on stock too"})
        self.assertIn("commit abc1234", page)
        rows = [markdown.cells(line) for line in page.splitlines() if line.startswith("| ")]
        self.assertIn(["main", "1", "1", "1"], rows)
        self.assertIn(["rpl", "1", "0", "1"], rows)
        self.assertIn("- main.b: fails on stock too\n", page)


class Disabled(unittest.TestCase):
    def test_those_of_some_platforms_run(self):
        text = """# main.not : a comment

main.one            : WL#1 why: because
main.two @windows   : there alone
innodb.three: no space
"""
        self.assertEqual(disabled_everywhere(text), {"main.one", "innodb.three"})


class Differences(unittest.TestCase):
    def test_reasons(self):
        text = "# comment\n\nmain.grant: one: two\n"
        self.assertEqual(read_differences(text), {"main.grant": "one: two"})

    def test_an_entry_without_a_reason(self):
        for line in ("main.grant", "main.grant: ", "grant: reason"):
            with self.assertRaisesRegex(Problem, "line 1"):
                read_differences(line)

    def test_entries_that_are_out_of_date(self):
        results = {test: {"result": result, "comment": ""} for test, result in (("main.a", "pass"), ("main.b", "fail"))}
        reasons = dict.fromkeys(("main.a", "main.b", "main.renamed", "x.other"), "why")
        passes = {"main.a": "passes"}
        self.assertEqual(outdated(reasons, results, []), passes)
        self.assertEqual(outdated(reasons, results, ["main"]), {**passes, "main.renamed": "has no result"})

    def test_the_list_itself(self):
        found = read_differences((ROOT / DIFFERENCES).read_text())
        self.assertTrue(found)
        self.assertTrue(all(found.values()))
