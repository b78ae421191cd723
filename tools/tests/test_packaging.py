import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "packaging")]
from licences import filled, holders, licence
from manpage import manual
from product import COMMON, CONTENTS, assign, files_below, rules

from tools.problem import Problem
from tools.tests.scratch import Scratch

PREFLIGHT = COMMON / "preflight"
PRESTART = COMMON / "tree/usr/libexec/mysql-memdiag/prestart"


class Case(Scratch):
    def setUp(self):
        super().setUp()
        self.data = self.root / "data"


class Contents(Case):
    ENTRIES = tuple(rules("# note\nserver  bin/mysqld lib/*.so # more\n-  share/*\n"))
    FILES = ("bin/mysqld", "lib/a.so", "lib/deep/b.so", "share/date")

    def test_each_file_has_its_package(self):
        files = assign(self.FILES, self.ENTRIES)
        self.assertEqual(files, {"server": ["bin/mysqld", "lib/a.so", "lib/deep/b.so"]})

    def test_differences_are_named(self):
        for files, entries, words in (
            ((*self.FILES, "bin/new"), (), "bin/new belongs to no package"),
            (
                self.FILES,
                [("client", "*/a.so")],
                "lib/a.so belongs to client and server",
            ),
            (self.FILES[1:], (), "there is no file bin/mysqld"),
        ):
            with self.subTest(words), self.assertRaisesRegex(Problem, words):
                assign(files, [*self.ENTRIES, *entries])

    def test_what_we_add_is_the_servers(self):
        entries = [(p, x) for p, x in rules(CONTENTS.read_text()) if p != "-"]
        for path in files_below(COMMON / "tree"):
            found = {p for p, pattern in entries if Path(path).match(pattern)}
            self.assertEqual(found, {"mysql-memdiag-server"}, path)


class Manual(unittest.TestCase):
    def test_headings_and_tables(self):
        page = manual(
            "<!-- made -->\n# Reference\n\n## INFORMATION_SCHEMA.MEMDIAG_X\n\n"
            ".conf and `a-b`\n\n| column | type | unit | null | meaning |\n|---|---|---|---|---|\n"
            "| BYTES | BIGINT | bytes | yes | How many. |\n",
            0,
        )
        self.assertIn(".TH MEMDIAG 7 1970-01-01", page)
        self.assertIn('.SH "MEMDIAG_X"\n.PP\n\\&.conf and \\fIa\\-b\\fP\n', page)
        self.assertIn(".TP\n\\fBBYTES\\fP BIGINT, bytes, or NULL\nHow many.\n", page)
        self.assertNotIn("made", page)


class Licences(Case):
    TEXT = "Copyright (C) 2002-present A <a@b>.\nAll rights reserved.\nCopyright (C) 2009 B.  All rights reserved.\n\nRedistribution and use\n\nare permitted.\n-----\nmore\n"

    def test_taken_from_the_sources(self):
        path = self.root / "COPYING"
        path.write_text(self.TEXT)
        self.assertEqual(holders(path), ["2002-present A <a@b>", "2009 B"])
        self.assertEqual(licence(path), "Redistribution and use\n\nare permitted.")
        said = filled(
            "Copyright: @MYSQL_HOLDERS@\nCopyright: @JEMALLOC_HOLDERS@\n@JEMALLOC_LICENCE@\n",
            ["1, X"],
            holders(path),
            licence(path),
        )
        self.assertEqual(
            said,
            "Copyright: 1, X\nCopyright: 2002-present A <a@b>\n 2009 B\n"
            " Redistribution and use\n .\n are permitted.\n",
        )

    def test_another_text_stops(self):
        path = self.root / "COPYING"
        path.write_text("Do as you like.\n")
        for read in (holders, licence):
            with self.assertRaisesRegex(Problem, "correct packaging/licences.py"):
                read(path)

    def test_none_of_it_is_kept_here(self):
        text = (COMMON.parent / "copyright.in").read_text()
        self.assertEqual(
            re.findall("^Copyright: (.*)", text, re.MULTILINE)[::2],
            ["@MYSQL_HOLDERS@", "@JEMALLOC_HOLDERS@"],
        )


class Preflight(Case):
    def refusal(self, *megabytes: str) -> str:
        done = subprocess.run(
            ["sh", PREFLIGHT, self.data, *megabytes],
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual(done.returncode, int(bool(done.stderr)))
        return done.stderr

    def history(self, *versions: str) -> None:
        entries = ",".join(f'{{"version":"{version}","x":1}}' for version in versions)
        path = self.data / "mysql_upgrade_history"
        path.write_text(f'{{"upgrade_history":[{entries}]}}')

    def test_what_the_server_takes(self):
        self.assertEqual(self.refusal("1"), "")  # no data yet
        (self.data / "mysql").mkdir(parents=True)
        for versions in (("8.4.6",), ("8.4.6", "9.7.9-memdiag")):
            self.history(*versions)
            self.assertEqual(self.refusal("1"), "")

    def test_what_it_does_not_take(self):
        (self.data / "mysql").mkdir(parents=True)
        self.assertIn("5.7 or older", self.refusal("1"))
        (self.data / "mysql_upgrade_info").write_text("8.0.46")
        self.assertIn("written by MySQL 8.0,", self.refusal("1"))
        self.history("9.7.4", "10.1.0")
        self.assertIn("written by MySQL 10.1,", self.refusal("1"))
        (self.data / "aria_log_control").touch()
        self.assertIn("MariaDB's", self.refusal("1"))
        self.assertIn("no disk", self.refusal("999999999"))


class Prestart(Case):
    """With programs of its own instead of those that need root and a server."""

    PROGRAMS = (
        ("my_print_defaults", "echo --datadir=$DATA"),
        ("getent", "true"),
        ("install", 'for last; do :; done; case $last in $DATA) mkdir "$last" ;; esac'),
        (
            "mysqld",
            'ls -A $DATA >>$DATA/../calls; touch $DATA/ibdata1; $FAIL; mkdir "$DATA/mysql"',
        ),
    )

    def setUp(self):
        super().setUp()
        for name, text in self.PROGRAMS:
            program = self.root / name
            program.write_text(f"#!/bin/sh\n{text}\n")
            program.chmod(0o755)

    def run_it(self, fail: str = "true") -> tuple[int, str]:
        names = {"PATH": f"{self.root}:{os.environ['PATH']}", "DATA": str(self.data)}
        done = subprocess.run(
            ["sh", PRESTART],
            env={**names, "FAIL": fail},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stderr

    def calls(self) -> int:
        path = self.root / "calls"
        return len(path.read_text().splitlines()) if path.exists() else 0

    def test_makes_what_is_missing_once(self):
        for _ in range(2):
            self.assertEqual(self.run_it(), (0, ""))
            self.assertEqual(sorted(os.listdir(self.data)), ["ibdata1", "mysql"])
        self.assertEqual(self.calls(), 1)

    def test_goes_on_after_a_failure(self):
        status, said = self.run_it(fail="exit 1")
        self.assertEqual(status, 1)
        self.assertIn("could not be made", said)
        self.assertEqual(self.run_it(), (0, ""))
        self.assertEqual(
            (self.root / "calls").read_text().split(), [".memdiag_initializing"] * 2
        )

    def test_leaves_what_is_no_data_directory(self):
        self.data.mkdir()
        (self.data / "letter").touch()
        status, said = self.run_it()
        self.assertEqual((status, self.calls()), (1, 0))
        self.assertIn("is no data directory", said)
        self.assertEqual(os.listdir(self.data), ["letter"])
