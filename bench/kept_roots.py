#!/usr/bin/env python3
"""What a prepared statement and a cached procedure consist of: each allocation from the memory root that is kept.

README.md explains the figures.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.runner import arms as arm_list
from bench.runner import objects, report, rounds
from harness.problem import Problem, run_main
from harness.server import Server
from harness.sql import Connection

FRAMES = 8
SHOWN_BYTES = 100
PATIENCE_SECONDS = 60.0
# THD::mem_root, behind two tables of virtual functions and the list of items; MEM_ROOT begins with its current block,
# the beginning and the end of what is free in it. The script checks that the three fit together.
ROOT_IN_THD = 24
# A block begins with a pointer to the one before, and its end.
BLOCK_HEAD = 16
# At the last stop `register` has the THD. From there gdb stops at each change of the beginning of what is free.
FOLLOW = """\
silent
set $root = *(long *)(${register} + {offset})
set $free = *(long *)($root + 8)
printf "ROOT %ld %ld %ld\\n", *(long *)$root, $free, *(long *)($root + 16)
watch *(long *)($root + 8)
commands
silent
printf "MOVED %ld\\n", *(long *)($root + 8) - $free
set $free = *(long *)($root + 8)
backtrace {frames}
continue
end
continue"""
SCRIPT = """\
set pagination off
set confirm off
handle SIGUSR1 SIGUSR2 SIGALRM SIGTERM SIGHUP nostop noprint pass
{stops}
break {end}
commands
silent
echo ENDED\\n
detach
quit
end
shell touch {ready}
continue
"""
# These move to another block, or to another root.
MOVES = ("MEM_ROOT::ForceNewBlock", "MEM_ROOT::MEM_ROOT")
# These allocate for others: the first function behind them is the one that wanted the memory.
CARRIERS = re.compile(
    r"^(MEM_ROOT::|operator new|Item::operator new|Parse_tree_node_tmpl<.*>::operator new|mem_root_deque<|base_list::"
    r"|List<|Mem_root_array|strmake_root|memdup_root|sql_strmake|Query_arena::|Bounds_checked_array<)"
)


@dataclass(frozen=True)
class Kind:
    """gdb follows from the last of `stops`, where `register` has the THD, to `end`."""

    stops: tuple[str, ...]
    register: str
    end: str
    run: Callable[[Connection], object]

    def script(self, ready: Path) -> str:
        """gdb makes the file `ready` when it can follow."""
        inner = FOLLOW.format(register=self.register, offset=ROOT_IN_THD, frames=FRAMES)
        for stop in reversed(self.stops):
            outer = f"tbreak {stop}\ncommands\n{inner}\nend"
            inner = f"silent\n{outer}\ncontinue"
        return SCRIPT.format(stops=outer, end=self.end, ready=ready)


def prepare(session: Connection) -> None:
    session.query(f"PREPARE kept FROM '{objects.JOIN.format('?')}'")
    session.query("DEALLOCATE PREPARE kept")


KINDS = {
    "prepared statement": Kind(
        ("Prepared_statement::prepare", "parse_sql"), "rdi", "Prepared_statement::deallocate", prepare
    ),
    # The parser makes the same of CREATE PROCEDURE as of the first CALL in a session.
    "cached procedure": Kind(
        ("sp_head::reset_lex",), "rsi", "sp_head::~sp_head", lambda session: session.query(objects.procedure("kept"))
    ),
}


def allocations(text: str) -> Iterator[tuple[str, int]]:
    """The function that wanted it and the bytes of each allocation, from gdb's output."""
    found = re.search(r"^ROOT (\d+) (\d+) (\d+)$", text, re.M)
    if not found or "\nENDED" not in text:
        raise Problem(f"gdb did not follow the memory root; it said:\n{text[-800:]}")
    block, free, end = map(int, found.groups())
    if not block < free <= end:
        raise Problem("this server's THD has its memory root in another place")
    yield "what was there before the parser began", free - block - BLOCK_HEAD
    for part in text.split("\nMOVED ")[1:]:
        number, _, rest = part.partition("\n")
        frames = re.findall(r"^#\d+ +(?:0x\w+ in )?(.+?) \(.*\) at (?:\S*/)?(\S+):\d+$", rest, re.M)
        if frames and frames[0][0] in MOVES:
            continue
        wanted = [f"{name}, {file}" for name, file in frames if not CARRIERS.match(name)]
        yield (wanted[0] if wanted else "?"), int(number)


def follow(server: Server, kind: Kind) -> list[tuple[str, int]]:
    with tempfile.TemporaryDirectory() as name, server.connect(objects.DATABASE) as session:
        script, output, ready = (Path(name) / part for part in ("script", "output", "ready"))
        script.write_text(kind.script(ready))
        command = ["gdb", "-q", "-batch", "-nx", "-x", script, "-p", str(server.pid)]
        # A pipe would be full before the statement, which waits for gdb, has ended.
        with open(output, "w") as said:
            gdb = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        try:
            while not ready.exists() and gdb.poll() is None:
                time.sleep(0.1)
            if gdb.poll() is None:
                kind.run(session)
                gdb.wait(PATIENCE_SECONDS)
        finally:
            gdb.terminate()
            gdb.wait()
        return list(allocations(output.read_text()))


def measure(arm: arm_list.Arm, folder: Path) -> dict[str, Any]:
    kinds = {}
    with arm.server(folder, objects.OPTIONS) as server:
        server.start()
        with server.connect(objects.DATABASE) as session:
            session.query(objects.JOIN.format(0))  # opens the tables
        for name, kind in KINDS.items():
            kinds[name] = follow(server, kind)
    return {"kinds": kinds}


def render(raw: dict[str, Any]) -> str:
    blocks = ["# What a kept memory root consists of\n"]
    for arm, (run,) in raw["runs"].items():
        for kind, found in run["kinds"].items():
            total = sum(number for _, number in found)
            times = Counter(name for name, _ in found)
            sums: Counter[str] = Counter()
            for name, number in found:
                sums[name] += number
            rows = [
                [name, str(times[name]), str(number), f"{100 * number / total:.1f}"]
                for name, number in sums.most_common()
                if number >= SHOWN_BYTES
            ]
            blocks += [
                f"\n## {kind}, {arm}: {total:,} bytes in {len(found)} allocations\n",
                report.table(["allocated by", "times", "bytes", "%"], rows),
            ]
    blocks.append(report.front_matter(raw))
    return "\n".join(blocks)


def main() -> int:
    parser = rounds.parser(__doc__.splitlines()[0], rounds=1, arms=("dev",), one_round=True)
    options = parser.parse_args()
    if not shutil.which("gdb"):
        raise Problem("gdb is missing; install Debian's package gdb")
    return rounds.run(
        "kept_roots",
        options,
        settings={"kinds": list(KINDS), "mysqld": objects.OPTIONS},
        prepare=objects.template,
        measure=rounds.one_by_one(measure),
        brief=lambda run: ", ".join(
            f"{kind} {sum(number for _, number in found):,} bytes" for kind, found in run["kinds"].items()
        ),
        render=render,
        seconds_each=60,
    )


if __name__ == "__main__":
    run_main("kept_roots", main)
