"""A recording: samples of a server in a file of one JSON object in each line, the first of which describes it.

A line is written whole or not at all, and a last line that is cut off (the recorder was killed) is left out when read.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memdiag.files import json_of, read_text
from memdiag.problem import Problem

FORMAT = "memdiag-recording/1"


@dataclass(frozen=True)
class Recording:
    head: dict[str, Any]
    samples: list[dict[str, Any]]

    @property
    def every(self) -> float:
        """Seconds between two samples."""
        every = self.head.get("every")
        return every if isinstance(every, (int, float)) else 0


# Growth of so long ago is none of now.
FRESH_SECONDS = 900
_IDENTITY = ("server_uuid", "hostname", "port", "datadir")


def of_another_server(recording: Recording, snapshot: dict[str, Any]) -> str:
    """The reason why the recording is not of the server of the snapshot, as it runs now; "": it is."""
    then = recording.head.get("variables") or {}
    now = (snapshot["sources"].get("variables", {}).get("rows") or [{}])[0]
    # Without a network, the port is 0.
    common = [name for name in _IDENTITY if all(one.get(name) not in (None, "") for one in (then, now))]
    if "server_uuid" not in common and not {"hostname", "port", "datadir"} <= set(common):
        return "it is not known whether it is of this server"
    for name in common:
        if str(then[name]) != str(now[name]):
            return f"its {name} is {then[name]}, and this server's is {now[name]}"
    uptime = (snapshot["sources"].get("status", {}).get("rows") or [{}])[0].get("uptime")
    if not isinstance(uptime, int):
        return "it is not known when this server was started"
    if recording.samples[-1]["time"] < snapshot["time"] - uptime:
        return "this server was started after its last sample"
    return ""


def is_fresh(recording: Recording, now: float | None = None) -> bool:
    return recording.samples[-1]["time"] >= (time.time() if now is None else now) - FRESH_SECONDS


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
        one = json_of(line)
        if one is None and number == len(lines):
            break
        if not isinstance(one, dict) or (number > 1 and not isinstance(one.get("time"), (int, float))):
            raise Problem(f"{name} is damaged in line {number}")
        objects.append(one)
    if len(objects) < 2:
        raise Problem(f"{name} has no sample")
    return Recording(objects[0], objects[1:])
