"""Moments of a server's memory to compare: of a report, of a recording, or of a server now."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from memdiag.collect.sample import WORTH_BYTES
from memdiag.collect.snapshot import MOST_STACKS
from memdiag.connect.options import PATHS
from memdiag.files import json_of, read_text
from memdiag.model.units import duration, moment
from memdiag.model.view import View, total
from memdiag.problem import Problem
from memdiag.recording import Recording, is_recording, parsed
from memdiag.render.json import FORMAT as REPORT_FORMAT


@dataclass
class Moment:
    label: str
    time: float
    rss: int | None
    # {kind: {name: bytes}}: pool, route, instrument, stack. None: not known
    parts: dict[str, dict[str, int | None]] = field(default_factory=dict)
    # {kind: bytes}: a part that is not there has at most so many, as its source leaves out smaller ones
    cut: dict[str, int] = field(default_factory=dict)
    # The recording's file, and the number of restarts in it until then. None: the moment is of no recording
    run: tuple[str, int] | None = None
    # Why the recording has no figures after it, of a moment that was asked for as the last one
    down: str = ""


_ENDS = (".html", ".json", ".rec")
_OF_A_FILE = re.compile(r"(.+?)@(?:first|last|peak|\d+|\d{4}-\d\d-.*)")


def is_file(operand: str) -> bool:
    """A file of ours; a socket is a server. @raises Problem if it is named as a file and is none"""
    path = Path(operand)
    if path.exists():
        return path.is_file()
    moment_of = _OF_A_FILE.fullmatch(operand)
    named = moment_of[1] if moment_of else operand if operand.endswith(_ENDS) else ""
    file = Path(operand.rpartition("@")[0])
    # A file may have the name of an account: user@host is a server.
    if file.is_file() and (named or operand.startswith(PATHS) or file.suffix in _ENDS or _is_ours(file)):
        return True
    if named:
        raise Problem(f"there is no file {named}")
    if operand.startswith(PATHS):
        raise Problem(f"there is neither a file nor a socket {operand}")
    return False


def _is_ours(path: Path) -> bool:
    """One that cannot be read is, too: its reader tells why."""
    try:
        with path.open("rb") as file:
            begin = file.read(200).decode(errors="replace")
    except OSError:
        return True
    return is_recording(begin) or REPORT_FORMAT in begin or begin.startswith("<!doctype html>")


def of_file(operand: str) -> Moment:
    """REPORT.json, REPORT.html, REPORT@SERVER, RECORDING, or RECORDING@first, @last, @peak, @NUMBER,
    @2026-11-22T03:00:00."""
    path, when = split(operand)
    text = read_text(Path(path))
    if is_recording(text):
        recording = parsed(text, path)
        sample = _chosen(recording, when or "last", path)
        return replace(
            of_sample(f"{path}{'@' + when if when else ''}", sample),
            run=(os.path.realpath(path), _restarts(recording.samples, sample)),
            down=str(recording.samples[-1].get("down") or "") if when in ("", "last") else "",
        )
    return of_snapshot(snapshot_of(text, path, when), operand)


def split(operand: str) -> tuple[str, str]:
    """The file, and what follows its last @."""
    path, _, when = (operand, "", "") if Path(operand).is_file() else operand.rpartition("@")
    return path, when


def snapshot_of(text: str, name: str, label: str = "") -> dict[str, Any]:
    """@raises Problem if the page has several servers, and `label` names none of them"""
    found = snapshots_of(text, name)
    named = [one for one in found if one["label"] == label] if label else found
    if len(named) != 1:
        labels = ", ".join(f"{name}@{one['label']}" for one in found)
        raise Problem(f"{name} has {len(found)} servers; say which: {labels}" if not label else f"say one of {labels}")
    return named[0]


def snapshots_of(text: str, name: str) -> list[dict[str, Any]]:
    found = re.search(r'<script type="application/json" id="memdiag-data">(.*?)</script>', text, re.S)
    data = json_of(found[1] if found else text)
    if not isinstance(data, dict) or data.get("format") != REPORT_FORMAT or not data.get("snapshots"):
        raise Problem(f"{name} is neither a report (HTML or JSON) nor a recording of memdiag")
    return data["snapshots"]


def of_snapshot(snapshot: dict[str, Any], label: str = "") -> Moment:
    view = View(snapshot)
    parts: dict[str, dict[str, int | None]] = {
        "pool": {name: one.get("live") for name, one in view.pool_states().items()},
        "route": {row["ROUTE"]: row["LIVE_BYTES"] for row in view.rows("memdiag_routes")},
        "instrument": {row["EVENT_NAME"]: row["BYTES"] for row in view.rows("memory")},
        "stack": {},
    }
    for row in view.rows("memdiag_profile"):
        name = row.get("FOLDED") or row.get("STACK")
        if name is not None:
            stacks = parts["stack"]
            stacks[str(name)] = total([stacks.get(str(name), 0), row.get("LIVE_BYTES")])
    listed = [row.get("LIVE_BYTES") for row in view.rows("memdiag_profile")]
    known = [size for size in listed if size is not None]
    return Moment(
        label or view.label,
        snapshot["time"],
        view.rss,
        {kind: found for kind, found in parts.items() if found},
        {"stack": min(known)} if len(listed) >= MOST_STACKS and known else {},
    )


def of_sample(label: str, sample: dict[str, Any]) -> Moment:
    parts = {
        "pool": {name: live for name, (live, _) in (sample.get("pools") or {}).items()},
        "instrument": sample.get("instruments") or {},
    }
    return Moment(
        label,
        sample["time"],
        sample.get("rss"),
        {kind: found for kind, found in parts.items() if found},
        {"instrument": WORTH_BYTES},
    )


def _restarts(samples: list[dict[str, Any]], until: dict[str, Any]) -> int:
    """How many there were until the sample, which is one of them."""
    found = 0
    for sample in samples:
        found += bool(sample.get("restarted"))
        if sample is until:
            break
    return found


def _chosen(recording: Recording, when: str, name: str) -> dict[str, Any]:
    samples = recording.samples
    known = [sample for sample in samples if not sample.get("down")]
    if not known:
        raise Problem(f"{name} has no sample of a server that was up")
    if when in ("first", "last"):
        return known[0 if when == "first" else -1]
    if when == "peak":
        return max(known, key=lambda sample: sample.get("rss") or 0)
    if when.isdecimal() and 1 <= int(when) <= len(samples):
        sample = samples[int(when) - 1]
        if sample.get("down"):
            raise Problem(f"{name}@{when} has no figures: the server did not answer")
        return sample
    # Python has read Z for UTC since 3.11.
    when = re.sub(r"Z$", "+00:00", when)
    try:
        asked = datetime.fromisoformat(when.removesuffix(" UTC"))
    except ValueError:
        raise Problem(
            f"{name}@{when}: write @first, @last, @peak, a number up to {len(samples)}, or a time (UTC) such as 2026-11-22T03:00:00"
        ) from None
    if asked.tzinfo is None:
        asked = asked.replace(tzinfo=timezone.utc)  # as reports and recordings show it
    epoch = asked.timestamp()
    nearest = min(known, key=lambda sample: abs(sample["time"] - epoch))
    # A time is shown in whole seconds.
    near = max(recording.every, 1)
    if abs(nearest["time"] - epoch) > near:
        first, last = (moment(sample["time"]) for sample in (samples[0], samples[-1]))
        raise Problem(f"{name} has no sample within {duration(near)} of {when}: it is from {first} to {last}")
    return nearest
