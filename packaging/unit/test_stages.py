"""The stages of packaging/build: what is done, what is done again, and its arguments."""

import ast
import inspect
import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from unittest import TestCase, mock

from make import builds, stages
from make.stages import Stage, all_inputs, number_done, perform
from tests import smoke

from bench import pgo_train
from bench.workloads import WORKLOADS
from harness.checkout import own_files
from harness.digest import digest
from harness.problem import Problem
from harness.programs import captured
from harness.scratch import Scratch
from unit import ROOT


class Case(Scratch):
    """Three stages; each writes its name into a file."""

    def setUp(self):
        super().setUp()
        self.inputs = {"one": "1", "two": "1", "three": "1"}
        self.ran: list[str] = []
        self.said: list[str] = []
        self.stages = [self.stage(name) for name in self.inputs]
        self.enterContext(mock.patch.object(stages, "say", self.said.append))

    def product(self, name: str) -> Path:
        return self.root / name / "product"

    def work(self, name: str) -> None:
        self.ran.append(name)
        self.make_file(self.product(name), name)

    def stage(self, name: str) -> Stage:
        return Stage(
            name,
            40,
            lambda: {f"input of {name}": self.inputs[name]},
            lambda: [self.product(name)],
            self.root / name / "stage.json",
            lambda: self.work(name),
        )

    def run_again(self) -> list[str]:
        self.ran.clear()
        self.said.clear()
        perform(self.stages, "abc")
        return self.ran


class Resuming(Case):
    def test_all_run_once(self):
        self.assertEqual(self.run_again(), ["one", "two", "three"])
        self.assertIn("stage 1 of 3, one: about 40 min, 2 h 0 min to the end", self.said[0])
        self.assertEqual(self.run_again(), [])
        self.assertEqual(self.said[0], "== stage 1 of 3, one: done before")

    def test_a_stamp_names_the_inputs_and_the_commit(self):
        self.run_again()
        stamp = json.loads((self.root / "two/stage.json").read_text())
        self.assertEqual(stamp["inputs"], {"input of one": "1", "input of two": "1"})
        self.assertEqual((stamp["stage"], stamp["commit"]), ("two", "abc"))

    def test_a_failure_leaves_what_was_done(self):
        def fail() -> None:
            raise Problem("no")

        whole = self.stages
        self.stages = [whole[0], replace(whole[1], work=fail), whole[2]]
        with self.assertRaises(Problem):
            self.run_again()
        self.assertFalse(whole[1].stamp.exists())
        self.stages = whole
        self.assertEqual(self.run_again(), ["two", "three"])

    def test_a_changed_input_redoes_its_stage_and_all_that_follow(self):
        for name, redone in (("one", ["one", "two", "three"]), ("two", ["two", "three"]), ("three", ["three"])):
            self.run_again()
            self.inputs[name] = "2"
            self.assertEqual(self.run_again(), redone)
            self.assertIn(f"changed: input of {name}", " ".join(self.said))
            self.inputs[name] = "1"

    def test_products_that_no_stage_needs_any_more_may_go(self):
        self.run_again()
        self.product("one").unlink()
        self.product("two").unlink()
        self.assertEqual(self.run_again(), [])

    def test_a_product_that_another_run_made_anew_is_not_known(self):
        self.run_again()
        os.utime(self.product("three"), (1, 1))
        self.assertEqual(self.run_again(), ["three"])
        self.assertIn("its product is another now", " ".join(self.said))

    def test_a_damaged_stamp_is_none(self):
        self.run_again()
        for text in ("", "{", "[]", "{}"):
            (self.root / "three/stage.json").write_text(text)
            self.assertEqual(self.run_again(), ["three"])

    def test_going_back_to_earlier_inputs_after_an_interruption(self):
        self.run_again()
        self.inputs["one"] = "2"
        perform(self.stages[:2], "abc")
        self.inputs["one"] = "1"
        self.assertEqual(self.run_again(), [])

    def test_what_changes_meanwhile(self):
        def edit() -> None:
            self.work("one")
            self.inputs["one"] = "2"

        self.stages = [replace(self.stages[0], work=edit)]
        with self.assertRaisesRegex(Problem, "input of one changed while one ran"):
            self.run_again()
        self.assertEqual(number_done(self.stages, all_inputs(self.stages)), 0)

    def test_a_stage_that_makes_nothing(self):
        with mock.patch.object(self, "work"), self.assertRaisesRegex(Problem, "did not make"):
            self.run_again()


