"""The patch tools, on a small tree that stands for upstream's."""

import os
import shutil
import subprocess
from dataclasses import replace
from unittest import mock

from harness.problem import Problem
from harness.scratch import Scratch
from tools.build import patches, tree

HEADER = """Subject: {0}
Why: the test needs it.
Why not own code: there is
none here.
Test: this one.
Remove when: never.
"""

DIET = """Subject: {0}
Why: the test needs it.
Saves: a byte
of each line.
Why not own code: there is
none here.
Test: this one.
Leave out: its line.
Remove when: never.
"""


class Case(Scratch):
    def setUp(self):
        super().setUp()
        self.pristine = self.root / "pristine"
        self.folder = self.root / "patches"
        for series in patches.SERIES:
            (self.folder / series).mkdir(parents=True)
        for name in ("a.txt", "sub/b.txt", "c.txt"):
            self.make_file(self.pristine / name, "".join(f"{name} {i}\n" for i in range(1, 21)))
        self.write(
            {
                "hooks/one.patch": self.patch("one", "a.txt", 5, "five"),
                "diets/two.patch": self.diet("two", "sub/b.txt", 7, "seven"),
            }
        )

    def hunk(self, name, line, new):
        before, old, after = (f"{name} {line + i}" for i in (-1, 0, 1))
        return f"--- a/{name}\n+++ b/{name}\n@@ -{line - 1},3 +{line - 1},3 @@\n {before}\n-{old}\n+{new}\n {after}\n"

    def patch(self, subject, name, line, new):
        return f"{HEADER.format(subject)}\n{self.hunk(name, line, new)}"

    def diet(self, subject, name, line, new):
        return f"{DIET.format(subject)}\n{self.hunk(name, line, new)}"

    def write(self, texts, names=None):
        for name, text in texts.items():
            (self.folder / name).write_text(text)
        if names is None:
            names = sorted(f"{x.parent.name}/{x.name}" for x in self.folder.glob("*/*.patch"))
        for series in patches.SERIES:
            own = [x.split("/")[1] for x in names if x.startswith(f"{series}/")]
            (self.folder / series / "series").write_text("".join(f"{x}\n" for x in ["# comment", *own]))

    def lint(self, offsets_allowed=False):
        return patches.lint(self.folder, self.pristine, offsets_allowed)

    def assert_lint(self, *needles):
        problems = self.lint()
        self.assertEqual(len(problems), len(needles), problems)
        for needle, problem in zip(needles, problems, strict=True):
            self.assertIn(needle, problem)


