#!/usr/bin/env python3
"""Larger servers: RSS, and the time to start, read tables and purge, as connections, tables or buffer pool grow.

See README.md for what the figures mean.
"""

import argparse
import contextlib
import hashlib
import inspect
import itertools
import json
import math
import resource
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.runner import arms as arm_list
from bench.runner import memory, objects, own_tables, prepared, report, rounds, verdicts
from bench.runner.objects import Line
from bench.runner.quiet import priority, wait_until_quiet
from harness import burst
from harness.common import require_disk, say
from harness.problem import Problem, run_main
from harness.server import Server
from harness.sql import Connection

DATABASE = "scale"
CACHED_TABLES = 4000
CONNECTIONS = 200
SPARE = 200
POOL_MB = 1024  # the dictionary of 100,000 tables fits into it
OPTIONS = (
    "--innodb-buffer-pool-load-at-startup=OFF",
    "--innodb-buffer-pool-dump-at-shutdown=OFF",
    "--innodb-flush-log-at-trx-commit=0",
    "--disable-log-bin",
    f"--table-open-cache={CACHED_TABLES}",
    # A session opens its tables in one instance. With several, each holds only its share of the tables.
    "--table-open-cache-instances=1",
    f"--table-definition-cache={CACHED_TABLES}",
)
FILL_OPTIONS = (*OPTIONS, f"--innodb-buffer-pool-size={POOL_MB}M", "--innodb-doublewrite=OFF")
TABLE = "CREATE TABLE t{} (id INT PRIMARY KEY, a INT, b VARCHAR(50), KEY (a)) TABLESPACE scale"
CLIENTS = 4
SAID = 10_000  # tables between two lines of progress
GB_EACH = 0.25  # of disk for a data directory,
KB_EACH_TABLE = 50  # and for each of its tables
# It leaves the pages of eight strings unused.
LITTER = "SELECT " + ", ".join([f"LENGTH(REPEAT('x', {4 << 20}))"] * 8)
# A figure grows faster than its work if its exponent is higher than this,
EXPONENT = 1.1
# beyond so many standard errors.
ERRORS = 2
# Less than this share of the figure at the least size is not taken for growth.
NOISE = 0.1

Figures = dict[str, Any]
# {size: figure} of a round.
Series = Mapping[int, float]


@dataclass(frozen=True)
class Axis:
    """`work` puts a server of this size to work."""

    name: str
    sizes: tuple[int, ...]
    quick: tuple[int, ...]
    work: Callable[[Server, int, contextlib.ExitStack], None] | None = None
    filled: bool = False  # the data have as many tables as the size says


@dataclass(frozen=True)
class Pace:
    """`idle_seconds` pass before RSS is read. `still`: it must not change any more."""

    reads: int
    purges: int
    idle_seconds: float
    still: bool


FULL = Pace(reads=own_tables.READS, purges=5, idle_seconds=6, still=True)
QUICK = Pace(reads=1, purges=1, idle_seconds=0, still=False)


def connect(server: Server, count: int, held: contextlib.ExitStack) -> None:
    for _ in range(count):
        held.enter_context(server.connect())


def each(server: Server, numbers: range, step: Callable[[Connection, int], None]) -> None:
    """Calls `step` for each number, by several clients at once."""

    def steps(client: int) -> Iterator[int]:
        with server.connect(DATABASE) as session:
            yield 0
            for number in numbers[client::CLIENTS]:
                step(session, number)
                yield 0

    burst.crowd(steps, CLIENTS)


def open_tables(server: Server, count: int, _held: contextlib.ExitStack) -> None:
    """Reads each table once. The cache keeps all of them."""
    with server.connect() as session:
        # As an option at start, the size would be cut to half of the files that may be open. These tables share a file.
        for name in ("table_open_cache", "table_definition_cache"):
            session.query(f"SET GLOBAL {name} = {max(CACHED_TABLES, count + SPARE)}")
        each(server, range(count), lambda reader, number: reader.discard(f"SELECT * FROM t{number}"))
        kept = int(session.query("SHOW GLOBAL STATUS LIKE 'Open_tables'").rows[0][1])
        if kept < count:
            raise Problem(f"the server keeps {kept} tables open of {count}")


