"""The parts of RSS at a moment, by the ledger and by the code that allocated them, read in one statement.

The ledger has every resident byte. The profile has the blocks that were allocated since the profiler began, not those of
the server's start. A reading at rest, before the load, tells how much the latter are.

Units: bytes.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# The tables of one statement share the costly readings. The ledger comes first: it does not see the rows of this reading.
READ = """
SELECT 'ledger', COMPONENT, NAME, STATE, RESIDENT_BYTES, 0 FROM INFORMATION_SCHEMA.MEMDIAG_LEDGER_EXACT
UNION ALL SELECT 'pool', POOL, '', '', LIVE_BYTES, 0 FROM INFORMATION_SCHEMA.MEMDIAG_POOLS
UNION ALL SELECT 'stack', POOL, FRAMES, FOLDED, LIVE_BYTES, LIVE_BYTES_ERROR FROM INFORMATION_SCHEMA.MEMDIAG_PROFILE
WHERE LIVE_BYTES > 0
"""

PROGRAM = "program and files"
PAGES = "buffer pool: pages"
PERFSCHEMA = "Performance Schema"
# No row says what these are.
UNKNOWN = ("not of the allocator", "unexplained")

_POOL_STATES = {
    "dirty": "unused pages",
    "muzzy": "unused pages",
    "fragmentation": "free parts of pages in use",
    "metadata": "allocator's metadata",
}
_BUFFER_POOL_STATES = {"clean pages": PAGES, "dirty pages": PAGES}
_REGIONS = {"thread_stack": "thread stacks", "profile": "heap profiler"}
_FILES = ("program", "libraries", "files", "heap")

STACKS = 10
SHOWN_FRAMES = 3

Parts = dict[str, dict[str, int]]


def pool_part(pool: str) -> str:
    return PERFSCHEMA if pool == "perfschema" else f"pool {pool}"


def part_of(component: str, name: str, state: str) -> tuple[str, str]:
    """The part that a row of the ledger belongs to, and what is its own there."""
    if component == "pool":
        if state == "live":
            return pool_part(name), ""
        return _POOL_STATES[state], f"pool {name}"
    if component == "buffer_pool":
        other = "buffer pool: bookkeeping and free pages"
        return _BUFFER_POOL_STATES.get(state, other), ""
    if component == "region":
        return _REGIONS.get(name, f"region {name}"), ""
    if component in _FILES:
        return PROGRAM, component
    return ("not of the allocator" if component == "anonymous" else component), ""


@dataclass(frozen=True)
class Stack:
    """`path`: its functions, the outermost first."""

    pool: str
    path: tuple[str, ...]
    bytes: float
    error: float


def path_of(frames: str, folded: str) -> tuple[str, ...]:
    """The functions of a stack up to the one that wanted the memory, which FRAMES begins with. FOLDED goes on with
    helpers that pass the request on."""
    names = folded.split(";")
    wanted = frames.partition(" < ")[0].replace(";", ":")
    if wanted in names:
        del names[len(names) - names[::-1].index(wanted) :]
    path: list[str] = []
    for name in names:
        # Adapters of the library, and functions that call themselves, say nothing more.
        if not name.startswith("std::") and path[-1:] != [name]:
            path.append(name)
    return tuple(path)


@dataclass(frozen=True)
class Reading:
    parts: Parts  # resident
    allocated: dict[str, int]  # live in each pool, resident or not
    stacks: list[Stack]

    @property
    def rss(self) -> int:
        return sum(sum(part.values()) for part in self.parts.values())

    def part(self, name: str) -> int:
        return sum(self.parts.get(name, {}).values())

    def sampled(self, pool: str) -> float:
        return sum(stack.bytes for stack in self.stacks if stack.pool == pool)


def reading_of(rows: Iterable[Sequence[str | None]]) -> Reading | None:
    """The rows that READ returns; None if the server could not read a figure."""
    reading = Reading({}, {}, [])
    for kind, name, second, third, value, error in rows:
        if value is None:
            return None
        if kind == "ledger":
            named, own = part_of(name or "", second or "", third or "")
            part = reading.parts.setdefault(named, {})
            part[own] = part.get(own, 0) + int(value)
        elif kind == "pool":
            reading.allocated[name or ""] = int(value)
        else:
            path = path_of(second or "", third or "?")
            stack = Stack(name or "?", path, float(value), float(error or 0))
            reading.stacks.append(stack)
    return reading


@dataclass
class Group:
    """Stacks of a pool that begin with the same functions, seen from the outermost."""

    pool: str
    path: tuple[str, ...]
    bytes: float = 0.0
    variance: float = 0.0
    stacks: int = 0
    whole: bool = True  # the path is that of a stack, not only its beginning

    def text(self) -> str:
        if not self.path:
            return "no function in common"
        inner = self.path[: -SHOWN_FRAMES - 1 : -1]
        return " < ".join(inner if self.whole else ("...", *inner))


def folded(stacks: Iterable[Stack], least: float) -> list[Group]:
    """A group of less than this loses its innermost function. So small groups meet at the function that has called them
    all. What is small and has lost all functions is left out."""
    levels: dict[int, dict[tuple[str, ...], Group]] = defaultdict(dict)

    def add(key: tuple[str, ...], more: Group) -> None:
        group = levels[len(key)].setdefault(key, Group(key[0], key[1:]))
        group.bytes += more.bytes
        group.variance += more.variance
        group.stacks += more.stacks
        group.whole = group.whole and more.whole

    for stack in stacks:
        one = Group(stack.pool, stack.path, stack.bytes, stack.error**2, 1)
        add((stack.pool, *stack.path), one)
    for depth in range(max(levels, default=0), 0, -1):
        for key, group in list(levels[depth].items()):
            if group.bytes < least:
                del levels[depth][key]
                group.whole = False
                if depth > 1:
                    add(key[:-1], group)
    return [group for level in levels.values() for group in level.values()]


def grouped(stacks: Sequence[Stack], most: int = STACKS) -> list[Group]:
    """At most so many groups, the largest first; the smallest ones are as small as this allows."""
    groups = folded(stacks, 0)
    # Stacks that have shrunk can make the sum negative.
    least = max(1.0, sum(stack.bytes for stack in stacks)) / 1000
    while len(groups) > most:
        groups = folded(stacks, least)
        least *= 1.2
    return sorted(groups, key=lambda group: -group.bytes)


def composition(rest: Reading, peak: Reading) -> dict[str, Any]:
    """For the results: the parts at rest and at the peak, the code, and what no row explains.

    Blocks that are older than the profiler are taken to stay, with the pages that they have at rest. Where a pool has more
    pages than its newer blocks could fill, the rest are of older blocks that the load has written.
    """
    groups = grouped(peak.stacks)
    older_at_rest: dict[str, float] = {}
    older: dict[str, float] = {}
    shares: dict[str, float] = {}
    missing: dict[str, float] = {}
    for pool, allocated in peak.allocated.items():
        live = peak.part(pool_part(pool))
        older_at_rest[pool] = max(0.0, rest.part(pool_part(pool)) - rest.sampled(pool))
        older_blocks = max(0.0, rest.allocated.get(pool, 0) - rest.sampled(pool))
        since = allocated - older_blocks
        beyond_newer = live - max(since, peak.sampled(pool))
        older[pool] = max(older_at_rest[pool], min(older_blocks, beyond_newer))
        # Blocks of which pages were never touched are not all resident.
        share = (live - older[pool]) / since if since > 0 else 1.0
        shares[pool] = min(1.0, max(0.0, share))
        if pool_part(pool) == PERFSCHEMA:
            continue  # a part with a name of its own
        listed = sum(group.bytes for group in groups if group.pool == pool)
        gap = max(0.0, live - older[pool] - listed * shares[pool])
        other = min(gap, (peak.sampled(pool) - listed) * shares[pool])
        missing[f"other stacks of pool {pool}"] = other
        missing[f"pool {pool} without a stack"] = gap - other
    missing |= {name: float(abs(peak.part(name))) for name in UNKNOWN}
    return {
        "rest": {"rss": rest.rss, "parts": rest.parts, "older": older_at_rest},
        "peak": {"rss": peak.rss, "parts": peak.parts, "older": older},
        "allocated": peak.allocated,
        "code": [
            {
                "text": group.text(),
                "pool": group.pool,
                "stacks": group.stacks,
                "live": group.bytes,
                "error": group.variance**0.5,
                "resident": group.bytes * shares.get(group.pool, 1.0),
            }
            for group in groups
        ],
        "missing": missing,
    }


def explained(found: Mapping[str, Any]) -> float:
    """The share of RSS that the rows explain."""
    return 1 - sum(found["missing"].values()) / found["peak"]["rss"]
