"""Snapshots of real servers in driven states, recorded by `client/check/states.py --keep`; the idle ones are servers with
their defaults, some minutes after the start. `python3 -m tests.fixtures FOLDER` makes them small and puts them into
fixtures.tar.xz: names are replaced, and the history is thinned. They lie in one archive because they resemble each other:
it has a quarter of the size of single ones."""

from __future__ import annotations

import copy
import functools
import io
import json
import sys
import tarfile
from pathlib import Path
from typing import Any

from memdiag.anonymize import anonymized
from memdiag.collect.snapshot import thinned

ARCHIVE = Path(__file__).resolve().parent / "fixtures.tar.xz"


@functools.cache
def _texts() -> dict[str, bytes]:
    with tarfile.open(ARCHIVE) as archive:
        return {one.name.removesuffix(".json"): archive.extractfile(one).read() for one in archive}


def names() -> list[str]:
    return sorted(_texts())


def snapshot(name: str) -> dict[str, Any]:
    return json.loads(_texts()[name])


def today(name: str) -> dict[str, Any]:
    """A snapshot with answers to what memdiag asks since the servers of others were recorded, as far as they are known:
    client/check/states.py makes servers without replication, whose sessions keep no tables open, and the session of the
    recording is the one whose statement ran. What all sessions have is the sum of their users', and none slept for a
    minute, so the idle ones have 0."""
    data = snapshot(name)
    if data["server"]["flavour"] == "memdiag":
        return data
    sources = data["sources"]
    own = [
        {"SYSTEM_SESSION": row["PROCESSLIST_ID"]}
        for row in sources.get("threads", {}).get("rows", ())
        if row["COMMAND"] == "Query"
    ]
    answers = {
        "system_sessions": own,
        "system_threads": [],
        "table_keepers": [{"KEEPERS": 0}],
        "lock_keepers": [],
        "ddl_sessions": [],
    }
    users = [row for row in sources.get("users", {}).get("rows", ()) if row["USER"] not in (None, "event_scheduler")]
    if users and not sources["sessions"]["rows"][0]["SLEEPING_60"]:
        idle = {f"IDLE_{seconds}_BYTES": 0 for seconds in (60, 600, 3600)}
        answers["session_bytes"] = [{"SESSION_BYTES": sum(row["BYTES"] for row in users)} | idle]
    for source, rows in answers.items():
        sources.setdefault(source, {"source": source, "rows": rows, "error": None})
    return data


def small(data: dict[str, Any]) -> dict[str, Any]:
    data = anonymized(copy.deepcopy(data))
    sources = data["sources"]
    for name in ("memdiag_tables", "columns"):
        if name in sources:
            sources[name]["rows"] = []
    history = sources.get("memdiag_history")
    if history:
        history["rows"] = thinned(history["rows"], "RSS_BYTES", 40)
        times = {row["TIME"] for row in history["rows"]}
        pools = sources["memdiag_history_pools"]
        pools["rows"] = [row for row in pools["rows"] if row["TIME"] in times]
    return data


def write(texts: dict[str, bytes]) -> None:
    with tarfile.open(ARCHIVE, "w:xz", preset=9) as archive:
        for name, text in sorted(texts.items()):
            about = tarfile.TarInfo(f"{name}.json")
            about.size = len(text)
            archive.addfile(about, io.BytesIO(text))


if __name__ == "__main__":
    recorded = {path.stem: json.loads(path.read_text()) for path in Path(sys.argv[1]).glob("*.json")}
    write(_texts() | {name: json.dumps(small(data), separators=(",", ":")).encode() for name, data in recorded.items()})
