#!/usr/bin/env python3
"""What a server takes as connections, tables or buffer pool grow: RSS, and the time to start, read tables and purge.

See README.md for what the figures mean.
"""

from __future__ import annotations

import contextlib
import itertools
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.processors import everyday, select
from bench.runner import arms as arm_list
from bench.runner import prepared, report, rounds
from bench.runner.quiet import wait_until_quiet
from harness import burst
from harness.problem import Problem, run_main
from harness.server import Server
from harness.sql import Connection

DATABASE = "scale"
OPTIONS = (
    "--innodb-buffer-pool-load-at-startup=OFF",
    "--innodb-buffer-pool-dump-at-shutdown=OFF",
    "--innodb-flush-log-at-trx-commit=0",
    "--disable-log-bin",
    "--max-connections=10200",
    "--open-files-limit=40000",
)
READS = 5
FILLERS = 4
SPARE_FILES = 200
# If a figure grows by more than this factor beyond its work, the report says so.
FASTER = 1.25


@dataclass(frozen=True)
class Curve:
    """`work` puts a server of this size to work; `options` start it."""

    name: str
    sizes: tuple[int, ...]
    options: Callable[[int], Sequence[str]]
    work: Callable[[Server, int, contextlib.ExitStack], None]
    filled: bool = False  # the data have as many tables as the size says


def connect(server: Server, count: int, held: contextlib.ExitStack) -> None:
    for _ in range(count):
        held.enter_context(server.connect())


def open_tables(server: Server, count: int, _held: contextlib.ExitStack) -> None:
    """Reads each table once. The table cache has its default size."""
    with server.connect(DATABASE) as session:
        for number in range(count):
            session.discard(f"SELECT * FROM t{number}")


def nothing(_server: Server, _size: int, _held: contextlib.ExitStack) -> None:
    pass


CURVES = {
    curve.name: curve
    for curve in (
        Curve("connections", (1, 10, 100, 1000, 10_000), lambda _: ("--innodb-buffer-pool-size=128M",), connect),
        Curve("tables", (100, 1000, 10_000, 100_000), lambda _: ("--innodb-buffer-pool-size=128M",), open_tables, filled=True),
        Curve("buffer pool MB", (128, 512, 2048, 12_288), lambda mb: (f"--innodb-buffer-pool-size={mb}M",), nothing),
    )
}  # fmt: skip


def fill(server: Server, tables: int) -> None:
    """Makes the tables in one tablespace: a file of its own would take 112 KB of disk for each table."""
    server.query(f"CREATE DATABASE {DATABASE}")
    server.query("CREATE TABLESPACE scale ADD DATAFILE 'scale.ibd'")

    def steps(filler: int) -> Iterator[int]:
        with server.connect(DATABASE) as session:
            yield 0
            for number in range(filler, tables, FILLERS):
                session.query(f"CREATE TABLE t{number} (id INT PRIMARY KEY, a INT, b VARCHAR(50), KEY (a)) TABLESPACE scale")  # fmt: skip
                yield 0

    burst.crowd(steps, FILLERS)


def times(session: Connection) -> dict[str, float]:
    """Times of this server's own statements; empty in other arms."""
    if not session.query("SHOW GLOBAL STATUS LIKE 'Memdiag_allocated_bytes'").rows:
        return {}

    def clock(statements: Sequence[str]) -> float:
        took = []
        for _ in range(READS):
            time.sleep(1)
            began = time.monotonic()
            for statement in statements:
                session.discard(statement)
            took.append(1000 * (time.monotonic() - began))
        return report.median(took)

    return {
        "everyday_ms": clock([select(name) for name in everyday()]),
        "purge_ms": clock(["SELECT memdiag_purge('all')"]),
    }


def measure(arm: arm_list.Arm, template: Path, curve: Curve, size: int) -> dict[str, float]:  # fmt: skip
    with (
        prepared.copy(template, arm) as folder,
        arm.server(folder, (*OPTIONS, *curve.options(size))) as server,
        contextlib.ExitStack() as held,
    ):
        began = time.monotonic()
        server.start()
        started = time.monotonic() - began
        wait_until_quiet(lambda: server.usage().cpu_seconds)
        start_mb = server.rss_kb() / 1024
        curve.work(server, size, held)
        wait_until_quiet(lambda: server.usage().cpu_seconds)
        figures = {"start_s": started, "start_mb": start_mb, "rss_mb": server.rss_kb() / 1024}  # fmt: skip
        with server.connect() as session:
            return figures | times(session)


