#!/usr/bin/env python3
"""Removes precompiled headers that ninja is about to make anew.

  tools/build/old_headers.py BUILD_FOLDER [NINJA]

ccache takes an old one that is still there for an input of the new one. No other build folder has that input: it would
make the header anew, and, as each compilation of one differs, compile every file that uses it.
"""

import argparse
import subprocess
from pathlib import Path


def inputs(ninja: str, build: Path, headers: list[Path]) -> dict[Path, list[Path]]:
    """What ninja knows each was made from."""
    names = [str(header.relative_to(build)) for header in headers]
    done = subprocess.run([ninja, "-t", "deps", *names], cwd=build, capture_output=True, text=True, check=False)
    made: dict[Path, list[Path]] = {}
    of: list[Path] = []
    for line in done.stdout.splitlines():
        if line.startswith(" "):
            of.append(build / line.strip())
        elif ":" in line:
            of = made.setdefault(build / line.partition(":")[0], [])
    return made


def is_old(header: Path, made_from: list[Path]) -> bool:
    made = header.stat().st_mtime_ns
    return not made_from or any(not path.exists() or path.stat().st_mtime_ns > made for path in made_from)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("ninja", nargs="?", default="ninja", help="the program (default: %(default)s)")
    options = parser.parse_args()
    headers = list(options.build.rglob("cmake_pch.hxx.gch"))
    made_from = inputs(options.ninja, options.build, headers) if headers else {}
    for header in headers:
        if is_old(header, made_from.get(header, [])):
            header.unlink()


if __name__ == "__main__":
    main()