AXES = {
    axis.name: axis
    for axis in (
        Axis("connections", (1, 10, 100, 1000, 10_000), (1, 10, 100), connect),
        Axis("tables", (100, 1000, 10_000, 100_000), (10, 50, 250), open_tables, filled=True),
        Axis("buffer_pool", (128, 512, 2048, 12_288), (128, 256, 512)),
    )
}
UNITS = {"buffer_pool": "MB"}
Points = dict[str, tuple[int, ...]]

FIGURES = {
    "start_s": ("start s", 2),
    "start_mb": ("RSS MB at start", 1),
    "work_s": ("work s", 2),
    "rss_mb": ("RSS MB at work", 1),
    "everyday_ms": ("everyday tables ms", 1),
    "everyday_cpu_ms": ("everyday CPU ms", 1),
    "purge_ms": ("purge ms", 2),
    "purge_cpu_ms": ("purge CPU ms", 2),
}


def chosen(axes: str, given: Sequence[str], quick: bool) -> Points:
    """The sizes of each axis. `given`: AXIS=SIZE,SIZE,... in place of the usual sizes."""
    wanted = [name.strip() for name in axes.split(",")]
    if unknown := set(wanted) - set(AXES):
        raise Problem(f"unknown axis '{min(unknown)}'; there are: {', '.join(AXES)}")
    points = {name: AXES[name].quick if quick else AXES[name].sizes for name in AXES if name in wanted}
    for words in given:
        name, _, sizes = words.partition("=")
        if name not in points:
            raise Problem(f"--points {words}: the axis is none of {', '.join(points)}")
        try:
            points[name] = tuple(sorted({int(size) for size in sizes.split(",")}))
        except ValueError:
            raise Problem(f"--points {words}: the form is AXIS=SIZE,SIZE,...") from None
        if points[name][0] <= 0:
            raise Problem(f"--points {words}: a size must be above zero")
    return points


def connections(axis: str, points: Points) -> int:
    """max_connections: the same for all points of an axis."""
    return SPARE + max(points[axis]) if axis == "connections" else CONNECTIONS


def files(connections: int) -> int:
    """Open files that a server demands; with less it lowers max_connections or table_open_cache."""
    return SPARE + connections + 2 * CACHED_TABLES


def options(axis: str, points: Points, size: int) -> tuple[str, ...]:
    allowed = connections(axis, points)
    return (
        *OPTIONS,
        f"--innodb-buffer-pool-size={size if axis == 'buffer_pool' else POOL_MB}M",
        f"--max-connections={allowed}",
        f"--open-files-limit={files(allowed)}",
    )


def limits(needed: int, soft: int, hard: int) -> tuple[int, int]:
    """The soft and the hard limit that give so many files. A privileged process may raise the hard one."""
    endless = resource.RLIM_INFINITY
    if hard != endless and hard < needed:
        return needed, needed
    return (endless if soft == endless else max(soft, needed)), hard


def allow_files(needed: int) -> None:
    """Raises this program's limit. Its servers inherit it."""
    now = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits(needed, *now))
    except (ValueError, OSError):
        raise Problem(
            f"at most {now[1]} files may be open here (ulimit -Hn), and {needed} are"
            " needed; raise that limit, or measure fewer connections with --points"
        ) from None


def require_granted(arm: arm_list.Arm, session: Connection, allowed: int) -> None:
    """A server that got fewer files than it demanded has lowered these."""
    for name, wanted in (("max_connections", allowed), ("table_open_cache", CACHED_TABLES)):
        if (found := int(session.query(f"SELECT @@GLOBAL.{name}").scalar() or 0)) < wanted:
            raise Problem(f"arm {arm.name} lowered {name} to {found}; raise ulimit -Hn")


