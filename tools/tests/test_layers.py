"""The check of the layers, on small checkouts that break its rules."""

import subprocess
import unittest
from pathlib import Path

from harness.common import ROOT
from harness.problem import Problem
from harness.scratch import Scratch
from tools import layers

TABLE = """
server = ["top"]
tests = ["low/unittest"]
programs = ["top"]
[only]
"jemalloc/jemalloc.h" = ["low"]
[rooms]
"low" = []
"middle" = ["low"]
"top" = ["*"]
"""


class Case(Scratch):
    def setUp(self):
        super().setUp()
        self.layers = layers.load(TABLE)
        for room in self.layers.rooms:
            self.make_file(f"{room}/some.h")

    def write(self, **texts: str) -> None:
        """low__a_h="..." writes low/a.h."""
        for name, text in texts.items():
            folder, _, file = name.rpartition("__")
            self.make_file(Path(folder.replace("__", "/"), file.replace("_", ".")), text)

    def check(self, *arrows: layers.Arrow) -> list[str]:
        files = layers.code_files(self.root)
        found, problems = layers.read_sources(self.layers, self.root, files)
        return problems + layers.check(self.layers, files, [*found, *arrows])

    def assert_problems(self, problems: list[str], *needles: str) -> None:
        self.assertEqual(len(problems), len(needles), problems)
        for problem, needle in zip(problems, needles, strict=True):
            self.assertIn(needle, problem)


class Includes(Case):
    def test_downwards(self):
        self.write(low__a_h="", middle__b_cc='#include "low/a.h"\n#include <vector>\n')
        self.assertEqual(self.check(), [])

    def test_upwards(self):
        self.write(low__a_cc='\n # include "middle/b.h"\n', middle__b_h="")
        self.assert_problems(self.check(), "low/a.cc uses middle/b.h (includes it in line 2): low may not use middle")

    def test_circle_of_files(self):
        self.write(low__a_h="", low__a_cc='#include "low/a.h"\n#include "b.h"\n', low__b_h='#include "low/a.h"\n')
        self.assert_problems(self.check(), "files in a circle, low/a -> low/b -> low/a: low/a.cc uses")

    def test_circle_of_rooms(self):
        self.write(low__a_h='#include "middle/b.h"\n', middle__b_h="", middle__c_h='#include "low/a.h"\n')
        self.assert_problems(self.check(), "low may not use middle", "rooms in a circle, low -> middle -> low")

    def test_header_of_the_server(self):
        text = '#include "sql/field.h"\n#include <mysql/plugin.h>\n'
        self.write(middle__a_cc=text, top__a_cc=text, low__unittest__a_cc=text)
        problems = self.check()
        self.assert_problems(problems, "middle/a.cc:1", "middle/a.cc:2")

    def test_header_of_one_room(self):
        text = "#include <jemalloc/jemalloc.h>\n"
        self.write(low__a_cc=text, top__b_cc=text)
        self.assert_problems(self.check(), "top/b.cc:1 includes jemalloc/jemalloc.h")

    def test_tests_use_all_and_are_used_by_none(self):
        self.write(low__unittest__a_cc='#include "top/b.h"\n', top__b_h="")
        self.assertEqual(self.check(), [])
        self.write(top__b_h='#include "low/unittest/c.h"\n', low__unittest__c_h="")
        self.assert_problems(self.check(), "top may not use low/unittest")

    def test_folder_that_the_table_does_not_know(self):
        self.write(new__a_h="")
        self.assert_problems(self.check(), "new/a.h lies in no room")

    def test_room_without_a_file(self):
        (self.root / "middle/some.h").unlink()
        self.assert_problems(self.check(), "names middle, which has no file")


class Imports(Case):
    def test_upwards(self):
        lines = ("import middle.b", "from middle import b", "from middle.b import x")
        for line in (*lines, f"def late():\n    {lines[1]}"):
            with self.subTest(line):
                self.write(low__a_py=f"{line}\n", middle__b_py="x = 1\n")
                self.assert_problems(self.check(), "low/a.py uses middle/b.py (imports")

    def test_program_without_suffix(self):
        self.write(middle__b_py="")
        (self.root / "low/run").write_text("#!/usr/bin/env python3\nimport middle.b\n")
        self.assert_problems(self.check(), "low/run uses middle/b.py")

    def test_a_program_uses_no_other_one(self):
        self.write(
            top__a_py="from top import b\n", top__b_py="from middle import c\n", middle__c_py="import middle.d\n"
        )
        self.write(middle__d_py="")
        self.assert_problems(self.check(), "top/a.py uses top/b.py (imports it in line 1): both are programs")

    def test_circle(self):
        self.write(low__a_py="from low import b\n", low__b_py="from . import a\n")
        self.assert_problems(self.check(), "files in a circle, low/a.py -> low/b.py")


