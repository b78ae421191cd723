"""The packages' copyright file: the text of copyright.in with the holders and the licence of MySQL and jemalloc.

Each build takes the texts from the sources; this repository keeps no copy.
"""

import json
import re
from pathlib import Path

from harness.problem import Problem
from make.product import PACKAGING


def copyright_of(build: Path) -> str:
    """The text for the sources of a preset's build."""
    sources = json.loads((build / "sources.result.json").read_text())
    mysql = build / "mysql/LICENSE"
    jemalloc = Path(sources["jemalloc"]["tree"]) / "COPYING"
    return filled(
        (PACKAGING / "copyright.in").read_text(),
        holders(mysql)[:1],  # further lines are about parts of the source
        holders(jemalloc),
        licence(jemalloc),
    )


def filled(template: str, mysql: list[str], jemalloc: list[str], jemalloc_licence: str) -> str:
    """The text in Debian's format: continuation lines begin with a space, an empty line is a dot."""
    return (
        template.replace("@MYSQL_HOLDERS@", "\n ".join(mysql))
        .replace("@JEMALLOC_HOLDERS@", "\n ".join(jemalloc))
        .replace("@JEMALLOC_LICENCE@", "\n".join(f" {line or '.'}" for line in jemalloc_licence.splitlines()))
    )


def holders(path: Path) -> list[str]:
    """Years and names of all lines of copyright."""
    lines = re.findall(
        r"^\s*Copyright \(c\) (.+?)(?:\.\s+All rights reserved)?\.?$", path.read_text(), re.IGNORECASE | re.MULTILINE
    )
    if not lines:
        raise Problem(f"{path} names no holder of a copyright; correct packaging/make/licences.py")
    return lines


def licence(path: Path) -> str:
    """The text between the holders and the next rule."""
    found = re.search(r"^Redistribution and use.*?(?=\n--)", path.read_text(), re.MULTILINE | re.DOTALL)
    if not found:
        raise Problem(f"{path} has another licence than it had; correct packaging/make/licences.py")
    return found[0]