def fill(server: Server, first: int, last: int) -> None:
    """Makes the tables from number `first` to before `last`, in one tablespace. Data without tables come first."""
    if not last:
        server.query(f"CREATE DATABASE {DATABASE}")
        server.query("CREATE TABLESPACE scale ADD DATAFILE 'scale.ibd'")
        return

    def create(session: Connection, number: int) -> None:
        if number > first and (number - first) % SAID == 0:
            say(f"{number} tables")
        session.query(TABLE.format(number))

    # DDL flushes the redo log at each commit, whatever innodb_flush_log_at_trx_commit says.
    server.query("ALTER INSTANCE DISABLE INNODB REDO_LOG")
    each(server, range(first, last), create)
    # This also writes all pages.
    server.query("ALTER INSTANCE ENABLE INNODB REDO_LOG")


def data_key(tables: int) -> dict[str, object]:
    """Data of other counts, or of another version of the code, are made again."""
    source = inspect.getsource(fill) + TABLE
    return {"tables": tables, "source": hashlib.sha256(source.encode()).hexdigest()[:16]}


def folder_name(tables: int) -> str:
    return f"scale-{tables}"


def counts(points: Points) -> list[int]:
    """The numbers of tables for which there is a data directory."""
    return sorted({0, *(size for name, sizes in points.items() if AXES[name].filled for size in sizes)})


def disk_gb(points: Points, arms: int) -> float:
    """All data directories, and the copies that exist at a time."""
    needed = counts(points)
    tables = sum(needed) + max(needed)
    return GB_EACH * (len(needed) + arms) + tables * KB_EACH_TABLE / 1e6


def templates(points: Points, arms: Sequence[arm_list.Arm]) -> dict[int, Path]:
    """A data directory for each number of tables. Each grows from a copy of the next smaller one."""
    require_disk([(prepared.WORK, disk_gb(points, len(arms)), "the tables")])
    made: dict[int, Path] = {}
    for first, last in itertools.pairwise((0, *counts(points))):
        made[last] = prepared.template(
            folder_name(last),
            data_key(last),
            arms,
            FILL_OPTIONS,
            lambda server, first=first, last=last: fill(server, first, last),
            base=made.get(first),
        )
    return made


def is_ours(session: Connection) -> bool:
    return bool(session.query("SHOW GLOBAL STATUS LIKE 'Memdiag_allocated_bytes'").rows)


@contextlib.contextmanager
def warmed(template: Path, arm: arm_list.Arm) -> Iterator[Path]:
    """A copy on which this arm has started once: then it writes what it does not find in another server's dictionary."""
    with prepared.copy(template, arm) as folder:
        with arm.server(folder, OPTIONS) as server:
            server.start()
        yield folder


def settled_mb(server: Server, session: Connection, pace: Pace) -> float:
    """RSS when the server rests, less the pages in the buffer pool."""
    # Threads give memory back when their clients have been idle for five seconds.
    time.sleep(pace.idle_seconds)
    wait_until_quiet(lambda: server.usage().cpu_seconds)
    kb = objects.rest(server) if pace.still else server.rss_kb()
    return (kb - memory.buffer_pool_kb(session)) / 1024


def everyday(server: Server, pace: Pace) -> Figures:
    """The time to read each everyday table after the other, as a monitor does."""
    with server.connect() as reader, own_tables.foremost():
        took = own_tables.read(server, reader, own_tables.everyday(), True, pace.reads)
    return {
        "everyday_ms": sum(ms for ms, _ in took.values()),
        "everyday_cpu_ms": sum(cpu for _, cpu in took.values()),
        "tables": {name: {"ms": ms, "cpu_ms": cpu} for name, (ms, cpu) in took.items()},
    }


