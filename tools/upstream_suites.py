#!/usr/bin/env python3
"""Run upstream's own test suites against this server, and report where it differs from stock.

They take hours on two cores, so they run in pieces. A run that was interrupted
continues with the next piece as long as the server is the same.
Root runs them as user nobody, because some start a server that refuses root.
A test that fails runs once more by itself. If it fails again, mysql-test/upstream_differences.txt
explains it, or it also fails against the stock preset's server. Each test that the file names has
to be there and to differ. --save keeps the counts and the verdicts, with the commit.
"""

import argparse
import contextlib
import hashlib
import os
import pwd
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from harness import mtr
from harness.commit import commit, require_clean
from harness.common import ROOT, known_preset, lock, say
from harness.markdown import table
from harness.problem import Problem, run_main
from harness.programs import run_group
from harness.state_file import read_state, write_state

SUITES = "main,innodb,innodb_fts,perfschema,sys_vars,binlog,rpl,parts"
DIFFERENCES = ROOT / "mysql-test" / "upstream_differences.txt"
# A test that needs a debug build sources one of these files.
NEEDS_DEBUG = re.compile(r"source include/have_debug(_sync)?\.inc")
PIECE = 60
# If a test has several combinations, the later of these results counts.
ORDER = ["disabled", "skipped", "pass", "fail"]


def saved(preset: str) -> Path:
    """The page that --save writes."""
    of = "" if preset == "dev" else f"_{preset}"
    return ROOT / "mysql-test" / f"upstream_results{of}.md"


def mysqld(preset: str) -> Path:
    return ROOT / "build" / preset / "bld" / "runtime_output_directory" / "mysqld"


