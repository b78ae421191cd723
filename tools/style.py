#!/usr/bin/env python3
"""Checks or corrects the style of all code of the checkout.

  tools/style.py check    shellcheck, ruff and clang-format; changes nothing
  tools/style.py fix      rewrites the Python and C++ files that are not as wanted

ruff and clang-format come from PyPI, in the versions of tools/style.txt and as pip is
configured on this machine, into a folder of the cache. Where they cannot be had, the check
fails; with --offline it skips them.
"""

import argparse
import hashlib
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from harness.checkout import own_files
from harness.common import ROOT, cache_dir, lock, say
from harness.problem import Problem, run_main
from harness.programs import captured

PINS = ROOT / "tools/style.txt"


def provide(pins: Path, cache: Path, offline: bool) -> Path | None:
    """The folder with the programs; None if they are not there and may not be fetched."""
    print_ = hashlib.sha256(pins.read_bytes()).hexdigest()[:12]
    folder = cache / f"style-{print_}"
    complete = folder / "complete"
    with lock(cache / "style.lock", "installing ruff and clang-format"):
        if complete.is_file():
            return folder / "bin"
        if offline:
            return None
        say(f"-- installing ruff and clang-format into {folder}")
        # An interrupted installation may have left the folder.
        shutil.rmtree(folder, ignore_errors=True)
        install = [folder / "bin/python", "-m", "pip", "install", "--quiet"]
        install += ["--no-deps", "--require-hashes", "--only-binary", ":all:"]
        for command in ([sys.executable, "-m", "venv", folder], [*install, "-r", pins]):
            done = captured(command)
            if done.returncode:
                words = (done.stdout + done.stderr).strip().replace("\n", "\n  ")
                raise Problem(
                    f"ruff and clang-format could not be installed:\n  {words}\n"
                    "  Check the network and pip's configuration. --offline does "
                    "without them."
                )
        complete.touch()
    return folder / "bin"


def shell_scripts(files: list[Path]) -> list[Path]:
    return [
        path
        for path in files
        if path.suffix == ".sh" or re.match(rb"#!.*\b(ba)?sh$", path.read_bytes().partition(b"\n")[0])
    ]


def cxx_files(files: list[Path]) -> list[Path]:
    return [path for path in files if path.suffix in (".h", ".cc", ".c")]


def run(command: list) -> bool:
    try:
        return subprocess.run(command, cwd=ROOT, check=False).returncode == 0
    except FileNotFoundError:
        say(f"style: {command[0]} is not installed")
        return False


def ruff(bin_: Path, *arguments: str) -> Callable[[], bool]:
    command = [bin_ / "ruff", *arguments, "--quiet", "--no-cache", "."]
    return lambda: run(command)


def check(offline: bool) -> int:
    files = own_files(ROOT)
    checks = {"shellcheck": lambda: run(["shellcheck", "-x", *shell_scripts(files)])}
    skipped = ""
    try:
        if bin_ := provide(PINS, cache_dir(), offline):
            formatter = [bin_ / "clang-format", "--dry-run", "-Werror"]
            checks["ruff check"] = ruff(bin_, "check")
            checks["ruff format"] = ruff(bin_, "format", "--check")
            checks["clang-format"] = lambda: run([*formatter, *cxx_files(files)])
        else:
            skipped = ", 3 skipped: --offline, and ruff and clang-format are not there"
    except Problem as problem:
        say(f"style: {problem}")
        checks["ruff and clang-format"] = lambda: False
    complaints = [name for name, passes in checks.items() if not passes()]
    if complaints:
        say(f"style: complaints of {', '.join(complaints)} are above")
        say("style: tools/style.py fix corrects the format of files")
    passed = len(checks) - len(complaints)
    say(f"style: {passed} passed, {len(complaints)} failed{skipped}")
    return 1 if complaints else 0


def fix() -> int:
    bin_ = provide(PINS, cache_dir(), offline=False)
    done = [
        ruff(bin_, "check", "--fix")(),
        ruff(bin_, "format")(),
        run([bin_ / "clang-format", "-i", *cxx_files(own_files(ROOT))]),
    ]
    return 0 if all(done) else 1


def main() -> int:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("verb", choices=("check", "fix"))
    parser.add_argument("--offline", action="store_true", help="install nothing")
    args = parser.parse_args()
    return fix() if args.verb == "fix" else check(args.offline)


if __name__ == "__main__":
    run_main("style", main)
