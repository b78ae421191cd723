"""Mutants are made where code is, each test that would notice meets them, and the share is that of those that count."""

import subprocess
import sys
import time
from pathlib import Path
from unittest import mock

from harness.scratch import Scratch
from proof import mutants, mutated
from proof.mutations import places


def changes(text: str, is_python: bool = False) -> list[str]:
    return [f"{text[each.begin : each.end]} -> {other}" for each in places(text, is_python) for other in each.others]


class Places(Scratch):
    def test_operators_and_values(self):
        self.assertEqual(changes("x = a < b;"), ["< -> <=", "< -> >="])
        self.assertEqual(changes("x = a == b && !c;"), ["== -> !=", "&& -> ||", "! -> "])
        self.assertEqual(changes("n += std::min(a, b) - c;"), ["+= -> -=", "min -> max", "- -> +"])
        self.assertEqual(changes("return true;"), ["true -> false"])
        self.assertEqual(changes("x = not a or b is not c", True), ["not -> ", "or -> and"])
        self.assertEqual(changes("x = max(a, b.min(c)) if True else d", True), ["max -> min", "True -> False"])

    def test_numbers(self):
        self.assertEqual(changes("a = 0;"), ["0 -> 1"])
        self.assertEqual(changes("a = 1'000u;"), ["1'000u -> 999u", "1'000u -> 1001u"])
        self.assertEqual(changes("a = 0x10;"), ["0x10 -> (0x10 + 1)", "0x10 -> (0x10 - 1)"])
        self.assertEqual(changes("a1 = b2"), [])

    def test_conditions_with_one_operator_are_negated_once(self):
        self.assertEqual(changes("if (a == b) c = d;"), ["== -> !="])
        self.assertEqual(changes("if (auto a = f(); a) c = d;"), ["a -> !(a)"])
        self.assertEqual(changes("if (f(a) || b) c = d;"), ["f(a) || b -> !(f(a) || b)", "|| -> &&"])
        self.assertEqual(changes("if f(a)[b]:\n    c = d", True), ["f(a)[b] -> not (f(a)[b])"])
        self.assertEqual(changes("x = [a for a in b if a]", True), [])

    def test_calls_without_a_result_go(self):
        text = "void f() {\n  if (a) b->c(d,\n    e);\n  int g(h);\n  return i();\n}"
        self.assertEqual(changes(text), ["a -> !(a)", "b->c(d,\n    e); -> {}\n"])
        self.assertEqual(changes("a.b(\n    c(),\n)\nd = e()\nreturn f()\n", True), ["a.b(\n    c(),\n) -> pass"])

    def test_a_call_that_saves_time_stays(self):
        self.assertEqual(changes("; all.reserve(more);"), [])

    def test_what_is_no_code_stays(self):
        text = '#define A \\\n  1\n// 1\n/* 1\n1 */ f("1 < 2", R"(1 ")", \'1\');\nstatic_assert(1 < 2);\nstd::vector<int> a;'
        self.assertEqual(changes(f"int x;\n{text}"), ['f("1 < 2", R"(1 ")", \'1\'); -> {}'])
        self.assertEqual(changes('a = b  # 1\n"""1\n\'1"""\nassert a == 1\nc = f"{1}" + \'2\'', True), ["+ -> -"])

    def test_each_file_of_ours_has_some(self):
        """A text that the tokens end in would hide the rest of its file."""
        for path, text in mutants.sources().items():
            if path.endswith(".cc") and len(text) > 5000:
                last = max(each.end for each in places(text, False))
                self.assertGreater(last, len(text) * 0.7, path)


class Choice(Scratch):
    def test_a_mutant_is_the_same_each_time(self):
        text = "int a;\n  b = c <\n      2;\n"
        one = [mutated.mutant("a.cc", text, place, "1") for place in places(text, False)]
        self.assertEqual(one, [mutated.mutant("a.cc", text, place, "1") for place in places(text, False)])
        self.assertEqual((one[0].number, one[0].line), (2, "b = c <"))
        self.assertTrue(one[0].name.startswith("a.cc:2:6: < -> "))
        self.assertEqual(one[0].text.count("\n"), text.count("\n"))

    def test_tests_and_what_they_use_are_not_mutated(self):
        paths = mutants.sources()
        self.assertIn("mysys/memdiag/pools/pools.cc", paths)
        self.assertIn("client/memdiag/judge/ceiling.py", paths)
        for path in paths:
            self.assertNotRegex(path, r"/unittest/|/test/|_for_test|tests/|/static/")

    def test_modules_are_found_by_their_imports(self):
        text = "import a.b\nfrom c.d import e\ndef f():\n    from g import h\n"
        self.assertEqual(mutated.imported(text), {"a", "a.b", "c", "c.d", "c.d.e", "g", "g.h"})


