"""The copy of the checkout in which mutants are made, and the tests of the layer and of the client that meet them."""

import ast
import contextlib
import hashlib
import os
import random
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten
from typing import Any

from harness import signals
from harness.checkout import own_files
from harness.common import ROOT, say
from harness.problem import Problem
from harness.programs import captured
from proof.mutations import Place

TREE = ROOT / "build" / "mutants"
BUILD = TREE / "build" / "unit"
TEMPORARY = TREE / "build" / "temporary"
LONGEST_BUILD = 3600.0
PYTHON = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable
# By the program: "of", the digest of what was timed, and "tests", the seconds of each.
Timed = dict[str, dict[str, Any]]
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
REFERENCE = "memdiag_reference"
REFERENCES = {
    "--check": "docs/reference.md",
    "--check-holders": "client/memdiag/judge/holders.json",
    "--check-ceiling": "client/memdiag/judge/ceiling.json",
}


@dataclass(frozen=True)
class Mutant:
    path: str
    number: int  # of the line
    line: str  # without its indentation
    change: str
    text: str  # of the whole file

    @property
    def name(self) -> str:
        return f"{self.path}:{self.number}:{self.change}"


def mutant(path: str, text: str, place: Place, seed: str) -> Mutant:
    other = random.Random(f"{seed}/{path}/{place.begin}/{place.end}").choice(place.others)
    before, number = text[: place.begin].rsplit("\n", 1)[-1], text.count("\n", 0, place.begin) + 1
    line = before + text[place.begin :].split("\n", 1)[0]
    words = shorten(f"{len(before.lstrip())}: {text[place.begin : place.end]} -> {other}", 100)
    return Mutant(path, number, line.strip(), words, text[: place.begin] + other + text[place.end :])


def tracked() -> list[str]:
    return [str(path.relative_to(ROOT)) for path in own_files(ROOT)]


def copy() -> None:
    """Makes the copy that of the checkout. A file that is the same is not touched."""
    wanted = tracked()
    for path in wanted:
        new, old = (ROOT / path).read_bytes(), TREE / path
        if not old.is_file() or old.read_bytes() != new:
            old.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, old)
    for folder in ("components", "mysys", "plugin", "sql", "storage", "client"):
        for old in (TREE / folder).rglob("*.*"):
            if old.is_file() and str(old.relative_to(TREE)) not in wanted:
                old.unlink()


@contextlib.contextmanager
def changed(one: Mutant) -> Iterator[None]:
    file = TREE / one.path
    before = file.read_text()
    TEMPORARY.mkdir(parents=True, exist_ok=True)
    file.write_text(one.text)
    try:
        yield
    finally:
        file.write_text(before)
        # A test that was killed has not cleaned up.
        shutil.rmtree(TEMPORARY, ignore_errors=True)