class Digests(Scratch):
    def test_names_and_contents_count(self):
        def now() -> str:
            return digest(self.root, ["**/*.cc"], ["unittest"])

        seen = [now()]
        for name, text in (("a/x.cc", "1"), ("a/x.cc", "2"), ("b/x.cc", "2")):
            self.make_file(name, text)
            seen.append(now())
        (self.root / "a/x.cc").unlink()
        seen.append(now())
        self.assertEqual(len(set(seen)), len(seen))
        for name in ("a/x.h", "unittest/x.cc", "__pycache__/x.cc"):
            self.make_file(name, "other")
            self.assertEqual(now(), seen[-1], name)


class Builds(TestCase):
    def last(self) -> Stage:
        return builds.packages(ROOT / "out", ["deb"], "c 1", list, lambda: None)

    def test_every_pattern_names_something(self):
        for pattern in (*builds.SOURCES, *builds.PATCHES, *builds.BUILD_FILES, *builds.TRAINING, *builds.PACKAGED):
            if not pattern.endswith(("*.c", "CMakeLists.txt")):
                self.assertTrue(list(ROOT.glob(pattern)), pattern)

    def test_every_file_that_is_compiled_counts(self):
        other = {"bench", "proof", "tests", "unittest"}
        compiled = {path for path in own_files(ROOT) if path.suffix in (".c", ".cc", ".h")}
        known = {path for pattern in (*builds.SOURCES, *builds.BUILD_FILES) for path in ROOT.glob(pattern)}
        unknown = {path for path in compiled - known if not other & set(path.relative_to(ROOT).parts)}
        self.assertEqual(unknown, set())

    def test_every_folder_of_packaging_counts(self):
        """But not what runs on packages that are made, and not the container's image, which takes them."""
        other = {ROOT / "packaging" / name for name in ("container", "tests", "unit")}
        folders = {path.parent for path in own_files(ROOT) if ROOT / "packaging" in path.parents}
        known = {path.parent for pattern in builds.PACKAGED for path in ROOT.glob(pattern)}
        unknown = {folder for folder in folders - known if not other & {folder, *folder.parents}}
        self.assertEqual(unknown, set())

    def test_the_training_is_known(self):
        for name in pgo_train.DEFAULT:
            file = Path(inspect.getfile(WORKLOADS[name])).relative_to(ROOT)
            self.assertIn(str(file), builds.TRAINING)
        for name in builds.TRAINING:
            for node in ast.walk(ast.parse((ROOT / name).read_text())):
                if isinstance(node, ast.ImportFrom):
                    used = f"{str(node.module).replace('.', '/')}.py"
                    if used.startswith("bench/workloads/"):
                        self.assertIn(used, builds.TRAINING)

    def test_only_its_own_options_count(self):
        presets = [
            {"name": "base", "generator": "Ninja"},
            {"name": "optimised", "displayName": "x", "a": "1"},
            {"name": "debug", "a": "1"},
        ]

        def of(**changes: str) -> str:
            changed = [{**one, **changes} if one["name"] == changes.get("name") else one for one in presets]
            text = json.dumps({"configurePresets": changed})
            return builds.options_of("optimised", text)

        self.assertEqual(of(), of(name="debug", a="2"))
        self.assertEqual(of(), of(name="optimised", displayName="y"))
        self.assertNotEqual(of(), of(name="optimised", a="2"))
        self.assertNotEqual(of(), of(name="base", generator="x"))

    def test_the_stages(self):
        last = self.last()
        names = [stage.name for stage in builds.stages(False, last)]
        self.assertEqual(names, ["server that counts", "training", "optimised build", "packages"])
        plain = builds.stages(True, last)
        self.assertEqual([stage.name for stage in plain], ["build", "packages"])
        inputs = all_inputs(plain)[-1]
        for name in ("sources", "patches", "options of dev", "commit", "compilers"):
            self.assertIn(name, inputs)
        self.assertNotIn("workloads", inputs)

    def test_the_stages_call_these_programs(self):
        with mock.patch.object(builds, "run_step") as run:
            for stage in builds.stages(False, self.last()):
                stage.work()
        called = [" ".join(map(str, call.args[0])) for call in run.call_args_list]
        update = "cmake --build --preset {} --target upstream"
        self.assertEqual(
            called,
            [
                "cmake --preset profile",
                update.format("profile"),
                f"{sys.executable} bench/pgo_train.py",
                "cmake --preset optimised",
                update.format("optimised"),
            ],
        )

    def test_the_environment_counts(self):
        with mock.patch.dict(os.environ, {"CXX": "g++-13"}, clear=True):
            self.assertEqual(builds.environment(builds.ENVIRONMENT), "CXX=g++-13")
            self.assertEqual(builds.compiler("CXX", "c++"), "")

    def test_a_plain_build_needs_no_workload(self):
        self.assertNotIn("sysbench", builds.needed_programs(True))
        self.assertIn("sysbench", builds.needed_programs(False))
        self.assertEqual(builds.missing_libraries(True), [])


