"""Upstream's test driver, mysql-test-run: how it is called and what it prints."""

import re
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from harness.problem import Problem

LINE = re.compile(
    r"^\[ *\d+%\] (?P<test>\S+)(?P<rest>.*?)\[ (?:retry-|noskip-)?"
    r"(?P<result>pass|opt-pass|fail|skipped|disabled) \] *(?P<comment>.*)$",
    re.MULTILINE,
)

# The driver prints it below the last test.
RULE = re.compile(r"^-{60,}$", re.MULTILINE)


@dataclass(frozen=True)
class Line:
    """The result of a test, or of one of its combinations."""

    test: str
    result: str  # pass, fail, skipped, disabled
    comment: str
    report: str  # what the driver prints below, such as the difference of the results


def folder(build: Path) -> Path:
    """The folder in which the driver of a preset's build is called."""
    path = build / "bld" / "mysql-test"
    if not (path / "mysql-test-run.pl").exists():
        raise Problem(
            f"preset {build.name} is not built.\n  Build it:  cmake --preset "
            f"{build.name} && cmake --build --preset {build.name}"
        )
    return path


def command(build: Path, jobs: int, *selection: str, vardir: Path | None = None) -> list[str]:
    """@param vardir  the servers' folder. Without it the driver makes one in memory, and a second driver of the same
    build would remove that."""
    words = [
        "perl",
        "mysql-test-run.pl",
        # mtr finds free ports by itself.
        f"--vardir={vardir}" if vardir else "--mem",
        f"--parallel={jobs}",
        # Run all tests, and none a second time.
        "--force",
        "--max-test-fail=0",
        "--retry=0",
        "--nounit-tests",
        # Minutes; 15 by default, of which a busy machine may need most for a test of 20 seconds.
        "--testcase-timeout=30",
    ]
    if build.name == "sanitize":
        words.append("--sanitize")
    return [*words, *selection]


def parse(text: str) -> list[Line]:
    matches = list(LINE.finditer(text))
    ends = [found.start() for found in matches[1:]]
    return [
        Line(
            found["test"],
            "pass" if found["result"] == "opt-pass" else found["result"],
            found["comment"].strip(),
            RULE.split(text[found.end() : end], maxsplit=1)[0].strip("\n"),
        )
        for found, end in zip_longest(matches, ends)
    ]