class Layer:
    """Our C++ code as the unit tests compile it."""

    def __init__(self, far: bool, timed: Timed) -> None:
        self._far, self._timed = far, timed
        arguments = ["-S", TREE, "-B", BUILD, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=", "-DMEMDIAG_FLAVOUR=unit"]
        if status(["cmake", *arguments], LONGEST_BUILD, stdout=subprocess.DEVNULL) != 0 or build([]) != 0:
            raise Problem(f"the unit tests could not be built in {BUILD}: see above")
        self.included: dict[str, set[str]] = {}  # by the object
        for line in captured(["ninja", "-t", "deps"], cwd=BUILD).stdout.splitlines():
            if line[:1].strip():
                files = self.included.setdefault(line.split(": #deps")[0], set())
            elif line.strip():
                files.add(os.path.relpath(BUILD / line.strip(), TREE))
        self._objects = {  # of test programs, by the program
            match[1]: each
            for each in self.included
            if (match := re.fullmatch(rf"CMakeFiles/(\w+_test|{REFERENCE})\.dir/.*", each))
        }
        for program in sorted(self._objects):
            commands = {test: self._command(program, test) for test in self._tests(program)}
            executable = (BUILD / "unittest" / program).read_bytes()
            time_tests(timed, program, commands, BUILD, hashlib.sha256(executable).hexdigest())

    def reached(self, path: str) -> bool:
        return any(path in files for files in self.included.values())

    def _command(self, program: str, test: str) -> list[str]:
        file = str(BUILD / "unittest" / program)
        return [file, test, str(TREE / REFERENCES[test])] if program == REFERENCE else [file, f"--gtest_filter={test}"]

    def _tests(self, program: str) -> Iterator[str]:
        if program == REFERENCE:
            yield from REFERENCES
            return
        suite = ""
        for line in captured([BUILD / "unittest" / program, "--gtest_list_tests"]).stdout.splitlines():
            word = line.split("#")[0].strip()
            if not line.startswith(" "):
                suite = word
            elif "DISABLED_" not in suite + word:
                yield suite + word

    def near(self, path: str) -> list[str]:
        """The programs that would notice, the nearest first."""
        file, ranks = Path(path), {}
        own = {path, str(file.with_suffix(".h"))}
        users = {f"{Path(each).name.split('.')[0]}_test" for each, files in self.included.items() if own & files}
        for program, each in self._objects.items():
            # mysys/memdiag/unittest/pools/pools_test.cc is in the room mysys/memdiag/pools.
            room = re.sub(r"^CMakeFiles/\w+\.dir/|/unittest(?=/)", "", each).rsplit("/", 1)[0]
            likeness = [program == f"{file.stem}_test", room == str(file.parent), bool(own & self.included[each])]
            likeness.append(program in users)
            if any(likeness) or self._far:
                ranks[program] = ([not one for one in likeness], sum(self._timed[program]["tests"].values()))
        return sorted(ranks, key=ranks.__getitem__) or sorted(
            self._objects, key=lambda program: sum(self._timed[program]["tests"].values())
        )

    def try_one(self, one: Mutant) -> tuple[str, str]:
        near = self.near(one.path)
        folders = tuple(f"CMakeFiles/{program}.dir/" for program in ("memdiag_unit", *near))
        objects = [each for each, files in self.included.items() if one.path in files and each.startswith(folders)]
        # Ninja makes anew what another mutant has left.
        build(objects)
        before = codes(objects)
        # The compiler cache keeps no mutant.
        quiet = {"env": {**os.environ, "CCACHE_READONLY": "1"}, **QUIET}
        with changed(one):
            if build(objects, **quiet) != 0:
                return "not compiled", ""
            if codes(objects) == before:
                return "same code", ""
            for program in near:
                if build([program], **quiet) != 0:
                    return "not compiled", program
                for test, seconds in self._timed[program]["tests"].items():
                    if fails(self._command(program, test), 10 + 8 * seconds, BUILD):
                        return "killed", test
        return "survived", ", ".join(near[:8]) + (f" and {len(near) - 8} more" if len(near) > 8 else "")


class Client:
    """The program memdiag."""

    def __init__(self, timed: Timed) -> None:
        self._folder, self._timed = TREE / "client", timed
        self._uses: dict[str, set[str]] = {}
        for file in (*self._folder.glob("memdiag/**/*.py"), *self._folder.glob("tests/*.py")):
            self._uses[module(file.relative_to(self._folder))] = imported(file.read_text())
        self._tests = sorted(name for name in self._uses if name.startswith("tests.test_"))
        files = [path for path in sorted(self._folder.rglob("*")) if path.is_file() and path.suffix != ".pyc"]
        all_of_it = hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()
        for name in self._tests:
            time_tests(timed, name, {name: self._command(name)}, self._folder, all_of_it)

    def _command(self, name: str) -> list[str]:
        # Bytecode is found by the second and the size of its source, which two mutants may share.
        return ["env", "PYTHONDONTWRITEBYTECODE=1", PYTHON, "-m", "unittest", "-f", name]

    def near(self, path: str) -> list[str]:
        """The tests that import it, those first that do so in the fewest steps."""
        wanted, steps = module(Path(path).relative_to("client")), {}
        for name in self._tests:
            met, newest, count = {name}, {name}, 0
            while newest and wanted not in newest:
                newest = {each for one in newest for each in self._uses.get(one, ())} - met
                met |= newest
                count += 1
            if newest:
                steps[name] = count, sum(self._timed[name]["tests"].values())
        return sorted(steps, key=steps.__getitem__) or self._tests

    def try_one(self, one: Mutant) -> tuple[str, str]:
        try:
            compile(one.text, one.path, "exec")
        except SyntaxError:
            return "not compiled", ""
        with changed(one):
            near = self.near(one.path)
            for name in near:
                for seconds in self._timed[name]["tests"].values():
                    if fails(self._command(name), 20 + 4 * seconds, self._folder):
                        return "killed", name
        return "survived", f"{len(near)} modules of tests"


def _limited() -> None:
    """A mutant may ask for all memory, or write without end."""
    Path("/proc/self/oom_score_adj").write_text("1000")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 33, 1 << 33))


