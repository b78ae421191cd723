"""The check of style: where its programs come from, and that it fails without them."""

import contextlib
import io
import subprocess
from pathlib import Path
from unittest import mock

from harness.problem import Problem
from harness.scratch import Scratch
from tools import style


class Provide(Scratch):
    def setUp(self):
        super().setUp()
        self.pins = self.root / "pins.txt"
        self.pins.write_text("ruff==1\n")
        self.cache = self.root / "cache"
        self.calls = []
        self.works = True

    def provide(self, offline=False):
        """With programs that only note that they were called."""

        def run(command, **_):
            self.calls.append([str(part) for part in command])
            if "venv" in self.calls[-1]:
                Path(command[-1]).mkdir(parents=True)
            words = "" if self.works else "no such host\n"
            return subprocess.CompletedProcess(command, not self.works, "", words)

        with mock.patch.object(style.subprocess, "run", run), contextlib.redirect_stdout(io.StringIO()):
            return style.provide(self.pins, self.cache, offline)

    def test_installed_once(self):
        first = self.provide()
        self.assertEqual(len(self.calls), 2)
        self.assertIn("--require-hashes", self.calls[1])
        self.assertEqual(self.calls[1][-1], str(self.pins))
        self.assertEqual(self.provide(), first)
        self.assertEqual(self.provide(offline=True), first)
        self.assertEqual(len(self.calls), 2)

    def test_another_version_is_another_folder(self):
        first = self.provide()
        self.pins.write_text("ruff==2\n")
        self.assertNotEqual(self.provide(), first)
        self.assertEqual(len(self.calls), 4)

    def test_offline_installs_nothing(self):
        self.assertIsNone(self.provide(offline=True))
        self.assertEqual(self.calls, [])

    def test_failed_installation_is_tried_again(self):
        self.works = False
        for _ in range(2):
            with self.assertRaisesRegex(Problem, "no such host"):
                self.provide()
        self.works = True
        self.assertTrue(self.provide())


class Check(Scratch):
    def setUp(self):
        super().setUp()
        for name in ("shellcheck", "ruff", "clang-format"):
            self.program(name, "exit 0")
        for name in ("a.sh", "b.cc", "c.py"):
            (self.root / name).touch()
        self.provided = mock.Mock(return_value=self.root)
        for patch in (
            mock.patch.object(style, "ROOT", self.root),
            mock.patch.object(style, "provide", self.provided),
            mock.patch.dict("os.environ", {"PATH": f"{self.root}:/usr/bin:/bin"}),
        ):
            self.enterContext(patch)

    def program(self, name: str, text: str) -> None:
        path = self.root / name
        path.write_text(f'#!/bin/sh\necho "$0 $@" >> {self.root}/calls\n{text}\n')
        path.chmod(0o755)

    def check(self, offline=False) -> tuple[int, str]:
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            status = style.check(offline)
        return status, said.getvalue().splitlines()[-1]

    def test_clean(self):
        self.assertEqual(self.check(), (0, "style: 4 passed, 0 failed"))
        calls = (self.root / "calls").read_text()
        self.assertRegex(calls, r"clang-format --dry-run -Werror \S+/b\.cc\n")
        self.assertRegex(calls, r"shellcheck -x \S+/a\.sh\b")
        self.assertIn("ruff format --check", calls)

    def test_each_can_fail(self):
        for name, failed in (("shellcheck", 1), ("ruff", 2), ("clang-format", 1)):
            self.program(name, "exit 1")
            words = f"style: {4 - failed} passed, {failed} failed"
            self.assertEqual(self.check(), (1, words))
            self.program(name, "exit 0")

    def test_programs_that_cannot_be_had_are_a_failure(self):
        self.provided.side_effect = Problem("no network")
        self.assertEqual(self.check(), (1, "style: 1 passed, 1 failed"))

    def test_offline_says_what_it_skips(self):
        self.provided.return_value = None
        status, words = self.check(offline=True)
        self.assertEqual(status, 0)
        self.assertIn("1 passed, 0 failed, 3 skipped: --offline", words)

    def test_shellcheck_that_is_not_installed_is_a_failure(self):
        (self.root / "shellcheck").unlink()
        with mock.patch.dict("os.environ", {"PATH": str(self.root)}):
            self.assertEqual(self.check()[0], 1)