class Server:
    """A preset's server, and what became of the tests that ran against it."""

    def __init__(self, preset: str, jobs: int, options: Sequence[str] = ()):
        """`options`: of mysqld, for each server that a test starts."""
        self.preset, self.jobs = preset, jobs
        self.options = [f"--mysqld={option}" for option in options]
        self.build = ROOT / "build" / preset
        self.mtr = mtr.folder(self.build)
        self.path = self.build / "upstream-suites.json"
        with open(mysqld(preset), "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        # Results under other options of jemalloc or mysqld are not this run's.
        self.server = " ".join([digest, os.environ.get("MALLOC_CONF", ""), *options]).strip()
        self.results: dict[str, dict[str, str]] = {}
        self.alone: dict[str, dict[str, str]] = {}
        if state := read_state(self.path):
            if state["server"] == self.server:
                self.results, self.alone = state["results"], state["alone"]
            else:
                say(f"-- {preset}: the server is another than last time: starting over")

    def save(self) -> None:
        state = {"server": self.server, "results": self.results, "alone": self.alone}
        write_state(self.path, state)

    def tests_of(self, suite: str, need_debug: bool = False) -> list[str]:
        """@param need_debug: only those that another build skips for that reason"""
        where = "t" if suite == "main" else f"suite/{suite}/t"
        source = self.build / "mysql" / "mysql-test" / where
        if not source.is_dir():
            raise Problem(f"upstream has no suite {suite!r}")
        tests = {
            f"{suite}.{path.stem}"
            for path in source.glob("*.test")
            if not need_debug or NEEDS_DEBUG.search(path.read_text(errors="replace"))
        }
        listed = self.build / "mysql" / "mysql-test" / "collections" / "disabled.def"
        # Leaves them out, because the driver runs every test that is named, even a disabled one.
        return sorted(tests - disabled_everywhere(listed.read_text()))

    def run(self, tests: list[str], into: dict[str, dict[str, str]], jobs: int) -> None:
        """One call of the driver. What it says nothing of, it does not know, or
        refused to run: that counts as skipped."""
        names = self.build / "upstream-suites.tests"
        names.write_text("\n".join(tests) + "\n")
        command = mtr.command(self.build, jobs, f"--do-test-list={names}", *self.options)
        plugins = self.build / "bld" / "plugin_output_directory"
        with (
            keyrings(mysqld(self.preset), plugins),
            lent_to_nobody(self.build),
            tempfile.TemporaryFile("w+", errors="replace") as output,
        ):
            status = run_group(
                [*as_nobody(), *command],
                cwd=self.mtr,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            output.seek(0)
            said = output.read()
        with open(self.build / "upstream-suites.log", "a") as log:
            log.write(said)
        found = worst_by_test(mtr.parse(said))
        # A driver that was killed says nothing of the tests that it did not reach.
        if status < 0 or (status and not found):
            tail = "\n".join(said.splitlines()[-15:])
            raise Problem(f"mysql-test-run of preset {self.preset} failed:\n{tail}")
        for test in tests:
            into[test] = found.get(test) or {"result": "skipped", "comment": "not run"}
        self.save()

    def run_in_pieces(self, tests: list[str]) -> None:
        rest = [test for test in tests if test not in self.results]
        began, total = time.monotonic(), len(rest)
        while rest:
            piece, rest = rest[:PIECE], rest[PIECE:]
            self.run(piece, self.results, self.jobs)
            failed = [t for t in piece if self.results[t]["result"] == "fail"]
            done = total - len(rest)
            left = (time.monotonic() - began) / done * len(rest) / 60
            say(
                f"-- {self.preset}: {done} of {total} tests, up to {piece[-1]}, about "
                f"{left:.0f} min left" + (f"; failed: {' '.join(failed)}" * bool(failed))
            )

    def run_alone(self, tests: list[str]) -> None:
        for test in tests:
            if test not in self.alone:
                self.run([test], self.alone, 1)
                say(f"-- {self.preset}: {test} by itself: {self.alone[test]['result']}")


def as_nobody() -> list[str]:
    """What root puts before the driver's command: some tests start a server that refuses root."""
    if os.geteuid():
        return []
    nobody = pwd.getpwnam("nobody")
    ids = [f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}"]
    return ["env", "HOME=/tmp", "setpriv", *ids, "--clear-groups"]


@contextlib.contextmanager
def lent_to_nobody(build: Path) -> Iterator[None]:
    """Meanwhile nobody may write where tests do: a link to their data, files in the driver's folders,
    and keyrings' settings beside programs and plugins. Does nothing if another user than root runs this.

    The folders stay root's, with the sticky bit: nobody cannot replace what is there, such as mysqld, which root
    runs as well."""
    if os.geteuid():
        yield
        return
    nobody = pwd.getpwnam("nobody")
    names = ("mysql-test", "runtime_output_directory", "plugin_output_directory")
    folders = [*(build / "bld" / name for name in names), build / "mysql" / "mysql-test"]
    var = folders[0] / "var"
    forget_data(var)  # root's, which nobody could not remove
    try:
        for folder in folders:
            os.chown(folder, 0, nobody.pw_gid)
            folder.chmod(0o1775)
        yield
    finally:
        for folder in folders:
            os.chown(folder, 0, 0)
            folder.chmod(0o755)
        forget_data(var)


def forget_data(var: Path) -> None:
    """Removes the driver's link, and as the link's owner what it leads to: nobody could have made it lead elsewhere."""
    if not os.path.lexists(var):
        return
    owner = as_nobody() if var.lstat().st_uid else []
    subprocess.run([*owner, "rm", "-rf", f"{var.resolve()}"], check=False)
    var.unlink(missing_ok=True)


@contextlib.contextmanager
def keyrings(program: Path, plugins: Path) -> Iterator[None]:
    """Meanwhile each server may load the keyring that files in its data directory name. Upstream's driver makes
    these files beside mysqld and the plugins; Debian's source has that switched off. They are the driver's, because
    tests remove them and make them again."""
    texts = {program.with_suffix(".my"): '{ "read_local_manifest": true }'}
    for plugin in plugins.glob("component_keyring*.so"):
        texts[plugin.with_suffix(".cnf")] = '{ "read_local_config": true }'
    for path, text in texts.items():
        path.unlink(missing_ok=True)
        with open(path, "x") as file:  # follows no link
            file.write(text)
            if not os.geteuid():
                os.fchown(file.fileno(), pwd.getpwnam("nobody").pw_uid, -1)
    try:
        yield
    finally:
        for path in texts:
            path.unlink(missing_ok=True)


def disabled_everywhere(text: str) -> set[str]:
    """The tests that upstream's list disables everywhere, and not on some platform alone."""
    names = (line.partition(":")[0].split() for line in text.splitlines())
    return {name[0] for name in names if len(name) == 1 and name[0][0] != "#"}


def worst_by_test(lines: list[mtr.Line]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for line in lines:
        before = found.get(line.test)
        if not before or ORDER.index(line.result) > ORDER.index(before["result"]):
            found[line.test] = {"result": line.result, "comment": line.comment}
    return found


def read_differences(text: str) -> dict[str, str]:
    """{test: why}"""
    reasons = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        test, colon, why = line.partition(": ")
        if not colon or "." not in test or not why.strip():
            raise Problem(f"{DIFFERENCES.name}, line {number}: it should be `suite.test: reason`")
        reasons[test.strip()] = why.strip()
    return reasons


def verdicts(
    failed: list[str], alone: dict[str, str], stock: dict[str, str], reasons: dict[str, str]
) -> dict[str, str]:
    """{test: what its failure means}, for the tests that failed with this server."""
    words = {}
    for test in failed:
        if alone[test] == "pass":
            words[test] = "passes by itself"
        elif test in reasons:
            words[test] = reasons[test]
        elif stock.get(test) == "fail":
            words[test] = "fails on stock too"
        else:
            not_compared = "" if test in stock else ": preset stock is not built"
            words[test] = f"UNEXPLAINED{not_compared}"
    return words


def outdated(reasons: dict[str, str], results: dict[str, dict[str, str]], suites: list[str]) -> dict[str, str]:
    """{test: what its result is}, for entries of the file that should go. `suites`: those that ran as a whole."""
    words = {}
    for test in reasons:
        result = results.get(test, {}).get("result")
        if result == "pass":
            words[test] = "passes"
        elif result is None and test.partition(".")[0] in suites:
            words[test] = "has no result"
    return words


def report(state: str, preset: str, results: dict[str, dict[str, str]], words: dict[str, str]) -> str:
    """The page that --save writes. `state`: the commit; `results`: of all tests that ran;
    `words`: what each failure means."""
    by_suite: dict[str, list[str]] = {}
    for test, entry in results.items():
        by_suite.setdefault(test.partition(".")[0], []).append(entry["result"])
    rows = [
        [
            suite,
            str(found.count("pass")),
            str(found.count("fail")),
            str(found.count("skipped") + found.count("disabled")),
        ]
        for suite, found in by_suite.items()
    ]
    head = ["suite", "passed", "failed", "skipped"]
    lines = [
        "# Upstream's suites on this server",
        "",
        f"`tools/upstream_suites.py --save` made this page of commit {state}, {time.strftime('%Y-%m-%d')}, "
        f"preset {preset}.",
        "",
        table(head, rows),
    ]
    if words:
        lines += ["", "Each failure:", ""]
        lines += [f"- {test}: {word}" for test, word in sorted(words.items())]
    return "\n".join(lines) + "\n"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="tools/upstream_suites.py",
        description="Run upstream's suites against our server and, where they fail, "
        "against stock. An interrupted run continues where it was.",
    )
    parser.add_argument("--preset", default="dev", help="default: %(default)s")
    parser.add_argument("--suites", default=SUITES, help="default: %(default)s")
    parser.add_argument("--tests", metavar="TEST,...", help="these instead of whole suites")
    parser.add_argument(
        "--need-debug",
        action="store_true",
        help="of the suites, only the tests that other builds than --preset debug skip",
    )
    parser.add_argument("--jobs", type=int, default=4, metavar="N")
    parser.add_argument(
        "--mysqld",
        action="append",
        default=[],
        metavar="OPTION",
        help="give it to each server; stock gets it as well, so it begins with --loose-",
    )
    parser.add_argument(
        "--save",
        action="store_true",
        help=f"at the end, write {saved('dev').relative_to(ROOT)} or its like; the tree must have no changes",
    )
    options = parser.parse_args()
    known_preset(options.preset)
    if options.preset == "stock":
        raise Problem("a preset is compared with stock; name another one")
    return options


def main() -> int:
    options = arguments()
    state = commit()  # of what is tested; it may change in these hours
    if options.save:
        require_clean(state)
    reasons = read_differences(DIFFERENCES.read_text())
    suites = [] if options.tests else options.suites.split(",")
    # Each build has one folder for the servers of the driver.
    with (
        lock(ROOT / "build" / options.preset / "run-tests.lock", "testing this preset"),
        lock(ROOT / "build" / "stock" / "run-tests.lock", "testing preset stock"),
    ):
        ours = Server(options.preset, options.jobs, options.mysqld)
        tests = [t for suite in suites for t in ours.tests_of(suite, options.need_debug)]
        if options.tests:
            tests = options.tests.split(",")
        ours.run_in_pieces(tests)
        failed = [t for t in tests if ours.results[t]["result"] == "fail"]
        ours.run_alone(failed)
        still = [t for t in failed if ours.alone[t]["result"] != "pass"]
        on_stock = {}
        unknown = [t for t in still if t not in reasons]
        if unknown and mysqld("stock").exists():
            stock = Server("stock", options.jobs, options.mysqld)
            stock.run_alone(unknown)
            on_stock = {t: stock.alone[t]["result"] for t in unknown}

    alone = {t: ours.alone[t]["result"] for t in failed}
    words = verdicts(failed, alone, on_stock, reasons)
    for test, word in words.items():
        say(f"{test:50} {word}")
    if options.save:
        results = {t: ours.results[t] for t in tests}
        saved(options.preset).write_text(report(state, options.preset, results, words))
    wrong = outdated(reasons, ours.results, [] if options.need_debug else suites)
    for test, word in wrong.items():
        say(f"{test:50} {word}, but {DIFFERENCES.name} names it")
    count = [entry["result"] for entry in (ours.results[t] for t in tests)]
    unexplained = [t for t, word in words.items() if word.startswith("UNEXPLAINED")]
    say(
        f"{count.count('pass')} passed, {len(failed)} failed ({len(unexplained)} of them "
        f"unexplained), {count.count('skipped') + count.count('disabled')} skipped"
    )
    return 1 if unexplained or wrong else 0


if __name__ == "__main__":
    run_main("upstream_suites", main)
