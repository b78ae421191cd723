#!/usr/bin/env python3
"""The code that allocated what one more connection, statement, procedure, table or partition keeps.

README.md explains the figures.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.runner import arms as arm_list
from bench.runner import composition, objects, report, rounds
from harness.problem import run_main
from harness.server import Server
from harness.sql import Connection

# Each block is a sample, from each thread's beginning.
OPTIONS = ("--memdiag-profile=ON", "--memdiag-profile-sample-bytes=1", "--memdiag-profile-memory=1G")
STACKS = 16
READ = """
SELECT POOL, FRAMES, FOLDED, LIVE_BYTES FROM INFORMATION_SCHEMA.MEMDIAG_PROFILE WHERE LIVE_BYTES > 0
"""

Sizes = Counter[tuple[str, tuple[str, ...]]]  # bytes of each stack of a pool


def sizes(session: Connection) -> Sizes:
    found: Sizes = Counter()
    for pool, frames, folded, live in session.query(READ).rows:
        path = composition.path_of(str(frames), str(folded))
        found[str(pool), path] += int(live)
    return found


def growth(before: Sizes, after: Sizes) -> list[composition.Stack]:
    return [
        composition.Stack(pool, path, float(after[pool, path] - before[pool, path]), 0)
        for pool, path in sorted(set(before) | set(after))
        if after[pool, path] != before[pool, path]
    ]


def stacks_of(server: Server, kind: objects.Kind) -> list[composition.Stack]:
    """What the objects of the second step keep. The first ones also take memory that all share."""
    sessions: objects.Sessions = []
    try:
        objects.connect(server, sessions, range(kind.sessions()))
        kind.make(server, sessions, range(kind.step))
        with server.connect() as reader:
            before = sizes(reader)
            kind.make(server, sessions, range(kind.step, 2 * kind.step))
            return growth(before, sizes(reader))
    finally:
        for one in sessions:
            one.close()


def measure(arm: arm_list.Arm, folder: Path) -> dict[str, Any]:
    kinds = {}
    for kind in objects.KINDS.values():
        with arm.server(folder, (*objects.OPTIONS, *OPTIONS)) as server:
            server.start()
            stacks = stacks_of(server, kind)
        kinds[kind.name] = {
            "kib": sum(stack.bytes for stack in stacks) / kind.step / 1024,
            "groups": [
                {"pool": group.pool, "code": group.text(), "kib": group.bytes / kind.step / 1024}
                for group in composition.grouped([stack for stack in stacks if stack.bytes > 0], STACKS)
            ],
        }
    return {"kinds": kinds}


def render(raw: dict[str, Any]) -> str:
    blocks = ["# The code that allocated one more\n"]
    for arm, (run,) in raw["runs"].items():
        for kind, found in run["kinds"].items():
            rows = [[group["code"], group["pool"], f"{group['kib']:.1f}"] for group in found["groups"]]
            blocks += [
                f"\n## {kind}, {arm}: {found['kib']:.1f} KiB\n",
                report.table(["allocated by", "pool", "KiB"], rows),
            ]
    blocks.append(report.front_matter(raw))
    return "\n".join(blocks)


def main() -> int:
    parser = rounds.parser(__doc__.splitlines()[0], rounds=1, arms=("dev",), one_round=True)
    options = parser.parse_args()
    return rounds.run(
        "object_stacks",
        options,
        settings={"kinds": list(objects.KINDS), "mysqld": (*objects.OPTIONS, *OPTIONS)},
        prepare=objects.template,
        measure=rounds.one_by_one(measure),
        brief=lambda run: ", ".join(f"{kind} {found['kib']:.1f} KiB" for kind, found in run["kinds"].items()),
        render=render,
        seconds_each=60,
    )


if __name__ == "__main__":
    run_main("object_stacks", main)
