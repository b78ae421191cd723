"""The ceiling of our server: the marks of a limit, and what a server needs below one.

ceiling.json has the server's numbers (mysys/memdiag/ceiling/levels.h, storage/innobase/memdiag/balloon.h), made by
`memdiag_reference --ceiling` and never by hand.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from memdiag.model.units import MIB
from memdiag.model.view import View, total

_NUMBERS = json.loads(Path(__file__).with_name("ceiling.json").read_text(encoding="utf-8"))
FLOOR_PERCENT: int = _NUMBERS["floor_percent"]
# The server keeps the memory of pools with these lifetimes without clients.
_LASTING = ("cache", "server")
LEVELS = ("it knows no figures and does nothing", "green", "yellow", "red")


@dataclass(frozen=True)
class Marks:
    target: int  # the server's memory stays below this
    plenty: int  # statements begin while so much is left
    reserve: int  # running statements go on while so much is left


def marks_of_limit(limit: int) -> Marks:
    return Marks(limit - _part("margin", limit), _part("plenty", limit), _part("reserve", limit))


def marks_of_target(view: View, target: int) -> Marks:
    """Of the target that the server has: below a control group's limit, or given in bytes."""
    limit = view.lowest_cgroup_limit
    if limit and marks_of_limit(limit.bytes).target == target:
        return marks_of_limit(limit.bytes)
    return Marks(target, _part("plenty", target), _part("reserve", target))


def _part(name: str, limit: int) -> int:
    return max(_NUMBERS[name]["least_bytes"], limit // _NUMBERS[name]["part"])


def has_ceiling(view: View) -> bool:
    return view.ours and view.error("memdiag_ceiling") is None


def has_no_limit(view: View) -> bool:
    """The server has read that no control group limits it. It is not so where it could not read that."""
    return any(
        (row["SUBJECT"], row["NAME"], row["VALUE"]) == ("cgroup", "effective_limit", "max")
        for row in view.rows("memdiag_host")
    )


def pool_floor(view: View) -> int | None:
    """The part of the buffer pool that stays."""
    size = view.variable("innodb_buffer_pool_size")
    return size * FLOOR_PERCENT // 100 if isinstance(size, int) else None


def needed_at_rest(view: View) -> int | None:
    """The server keeps this memory without clients, with the buffer pool at its floor. The kernel reclaims pages of
    files by itself."""
    rss, unused, pool, floor = view.rss, view.unused, view.buffer_pool, pool_floor(view)
    lifetimes = {row["POOL"]: row.get("LIFETIME") for row in view.rows("memdiag_pools")}
    states = view.pool_states()
    passing = total(states[name].get("live", 0) for name in states if lifetimes.get(name) not in _LASTING)
    if rss is None or unused is None or pool is None or floor is None or passing is None or not lifetimes:
        return None
    files = view.host("process", "RssFile") or 0
    return max(0, int(rss - unused - max(0, pool - floor) - passing - files))


def lowest_limit(need: int) -> int:
    """The smallest limit, in whole MiB, below which so much may be kept while statements begin."""
    low, high = need // MIB, 2 * (need // MIB) + 1024
    while low < high:
        middle = (low + high) // 2
        marks = marks_of_limit(middle * MIB)
        if marks.target - marks.plenty >= need:
            high = middle
        else:
            low = middle + 1
    return low * MIB
