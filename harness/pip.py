"""Packages of PyPI in the cache, got as pip is configured on this machine."""

import hashlib
import shutil
import sys
import tempfile
from pathlib import Path

from harness.common import cache_dir, lock, say
from harness.problem import Problem
from harness.programs import captured
from harness.server import last_line

BAD_HASH = "DO NOT MATCH THE HASHES"  # of pip


def installed(name: str, pins: str) -> Path:
    """The folder of what requirements with hashes pin. Other pins are another folder. Raises a Problem if pip cannot
    install them."""
    folder = cache_dir() / f"{name}-{hashlib.sha256(pins.encode()).hexdigest()[:12]}"
    with lock(cache_dir() / f"{name}.lock", f"installing {name}"):
        if not folder.is_dir():
            say(f"-- installing {name} into {folder}")
            unfinished = folder.with_suffix(".unfinished")
            shutil.rmtree(unfinished, ignore_errors=True)
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes"]
            # pip takes pins with hashes from a file alone.
            with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
                file.write(pins)
                file.flush()
                done = captured([*command, "--only-binary", ":all:", "--target", unfinished, "-r", file.name])
            if done.returncode:
                # Behind a wrong hash, the last lines are hashes.
                wrong = [line for line in done.stderr.splitlines() if BAD_HASH in line]
                raise Problem(f"{name} could not be installed: {wrong[0] if wrong else last_line(done.stderr)}")
            unfinished.rename(folder)
    return folder
