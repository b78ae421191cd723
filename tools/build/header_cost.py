#!/usr/bin/env python3
"""Count, for each of our headers, the object files of upstream that a change of it compiles again.

ninja knows the dependencies of a finished build (build/<preset>/bld). An object with a precompiled header depends on
every header in it. Objects that have not been compiled yet are not counted.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from harness.common import ROOT, known_preset, say
from harness.problem import Problem, run_main
from tools.build.tree import HEADERS

OWN_HEADERS = (*HEADERS, "plugin/memdiag/**/*.h")
# How the paths of our headers begin, and those of the sources beside them.
OWN = tuple(pattern.partition("*")[0] for pattern in OWN_HEADERS)
PRECOMPILED = ".gch"


@dataclass
class Users:
    """The objects that depend on a header."""

    upstream: set[str] = field(default_factory=set)
    own: set[str] = field(default_factory=set)


def recorded(text: str) -> dict[str, list[str]]:
    """{object: source and headers} from the output of `ninja -t deps`."""
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in text.splitlines():
        if match := re.match(r"(\S.*): #deps \d+,", line):
            current = found.setdefault(match[1], [])
        elif line.startswith("    "):
            current.append(line.strip())
    return found


def precompiled(text: str) -> dict[str, list[str]]:
    """{object: its precompiled headers} from build.ninja: the compiler's own list does not have them."""
    found = {}
    for output, implicit in re.findall(r"^build (\S+\.o): [^|\n]*\| ([^|\n]*)", text, re.MULTILINE):
        if names := [x for x in implicit.split() if x.endswith(PRECOMPILED)]:
            found[output] = names
    return found


def users_of_headers(
    deps: Mapping[str, list[str]], pch: Mapping[str, list[str]], build: Path, top: Path
) -> dict[str, Users]:
    """By the header's path in this repository. `build`: the folder in which ninja runs."""
    tree = f"{build.parent / 'mysql'}/"

    def in_repository(name: str) -> str:
        path = os.path.normpath(build / name)
        return path.removeprefix(tree).removeprefix(f"{top}/")

    def own(names: Iterable[str]) -> set[str]:
        return {path for name in names if (path := in_repository(name)).startswith(OWN)}

    headers = {output: own(names) for output, names in deps.items()}
    users: dict[str, Users] = {}
    for output, names in deps.items():
        if output.endswith(PRECOMPILED):
            continue
        ours = bool(names) and in_repository(names[0]).startswith(OWN)
        needed = headers[output].union(*(headers.get(name, ()) for name in pch.get(output, ())))
        for header in needed:
            if header.endswith((".cc", ".c")):
                continue
            both = users.setdefault(header, Users())
            (both.own if ours else both.upstream).add(output)
    return users


def exceeded(users: Mapping[str, Users], limits: Iterable[str]) -> list[str]:
    """A sentence for each header above its limit. A limit is NAME=N; NAME is a path in this repository or its end."""
    problems = []
    for limit in limits:
        name, _, most = limit.partition("=")
        if not most.isdecimal():
            raise Problem(f"--limit {limit}: it has the form NAME=N")
        found = [x for x in users if x == name or x.endswith(f"/{name}")]
        if len(found) != 1:
            raise Problem(
                f"--limit {limit}: {len(found) or 'no'} headers have that name"
                f"{': ' + ', '.join(sorted(found)) if found else ''}"
            )
        count = len(users[found[0]].upstream)
        if count > int(most):
            problems.append(f"{found[0]}: a change compiles {count} objects of upstream, more than {most}")
    return problems


def ninja_deps(build: Path) -> str:
    try:
        done = subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise Problem("ninja is missing; install it with: apt-get install ninja-build") from None
    if done.returncode:
        raise Problem(f"ninja -t deps in {build}: {done.stderr.strip()}")
    return done.stdout


def main() -> int:
    parser = argparse.ArgumentParser(prog="tools/build/header_cost.py", description=__doc__.splitlines()[0])
    parser.add_argument("--preset", default="dev", help="default: %(default)s")
    parser.add_argument(
        "--limit",
        action="append",
        default=[],
        metavar="NAME=N",
        help="fail where a change of this header compiles more objects of upstream; repeatable",
    )
    options = parser.parse_args()
    preset = known_preset(options.preset)
    build = ROOT / "build" / preset / "bld"
    if not (build / ".ninja_deps").is_file():
        raise Problem(f"preset {preset} has not been built; cmake --build --preset {preset}")
    deps = recorded(ninja_deps(build))
    pch = precompiled((build / "build.ninja").read_text())
    users = users_of_headers(deps, pch, build, ROOT)
    for pattern in OWN_HEADERS:
        for path in ROOT.glob(pattern):
            users.setdefault(str(path.relative_to(ROOT)), Users())
    say("upstream  ours  header")
    for header, both in sorted(users.items(), key=lambda item: (-len(item[1].upstream), item[0])):
        say(f"{len(both.upstream):8}  {len(both.own):4}  {header}")
    say(f"of {len(deps)} objects that have been compiled")
    problems = exceeded(users, options.limit)
    for problem in problems:
        say(f"header_cost: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    run_main("header_cost", main)
