"""memdiag stacks: the stacks that hold most, with source lines and inlined functions."""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from dataclasses import asdict
from pathlib import Path
from typing import Any

from memdiag.collect import lines
from memdiag.commands.arguments import chosen_targets
from memdiag.connect.session import Refused, Row, Session
from memdiag.model.units import count, size
from memdiag.model.words import printable
from memdiag.problem import Problem, WrongOption

FORMAT = "memdiag-stacks/1"
MOST = 10


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("server", nargs="?", help="where it is not named by options")
    parser.add_argument("--top", type=int, default=MOST, metavar="N", help="so many stacks (default: %(default)s)")
    parser.add_argument(
        "--debug-folder",
        action="append",
        type=Path,
        default=[],
        metavar="FOLDER",
        help=f"also look for debug files here, named as in {lines.DEBUG_FOLDER}",
    )
    parser.add_argument("--json", action="store_true")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    if options.top < 1:
        raise WrongOption("--top must be 1 or more")
    (target,) = chosen_targets(options, [options.server] if options.server else [])
    with Session(target) as session:
        stacks, frames = read(session, options.top)
    folders = (*options.debug_folder, lines.DEBUG_FOLDER)
    known, missing = lines_of_modules(frames, folders)
    if options.json:
        document = {"format": FORMAT, "stacks": plain(stacks, frames, known), "without_lines": missing}
        print(json.dumps(document, indent=1))
    else:
        print(printable("\n".join(shown(stacks, frames, known, missing))))
    return 0


def read(session: Session, top: int) -> tuple[list[Row], list[Row]]:
    """The largest stacks, and the frames of these."""
    try:
        stacks = session.rows(
            f"SELECT STACK, POOL, ROUTE, LIVE_BYTES, LIVE_BYTES_ERROR, LIVE_OBJECTS, DIGEST FROM information_schema.MEMDIAG_PROFILE WHERE STACK IS NOT NULL AND LIVE_BYTES > 0 ORDER BY LIVE_BYTES DESC LIMIT {top}"
        )
        if not stacks:
            raise Problem(
                "the heap profile is empty: it is off (SET GLOBAL memdiag_profile = ON), or no block that it sampled"
                " lives now"
            )
        numbers = ", ".join(str(row["STACK"]) for row in stacks)
        frames = session.rows(
            f"SELECT STACK, FRAME, ADDRESS, `FUNCTION`, MODULE, MODULE_ADDRESS, BUILD_ID FROM information_schema.MEMDIAG_STACKS WHERE STACK IN ({numbers}) ORDER BY STACK, FRAME"
        )
    except Refused as refused:
        if refused.code == 1109:
            raise Problem("this server has no heap profile") from None
        raise Problem(f"the heap profile cannot be read: {refused}") from None
    return stacks, frames


# The server's list is allocator_frames in plugin/memdiag/profile/frames_text.cc. Behind these, its helpers differ.
_ALLOCATOR = ("je_", "prof_", "memdiag_", "memdiag::pools::", "memdiag::profiling::", "memdiag::routes::")
Places = dict[tuple[str, int], list[lines.Line]]


def lines_of_modules(frames: list[Row], folders: tuple[Path, ...]) -> tuple[Places, list[str]]:
    """Lines by build id and address, and what has none, in words."""
    if lines.symbolizer() is None:
        return {}, ["no lines: install llvm or binutils (llvm-symbolizer, addr2line)"]
    addresses = defaultdict(set)
    paths = {}
    for frame in frames:
        if frame["BUILD_ID"] and frame["MODULE_ADDRESS"]:
            addresses[frame["BUILD_ID"]].add(int(frame["MODULE_ADDRESS"], 16))
            paths[frame["BUILD_ID"]] = frame["MODULE"]
    known: Places = {}
    missing = []
    for one, of_module in sorted(addresses.items()):
        path = lines.debug_file(paths[one], one, folders)
        found = lines.lines_of(path, of_module) if path else {}
        if not found:
            missing.append(f"no lines of {paths[one]}: no debug information for build id {one} is installed here")
        for address, places in found.items():
            known[one, address] = places
    return known, missing


def shown(stacks: list[Row], frames: list[Row], known: Places, missing: list[str]) -> list[str]:
    result = []
    for stack in stacks:
        result.append(
            f"{size(stack['LIVE_BYTES'])} ± {size(stack['LIVE_BYTES_ERROR'])} in {count(stack['LIVE_OBJECTS'])} blocks,"
            f" pool {stack['POOL'] or 'unknown'}, {stack['ROUTE']}, stack {stack['STACK']}"
        )
        if stack["DIGEST"]:
            result.append(f"  statement {stack['DIGEST']}")
        for frame in _of_callers([frame for frame in frames if frame["STACK"] == stack["STACK"]]):
            result += ["  " + words for words in of_frame(frame, known)]
        result.append("")
    return result + missing if missing else result[:-1]


def _of_callers(frames: list[Row]) -> list[Row]:
    """Without the profiler and the allocator, which each stack begins with. All, if there is nothing else."""
    first = next((i for i, one in enumerate(frames) if not (one["FUNCTION"] or "").startswith(_ALLOCATOR)), 0)
    return frames[first:]


def plain(stacks: list[Row], frames: list[Row], known: Places) -> list[dict[str, Any]]:
    """As JSON: the rows of the tables with names in lower case. `lines` of a frame: the innermost function first."""
    return [
        _lower(stack)
        | {
            "frames": [
                _lower(frame) | {"lines": [asdict(one) for one in _places(frame, known)]}
                for frame in frames
                if frame["STACK"] == stack["STACK"]
            ]
        }
        for stack in stacks
    ]


def _lower(row: Row) -> dict[str, Any]:
    return {name.lower(): value for name, value in row.items()}


def _places(frame: Row, known: Places) -> list[lines.Line]:
    address = frame["MODULE_ADDRESS"]
    return known.get((frame["BUILD_ID"], int(address, 16)), []) if address else []


def of_frame(frame: Row, known: Places) -> list[str]:
    places = _places(frame, known)
    if not places:
        return [frame["FUNCTION"] or f"{frame['MODULE'] or '?'} {frame['MODULE_ADDRESS'] or frame['ADDRESS']}"]
    words = [f"{one.function}  {one.place}".rstrip() for one in places]
    return [*(f"{line}  (inlined)" for line in words[:-1]), words[-1]]
