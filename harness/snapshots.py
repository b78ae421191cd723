"""Snapshots of a server's memory, from its memdiag tables and from the kernel.

The tables are read by column name, so that a column more or less does not matter here.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

from harness.server import Server
from harness.sql import Connection, Result, SqlError

_UNKNOWN_TABLE = 1109
Figures = dict[str, int | None]


@dataclass(frozen=True)
class Snapshot:
    """`allocator` and `pools` are empty on a server without memdiag. A figure that the server gives as NULL is None."""

    rss_bytes: int
    allocator: Figures
    pools: dict[str, Figures]
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
        )

    def _table(self, name: str) -> Result:
        try:
            return self._session.query(f"SELECT * FROM {name}")
        except SqlError as error:
            if error.code == _UNKNOWN_TABLE:
                return Result([], [])
            raise


def of_cgroup(server: Server | Connection, name: str) -> int | None:
    """What MEMDIAG_HOST says of the control group."""
    value = server.query(
        f"SELECT NUMBER FROM information_schema.MEMDIAG_HOST WHERE SUBJECT = 'cgroup' AND NAME = '{name}'"
    ).scalar()
    return None if value is None else int(float(value))


def highest(snapshots: Iterable[Snapshot], peak_rss_bytes: int) -> Snapshot:
    """The highest value of every figure in the series. The highest RSS is the kernel's own record (VmHWM)."""
    allocator: Figures = {}
    pools: dict[str, Figures] = {}
    for snapshot in snapshots:
        _raise_to(allocator, snapshot.allocator)
        for name, figures in snapshot.pools.items():
            _raise_to(pools.setdefault(name, {}), figures)
    return Snapshot(peak_rss_bytes, allocator, pools)


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
