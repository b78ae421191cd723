"""Snapshots of a server's memory, from its memdiag tables and from the kernel, and a small table of them.

The tables are read by column name, so that a column more or less does not matter here.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Self

from harness.server import Server
from harness.sql import Result, SqlError

_UNKNOWN_TABLE = 1109
Figures = dict[str, int | None]


# The limits for a pool: all of its lines are in the report if it changed by so much, one line if it holds so much, and
# a sentence if it was used so often.
MOVED_BYTES = 4 << 20
SMALL_BYTES = 1 << 20
MANY_ALLOCATIONS = 1000


@dataclass(frozen=True)
class Snapshot:
    """`allocator` and `pools` are empty on a server without memdiag. A figure that the server gives as NULL is None."""

    rss_bytes: int
    allocator: Figures
    pools: dict[str, Figures]
    pool_texts: dict[str, dict[str, str]]
    anon_bytes: int = 0  # the part of RSS that belongs to no file
    regions_bytes: int | None = None  # resident, outside the allocator


class Diagnostics:
    """A session that takes snapshots."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._session = server.connect("information_schema")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._session.close()

    def snapshot(self) -> Snapshot:
        allocator = self._table("MEMDIAG_ALLOCATOR").dicts()
        pools = self._table("MEMDIAG_POOLS").dicts()
        regions = [_figures(row).get("RESIDENT_BYTES") for row in self._table("MEMDIAG_REGIONS").dicts()]
        known = [bytes for bytes in regions if bytes is not None]
        memory = self._server.memory()
        return Snapshot(
            rss_bytes=memory.rss_kb * 1024,
            anon_bytes=memory.anon_kb * 1024,
            regions_bytes=sum(known) if known and len(known) == len(regions) else None,
            allocator=_figures(allocator[0]) if allocator else {},
            pools={str(row["POOL"]): _figures(row) for row in pools},
            pool_texts={str(row["POOL"]): {key: value for key, value in row.items() if value} for row in pools},
        )

    def _table(self, name: str) -> Result:
        try:
            return self._session.query(f"SELECT * FROM {name}")
        except SqlError as error:
            if error.code == _UNKNOWN_TABLE:
                return Result([], [])
            raise


def highest(snapshots: Iterable[Snapshot], peak_rss_bytes: int) -> Snapshot:
    """The highest value of every figure in the series. The highest RSS is the kernel's own record (VmHWM)."""
    allocator: Figures = {}
    pools: dict[str, Figures] = {}
    for snapshot in snapshots:
        _raise_to(allocator, snapshot.allocator)
        for name, figures in snapshot.pools.items():
            _raise_to(pools.setdefault(name, {}), figures)
    return Snapshot(peak_rss_bytes, allocator, pools, {})


def table(columns: Mapping[str, Snapshot]) -> str:
    """Memory in MiB: a line for each measure, a column for each moment, and how much the last is below the peak."""
    lines: list[tuple[str, list[int | None]]] = [
        ("process, as the kernel counts (RSS)", [column.rss_bytes for column in columns.values()])
    ]
    for title, name in (
        ("allocator: in use by the server", "ALLOCATED_BYTES"),
        ("allocator: resident, once all is written", "RESIDENT_BYTES"),
        ("allocator: free but not given back", "DIRTY_BYTES"),
    ):
        lines.append((title, [column.allocator.get(name) for column in columns.values()]))
    for pool in {name: None for column in columns.values() for name in column.pools}:

        def over_time(name: str, pool: str = pool) -> list[int | None]:
            return [column.pools.get(pool, {}).get(name) for column in columns.values()]

        live, resident = over_time("LIVE_BYTES"), over_time("RESIDENT_BYTES")
        if max(_moved(live), _moved(resident)) >= MOVED_BYTES:
            lines.append((f"pool {pool}: live", live))
            lines.append((f"pool {pool}: dirty", over_time("DIRTY_BYTES")))
            lines.append((f"pool {pool}: resident", resident))
        elif max(filter(None, resident), default=0) >= SMALL_BYTES:
            lines.append((f"pool {pool}: resident", resident))
    names = list(columns)
    peak = names.index("peak")
    width = max(len(title) for title, _ in lines)
    rows = ["".join([f"{'memory, MiB':{width}}", *(f"{name:>9}" for name in names), f"{'given back':>12}"])]
    for title, values in lines:
        if all(value is None for value in values):
            continue
        top, end = values[peak], values[-1]
        back = _mib(top - end) if top is not None and end is not None else "-"
        rows.append("".join([f"{title:{width}}", *(f"{_mib(value):>9}" for value in values), f"{back:>12}"]))
    return "\n".join(rows)


def _moved(values: list[int | None]) -> int:
    known = [value for value in values if value is not None]
    return max(known) - min(known) if known else 0


def pool_lines(before: Snapshot, after: Snapshot) -> Iterator[str]:
    """A sentence for each pool that was used much between two snapshots."""
    for name, figures in after.pools.items():
        earlier = before.pools.get(name, {})
        if (figures.get("ALLOCATIONS") or 0) - (earlier.get("ALLOCATIONS") or 0) < MANY_ALLOCATIONS:
            continue

        def grown(figure: str, now: Figures = figures, then: Figures = earlier) -> str:
            value, old = now.get(figure), then.get(figure)
            return "?" if value is None or old is None else f"{value - old:,}"

        texts = after.pool_texts.get(name, {})
        purged, old_purged = figures.get("PURGED_BYTES"), earlier.get("PURGED_BYTES")
        given = "?" if purged is None or old_purged is None else _mib(purged - old_purged)
        yield (
            f"pool {name}: {grown('ALLOCATIONS')} allocations, {grown('FREES')} frees; {grown('PURGES')} purges gave"
            f" back {given} MiB in {grown('PURGE_MICROSECONDS')} microseconds; peak {_mib(figures.get('PEAK_BYTES'))} MiB"
            + (f" at {texts['PEAK_TIME']}" if "PEAK_TIME" in texts else "")
        )


def _mib(value: int | None) -> str:
    return "-" if value is None else f"{value / 2**20:.1f}"


def _figures(row: Mapping[str, str | None]) -> Figures:
    """The columns that hold whole numbers or NULL."""
    figures: Figures = {}
    for name, value in row.items():
        if value is None:
            figures[name] = None
        elif value.removeprefix("-").isdigit():
            figures[name] = int(value)
    return figures


def _raise_to(highest_so_far: Figures, figures: Figures) -> None:
    for name, value in figures.items():
        old = highest_so_far.get(name)
        highest_so_far[name] = value if old is None else old if value is None else max(old, value)
