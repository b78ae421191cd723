"""The manual page and the tree of the client's packages."""

import ast
import re
import subprocess
import tomllib
from pathlib import Path
from unittest import mock

from make import client

from harness.scratch import Scratch
from unit import ROOT


class ManualPage(Scratch):
    def test_paragraphs_are_joined_and_examples_are_not(self):
        lines = ["a", "b", "", "```", "c", "d", "```", "e", "| f |", "g"]
        self.assertEqual(client.unwrapped(lines), ["a b", "", "```", "c", "d", "```", "e", "| f |", "g"])

    def test_it_names_each_command(self):
        page = client.manual(0)
        for name in ("report", "top", "record", "diff", "what\\-if"):
            self.assertIn(f"memdiag {name}", page)
        self.assertNotIn("`", page)


class Wheel(Scratch):
    def test_nothing_is_downloaded(self):
        commands = []
        before = git_status()

        def made(command: list, *_args: object, **_names: object) -> None:
            commands.append(command)
            (self.root / "memdiag-1.whl").touch()

        with mock.patch.object(client, "logged", made):
            client.wheel(self.root, 0)
        self.assertEqual(git_status(), before)  # pip leaves its work beside the source
        (command,) = commands
        self.assertLessEqual({"--no-index", "--no-build-isolation"}, set(command))
        if Path("/usr/bin/python3").exists():
            self.assertEqual(command[0], "/usr/bin/python3")

    def test_pythons_from_the_oldest_that_is_required_on_are_named(self):
        project = tomllib.loads((client.CLIENT / "pyproject.toml").read_text())["project"]
        begin = "Programming Language :: Python :: 3."
        named = [int(one.removeprefix(begin)) for one in project["classifiers"] if one.startswith(begin)]
        self.assertEqual(named, list(range(9, 15)))
        self.assertEqual(project["requires-python"], ">=3.9")
        self.assertIn("Depends: python3 (>= 3.9),", Path(client.__file__).read_text())

    def test_all_kinds_need_the_same_pymysql(self):
        project = tomllib.loads((client.CLIENT / "pyproject.toml").read_text())["project"]
        (least,) = (one.partition(">=")[2] for one in project["dependencies"] if one.startswith("PyMySQL>="))
        text = Path(client.__file__).read_text()
        self.assertIn(f"python3-pymysql (>= {least})", text)
        for name in ("python3-PyMySQL", "python3-pymysql"):
            self.assertIn(f"{name} >= {least}", client.SPEC)
        asked = (client.CLIENT / "memdiag/connect/authentication.py").read_text()
        self.assertIn(f"\n_OLDEST = ({least.replace('.', ', ')})\n", asked)

    def test_the_code_has_the_syntax_of_the_oldest(self):
        for path in (client.CLIENT / "memdiag").rglob("*.py"):
            with self.subTest(path.name):
                ast.parse(path.read_text(), feature_version=(3, 9))

    def test_missing_packages_are_named(self):
        with (
            mock.patch.object(client, "PROGRAMS", {"sh": "dash", "no-such": "none"}),
            mock.patch.object(client, "MODULES", {"re": "python3", "no_such": "python3-none"}),
        ):
            self.assertEqual(client.missing_packages(), ["none", "python3-none"])

    def test_debians_setuptools_knows_no_expression_of_licences(self):
        text = (client.CLIENT / "pyproject.toml").read_text()
        older = client.for_older_setuptools(text)
        self.assertIn('license = { text = "GPL-2.0-only AND MIT" }', older)
        self.assertNotIn("license-files", older)
        self.assertEqual(len(older.splitlines()), len(text.splitlines()) - 1)

    def test_what_pip_leaves_in_a_checkout_is_ignored(self):
        for name in ("client/build/lib/memdiag/cli.py", "client/memdiag.egg-info/PKG-INFO"):
            done = subprocess.run(["git", "check-ignore", "-q", name], cwd=ROOT, check=False)
            self.assertEqual(done.returncode, 0, name)


def git_status() -> str:
    return subprocess.run(["git", "status", "--short"], cwd=ROOT, capture_output=True, text=True, check=True).stdout


class Tree(Scratch):
    def test_the_program_and_nothing_else(self):
        tree = self.root / "tree"
        client.stage(tree, 0)
        files = {str(path.relative_to(tree)) for path in tree.rglob("*") if path.is_file()}
        self.assertIn("usr/bin/memdiag", files)
        self.assertIn("usr/share/memdiag/memdiag/render/static/uplot.min.js", files)
        self.assertFalse([name for name in files if re.search("pycache|/tests/|/check/", name)])
        self.assertTrue((tree / "usr/bin/memdiag").stat().st_mode & 0o111)
        self.assertRegex(client.version(), r"^\d+\.\d+\.\d+$")