class Lint(Case):
    def test_good_series(self):
        self.assertEqual(self.lint(), [])

    def test_empty_series(self):
        for path in self.folder.glob("*/*.patch"):
            path.unlink()
        self.write({})
        self.assertEqual(self.lint(), [])

    def test_no_series_file(self):
        for series in patches.SERIES:
            (self.folder / series / "series").rename(self.root / "kept")
            with self.assertRaisesRegex(Problem, f"{series}/series is missing"):
                self.lint()
            (self.root / "kept").rename(self.folder / series / "series")

    def test_one_fault(self):
        one = (self.folder / "hooks/one.patch").read_text()
        two = (self.folder / "diets/two.patch").read_text()
        both = ["hooks/one.patch", "diets/two.patch"]
        for complaint, series, texts in (
            ("diets/two.patch: in no series", both[:1], {}),
            ("diets/three.patch: in its series, but not there", [*both, "diets/three.patch"], {}),
            ("hooks/one.patch: 2 times", [*both, "hooks/one.patch"], {}),
            ("header lacks Test:", both, {"hooks/one.patch": one.replace("Test: this one.\n", "")}),
            ("header lacks Why:", both, {"hooks/one.patch": one.replace("the test needs it.", "")}),
            (
                "hooks/one.patch: header names sql/memdiag/gone.h, which is not there",
                both,
                {"hooks/one.patch": one.replace("Test: this one.", "Test: sql/memdiag/gone.h")},
            ),
            (
                "diets/two.patch: header lacks Leave out:",
                both,
                {"diets/two.patch": two.replace("Leave out: its line.", "Leave out:")},
            ),
            ("does not apply", both, {"hooks/one.patch": one.replace("txt 4", "txt 3")}),
            ("no.txt", both, {"hooks/one.patch": self.patch("one", "no.txt", 5, "x")}),
            ("whitespace error", both, {"hooks/one.patch": self.patch("one", "a.txt", 5, "five ")}),
            (
                "patches/hooks/one.patch does not apply",
                both,
                {"hooks/one.patch": self.patch("one", "sub/b.txt", 6, "six").replace("sub/b.txt 7", "seven")},
            ),
        ):
            with self.subTest(complaint):
                self.write({"hooks/one.patch": one, "diets/two.patch": two} | texts, series)
                self.assert_lint(complaint)

    def test_offset(self):
        text = (self.folder / "hooks/one.patch").read_text()
        self.write({"hooks/one.patch": text.replace("@@ -4,3 +4,3 @@", "@@ -2,3 +2,3 @@")})
        self.assert_lint("offset")
        self.assertEqual(self.lint(offsets_allowed=True), [])

    def test_three_lines_of_context(self):
        name = "a.txt"
        lines = [f" {name} {i}\n" for i in (2, 3, 4)]
        lines += [f"-{name} 5\n", "+five\n"] + [f" {name} {i}\n" for i in (6, 7, 8)]
        body = f"--- a/{name}\n+++ b/{name}\n@@ -2,7 +2,7 @@\n{''.join(lines)}"
        self.write({"hooks/one.patch": f"{HEADER.format('one')}\n{body}"})
        self.assert_lint("not in the form that export writes")
        series = patches.load_series(self.folder)
        patches.write_series(patches.canonical(series, self.pristine), series, self.folder)
        self.assertEqual(self.lint(), [])
        self.assertEqual((self.folder / "hooks/one.patch").read_text(), self.patch("one", name, 5, "five"))

    def test_new_file(self):
        body = "--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+x\n"
        self.write({"hooks/one.patch": f"{HEADER.format('one')}\n{body}"})
        self.assertIn("adds or removes a file", self.lint()[0])

    def test_too_many_lines(self):
        many = "\n+".join(f"line {i}" for i in range(600))
        text = self.patch("one", "a.txt", 5, many)
        text = text.replace("@@ -4,3 +4,3 @@", "@@ -4,3 +4,602 @@")
        self.write({"hooks/one.patch": text})
        self.assert_lint("has 600 added lines with code")

    def test_patches_in_other_folders(self):
        for name in ("other/four.patch", "hooks/below/five.patch", "six.patch"):
            self.make_file(self.folder / name, self.patch("x", "a.txt", 9, "nine"))
        self.assert_lint("hooks/below/five.patch: in no series", "other/four.patch: in no series", "six.patch: in no")

    def test_a_patch_in_the_other_series(self):
        (self.folder / "hooks/one.patch").rename(self.folder / "diets/one.patch")
        self.write({})
        self.assert_lint("diets/one.patch: header lacks Saves:, Leave out:")
        self.write({"diets/one.patch": self.diet("one", "a.txt", 5, "five")})
        self.assertEqual(self.lint(), [])
        (self.folder / "diets/one.patch").rename(self.folder / "hooks/one.patch")
        self.write({})
        self.assert_lint("hooks/one.patch: header fields: want")

    def test_diets_may_change_what_hooks_have_made(self):
        later = self.diet("two", "a.txt", 6, "six").replace("a.txt 5", "five")
        self.write({"diets/two.patch": later})
        self.assertEqual(self.lint(), [])

    def sizes(self):
        return patches.sizes(patches.load_series(self.folder), self.pristine)

    def test_each_series_is_counted(self):
        one = patches.Size(hunks=1, functions=1, added_lines=1)
        self.assertEqual(self.sizes(), {"hooks": one, "diets": one})
        self.write({"diets/three.patch": self.diet("three", "a.txt", 9, "nine")})
        self.assertEqual(self.sizes(), {"hooks": one, "diets": patches.Size(hunks=2, functions=2, added_lines=2)})

    def test_deleted_lines_are_free(self):
        gone = "".join(f"-a.txt {i}\n" for i in range(5, 11))
        text = f"{HEADER.format('one')}\n--- a/a.txt\n+++ b/a.txt\n@@ -4,8 +4,2 @@\n a.txt 4\n{gone} a.txt 11\n"
        self.write({"hooks/one.patch": text})
        self.assertEqual(self.sizes()["hooks"], patches.Size(hunks=1, functions=1, added_lines=0))
        self.assertEqual(self.sizes()["diets"], patches.Size(hunks=1, functions=1, added_lines=1))

    def test_comments_are_not_counted(self):
        self.assertEqual(
            [patches.is_code(line) for line in ("  // a", "/* a", " * a", "  */", "", "*p = 1;", "a;  // b")],
            [False, False, False, False, False, True, True],
        )

    def test_each_series_has_limits(self):
        for series, most in patches.MAX_SIZE.items():
            self.assertEqual(most.problems(series), [])
            for field, words in (("hunks", "hunks"), ("functions", "functions"), ("added_lines", "added lines")):
                count = getattr(most, field) + 1
                (problem,) = replace(most, **{field: count}).problems(series)
                self.assertIn(f"patches/{series} has {count} {words}", problem)
        self.assertLessEqual(sum(most.hunks for most in patches.MAX_SIZE.values()), 210)

    def test_functions_are_counted_once(self):
        for name, words in (("before", "1 2 3 4 5 6 7 8"), ("after", "x 2 3 4 5 6 7 y")):
            (self.root / name).mkdir()
            lines = "".join(f"  {word};\n" for word in words.split())
            (self.root / name / "f.cc").write_text(f"int f() {{\n  a;\n{lines}}}\n")
        self.assertEqual(patches.changed_functions(self.root / "before", self.root / "after", ["f.cc"]), 1)

    def test_blank_lines_are_not_counted(self):
        text = self.patch("one", "a.txt", 5, "five\n+\n+six")
        self.write({"hooks/one.patch": text.replace("+4,3 @@", "+4,5 @@")})
        self.assertEqual(self.lint(), [])
        self.assertEqual(self.sizes()["hooks"].added_lines, 2)
        self.assertEqual(self.sizes()["diets"].added_lines, 1)

    def test_lines_that_look_like_file_names_are_counted(self):
        text = self.patch("one", "a.txt", 5, "++ x")
        self.assertEqual(patches.parse("hooks/one.patch", text).changed(), ["-a.txt 5", "+++ x"])