def status(command: Sequence[str | Path], seconds: float, **options) -> int | None:
    """Runs a program in a session of its own, and ends all that it has left. @return None: it did not end by itself"""
    with signals.held():
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=_limited, **options
        )
    try:
        descriptor = os.pidfd_open(process.pid)
        try:
            has_ended = bool(select.select([descriptor], [], [], seconds)[0])
        finally:
            os.close(descriptor)
    finally:
        # ninja gives each compiler a group of its own, and a late object would be taken for that of the restored file.
        while members := _of_session(process.pid):
            for each in members:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(each, signal.SIGKILL)
            time.sleep(0.01)
        code = process.wait()
    return code if has_ended else None


def _of_session(leader: int) -> list[int]:
    """Its processes that run. The leader keeps the number of the session until it is waited for."""
    found = []
    for each in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, _, session = each.read_text().rsplit(")", 1)[1].split()[:4]
            if int(session) == leader and state != "Z":
                found.append(int(each.parent.name))
    return found


def build(targets: Sequence[str], **options) -> int | None:
    return status(["ninja", *targets], LONGEST_BUILD, cwd=BUILD, **{"stdout": subprocess.DEVNULL, **options})


def codes(objects: Sequence[str]) -> list[bytes]:
    """The objects but for lines and the compiler's notes."""
    found = []
    for each in objects:
        bare = BUILD / "bare.o"
        subprocess.run(["objcopy", "--strip-debug", BUILD / each, bare], check=True)
        found.append(hashlib.sha256(bare.read_bytes()).digest())
    return found


def module(file: Path) -> str:
    return ".".join(file.with_suffix("").parts).removesuffix(".__init__")


def imported(text: str) -> set[str]:
    """The modules that a module may import, and their packages."""
    names = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name.rsplit(".", up)[0] for name in names for up in range(name.count(".") + 1)}


def time_tests(timed: Timed, program: str, commands: dict[str, list[str]], cwd: Path, of: str) -> None:
    """Notes how long each test of a program takes. One that fails without a mutant says nothing, and is left out. `of`: the
    digest of what they run; while it is the same, they are not run again."""
    if timed.get(program, {}).get("of") == of:
        return
    say(f"-- {program}: {len(commands)} tests without a mutant")
    taken = {}
    for test, command in commands.items():
        began = time.monotonic()
        if status(command, 600, cwd=cwd, **QUIET) == 0:
            taken[test] = time.monotonic() - began
        else:
            say(f"-- {test} fails without a mutant, and is left out")
    timed[program] = {"of": of, "tests": taken}


def fails(command: Sequence[str], seconds: float, cwd: Path) -> bool:
    """True: twice, as a busy machine may be the reason of one failure."""
    for _ in range(2):
        code = status(command, seconds, cwd=cwd, env={**os.environ, "TMPDIR": str(TEMPORARY)}, **QUIET)
        if code == 0:
            return False
        if code is None:
            break
    return True