def render(raw: dict[str, Any]) -> str:
    head = ["size, arm", "start s", "RSS MB at start", "at work", "everyday tables ms", "purge ms"]  # fmt: skip
    names = ("start_s", "start_mb", "rss_mb", "everyday_ms", "purge_ms")
    parts, faster = ["# Curves\n"], []
    arms = list(raw["runs"])
    for curve in raw["runs"][arms[0]][0]:

        def figure(arm: str, size: str, name: str, curve: str = curve) -> float | None:
            values = [run[curve][size].get(name) for run in raw["runs"][arm]]
            return None if None in values else report.median(values)

        sizes = list(raw["runs"][arms[0]][0][curve])
        rows = [
            [f"{size} {arm}", *(report.show(figure(arm, size, name), 2 if name == "start_s" else 1) for name in names)]
            for size in sizes
            for arm in arms
        ]  # fmt: skip
        parts += [f"\n## {curve}\n", report.table(head, rows)]
        for arm, (before, after), name in itertools.product(arms, itertools.pairwise(sizes), names):  # fmt: skip
            one, other = figure(arm, before, name), figure(arm, after, name)
            if one and other and other / one > FASTER * int(after) / int(before):
                faster.append(f"- {curve}: {name} of {arm} grows by {other / one:.1f} from {before} to {after}")  # fmt: skip
    parts.append("\n## Faster than its work\n")
    parts += faster or ["Nothing grows faster than the number that is varied."]
    parts.append(report.front_matter(raw))
    return "\n".join(parts)


def main() -> int:
    parser = rounds.parser(__doc__.splitlines()[0], rounds=1, arms=("dev", "debian"))
    parser.add_argument("--curves", default=",".join(CURVES), help="comma-separated (default: %(default)s)")  # fmt: skip
    parser.add_argument("--most", type=int, default=1_000_000, help="leave out sizes above this")  # fmt: skip
    options = parser.parse_args()
    rounds.require_positive(options, "most")
    chosen = options.curves.split(",")
    if unknown := set(chosen) - set(CURVES):
        raise Problem(f"unknown curve '{min(unknown)}'; there are: {', '.join(CURVES)}")
    curves = {CURVES[name]: [size for size in CURVES[name].sizes if size <= options.most] for name in chosen}  # fmt: skip
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = SPARE_FILES + max(CURVES["connections"].sizes)
    if hard < needed:
        raise Problem(f"at most {hard} files may be open here (ulimit -Hn); the curves need {needed}")  # fmt: skip
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(needed, hard), hard))
    templates: dict[int, Path] = {}

    def prepare(arms: Sequence[arm_list.Arm]) -> Path:
        counts = {0, *(size for curve, sizes in curves.items() if curve.filled for size in sizes)}  # fmt: skip
        for count in sorted(counts):
            templates[count] = prepared.template(
                f"scale-{count}",
                {"tables": count},
                arms,
                OPTIONS,
                lambda server, count=count: fill(server, count),
            )
        return templates[0]

    def measure_round(arms: Sequence[arm_list.Arm], _template: Path) -> Iterator[tuple[str, dict[str, Any]]]:  # fmt: skip
        found: dict[str, dict[str, Any]] = {arm.name: {} for arm in arms}
        for curve, sizes in curves.items():
            for number, size in enumerate(sizes):
                for arm in arm_list.rotated(arms, number):
                    template = templates[size if curve.filled else 0]
                    figures = measure(arm, template, curve, size)
                    found[arm.name].setdefault(curve.name, {})[str(size)] = figures
        yield from found.items()

    return rounds.run(
        "scale",
        options,
        settings={"mysqld": OPTIONS, "reads": READS},
        prepare=prepare,
        measure=measure_round,
        brief=lambda run: ", ".join(run),
        render=render,
        seconds_each=sum(25 + max(sizes) / 300 for sizes in curves.values()) * 4,
    )


if __name__ == "__main__":
    run_main("scale", main)
