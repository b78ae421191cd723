"""A recording: samples of a server in a file of one JSON object in each line, the first of which describes it.

A line is written whole or not at all, and a last line that is cut off (the recorder was killed) is left out when read.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memdiag.files import read_text
from memdiag.problem import Problem

FORMAT = "memdiag-recording/1"


@dataclass(frozen=True)
class Recording:
    head: dict[str, Any]
    samples: list[dict[str, Any]]


def is_recording(text: str) -> bool:
    return FORMAT in text[:200]


def read_recording(path: Path) -> Recording:
    return parsed(read_text(path), str(path))


def parsed(text: str, name: str) -> Recording:
    lines = text.splitlines()
    if not is_recording(text):
        raise Problem(f"{name} is no recording of memdiag record")
    objects = []
    for number, line in enumerate(lines, 1):
        try:
            one = json.loads(line)
        except ValueError:
            if number == len(lines):
                break
            one = None
        if not isinstance(one, dict) or (number > 1 and "time" not in one):
            raise Problem(f"{name} is damaged in line {number}")
        objects.append(one)
    if len(objects) < 2:
        raise Problem(f"{name} has no sample")
    return Recording(objects[0], objects[1:])