class RoundTrip(Case):
    def setUp(self):
        super().setUp()
        # Two patches to one file, so that the order matters.
        self.write({"diets/three.patch": self.diet("three", "a.txt", 6, "six").replace("a.txt 5", "five")})
        self.write({}, ["hooks/one.patch", "diets/two.patch", "diets/three.patch"])
        self.work = self.root / "edit"

    def texts(self):
        return {f"{x.parent.name}/{x.name}": x.read_text() for x in self.folder.glob("*/*")}

    def edit(self):
        patches.edit(patches.load_series(self.folder), self.pristine, self.work)

    def git(self, *args):
        identity = ("-c", "user.name=x", "-c", "user.email=x@localhost")
        subprocess.run(["git", "-C", self.work, *identity, *args], check=True)

    def test_byte_identical(self):
        before = self.texts()
        self.edit()
        patches.export(self.work, self.folder)
        self.assertEqual(self.texts(), before)

    def test_amended_commit(self):
        before = self.texts()
        self.edit()
        path = self.work / "a.txt"
        path.write_text(path.read_text().replace("six", "sechs"))
        self.git("commit", "-q", "-a", "--amend", "--no-edit")
        patches.export(self.work, self.folder)
        after = self.texts()
        self.assertEqual(after.pop("diets/three.patch"), before.pop("diets/three.patch").replace("six", "sechs"))
        self.assertEqual(after, before)
        self.assertEqual(self.lint(), [])

    def test_new_commit_on_a_further_file(self):
        self.edit()
        patches.take(self.pristine, self.work, ["c.txt"])
        path = self.work / "c.txt"
        path.write_text(path.read_text().replace("c.txt 9", "nine"))
        self.git("commit", "-q", "-a", "-m", DIET.format("Number four"))
        patches.export(self.work, self.folder)
        self.assertEqual(patches.series_names(self.folder)[-1], "diets/number-four.patch")
        self.assertEqual(self.lint(), [])

    def test_hook_that_becomes_a_diet(self):
        self.write({}, ["hooks/one.patch"])
        self.edit()
        self.git("commit", "-q", "--amend", "-m", DIET.format("one"))
        patches.export(self.work, self.folder)
        self.assertEqual(patches.series_names(self.folder), ["diets/one.patch"])
        self.assertFalse((self.folder / "hooks/one.patch").exists())

    def test_new_hook_behind_a_diet_is_refused(self):
        before = self.texts()
        self.edit()
        patches.take(self.pristine, self.work, ["c.txt"])
        path = self.work / "c.txt"
        path.write_text(path.read_text().replace("c.txt 9", "nine"))
        self.git("commit", "-q", "-a", "-m", HEADER.format("Number four"))
        with self.assertRaisesRegex(Problem, "Number four' is a hook and comes after a diet"):
            patches.export(self.work, self.folder)
        self.assertEqual(self.texts(), before)

    def test_dropped_commit(self):
        self.edit()
        self.git("reset", "-q", "--hard", "HEAD^")
        patches.export(self.work, self.folder)
        self.assertEqual(patches.series_names(self.folder), ["hooks/one.patch", "diets/two.patch"])
        self.assertFalse((self.folder / "diets/three.patch").exists())

    def test_uncommitted_change_is_refused(self):
        before = self.texts()
        self.edit()
        (self.work / "a.txt").write_text("x\n")
        with self.assertRaisesRegex(Problem, "commit first"):
            patches.export(self.work, self.folder)
        self.assertEqual(self.texts(), before)

    def test_new_file_is_refused(self):
        before = self.texts()
        self.edit()
        (self.work / "new.txt").write_text("x\n")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", HEADER.format("new"))
        with self.assertRaisesRegex(Problem, "adds or removes new.txt"):
            patches.export(self.work, self.folder)
        self.assertEqual(self.texts(), before)

    def test_folder_in_use_is_refused(self):
        self.work.mkdir()
        (self.work / "x").touch()
        with self.assertRaisesRegex(Problem, "not empty"):
            self.edit()


