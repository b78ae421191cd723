"""Turns the output of a test runner into counts."""

import re
import xml.etree.ElementTree as xml
from dataclasses import dataclass, field
from pathlib import Path

from harness import mtr

# mysql-test-run prints a report about a failed test. The summary shows its first lines,
# because CI may keep no more than the summary. REPORT_WIDTH counts characters of a line.
REPORT_LINES = 20
REPORT_WIDTH = 300


@dataclass
class Result:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    words: str = ""  # the runner's own closing lines
    # As the runner names them. The driver's report may follow, in lines of its own.
    failures: list[str] = field(default_factory=list)
    seconds: float = 0
    cpu_seconds: float = 0  # of the programs that the step has run
    # What was skipped, as far as the runner names it.
    skips: list[str] = field(default_factory=list)


def closing(text: str, *patterns: str) -> str:
    """One line of the last match of each pattern."""
    found = []
    for pattern in patterns:
        if lines := re.findall(pattern, text, re.MULTILINE):
            found.append(lines[-1].strip())
    return "; ".join(found)


def yes_or_no(status: int, words: str) -> Result:
    return Result(int(status == 0), int(status != 0), 0, words)


def parse_own(name: str, status: int, text: str) -> Result:
    match = re.search(rf"^(?:{name}: )?(\d+) passed, (\d+) failed(?:, (\d+) skipped(?:: (.*))?)?$", text, re.MULTILINE)
    passed, failed, skipped = (int(x or 0) for x in match.groups()[:3]) if match else (0,) * 3
    # Checks.skip() writes a line for each; a program that runs others shows theirs.
    skips = re.findall(r"^skipped +([^:\n]+): ", text, re.MULTILINE) or ([match[4]] if match and match[4] else [])
    if (status or not match) and not failed:
        failed = 1
    failures = re.findall(r"^FAILED +(.*)$", text, re.MULTILINE)
    return Result(passed, failed, skipped, closing(text, r"^.*\S.*$"), failures, skips=skips)


def parse_unittest(status: int, text: str) -> Result:
    ran = re.search(r"^Ran (\d+) tests?", text, re.MULTILINE)
    total = int(ran.group(1)) if ran else 0
    counts = {
        word: sum(int(n) for n in re.findall(rf"\b{word}=(\d+)", text.split("Ran ")[-1]))
        for word in ("failures", "errors", "skipped")
    }
    failed = counts["failures"] + counts["errors"]
    if (status or not total) and not failed:  # the runner itself broke off
        failed = 1
    words = closing(text, r"^Ran \d+ tests?.*$", r"^(?:OK|FAILED).*$")
    skipped = counts["skipped"]
    failures = re.findall(r"^(?:FAIL|ERROR): (.*)$", text, re.MULTILINE)
    # With -v. The reason is the name: tests skip for the machine's sake, some of them in loops.
    skips = re.findall(r"\.\.\. skipped ['\"](.*)['\"]$", text, re.MULTILINE)
    return Result(max(total - failed - skipped, 0), failed, skipped, words, failures, skips=skips)


def parse_ctest(status: int, text: str) -> Result:
    match = re.search(r"^\d+% tests passed, (\d+) tests? failed out of (\d+)", text, re.MULTILINE)
    failed, total = (int(x) for x in match.groups()) if match else (0, 0)
    skips = re.findall(r"^\s+\d+ - (.*) \((?:Skipped|Disabled)\)$", text, re.MULTILINE)
    skipped = len(skips)
    if (status or not match) and not failed:
        failed = 1
    words = closing(text, r"^\d+% tests passed.*$", r"^Total Test time.*$")
    if not words:
        words = closing(text, r"^.*\S.*$")
    listed = text.partition("The following tests FAILED:")[2]
    failures = re.findall(r"^\s+\d+ - (.*)$", listed, re.MULTILINE)
    return Result(max(total - failed - skipped, 0), failed, skipped, words, failures, skips=skips)


# A program whose tests ctest runs in one process: cmake/unit_tests.cmake.
PROGRAM = r"^ *\d+/\d+ Test +#\d+: (\w+_test) "


def count_cases(result: Result, text: str, folder: Path) -> None:
    """Counts the cases of each program that ran whole, in place of the program. `text`: ctest's; `folder`: of the files
    that the programs write at their end."""
    # ctest's words about a program begin with its name.
    ends = {words.partition(" ")[0]: words for words in result.failures}
    for program in re.findall(PROGRAM, text, re.MULTILINE):
        end = ends.get(program)
        if end:
            result.failures.remove(end)
            result.failed -= 1
        else:
            result.passed -= 1
        passed, failures, skips = cases_of(folder / f"{program}.xml")
        if end and not failures:
            # It crashed, or a sanitizer complained.
            failures = [end]
        elif not passed and not failures and not skips:
            failures = [f"{program} (told of no case)"]
        result.passed += passed
        result.failed += len(failures)
        result.failures += failures
        result.skipped += len(skips)
        result.skips += skips


def cases_of(path: Path) -> tuple[int, list[str], list[str]]:
    """Of a file that GoogleTest writes: how many passed, which failed, which were skipped or are disabled. A file that is
    missing or torn has none."""
    try:
        cases = list(xml.parse(path).iter("testcase"))
    except (FileNotFoundError, xml.ParseError):
        return 0, [], []
    passed, failures, skips = 0, [], []
    for case in cases:
        name = f"{case.get('classname')}.{case.get('name')}"
        if case.find("failure") is not None:
            failures.append(name)
        elif case.get("result") == "completed":
            passed += 1
        else:
            skips.append(name)
    return passed, failures, skips


def parse_mtr(status: int, text: str) -> Result:
    lines = mtr.parse(text)
    results = [line.result for line in lines]
    failures = [with_report(line) for line in lines if line.result == "fail"]
    failed = len(failures)
    # It could not start, or a server complained at its end.
    if (status or not lines) and not failed:
        failed = 1
    words = closing(text, r"^Completed: .*$|^mysql-test-run: \*\*\* ERROR: .*$", r"^\d+ tests were skipped.*$")
    skips = [line.test for line in lines if line.result in ("skipped", "disabled")]
    return Result(results.count("pass"), failed, len(skips), words, failures, skips=skips)


def with_report(line: mtr.Line) -> str:
    report = [x for x in line.report.splitlines() if x.strip()][:REPORT_LINES]
    return "\n".join([line.test, *(f"  {x[:REPORT_WIDTH]}" for x in report)])