def purge(server: Server, pace: Pace) -> Figures:
    """The time of purges, each right after the same statement."""
    took = []
    with server.connect() as purger, own_tables.foremost():
        thread = own_tables.thread_of(purger)
        for _ in range(pace.purges):
            purger.query(LITTER)
            before = (time.monotonic(), own_tables.cpu_ms(server, thread))
            receipt = purger.query("SELECT memdiag_purge('all')").scalar()
            after = (time.monotonic(), own_tables.cpu_ms(server, thread))
            released = json.loads(receipt or "{}").get("released_bytes") or 0
            took.append((1000 * (after[0] - before[0]), after[1] - before[1], released / 2**20))
    names = ("purge_ms", "purge_cpu_ms", "purge_mb")
    return {name: report.median(one[place] for one in took) for place, name in enumerate(names)}


def measure(arm: arm_list.Arm, folder: Path, name: str, points: Points, size: int, pace: Pace) -> Figures:
    axis = AXES[name]
    with arm.server(folder, options(name, points, size), priority()) as server, contextlib.ExitStack() as held:
        began = time.monotonic()
        server.start()
        figures: Figures = {"start_s": time.monotonic() - began}
        session = held.enter_context(server.connect())
        require_granted(arm, session, connections(name, points))
        figures["start_mb"] = settled_mb(server, session, pace)
        if axis.work:
            began = time.monotonic()
            axis.work(server, size, held)
            figures["work_s"] = time.monotonic() - began
        figures["rss_mb"] = settled_mb(server, session, pace)
        figures["pages_mb"] = memory.buffer_pool_kb(session) / 1024
        if is_ours(session):
            figures |= everyday(server, pace) | purge(server, pace)
        return figures


def measure_round(
    arms: Sequence[arm_list.Arm], made: Mapping[int, Path], points: Points, pace: Pace
) -> Iterator[tuple[str, Figures]]:
    """One round: at each point a server of each arm, one right after the other."""
    found: dict[str, Figures] = {arm.name: {} for arm in arms}
    for name, sizes in points.items():
        with contextlib.ExitStack() as stack:
            # These servers write nothing, so all points share a copy.
            shared = {arm.name: stack.enter_context(warmed(made[0], arm)) for arm in arms if not AXES[name].filled}
            for number, size in enumerate(sizes):
                for arm in arm_list.rotated(arms, number):
                    place = contextlib.nullcontext(shared[arm.name]) if shared else warmed(made[size], arm)
                    with place as folder:
                        figures = measure(arm, folder, name, points, size, pace)
                    found[arm.name].setdefault(name, {})[str(size)] = figures
                    say(f"{arm.name}: {name} {size}: {brief(figures)}")
    yield from found.items()


def brief(figures: Figures) -> str:
    return ", ".join(
        f"{heading} {figures[name]:.{digits}f}" for name, (heading, digits) in FIGURES.items() if name in figures
    )


@dataclass(frozen=True)
class Growth:
    """Exponents of the size: of the figure, of its growth over the least size, and of the steepest step between two sizes.

    A figure that is large at the least size hides its growth for long, so the growth has an exponent of its own. Neither
    line shows a growth that begins late; the step does.
    """

    whole: Line | None
    grown: Line | None
    step: float | None

    @classmethod
    def of(cls, series: Sequence[Series]) -> Self:
        """`series`: one for each round."""
        sizes = sorted(set.intersection(*(set(one) for one in series)))
        if not sizes:
            return cls(None, None, None)
        least = sizes[0]
        base = report.median(one[least] for one in series)
        grown = [
            (size - least, one[size] - one[least])
            for size in sizes[1:]
            if report.median(one[size] - one[least] for one in series) > NOISE * base
            for one in series
        ]
        steps = [
            # A difference between rounds is no growth.
            math.log(low / high) / math.log(after / before)
            for before, after in itertools.pairwise(sizes)
            if (high := max(one[before] for one in series)) > 0 and (low := min(one[after] for one in series)) > 0
        ]
        return cls(
            power([(size, one[size]) for size in sizes for one in series]), power(grown), max(steps, default=None)
        )

    def faster(self) -> bool:
        """True if the figure grows faster than its work."""
        lines = [line for line in (self.whole, self.grown) if line]
        return any(line.slope - ERRORS * line.error > EXPONENT for line in lines) or (
            self.step is not None and self.step > EXPONENT
        )

    def cells(self) -> list[str]:
        lines = [
            report.show(value)
            for line in (self.whole, self.grown)
            for value in ((line.slope, line.error) if line else (None, None))
        ]
        return [*lines, report.show(self.step)]