class Symbols(Case):
    """Calls without an include, which compiled objects show."""

    def setUp(self):
        super().setUp()
        self.build = self.root / "build"
        self.build.mkdir()

    def compile(self, *sources: str) -> None:
        ninja = ""
        for name in sources:
            source, made = self.root / name, Path(f"{name.replace('/', '_')}.o")
            command = ["g++", "-c", "-o", self.build / made, source]
            subprocess.run(command, check=True)
            ninja += f"build {made}: CXX_COMPILER__memdiag_ {source} || x\n"
        (self.build / "build.ninja").write_text(ninja)

    def calls(self) -> list[layers.Arrow]:
        files = layers.code_files(self.root)
        return layers.calls(layers.read_objects(self.layers, self.build, files, self.root))

    def two(self, low: str, middle: str) -> list[str]:
        self.write(low__a_cc=low, middle__b_cc=middle)
        self.compile("low/a.cc", "middle/b.cc")
        return self.check(*self.calls())

    def test_upward_call_without_include(self):
        self.assert_problems(
            self.two("void up(int); void f() { up(1); }", "void up(int) {}"),
            "low/a.cc uses middle/b.cc (needs up(int) of it): low may not use middle",
        )

    def test_downward_call(self):
        found = self.two("void down() {}", "void down(); void f() { down(); }")
        self.assertEqual(found, [])

    def test_upward_hook(self):
        declared = 'extern "C" { [[gnu::weak]] void hook(); }\n'
        low = declared + "void f() { if (hook) hook(); }"
        self.assertEqual(self.two(low, declared), [])
        problems = self.two(low, declared + "void hook() {}")
        self.assert_problems(problems, "low/a.cc uses middle/b.cc (needs hook of it)")

    def test_weak_function_that_another_replaces(self):
        self.assert_problems(self.two("[[gnu::weak]] void f() {}", "void f() {}"), "needs f() of it")

    def test_variable(self):
        self.assert_problems(self.two("extern int seen; int f() { return seen; }", "int seen;"), "needs seen of it")

    def test_inline_functions_are_no_calls(self):
        inline = "inline void both() {}\n"
        low, middle = inline + "void f() { both(); }", inline + "void g() { both(); }"
        self.assertEqual(self.two(low, middle), [])

    def test_circle_of_files(self):
        self.write(low__a_cc="void g(); void f() { g(); }", low__b_cc="void f(); void g() { f(); }")
        self.compile("low/a.cc", "low/b.cc")
        self.assert_problems(self.check(*self.calls()), "files in a circle, low/a ->")

    def test_what_a_test_defines_is_no_use_of_the_test(self):
        self.write(low__a_cc="void of_server(); void f() { of_server(); }", low__unittest__b_cc="void of_server() {}")
        self.compile("low/a.cc", "low/unittest/b.cc")
        self.assertEqual(self.check(*self.calls()), [])

    def test_old_object(self):
        self.two("", "")
        (self.build / "low_a.cc.o").unlink()
        with self.assertRaisesRegex(Problem, r"object of low/a.cc is missing or old"):
            self.calls()

    def test_folder_without_a_build(self):
        self.write(low__a_cc="")
        with self.assertRaisesRegex(Problem, "compiles nothing of ours"):
            self.calls()


class Permissions(Case):
    def test_each_is_used(self):
        arrows = [layers.Arrow("middle/b.cc", "low/a.h", ""), layers.Arrow("top/c.cc", "middle/b.h", "")]
        self.assertEqual(layers.unused_permissions(self.layers, arrows), [])

    def test_unused(self):
        arrows = [layers.Arrow("top/c.cc", "low/a.h", ""), layers.Arrow("low/unittest/a.cc", "low/a.h", "")]
        problems = layers.unused_permissions(self.layers, arrows)
        self.assert_problems(problems, "lets middle use low, but no file of middle does")

    def test_unused_star(self):
        arrows = [layers.Arrow("middle/b.cc", "low/a.h", ""), layers.Arrow("top/c.cc", "top/d.h", "")]
        self.assert_problems(layers.unused_permissions(self.layers, arrows), "lets top use *,")


class Table(unittest.TestCase):
    def test_a_room_may_only_use_rooms_above_it(self):
        text = TABLE.replace('"low" = []', '"low" = ["middle"]')
        with self.assertRaisesRegex(Problem, "low uses middle, but no room above"):
            layers.load(text)

    def test_unknown_room(self):
        with self.assertRaisesRegex(Problem, "names nowhere, which is no room"):
            layers.load(TABLE.replace('["top"]', '["nowhere"]'))

    def test_star(self):
        text = TABLE + '"middle/in" = []\n"last" = ["middle/*"]\n'
        rooms = layers.load(text).rooms
        self.assertEqual(rooms["top"], {"low", "middle"})
        self.assertEqual(rooms["last"], {"middle/in"})


class Circles(unittest.TestCase):
    def find(self, *pairs: str) -> list[list[str]]:
        return layers.circles({(x[0], x[1]): None for x in pairs})

    def test_none(self):
        self.assertEqual(self.find("ab", "ac", "bd", "cd"), [])

    def test_behind_an_entrance(self):
        self.assertEqual(self.find("ab", "bc", "cd", "db"), [["b", "c", "d", "b"]])

    def test_two(self):
        found = self.find("ab", "ba", "bc", "cd", "dc")
        self.assertEqual(found, [["a", "b", "a"], ["c", "d", "c"]])


class Checkout(unittest.TestCase):
    def test_includes_and_imports_of_this_checkout(self):
        table, files = layers.load(layers.TABLE.read_text()), layers.code_files(ROOT)
        arrows, problems = layers.read_sources(table, ROOT, files)
        self.assertGreater(len(arrows), 500)
        self.assertEqual(problems + layers.check(table, files, arrows), [])
