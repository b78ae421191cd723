#!/usr/bin/env python3
"""Checks that rooms use each other in one direction only.

  tools/layers.py               includes and Python imports
  tools/layers.py --build DIR   and the symbols that the objects of a build need

tools/layers.toml says which room may use which. A .h file never includes its .cc file, so
includes alone do not show every call: the symbols that an object needs and another one
defines are read with nm. Fails where a room uses a room that it may not use, where a
program uses another one, and where rooms, or the files of one room, use each other in a
circle. A .h and its .cc are one file here. With --build it also fails for a permission that no file uses.
"""

import argparse
import ast
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from harness.checkout import own_files
from harness.common import ROOT, say
from harness.problem import Problem, run_main
from harness.programs import captured

TABLE = ROOT / "tools/layers.toml"
SERVER_FOLDERS = ("mysql", "sql", "storage", "include")


@dataclass(frozen=True)
class Arrow:
    """One file uses another; both are paths from the root of the checkout."""

    user: str
    used: str
    how: str


@dataclass(frozen=True)
class Layers:
    """tools/layers.toml"""

    rooms: dict[str, frozenset[str]]  # room: the rooms that it may use
    # room: its permissions as the file has them, such as "folder/*", and the rooms that each stands for
    permissions: dict[str, dict[str, frozenset[str]]]
    server: frozenset[str]
    tests: frozenset[str]
    programs: frozenset[str]  # rooms whose files may not use each other
    only: dict[str, list[str]]  # header: the rooms that may include it

    def room(self, path: str) -> str | None:
        found = (name for name in (*self.rooms, *self.tests) if path == name or path.startswith(f"{name}/"))
        return max(found, key=len, default=None)

    def is_test(self, path: str) -> bool:
        return self.room(path) in self.tests


def load(text: str) -> Layers:
    table = tomllib.loads(text)
    rooms: dict[str, frozenset[str]] = {}
    permissions: dict[str, dict[str, frozenset[str]]] = {}
    for room, uses in table["rooms"].items():
        allowed: set[str] = set()
        permissions[room] = {}
        for use in uses:
            if use == "*":
                names = set(rooms)
            elif use.endswith("/*"):
                names = {name for name in rooms if name.startswith(use[:-1])}
            else:
                names = {use} & set(rooms)
            if not names:
                raise Problem(f"layers.toml: {room} uses {use}, but no room above it has that name")
            permissions[room][use] = frozenset(names)
            allowed |= names
        rooms[room] = frozenset(allowed)
    tests, server, programs = (frozenset(table[name]) for name in ("tests", "server", "programs"))
    only = table["only"]
    for name in server.union(programs, *only.values()) - set(rooms):
        raise Problem(f"layers.toml names {name}, which is no room")
    return Layers(rooms, permissions, server, tests, programs, only)


# --- includes and imports ------------------------------------------------------------