class A_run(Scratch):
    def test_all_that_a_program_started_is_ended_with_it(self):
        for end, expected in (("exec sleep 1000", None), ("exit 3", 3)):
            started = self.root / "started"
            # In a group of its own, as ninja's compilers are.
            script = f"set -m; sleep 1000 & echo $! > {started}; {end}"
            self.assertEqual(mutated.status(["sh", "-c", script], 1000 if expected else 5), expected)
            child = Path("/proc") / started.read_text().strip() / "stat"
            while child.exists() and child.read_text().rsplit(")", 1)[1].split()[0] != "Z":
                time.sleep(0.02)

    def test_a_failure_counts_when_it_comes_twice(self):
        once = f"test -e {self.root}/met || {{ touch {self.root}/met; exit 1; }}"
        self.assertFalse(mutated.fails(["sh", "-c", once], 100, self.root))
        self.assertTrue(mutated.fails(["false"], 100, self.root))
        self.assertTrue(mutated.fails(["sleep", "1000"], 0.1, self.root))

    def test_the_file_is_as_before(self):
        (self.root / "a.cc").write_text("a")
        one = mutated.Mutant("a.cc", 1, "a", "a -> b", "b")
        with mock.patch.object(mutated, "TREE", self.root), self.assertRaises(KeyboardInterrupt), mutated.changed(one):
            self.assertEqual((self.root / "a.cc").read_text(), "b")
            raise KeyboardInterrupt
        self.assertEqual((self.root / "a.cc").read_text(), "a")

    def test_the_copy_follows_the_checkout(self):
        subprocess.run(["git", "init", "-q", self.root / "from"], check=True)
        (self.root / "from/mysys").mkdir()
        for name in ("a.cc", "b.cc"):
            (self.root / "from/mysys" / name).write_text(name)
        with (
            mock.patch.object(mutated, "ROOT", self.root / "from"),
            mock.patch.object(mutated, "TREE", self.root / "to"),
        ):
            mutated.copy()
            kept = (self.root / "to/mysys/a.cc").stat().st_mtime_ns
            (self.root / "to/mysys/b.cc").write_text("a mutant that an interruption left")
            (self.root / "to/mysys/c.cc").write_text("gone")
            mutated.copy()
        self.assertEqual((self.root / "to/mysys/b.cc").read_text(), "b.cc")
        self.assertEqual((self.root / "to/mysys/a.cc").stat().st_mtime_ns, kept)
        self.assertFalse((self.root / "to/mysys/c.cc").exists())


class The_report(Scratch):
    def test_the_share_has_its_interval(self):
        self.assertEqual(
            mutants.share(["killed"] * 90 + ["survived"] * 10 + ["same code"]), "90.0% of 100 killed (83 to 94%)"
        )
        self.assertEqual(mutants.interval(0, 0), (0.0, 100.0))

    def test_survivors_are_listed_with_the_reason(self):
        tried = {
            "a/b.cc:1:0: x -> y": ["survived", "2 programs", "x;", "0: x -> y"],
            "a/b.cc:2:0: x -> y": ["survived", "2 programs", "z;", "0: x -> y"],
            "a/b.cc:3:0: x -> y / 2": ["killed", "T.t", "x;", "0: x -> y / 2"],
        }
        why = {("a/b.cc", "x;", "0: x -> y"): "it costs only time"}
        with (
            mock.patch.object(mutants, "explanations", return_value=why),
            mock.patch.object(mutants, "say") as of_folders,
        ):
            said = mutants.report(tried, self.root / "log")
        self.assertEqual([each.args[0].split()[0] for each in of_folders.call_args_list], ["a", "layer"])
        self.assertIn("33.3% of 3 killed", said)
        self.assertIn("1 of 2 survivors are not explained", said)
        self.assertIn("it costs only time", (self.root / "log").read_text())

    def test_each_explanation_is_of_a_line_that_is_there(self):
        for file, line, _ in mutants.explanations():
            lines = [each.strip() for each in (mutants.ROOT / file).read_text().splitlines()]
            self.assertIn(line, lines, file)


class The_program(Scratch):
    def run_with(self, killed: int, *arguments: str) -> int:
        """All of a state's mutants, of which so many are killed."""
        outcomes = iter([("killed", "T.t")] * killed)
        layer = mock.Mock()
        layer.try_one.side_effect = lambda _: next(outcomes, ("survived", ""))
        self.layer = layer
        with (
            mock.patch.multiple(mutants, copy=mock.Mock(), STATES=self.root, explanations=lambda: {}),
            mock.patch.object(mutants, "sources", return_value={"a/b.cc": "x = 1;\n" * 20}),
            mock.patch.object(mutants, "digest_of_tests", return_value=self.tests),
            mock.patch.object(mutants, "Layer", return_value=layer),
            mock.patch.object(mutants, "Client"),
            mock.patch.object(mutants, "say"),
            mock.patch.object(sys, "argv", ["mutants.py", *arguments]),
        ):
            return mutants.main()

    def test_it_fails_below_the_goal(self):
        self.tests = "1"
        self.assertEqual(self.run_with(17), 0)
        self.assertEqual(self.run_with(16, "--fresh"), 1)

    def test_it_goes_on_and_tries_survivors_again_when_the_tests_are_others(self):
        self.tests = "1"
        self.run_with(10, "--count", "12")
        self.assertEqual(self.layer.try_one.call_count, 12)
        self.run_with(8)
        self.assertEqual(self.layer.try_one.call_count, 8)
        self.tests = "2"
        self.assertEqual(self.run_with(2), 0)
        self.assertEqual(self.layer.try_one.call_count, 2)
