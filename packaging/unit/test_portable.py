"""The lint of what programs need: that it fails on each kind of need that a system may lack."""

import subprocess
import unittest
from unittest import mock

from make import portable
from make.portable import Needs, problems

from harness.problem import Problem
from harness.scratch import Scratch

PLUGIN = "usr/lib/mysql/plugin/a.so"


def needs(*names: str) -> Needs:
    """Libraries are the names with `.so`; the others are versions."""
    return Needs(frozenset(n for n in names if ".so" in n), frozenset(n for n in names if ".so" not in n))


class Rules(unittest.TestCase):
    def setUp(self):
        self.known = portable.libraries("# note\nlibc.so.6  libc6 (>= 2.34)\n?libcurl.so.4 libcurl4t64 | libcurl4\n")

    def wrong(self, path: str, *names: str) -> list[str]:
        return [one.removeprefix(f"{path} needs ") for one in problems(path, needs(*names), self.known)]

    def test_what_all_systems_have(self):
        self.assertEqual([], self.wrong(PLUGIN, "libc.so.6", "GLIBC_2.2.5", "GLIBC_2.34", "GCC_3.0", "OPENSSL_3.0.0"))

    def test_what_some_lack(self):
        for name, words in (
            ("GLIBC_2.35", "a symbol of GLIBC_2.35"),
            ("GLIBC_3.1", "a symbol of GLIBC_3.1"),
            ("GLIBC_PRIVATE", "a symbol of GLIBC_PRIVATE"),
            ("GLIBCXX_3.4", "a symbol of GLIBCXX_3.4"),
            ("CXXABI_1.3", "a symbol of CXXABI_1.3"),
            ("libicuuc.so.72", "the library libicuuc.so.72"),
            ("libcurl.so.4", "the library libcurl.so.4"),
        ):
            with self.subTest(name):
                self.assertEqual([words], self.wrong(PLUGIN, "libc.so.6", name))

    def test_some_plugins_may_need_more(self):
        for name in portable.OPTIONAL:
            path = f"usr/lib/mysql/plugin/{name}"
            self.assertEqual([], self.wrong(path, "libcurl.so.4", "GLIBCXX_3.4.30"))
            self.assertEqual(
                ["a symbol of GLIBC_2.36", "the library libicuuc.so.72"],
                self.wrong(path, "libicuuc.so.72", "GLIBC_2.36"),
            )


class Programs(Scratch):
    """A program that this machine's compiler makes."""

    def setUp(self):
        super().setUp()
        source = '#include <cstdio>\nvoid f() { throw std::puts(""); }\n'
        command = ["c++", "-shared", "-fPIC", "-x", "c++", "-", "-o", self.root / "a.so"]
        subprocess.run(command, input=source, text=True, check=True)
        (self.root / "text").write_text("no program")
        (self.root / "link.so").symlink_to("a.so")
        self.files = ("a.so", "link.so", "text")

    def test_a_program_that_needs_the_shared_cxx_library(self):
        with self.assertRaises(Problem) as raised:
            portable.check(self.root, self.files)
        said = str(raised.exception)
        self.assertIn("a.so needs the library libstdc++.so.6", said)
        self.assertIn("a.so needs a symbol of CXXABI_1.3", said)
        self.assertNotIn("link.so", said)

    def test_a_symbol_that_is_too_new(self):
        with (
            mock.patch.object(portable, "NEWEST_GLIBC", (2, 1)),
            self.assertRaisesRegex(Problem, "a.so needs .*GLIBC_"),
        ):
            portable.check(self.root, self.files)

    def test_the_packages_that_it_depends_on(self):
        must, may = portable.dependencies(self.root, self.files)
        self.assertIn("libc6 (>= 2.34)", must)
        self.assertEqual(["libstdc++6"], may)
