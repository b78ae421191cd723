"""Data directories: loaded once with one server, then copied for every turn. All turns begin with identical bytes.

The copy is made after a clean shutdown. Every arm starts on it, which shows that the builds are drop-in replacements
of each other.
"""

import contextlib
import functools
import itertools
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from bench.runner.arms import TOP, Arm
from bench.workloads import sysbench_program
from harness.common import lock
from harness.problem import Problem
from harness.server import Server, initialise

WORK = TOP / "build" / "bench"

_in_use = contextlib.ExitStack()  # left at the end of the process


@functools.cache
def _alone() -> None:
    """Other benchmarks of this checkout wait from now until this process has ended."""
    _in_use.enter_context(lock(WORK / "lock", "running a benchmark"))


def template(
    workload: str,
    parameters: Mapping[str, object],
    arms: Sequence[Arm],
    options: Sequence[str],
    fill: Callable[[Server], None],
    base: Path | None = None,
) -> Path:
    """A folder with a filled data directory, which an earlier run may have made in the same way.

    `base`: another template, with whose data it begins.
    """
    _alone()
    folder = WORK / workload / "template"
    mark = folder / "prepared.json"
    source = next((arm for arm in arms if arm.name == "stock"), arms[0])
    # Not the server's version: a data directory of one 9.7 is good for any other.
    key = json.dumps(parameters, sort_keys=True)
    if not mark.exists() or mark.read_text() != key:
        print(f"{workload}: preparing the data with {source.name} (once; kept in {folder})", flush=True)
        _remove(folder.parent.glob("*"), source)
        folder.mkdir(parents=True)
        if base:
            shutil.copytree(base / "data", folder / "data")
        else:
            initialise(source.build(), folder / "data")
        with source.server(folder, options) as server:
            server.start()
            fill(server)
        mark.write_text(key)
    return folder


def sysbench(arms: Sequence[Arm]) -> Path:
    """A folder with the tables of sysbench."""
    program = sysbench_program
    return template("sysbench", program.data_key(), arms, program.MYSQLD_OPTIONS, program.fill)


@contextlib.contextmanager
def copy(source: Path, arm: Arm) -> Iterator[Path]:
    """A folder with a copy of a template, for one turn. Several may exist at a time."""
    if source not in _swept:
        _remove(source.parent.glob("turn*"), arm)
        _swept.add(source)
    names = (f"turn-{number}" for number in itertools.count())
    folder = next(path for name in names if not (path := source.with_name(name)).exists())
    try:
        shutil.copytree(source / "data", folder / "data")
        os.sync()  # the copy's pages are not to be written during the turn
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


_swept: set[Path] = set()


def _remove(folders: Iterable[Path], arm: Arm) -> None:
    """Remove the folders that a run has left. A server of a run that was killed may still use them."""
    for folder in folders:
        owner = Server(arm.build(), folder).socket_owner()
        if owner is not None:
            raise Problem(f"a server (process {owner}) still runs on {folder}; end it first")
        shutil.rmtree(folder, ignore_errors=True)
