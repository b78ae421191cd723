"""Data directories for the arms: loaded once with one server, then copied, so that all arms read identical bytes.

The copy is made after a clean shutdown. That every arm starts on it also shows that the builds are drop-in
replacements of each other.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bench.arms import TOP, Arm
from tools.common import lock
from tools.server import Server, initialise

WORK = TOP / "build" / "bench"

_in_use = contextlib.ExitStack()  # left at the end of the process


def folders(
    workload: str,
    parameters: Mapping[str, object],
    arms: Sequence[Arm],
    options: Sequence[str],
    fill: Callable[[Server], None],
) -> dict[str, Path]:
    """A folder with a filled data directory for every arm.

    What an earlier run prepared the same way is kept. Other benchmarks of this
    checkout wait from now until this process has ended.
    """
    _in_use.enter_context(lock(WORK / "lock", "running a benchmark"))
    folder = WORK / workload
    template = folder / "template"
    source = next((arm for arm in arms if arm.name == "stock"), arms[0])
    # Not the server's version: a data directory of one 9.7 is good for any other.
    key = json.dumps(parameters, sort_keys=True)
    if not _complete(template, key):
        print(
            f"{workload}: preparing the data with {source.name} (once; kept in {folder})",
            flush=True,
        )
        # The copies are of other data now.
        shutil.rmtree(folder, ignore_errors=True)
        template.mkdir(parents=True)
        initialise(source.build(), template / "data")
        with Server(source.build(), template, options, source.environment()) as server:
            server.start()
            fill(server)
        _mark(template, key)
    result = {}
    for arm in arms:
        own = folder / arm.name
        if not _complete(own, key):
            shutil.rmtree(own, ignore_errors=True)
            own.mkdir()
            shutil.copytree(template / "data", own / "data")
            _mark(own, key)
        result[arm.name] = own
    return result


def _complete(folder: Path, key: str) -> bool:
    try:
        return (folder / "prepared.json").read_text() == key
    except FileNotFoundError:
        return False


def _mark(folder: Path, key: str) -> None:
    (folder / "prepared.json").write_text(key)
