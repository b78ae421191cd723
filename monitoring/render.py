#!/usr/bin/env python3
"""Makes the exporter's configuration and the rules from their jsonnet sources.

monitoring/render.py          writes the files
monitoring/render.py check    fails where a file is not as its source says
"""

import argparse
import json
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness.common import ROOT, say
from harness.problem import Problem, run_main
from monitoring import programs

FOLDER = ROOT / "monitoring"


def sources() -> list[Path]:
    return sorted([*FOLDER.rglob("*.jsonnet"), *FOLDER.rglob("*.libsonnet")])


def rendered() -> dict[Path, str]:
    """{file: its text}, as the sources say."""
    made = json.loads(programs.run("jsonnet", FOLDER / "render.jsonnet"))
    # Older versions of jsonnet put all keys of YAML in quotes.
    return {
        FOLDER / name: re.sub(r'(?m)^([ -]*)"([A-Za-z_]+)":', r"\1\2:", text) if name.endswith(".yml") else text
        for name, text in made.items()
    }


def check() -> int:
    """Returns the number of files. Raises a Problem that names the files that differ."""
    programs.run("jsonnetfmt", "--test", *sources())
    files = rendered()
    stale = [
        str(path.relative_to(ROOT)) for path, text in files.items() if not path.is_file() or path.read_text() != text
    ]
    if stale:
        raise Problem(f"not as the source says: {', '.join(stale)}; run monitoring/render.py")
    return len(files)


def write() -> int:
    programs.run("jsonnetfmt", "--in-place", *sources())
    files = rendered()
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return len(files)


def main() -> int:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("verb", nargs="?", default="write", choices=("write", "check"))
    verb = parser.parse_args().verb
    say(f"{check() if verb == 'check' else write()} files")
    return 0


if __name__ == "__main__":
    run_main("render", main)
