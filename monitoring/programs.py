"""Programs of Debian's archive that make and test the configurations: jsonnet, promtool, prometheus,
prometheus-sql-exporter.

Programs in PATH are used. The others are unpacked into the cache. Nothing is installed, and no service starts.
"""

import os
import shutil
import subprocess
from pathlib import Path

from harness.common import cache_dir
from harness.problem import Problem
from harness.programs import captured
from harness.unpacked import unpacked

NAMES = ("jsonnet", "promtool", "prometheus", "prometheus-sql-exporter")
FOLDER = "monitoring-programs"
PACKAGES = ("jsonnet", "libjsonnet0", "prometheus", "prometheus-sql-exporter")


def provide() -> Path:
    """The folder of the unpacked packages. Raises a Problem if the archive does not deliver them."""
    return unpacked(FOLDER, PACKAGES)


def program(name: str) -> str:
    if found := shutil.which(name):
        return found
    return str(provide() / "usr/bin" / name)


def all_present() -> None:
    """Fetches what is missing. A check calls this before it leaves the machine's network."""
    for name in NAMES:
        program(name)


def environment() -> dict[str, str]:
    """The environment for programs of provide(), whose libraries are beside them."""
    folder = cache_dir() / FOLDER
    libraries = [str(path) for path in folder.glob("usr/lib/*-linux-gnu")]
    if before := os.environ.get("LD_LIBRARY_PATH"):
        libraries.append(before)
    return {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(libraries)}


def start(name: str, *words: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [program(name), *map(str, words)]
    return captured(command, cwd=cwd, env=environment())


def run(name: str, *words: object, cwd: Path | None = None) -> str:
    """Returns the program's output. Raises a Problem with its messages if it fails."""
    done = start(name, *words, cwd=cwd)
    if done.returncode:
        raise Problem(f"{name} failed: {(done.stdout + done.stderr).strip()}")
    return done.stdout
