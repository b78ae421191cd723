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


# 9999-12-31: datetime knows no later time.
_LAST_TIME = 253_402_300_799
_FIGURES = ("rss", "swap", "limit", "used", "buffer_pool", "pool_in_rss", "counted", "unused", "sessions", "uptime")


def _is_head(one: Any) -> bool:
    return isinstance(one, dict) and all(
        one.get(name) is None or isinstance(one[name], dict) for name in ("variables", "server")
    )


def _is_sample(one: Any) -> bool:
    """Its members are those of collect/sample.py."""
    if not isinstance(one, dict) or not _is_figure(one.get("time")) or not 0 <= one["time"] <= _LAST_TIME:
        return False
    groups = [{} if one.get(name) is None else one[name] for name in ("pools", "instruments", "ceiling")]
    if not all(isinstance(group, dict) for group in groups):
        return False
    pools, instruments, ceiling = groups
    return (
        all(one.get(name) is None or _is_figure(one[name]) for name in _FIGURES)
        and isinstance(one.get("limit_of"), (str, type(None)))
        and all(map(_is_figure, instruments.values()))
        and all(part is None or _is_figure(part) for part in ceiling.values())
        and all(
            isinstance(pool, list) and len(pool) == 2 and all(part is None or _is_figure(part) for part in pool)
            for pool in pools.values()
        )
    )


def _is_figure(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 2**64


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
        if not (_is_head(one) if number == 1 else _is_sample(one)):
            raise Problem(f"{name} is damaged in line {number}")
        objects.append(one)
    if len(objects) < 2:
        raise Problem(f"{name} has no sample")
    return Recording(objects[0], objects[1:])