def includes(path: str, text: str) -> list[tuple[int, str, str]]:
    """(line, opening mark, header) of each include."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if match := re.match(r'\s*#\s*include\s*(["<])([^">]+)', line):
            found.append((number, match[1], match[2]))
    return found


def resolve_include(user: str, header: str, files: set[str]) -> str | None:
    beside = str(Path(user).parent / header)
    return next((name for name in (header, beside) if name in files), None)


def is_server_header(mark: str, header: str) -> bool:
    return mark == '"' or header.split("/")[0] in SERVER_FOLDERS


def imports(user: str, text: str, files: set[str]) -> Iterable[tuple[int, str]]:
    """(line, file) of each module of ours that is imported, anywhere in the file."""
    # A program of packaging/ has that folder in sys.path as well.
    starts = ("", user.split("/")[0] + "/")

    def module(name: str) -> str | None:
        base = name.replace(".", "/")
        names = (f"{s}{base}{e}" for s in starts for e in (".py", "/__init__.py"))
        return next((path for path in names if path in files), None)

    for node in ast.walk(ast.parse(text, user)):
        wanted: list[str] = []
        if isinstance(node, ast.Import):
            wanted = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            package = node.module or ""
            if node.level:
                parents = Path(user).parts[: -node.level]
                package = ".".join([*parents, *package.split(".")]).strip(".")
            for alias in node.names:
                inside = f"{package}.{alias.name}"
                wanted.append(inside if module(inside) else package)
        for name in wanted:
            if (used := module(name)) and used != user:
                yield node.lineno, used


def read_sources(layers: Layers, root: Path, files: set[str]):
    """The arrows of includes and imports, one for each pair of files; and sentences about
    headers."""
    arrows: dict[tuple[str, str], Arrow] = {}
    problems = []

    def add(user: str, used: str, how: str) -> None:
        arrows.setdefault((user, used), Arrow(user, used, how))

    for user in sorted(files):
        text = (root / user).read_text()
        room = layers.room(user)
        if is_python(user, text):
            for line, used in imports(user, text, files):
                add(user, used, f"imports it in line {line}")
            continue
        for line, mark, header in includes(user, text):
            if used := resolve_include(user, header, files):
                add(user, used, f"includes it in line {line}")
            elif room in layers.tests:
                pass
            elif rooms := layers.only.get(header):
                if room not in rooms:
                    problems.append(f"{user}:{line} includes {header}, which only {' and '.join(rooms)} may include")
            elif is_server_header(mark, header) and room not in layers.server:
                problems.append(f"{user}:{line} includes {header}: {room} may not include headers of the server")
    return list(arrows.values()), problems


def is_python(path: str, text: str) -> bool:
    return path.endswith(".py") or bool(re.match(r"#!.*python", text))


def code_files(root: Path) -> set[str]:
    """The C++, C and Python files of the checkout."""
    found = set()
    for path in own_files(root):
        name = str(path.relative_to(root))
        if path.suffix in (".h", ".cc", ".c", ".py") or not path.suffix and re.match(rb"#!.*python", path.read_bytes()):
            found.add(name)
    return found


# --- symbols ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Symbols:
    """The demangled symbols that the objects of one source define and need."""

    strong: frozenset[str]
    weak: frozenset[str]
    needs: frozenset[str]


def parse_nm(text: str) -> Symbols:
    """Parses the output of nm -C. A lower-case letter marks a local symbol, or a weak one."""
    strong, weak, needs = set(), set(), set()
    for line in text.splitlines():
        if match := re.match(r"[0-9a-f ]{16} (\S) (.*)$", line):
            kind, name = match.groups()
            if kind in "Uwv":
                needs.add(name)
            elif kind in "WVu":
                weak.add(name)
            elif kind in "TDBRCi":
                strong.add(name)
    return Symbols(frozenset(strong), frozenset(weak), frozenset(needs))


def objects_of(build: Path, files: set[str], root: Path) -> dict[Path, str]:
    """{object: source} of our sources, as the build's ninja files say. A build of a
    server compiles upstream's files, and some of ours, in bld/."""
    found = {}
    names = {Path(name).name for name in files if name.endswith(".cc")}
    for folder in (build, build / "bld"):
        ninja = folder / "build.ninja"
        if not ninja.is_file():
            continue
        pattern = r"^build (\S+\.o): CXX_COMPILER__\S+ (\S+)"
        for object_, source in re.findall(pattern, ninja.read_text(), re.MULTILINE):
            if Path(source).name not in names:  # saves looking at 10,000 paths
                continue
            try:
                name = str(Path(source).resolve().relative_to(root.resolve()))
            except ValueError:
                continue
            if name in files:
                found[folder / object_] = name
    return found


def read_objects(layers: Layers, build: Path, files: set[str], root: Path) -> dict[str, Symbols]:
    objects = objects_of(build, files, root)
    if not objects:
        raise Problem(f"{build} compiles nothing of ours; name a build folder")
    result: dict[str, Symbols] = {}
    for path, source in objects.items():
        # Test programs define symbols of the server themselves.
        if layers.is_test(source):
            continue
        if not path.is_file() or path.stat().st_mtime < (root / source).stat().st_mtime:
            raise Problem(f"the object of {source} is missing or old; build {build}")
        done = captured(["nm", "-C", path])
        if done.returncode or "plugin needed" in done.stderr:
            raise Problem(f"nm {path}: {done.stderr.strip()}")
        symbols = parse_nm(done.stdout)
        if known := result.get(source):
            symbols = Symbols(known.strong | symbols.strong, known.weak | symbols.weak, known.needs | symbols.needs)
        result[source] = symbols
    return result


