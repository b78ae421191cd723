"""How libraries are found, and what older ones of them need."""

import getpass
import importlib
import json
import os
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from memdiag.libraries import library
from memdiag.problem import Problem


def user_of_the_environment() -> str:
    """As Python's since 3.13, for a user that the system does not know: a container's, for example."""
    if name := os.environ.get("LOGNAME"):
        return name
    raise OSError("No username set in the environment")


class Libraries(unittest.TestCase):
    def test_a_library_that_asks_for_a_name_which_nobody_has(self):
        """PyMySQL before 1.2 expects a KeyError then, and since Python 3.13 it is an OSError."""
        with (
            tempfile.TemporaryDirectory() as folder,
            mock.patch.object(sys, "path", [folder, *sys.path]),
            mock.patch.dict(os.environ, clear=True),
            mock.patch.object(getpass, "getuser", user_of_the_environment),
        ):
            Path(folder, "asks_for_a_name.py").write_text("import getpass\nUSER = getpass.getuser()\n")
            self.addCleanup(sys.modules.pop, "asks_for_a_name", None)
            self.assertTrue(library("asks_for_a_name", "missing").USER)
            self.assertNotIn("LOGNAME", os.environ)

    def test_several_servers_are_asked_at_once(self):
        """Each has a thread, and the first that is done takes the name away."""
        with mock.patch.dict(os.environ, clear=True):

            def imported(_):
                if os.environ.pop("LOGNAME", None) is None:
                    raise OSError("No username set in the environment")
                return os

            with mock.patch.object(importlib, "import_module", imported):
                self.assertIs(library("asks_for_a_name", "missing"), os)

    def test_the_folder_of_the_distribution_comes_last(self):
        """It has libraries of another Python, too, which are not to hide this one's. An empty name is this folder."""
        with (
            tempfile.TemporaryDirectory() as folder,
            mock.patch.object(sys, "path", [name for name in sys.path if name]),
            mock.patch("memdiag.libraries._DEBIAN", folder),
        ):
            before = list(sys.path)
            for name in ("first_of_debian", "second_of_debian"):
                Path(folder, f"{name}.py").write_text("")
                self.addCleanup(sys.modules.pop, name, None)
            self.assertIs(library("json", "missing"), json)
            self.assertEqual(sys.path, before)
            for name in ("first_of_debian", "second_of_debian"):
                self.assertEqual(library(name, "missing").__file__, str(Path(folder, f"{name}.py")))
                self.assertEqual(sys.path, [*before, folder])
            self.assertRaises(Problem, library, "no_such_library_of_memdiag", "missing")
            self.assertEqual(sys.path, [*before, folder])

    def test_a_library_that_is_missing(self):
        with self.assertRaisesRegex(Problem, "install it"):
            library("no_such_library_of_memdiag", "install it")
