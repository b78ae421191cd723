"""Upstream's test driver, mysql-test-run: how it is called and what it prints."""

import re
from dataclasses import dataclass
from pathlib import Path

from harness.problem import Problem

LINE = re.compile(
    r"^\[ *\d+%\] (?P<test>\S+)(?P<rest>.*?)\[ (?:retry-|noskip-)?"
    r"(?P<result>pass|opt-pass|fail|skipped|disabled) \] *(?P<comment>.*)$",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Line:
    """The result of a test, or of one of its combinations."""

    test: str
    result: str  # pass, fail, skipped, disabled
    comment: str


def folder(build: Path) -> Path:
    """The folder in which the driver of a preset's build is called."""
    path = build / "bld" / "mysql-test"
    if not (path / "mysql-test-run.pl").exists():
        raise Problem(
            f"preset {build.name} is not built.\n  Build it:  cmake --preset "
            f"{build.name} && cmake --build --preset {build.name}"
        )
    return path


def command(build: Path, jobs: int, *selection: str) -> list[str]:
    words = [
        "perl",
        "mysql-test-run.pl",
        # --mem: memory instead of the disk; mtr allows no --vardir with it. mtr finds free
        # ports by itself.
        "--mem",
        f"--parallel={jobs}",
        # Run all tests, and none a second time.
        "--force",
        "--max-test-fail=0",
        "--retry=0",
        "--nounit-tests",
    ]
    if build.name == "sanitize":
        words.append("--sanitize")
    return [*words, *selection]


def parse(text: str) -> list[Line]:
    return [
        Line(
            found["test"],
            "pass" if found["result"] == "opt-pass" else found["result"],
            found["comment"].strip(),
        )
        for found in LINE.finditer(text)
    ]