def power(points: Sequence[tuple[float, float]]) -> Line | None:
    """The line through the logarithms; its slope is the exponent. It needs three sizes, and figures above zero."""
    if len({size for size, _ in points}) < 3 or min(value for _, value in points) <= 0:
        return None
    return Line.through([(math.log(size), math.log(value)) for size, value in points])


def series_of(runs: Sequence[Figures], axis: str, value: Callable[[Figures], float | None]) -> list[Series]:
    """The value at each size, for each round."""
    return [
        {int(size): found for size, figures in run[axis].items() if (found := value(figures)) is not None}
        for run in runs
    ]


def middle(series: Sequence[Series], size: int) -> float | None:
    values = [one[size] for one in series if size in one]
    return report.median(values) if values else None


def curve(runs: Mapping[str, Sequence[Figures]], axis: str, sizes: Sequence[int]) -> list[str]:
    """The part of the report on one axis, without its growth."""
    series = {
        (arm, name): series_of(mine, axis, lambda found, name=name: found.get(name))
        for arm, mine in runs.items()
        for name in FIGURES
    }
    base = next((arm for arm in ("stock", "debian") if arm in runs), None)
    rows = []
    for size, arm in itertools.product(sizes, runs):
        values = {name: middle(series[arm, name], size) for name in FIGURES}
        row = [f"{size} {arm}", *(report.show(values[name], FIGURES[name][1]) for name in FIGURES)]
        if base:
            row.append(report.show(report.ratio(values["rss_mb"], middle(series[base, "rss_mb"], size))))
        rows.append(row)
    head = [f"{UNITS.get(axis, axis)}, arm", *(heading for heading, _ in FIGURES.values())]
    parts = [f"\n## {axis}\n", report.table([*head, f"RSS / {base}"] if base else head, rows)]
    for arm, mine in runs.items():
        if names := mine[0][axis][str(sizes[0])].get("tables"):
            parts += [f"\n### {axis}: the everyday tables of {arm}, ms\n", everyday_table(mine, axis, sizes, names)]
    return parts


def everyday_table(runs: Sequence[Figures], axis: str, sizes: Sequence[int], names: Sequence[str]) -> str:
    """Each table by the clock, the slowest first, and its processor time at the largest size."""
    rows = []
    for name in names:
        clock, cpu = (
            series_of(runs, axis, lambda found, name=name, figure=figure: found["tables"][name][figure])
            for figure in ("ms", "cpu_ms")
        )
        times = [middle(clock, size) or 0.0 for size in sizes]
        growth = Growth.of(clock).grown
        rows.append(
            (
                times[-1],
                [
                    name,
                    *map(report.show, times),
                    report.show(middle(cpu, sizes[-1])),
                    report.show(growth.slope if growth else None),
                ],
            )
        )
    rows.sort(key=lambda row: -row[0])
    head = ["table", *map(str, sizes), "CPU ms", "exponent of the growth"]
    return report.table(head, [row for _, row in rows])


