"""Source lines of addresses, with the functions that the compiler inlined, from debug information on this machine.

A file counts only if it has the build id of the module that ran; a line is right or missing. Debug information is looked
for in the debug packages' folder (/usr/lib/debug/.build-id) and then in the module itself. Nothing is downloaded: the
programs are told to ask no server of debug information.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

DEBUG_FOLDER = Path("/usr/lib/debug/.build-id")
SECONDS = 300


@dataclass(frozen=True)
class Line:
    """A function at a line: of one address the innermost first, each inlined into the next."""

    function: str
    place: str  # file:line; "" where only the function is known


def symbolizer() -> str | None:
    """The program that reads debug information; None: neither is installed."""
    return shutil.which("llvm-symbolizer") or shutil.which("addr2line")


def build_id(path: Path) -> str:
    """In hexadecimal; "" where the file cannot be read or has none."""
    try:
        done = subprocess.run(
            ["readelf", "-n", str(path)], capture_output=True, text=True, check=False, timeout=SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = re.search(r"Build ID: ([0-9a-f]+)", done.stdout)
    return found[1] if found else ""


def debug_file(module: str, wanted: str, folders: Sequence[Path] = (DEBUG_FOLDER,)) -> Path | None:
    """The file that has the lines of a module with this build id."""
    if not re.fullmatch(r"[0-9a-f]{4,128}", wanted):
        return None
    places = [folder / wanted[:2] / f"{wanted[2:]}.debug" for folder in folders]
    for path in (*places, Path(module)):
        if path.is_file() and build_id(path) == wanted:
            return path
    return None


def lines_of(path: Path, addresses: Iterable[int], program: str | None = None) -> dict[int, list[Line]]:
    """Lines of those addresses of the file that have one. `program`: llvm-symbolizer or addr2line."""
    program = program or symbolizer()
    asked = sorted(set(addresses))
    if program is None or not asked:
        return {}
    if "llvm" in Path(program).name:
        command = [program, "--obj", str(path), "--output-style=GNU", "--addresses", "--demangle", "--inlines"]
    else:
        command = [program, "-a", "-C", "-f", "-i", "-e", str(path)]
    try:
        done = subprocess.run(
            command,
            input="".join(f"{address:#x}\n" for address in asked),
            capture_output=True,
            text=True,
            errors="replace",
            env={**os.environ, "DEBUGINFOD_URLS": ""},
            check=False,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        return {}
    return parse(done.stdout)


def parse(text: str) -> dict[int, list[Line]]:
    """`0xADDRESS`, then a function and `file:line (discriminator n)` in turn, both "??" where they are not known."""
    found: dict[int, list[Line]] = {}
    lines = iter(text.splitlines())
    address = None
    for line in lines:
        if re.fullmatch(r"0x[0-9a-f]+", line):
            address = int(line, 16)
            continue
        place = re.sub(r" \(discriminator \d+\)$", "", next(lines, ""))
        if address is not None and line and not line.startswith("??"):
            known = not re.search(r"(^|:)\?\?|:[0?]$", place)
            found.setdefault(address, []).append(Line(line, place if known else ""))
    # A function without any line is what the server shows, too.
    return {at: known for at, known in found.items() if any(one.place for one in known)}
