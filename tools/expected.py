"""Nothing vanishes in silence: a skip that tools/expected.toml does not list, and a step with fewer passed cases than its
floor there, are failures."""

import os
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from harness.common import ROOT
from harness.problem import Problem
from tools.runner_output import Result
from tools.schedule import Run

TABLE = ROOT / "tools/expected.toml"
# The name of skips that a runner only counts.
NO_NAME = "without a name"


@dataclass(frozen=True)
class Expected:
    """The part of tools/expected.toml about one preset."""

    floors: dict[str, int]  # step: passed cases at least
    skips: dict[str, list[str]]  # step: patterns of names


def load(text: str, preset: str, kernel: str = "") -> Expected | None:
    """None: the file says nothing about the preset. `kernel`: its release; by default this machine's."""
    part = tomllib.loads(text).get(preset)
    if part is None:
        return None
    skips: dict[str, list[str]] = {}
    floors = dict(part["floors"])
    for skip in part.get("skips", []):
        if not skip.get("reason"):
            raise Problem(f"expected.toml: the skips {', '.join(skip['names'])} of {preset} have no reason")
        older = "kernel_below" in skip
        if older and version(kernel or os.uname().release) >= version(skip["kernel_below"]):
            continue
        for step in skip["steps"]:
            skips.setdefault(step, []).extend(skip["names"])
            floors[step] -= len(skip["names"]) if older else 0
    return Expected(floors, skips)


def version(release: str) -> tuple[int, int]:
    """Of a kernel: the two numbers that its release begins with."""
    major, minor = re.findall(r"\d+", release)[:2]
    return int(major), int(minor)


def judge(step: str, result: Result, wanted: Expected) -> Result:
    """Adds a failure for each unlisted skip, and one below the floor. A result that failed already stays as it is."""
    if result.failed:
        return result
    names = [*result.skips, *([NO_NAME] if result.skipped > len(result.skips) else [])]
    patterns = wanted.skips.get(step, [])
    found = [
        f"skipped, and tools/expected.toml does not list it: {name}"
        for name in names
        if not any(fnmatchcase(name, pattern) for pattern in patterns)
    ]
    floor = wanted.floors.get(step)
    if floor is None:
        found.append("tools/expected.toml has no floor for this step")
    elif result.passed < floor:
        found.append(f"{result.passed} passed; tools/expected.toml wants {floor} at least")
    result.failed += len(found)
    result.failures += found
    return result


def judged(step: str, run: Callable[[Run], Result], preset: str) -> Callable[[Run], Result]:
    """The same step, whose result is compared with tools/expected.toml."""
    wanted = load(TABLE.read_text(), preset)
    return run if wanted is None else lambda of: judge(step, run(of), wanted)