class Rebase(Case):
    """Onto a new version of upstream."""

    def setUp(self):
        super().setUp()
        self.new = self.root / "new"
        shutil.copytree(self.pristine, self.new)
        self.work = self.root / "rebase"

    def upstream_changes(self, name, old, new):
        path = self.new / name
        path.write_text(path.read_text().replace(old, new))

    def rebase(self):
        series = patches.load_series(self.folder)
        return patches.rebase(series, self.pristine, self.new, self.work)

    def git(self, *args):
        # As a user's own call, without this machine's configuration.
        env = {**os.environ, "GIT_EDITOR": "true", "GIT_CONFIG_GLOBAL": "/dev/null"}
        command = ["git", "-C", self.work, *args]
        done = subprocess.run(command, env=env, check=True, capture_output=True)
        return done.stdout.decode()

    def export(self):
        patches.export(self.work, self.folder)
        self.assertEqual(patches.lint(self.folder, self.new, False), [])

    def test_moved_lines(self):
        self.upstream_changes("a.txt", "a.txt 1\n", "new 1\nnew 2\na.txt 1\n")
        self.assertIn("offset", patches.lint(self.folder, self.new, False)[0])
        self.assertEqual(self.rebase(), "")
        self.export()
        self.assertIn("@@ -6,3 +6,3 @@", (self.folder / "hooks/one.patch").read_text())

    def test_changed_context_merges_where_patch_would_not_apply(self):
        for line in (4, 6):
            self.upstream_changes("a.txt", f"a.txt {line}\n", f"new {line}\n")
        self.assertIn("does not apply", patches.lint(self.folder, self.new, False)[0])
        words = self.rebase()
        self.assertIn("CONFLICT", words)
        self.resolve("a.txt", "five\n")
        self.assertIn(" new 4\n-a.txt 5\n+five\n new 6", self.text("hooks/one.patch"))

    def text(self, name):
        return (self.folder / name).read_text()

    def resolve(self, name, wanted):
        """As a user does: takes `wanted` for all that is between the marks, but
        keeps upstream's other lines."""
        path = self.work / name
        self.assertIn("<<<<<<<", path.read_text())
        self.assertIn(f"UU {name}", self.git("status", "--porcelain"))
        lines = (self.new / name).read_text().splitlines(keepends=True)
        lines[4] = wanted
        path.write_text("".join(lines))
        self.git("add", name)
        self.git("rebase", "--continue")
        self.export()

    def test_conflict_is_shown_as_git_shows_it(self):
        self.upstream_changes("a.txt", "a.txt 5\n", "changed upstream\n")
        words = self.rebase()
        self.assertIn("CONFLICT (content): Merge conflict in a.txt", words)
        self.assertIn("changed upstream\n=======\nfive\n", self.marked("a.txt"))
        self.resolve("a.txt", "five of the new\n")
        self.assertIn("-changed upstream\n+five of the new\n", self.text("hooks/one.patch"))
        self.assertEqual(patches.series_names(self.folder), ["hooks/one.patch", "diets/two.patch"])

    def marked(self, name):
        return (self.work / name).read_text()

    def test_export_in_the_middle_is_refused(self):
        self.upstream_changes("a.txt", "a.txt 5\n", "changed upstream\n")
        self.rebase()
        self.git("checkout", "--theirs", "a.txt")
        self.git("add", "a.txt")
        with self.assertRaisesRegex(Problem, "a rebase is under way"):
            patches.export(self.work, self.folder)
        self.assertEqual(patches.series_names(self.folder), ["hooks/one.patch", "diets/two.patch"])

    def test_patch_that_upstream_has_taken_is_dropped(self):
        self.upstream_changes("a.txt", "a.txt 5\n", "five\n")
        self.assertEqual(self.rebase(), "")
        self.export()
        self.assertEqual(patches.series_names(self.folder), ["diets/two.patch"])
        self.assertFalse((self.folder / "hooks/one.patch").exists())

    def test_files_that_the_new_source_lacks_are_one_error(self):
        (self.new / "a.txt").unlink()
        shutil.rmtree(self.new / "sub")
        with self.assertRaises(Problem) as caught:
            self.rebase()
        words = str(caught.exception)
        self.assertIn("lacks 2 files", words)
        self.assertIn("a.txt (hooks/one.patch)\n  sub/b.txt (diets/two.patch)", words)
        self.assertFalse(self.work.exists())

    def test_no_new_source(self):
        shutil.rmtree(self.new)
        with self.assertRaisesRegex(Problem, "is no folder"):
            self.rebase()