def render(raw: dict[str, Any]) -> str:
    runs = {arm: mine for arm, mine in raw["runs"].items() if mine}
    points = raw["settings"]["points"]
    parts = [
        "# Larger servers\n",
        f"Medians of {raw['settings']['rounds']} rounds. RSS is less the pages in the buffer pool.",
    ]
    growing, faster = [], []
    for axis, sizes in points.items():
        parts += curve(runs, axis, sizes)
        rows = []
        for (name, (heading, _)), (arm, mine) in itertools.product(FIGURES.items(), runs.items()):
            series = series_of(mine, axis, lambda found, name=name: found.get(name))
            if not any(series):
                continue
            growth = Growth.of(series)
            if growth.faster():
                faster.append((axis, name, arm))
            rows.append([f"{heading}, {arm}", *growth.cells(), "FASTER" if growth.faster() else "no"])
        head = [
            "figure, arm",
            "exponent",
            "standard error",
            "of the growth",
            "standard error",
            "steepest step",
            "faster than its work",
        ]
        growing += [f"\n### Growth with {axis}\n", report.table(head, rows)]
    parts += [
        "\n## Growth\n",
        f"A figure is proportional to the size to the power of its exponent. FASTER: an exponent is above {EXPONENT} by more"
        f" than {ERRORS} standard errors, or that of a step is above it.",
        *growing,
        "\n## Faster than its work\n",
        *([f"- {axis}: {name} of {arm}" for axis, name, arm in faster] or ["Nothing."]),
    ]
    if verdicts.OURS in runs:
        found = {axis: sum(one[0] == axis and one[2] == verdicts.OURS for one in faster) for axis in points}
        rows = [
            report.target(f"{axis}: figures of {verdicts.OURS} that grow faster than their work", count, "<=", 0)
            for axis, count in found.items()
        ]
        parts += ["\n## Targets\n", report.target_table(rows)]
    parts.append(report.front_matter(raw))
    return "\n".join(parts)


def arguments() -> argparse.ArgumentParser:
    parser = rounds.parser(__doc__.splitlines()[0], rounds=1, arms=("stock", "debian", verdicts.OURS))
    parser.add_argument("--axes", default=",".join(AXES), help="comma-separated (default: %(default)s)")
    parser.add_argument(
        "--points",
        action="append",
        default=[],
        metavar="AXIS=SIZE,SIZE,...",
        help="other sizes of an axis, of the buffer pool in MB; may be given several times",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="does everything work? Small sizes and few readings; less than three minutes for two arms",
    )
    return parser


def seconds_each(points: Points, pace: Pace) -> float:
    """Roughly, of an arm."""
    turn = 7 + 2 * pace.idle_seconds + pace.reads + (5 if pace.still else 0)
    return sum(
        turn + max(size / 500 if name == "connections" else 0, size / 400 if AXES[name].filled else 0)
        for name, sizes in points.items()
        for size in sizes
    )


def main() -> int:
    parsed = arguments().parse_args()
    rounds.require_positive(parsed)
    points = chosen(parsed.axes, parsed.points, parsed.quick)
    pace = QUICK if parsed.quick else FULL
    allow_files(max(files(connections(name, points)) for name in points))
    made: dict[int, Path] = {}

    def prepare(arms: Sequence[arm_list.Arm]) -> Path:
        made.update(templates(points, arms))
        return made[0]

    return rounds.run(
        "scale",
        parsed,
        settings={
            "points": points,
            "mysqld": OPTIONS,
            "of an axis": {name: options(name, points, sizes[-1])[len(OPTIONS) :] for name, sizes in points.items()},
            "priority": " ".join(priority()),
            "reads": pace.reads,
            "purges": pace.purges,
            "quick": parsed.quick,
        },
        prepare=prepare,
        measure=lambda arms, _template: measure_round(arms, made, points, pace),
        brief=lambda run: ", ".join(run),
        render=render,
        seconds_each=seconds_each(points, pace),
    )


if __name__ == "__main__":
    run_main("scale", main)