class Arguments(Scratch):
    def refused(self, *words: str, **env: str) -> tuple[int, str]:
        done = captured([sys.executable, ROOT / "packaging/build", *words], env={**os.environ, **env})
        self.assertEqual(done.stdout, "")
        return done.returncode, done.stderr

    def test_bad_ones_are_one_error(self):
        for words, said in (
            (["--plain", "--preset", "dev"], "not allowed with argument"),
            (["zip"], "there is no kind 'zip'; there are: deb, rpm, tar, tree"),
            (["--fast"], "unrecognized arguments: --fast"),
        ):
            status, error = self.refused(*words)
            self.assertEqual(status, 2, words)
            self.assertIn(said, error)

    def test_what_is_missing_is_named_before_anything_begins(self):
        for words, named in (([], True), (["--plain"], False)):
            status, error = self.refused(*words, PATH=str(self.root))
            self.assertEqual(status, 1)
            self.assertIn("apt-get install", error)
            self.assertIn("ninja-build", error)
            self.assertEqual("sysbench" in error, named)


INTERRUPTED = """
import sys
from pathlib import Path
root, folder = map(Path, sys.argv[1:3])
sys.path[:0] = [str(root), str(root / "packaging")]
from harness.problem import run_main
from make import product
from tests import smoke
smoke.ROOT = folder
run_main("caller", lambda: {call})
"""
# It needs a moment for its end.
PROGRAM = """trap 'sleep 0.5; : >{0}/ended; exit' TERM
: >{0}/begun
while :; do sleep 0.05; done
"""


class Interruptions(Scratch):
    """The caller waits until the program that it has started has ended."""

    def check(self, call: str) -> None:
        command = [sys.executable, "-c", INTERRUPTED.format(call=call), ROOT, self.root]
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + 120
            while not (self.root / "begun").exists() and time.monotonic() < deadline:
                time.sleep(0.02)
            process.terminate()
            self.assertEqual(process.wait(120), 130)
        finally:
            process.kill()
        self.assertTrue((self.root / "ended").exists())

    def test_of_the_test_that_makes_packages(self):
        (self.root / "packaging").mkdir()
        script = PROGRAM.format(self.root)
        # smoke.build() calls it by this Python.
        (self.root / "packaging/build").write_text(f"import os\nos.execvp('sh', ['sh', '-c', {script!r}])\n")
        self.check("smoke.build('dev', folder / 'out')")

    def test_of_a_program_with_a_log(self):
        script = self.root / "script"
        script.write_text(f"({PROGRAM.format(self.root)}) & wait\n")
        self.check(f"product.logged(['sh', '{script}'], folder / 'log', 'failed')")


class Plain(TestCase):
    """Tests and a rebuilt source RPM must not begin a training of hours."""

    def test_the_tests_name_their_preset(self):
        with mock.patch.object(smoke.Programs, "run") as run:
            run.return_value.returncode = 0
            smoke.build("dev", ROOT / "out")
        command = run.call_args.args[0]
        self.assertEqual(command[command.index("--preset") + 1], "dev")

    def test_the_source_rpm_packages_preset_dev(self):
        loader = SourceFileLoader("stage", str(ROOT / "packaging/rpm/stage"))
        stage = module_from_spec(spec_from_loader("stage", loader))
        with mock.patch.object(sys, "path", [*sys.path]), mock.patch.object(sys, "dont_write_bytecode", True):
            loader.exec_module(stage)
        with (
            mock.patch.object(sys, "argv", ["stage", "root"]),
            mock.patch.object(stage.subprocess, "run", side_effect=Problem) as run,
            self.assertRaises(Problem),
        ):
            stage.main()
        self.assertEqual(run.call_args.args[0][1:], ["--preset", "dev", "tree"])