class Tree(Case):
    """build/<preset>/mysql"""

    def setUp(self):
        super().setUp()
        for name in ("plugin", "mysql-test/suite", "include"):
            (self.pristine / name).mkdir(parents=True)
        self.tree = self.root / "build" / "mysql"
        self.make_file("mysys/memdiag/own.h")
        self.enterContext(mock.patch.object(tree, "ROOT", self.root))

    def make(self, wanted=patches.SERIES):
        tree.materialise(self.pristine, self.tree, wanted)

    def test_patched_and_pristine_untouched(self):
        self.make()
        self.assertIn("five\n", (self.tree / "a.txt").read_text())
        self.assertIn("a.txt 5\n", (self.pristine / "a.txt").read_text())
        self.assertTrue((self.tree / "c.txt").samefile(self.pristine / "c.txt"))

    def test_stock_is_pristine(self):
        self.make(())
        self.assertTrue((self.tree / "a.txt").samefile(self.pristine / "a.txt"))
        self.assertFalse((self.tree / "mysys/memdiag").exists())

    def test_only_what_changes_is_written(self):
        self.make()
        before = {x: (self.tree / x).stat().st_mtime_ns for x in ("a.txt", "sub/b.txt")}
        self.make()
        self.write({"diets/two.patch": self.diet("two", "sub/b.txt", 7, "SEVEN")})
        self.make()
        after = {x: (self.tree / x).stat().st_mtime_ns for x in before}
        self.assertEqual(before["a.txt"], after["a.txt"])
        self.assertIn("SEVEN\n", (self.tree / "sub/b.txt").read_text())

    def test_dropped_patch_gives_the_pristine_text_with_a_new_time(self):
        self.make()
        patched_at = (self.tree / "sub/b.txt").stat().st_mtime_ns
        self.write({}, ["hooks/one.patch"])
        self.make()
        path = self.tree / "sub/b.txt"
        self.assertEqual(path.read_text(), (self.pristine / "sub/b.txt").read_text())
        self.assertGreater(path.stat().st_mtime_ns, patched_at)

    def test_without_diets(self):
        for _ in range(2):
            self.make(("hooks",))
            self.assertIn("five\n", (self.tree / "a.txt").read_text())
            self.assertNotIn("seven\n", (self.tree / "sub/b.txt").read_text())
            self.assertTrue((self.tree / "mysys/memdiag/own.h").is_file())
            self.make()
            self.assertIn("seven\n", (self.tree / "sub/b.txt").read_text())

    def test_bad_patch_changes_nothing(self):
        self.make()
        self.write({"hooks/one.patch": self.patch("one", "a.txt", 5, "x").replace("txt 4", "txt 3")})
        with self.assertRaisesRegex(Problem, "does not apply"):
            self.make()
        self.assertIn("five\n", (self.tree / "a.txt").read_text())

    def test_another_source_makes_the_tree_anew(self):
        self.make()
        other = self.root / "other"
        self.pristine.rename(other)
        (other / "c.txt").write_text("new\n")
        tree.materialise(other, self.tree, patches.SERIES)
        self.assertEqual((self.tree / "c.txt").read_text(), "new\n")

    def test_a_damaged_state_makes_the_tree_anew(self):
        self.make()
        (self.tree / "c.txt").unlink()
        state = self.tree.with_name(f"{self.tree.name}.state.json")
        state.write_text(state.read_text()[:-3])
        self.make()
        self.assertTrue((self.tree / "c.txt").is_file())

    def test_own_headers(self):
        self.make()
        self.assertTrue((self.tree / "mysys/memdiag/own.h").is_file())
        (self.root / "mysys/memdiag/own.h").rename(self.root / "mysys/memdiag/other.h")
        self.make()
        names = [x.name for x in (self.tree / "mysys/memdiag").iterdir()]
        self.assertEqual(names, ["other.h"])

    def test_changed_header(self):
        self.make()
        copy = self.tree / "mysys/memdiag/own.h"
        before = copy.stat().st_mtime_ns
        tree.copy_headers(self.tree, self.root)
        self.assertEqual(copy.stat().st_mtime_ns, before)
        (self.root / "mysys/memdiag/own.h").write_text("new\n")
        tree.copy_headers(self.tree, self.root)
        self.assertEqual(copy.read_text(), "new\n")

    def test_headers_keep_their_folders(self):
        inner = self.root / "mysys/memdiag/pools"
        inner.mkdir()
        (inner / "own.h").write_text("another\n")
        self.make()
        self.assertEqual((self.tree / "mysys/memdiag/own.h").read_text(), "")
        copy = self.tree / "mysys/memdiag/pools/own.h"
        self.assertEqual(copy.read_text(), "another\n")