def calls(objects: dict[str, Symbols]) -> list[Arrow]:
    """The arrows of symbols. A weak definition, if no strong one is there, counts as one:
    our hooks are declared weak. What an object defines weakly and another one strongly
    comes from the other."""
    strong: dict[str, list[str]] = defaultdict(list)
    weak: dict[str, list[str]] = defaultdict(list)
    for source, symbols in objects.items():
        for name in symbols.strong:
            strong[name].append(source)
        for name in symbols.weak:
            weak[name].append(source)
    arrows = []
    for user, symbols in objects.items():
        needed: dict[str, list[str]] = defaultdict(list)
        for name in symbols.needs:
            for used in strong.get(name) or weak.get(name, ()):
                needed[used].append(name)
        for name in symbols.weak:
            for used in strong.get(name, ()):
                needed[used].append(name)
        for used, names in needed.items():
            if used != user:
                more = f" and {len(names) - 1} more" if len(names) > 1 else ""
                arrows.append(Arrow(user, used, f"needs {min(names)}{more} of it"))
    return arrows


# --- the check -------------------------------------------------------------------------


def node(path: str) -> str:
    """The name that a .h and its .cc or .c share."""
    return re.sub(r"\.(h|cc|c)$", "", path)


def circles(arrows: dict[tuple[str, str], Arrow]) -> list[list[str]]:
    """Shortest circles, so many that they name each node that is in a circle."""
    after: dict[str, set[str]] = defaultdict(set)
    for start, end in arrows:
        after[start].add(end)
    found: list[list[str]] = []
    done: set[str] = set()
    for start in sorted(after):
        if start in done:
            continue
        # Breadth first: the first way back is a shortest one.
        ways = [[start]]
        seen: set[str] = set()
        circle = None
        while ways and not circle:
            way = ways.pop(0)
            for end in sorted(after[way[-1]]):
                if end == start:
                    circle = [*way, start]
                    break
                if end not in seen:
                    seen.add(end)
                    ways.append([*way, end])
        if circle:
            done.update(circle)
            found.append(circle)
    return found


def check(layers: Layers, files: set[str], arrows: Iterable[Arrow]) -> list[str]:
    """One sentence for each fault."""
    problems = [f"{path} lies in no room of tools/layers.toml" for path in sorted(files) if not layers.room(path)]
    used_rooms = {layers.room(path) for path in files}
    problems += [
        f"tools/layers.toml names {room}, which has no file" for room in layers.rooms if room not in used_rooms
    ]
    between_rooms: dict[tuple[str, str], Arrow] = {}
    between_files: dict[tuple[str, str], Arrow] = {}
    for arrow in arrows:
        user, used = layers.room(arrow.user), layers.room(arrow.used)
        if user is None or used is None or user in layers.tests:
            continue
        if user == used:
            if user in layers.programs:
                problems.append(f"{arrow.user} uses {arrow.used} ({arrow.how}): both are programs")
            ends = node(arrow.user), node(arrow.used)
            if ends[0] != ends[1]:
                between_files.setdefault(ends, arrow)
            continue
        between_rooms.setdefault((user, used), arrow)
        if used not in layers.rooms[user]:
            problems.append(f"{arrow.user} uses {arrow.used} ({arrow.how}): {user} may not use {used}")
    for kind, graph in (("rooms", between_rooms), ("files", between_files)):
        for circle in circles(graph):
            ways = [
                f"{arrow.user} uses {arrow.used} ({arrow.how})" for arrow in (graph[pair] for pair in pairwise(circle))
            ]
            problems.append(f"{kind} in a circle, {' -> '.join(circle)}: {'; '.join(ways)}")
    return problems


def unused_permissions(layers: Layers, arrows: Iterable[Arrow]) -> list[str]:
    """One sentence for each permission of tools/layers.toml that no file uses. `arrows` includes those of symbols:
    a permission may be there for a call alone."""
    used: dict[str | None, set[str | None]] = defaultdict(set)
    for arrow in arrows:
        used[layers.room(arrow.user)].add(layers.room(arrow.used))
    return [
        f"tools/layers.toml lets {room} use {use}, but no file of {room} does"
        for room, permissions in layers.permissions.items()
        for use, names in permissions.items()
        if not names & used[room]
    ]


def main() -> int:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("--build", type=Path, help="such as build/dev")
    args = parser.parse_args()
    layers, files = load(TABLE.read_text()), code_files(ROOT)
    arrows, problems = read_sources(layers, ROOT, files)
    count = f"{len(files)} files, {len(arrows)} includes and imports"
    if args.build:
        called = calls(read_objects(layers, args.build.absolute(), files, ROOT))
        arrows += called
        count += f", {len(called)} files that need another's symbols"
        problems += unused_permissions(layers, arrows)
    problems += check(layers, files, arrows)
    for problem in problems:
        say(f"layers: {problem}")
    say(f"layers: {count}; {len(problems) or 'no'} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    run_main("layers", main)
