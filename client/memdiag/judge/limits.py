"""The limits that end a server: the control group's, the machine's, swap, the kernel's choice of whom to kill."""

from __future__ import annotations

import math
import re
import shlex

from memdiag.judge.thresholds import HOUR_SECONDS, NEAR_LIMIT_PERCENT, WORTH_BYTES
from memdiag.model.document import Finding
from memdiag.model.units import MIB, percent, size
from memdiag.model.view import Limit, View


def findings(view: View) -> list[Finding]:
    return [*gone(view), *_near(view), *_swapped(view), *_killed(view), *_stalls(view), *_configuration(view)]


def gone(view: View) -> list[Finding]:
    if not view.data.get("gone"):
        return []
    return [
        Finding(
            severity="critical",
            holder="the server itself",
            verdict="host",
            headline="The server did not answer any more while this report was made",
            evidence="Figures that were to be read later read unknown. It was killed, crashed, was shut down, or hangs",
            remedy="look for its end in the kernel's log and in its error log",
            statements=["journalctl -k --since -1h | grep -iE 'killed process|out of memory'"],
            source="this report, as the connection ended",
        )
    ]


_OTHERS = "ps -eo rss,comm --sort=-rss | head shows the processes of the machine"


def _raise(view: View, limit: Limit) -> str:
    """The command that raises a limit by a quarter. That of a container comes back when the container starts anew."""
    more = limit.bytes // MIB * 5 // 4
    folder, _, name = limit.source.rpartition("/")
    if not name.startswith("memory."):
        version = view.host("cgroup", "version")
        folder, name = limit.source, "memory.max" if version == 2 else "memory.limit_in_bytes"
    if folder.endswith(".service"):
        manager = "systemctl --user" if _user_of(limit) else "systemctl"
        return f"{manager} set-property {shlex.quote(folder.rpartition('/')[2])} MemoryMax={more}M"
    return f"echo {more}M > {shlex.quote(f'{folder}/{name}')}"


def _user_of(limit: Limit) -> str:
    """The number of the user whose own systemd runs the service; "": the system's does. Both may have one of that name."""
    found = re.search(r"/user@(\d+)\.service/.*\.service(/memory\.|$)", limit.source)
    return found[1] if found else ""


# More of the buffer pool than this is not taken at once, but for rounding: its pages would be read again.
_POOL_PART = 4


def _set_pool(view: View, most: int, scope: str = "GLOBAL") -> list[str]:
    """A smaller buffer pool. InnoDB rounds other sizes up to a multiple of its chunks, at times to today's.

    None for huge pages: the system would keep those reserved, and a control group does not count them."""
    if view.huge_pages:
        return []
    parts = (view.variable(f"innodb_buffer_pool_{name}") for name in ("chunk_size", "instances"))
    most -= most % math.prod(one for one in parts if isinstance(one, int) and one > 0)
    return [f"SET {scope} innodb_buffer_pool_size = {most}"] if most else []


def _smaller(view: View) -> str:
    words = "make the buffer pool smaller"
    return words + " and reserve fewer huge pages for it (vm.nr_hugepages)" if view.huge_pages else words


def _smaller_pool(view: View, needed: float) -> list[str]:
    """A buffer pool that is a quarter smaller, where that alone is enough."""
    size_now, resident = view.variable("innodb_buffer_pool_size"), view.buffer_pool
    if not isinstance(size_now, int) or size_now < 256 * MIB or resident is None:
        return []
    smaller = size_now - size_now // _POOL_PART
    if resident - smaller < needed:
        return []
    return _set_pool(view, smaller)


def _near(view: View) -> list[Finding]:
    limit = view.cgroup_limit
    machine = view.host("memory", "MemTotal")
    available = view.host("memory", "MemAvailable")
    result = []
    if limit and (limit.used_percent or 0) >= NEAR_LIMIT_PERCENT:
        result.append(
            Finding(
                severity="critical",
                holder="cgroup",
                verdict="host",
                headline=f"{size(limit.used)} of the control group's {size(limit.bytes)} are used: {percent(limit.used_percent)}",
                evidence="At 100% the kernel ends a process of the group, usually the server. Page cache that it takes back is not counted.",
                remedy=("" if view.huge_pages else f"{_smaller(view)}, or ")
                + (f"raise the limit, as that user ({user})" if (user := _user_of(limit)) else "raise the limit"),
                statements=[
                    *_smaller_pool(view, (limit.used or 0) - limit.bytes * NEAR_LIMIT_PERCENT / 100),
                    _raise(view, limit),
                ],
                bytes=limit.used,
                source=limit.source,
            )
        )
    if machine and available is not None and available * 20 < machine:
        result.append(
            Finding(
                severity="critical" if available * 50 < machine else "warning",
                holder="machine",
                verdict="host",
                headline=f"{size(available)} of the machine's {size(machine)} are available",
                evidence="MemAvailable is what the kernel can give without swapping.",
                remedy=f"{_smaller(view)}, or end what else takes memory on the machine",
                statements=_smaller_pool(view, machine / 20 - available),
                check=_OTHERS,
                bytes=int(machine - available),
                source=view.copied("meminfo", "/proc/meminfo"),
            )
        )
    return result


# swapon -a would bring back the swap of /etc/fstab alone.
READ_BACK = 'tail -n +2 /proc/swaps | while read -r place _; do swapoff "$place" && swapon "$place"; done'


def _swapped(view: View) -> list[Finding]:
    swapped = view.swapped or 0
    if swapped < WORTH_BYTES:
        return []
    room = "give the machine or the control group room"
    keep = "a lower vm.swappiness keeps them (sysctl -w vm.swappiness=1)"
    back = _can_read_back(view, swapped)
    return [
        Finding(
            severity="critical" if swapped * 10 >= swapped + (view.rss or 0) else "warning",
            holder="swap",
            verdict="host",
            headline=f"{size(swapped)} of the server are swapped out",
            evidence="A statement that needs one of these pages waits for the disk.",
            remedy=f"{room}, then read the pages back; {keep}" if back else f"{room}; {keep}",
            statements=[READ_BACK] if back else [],
            check="" if back else "grep VmSwap /proc/[0-9]*/status shows what each process has there",
            bytes=swapped,
            source=f"VmSwap of {view.copied('process', '/proc/<pid>/status')}",
        )
    ]


def _can_read_back(view: View, swapped: int) -> bool:
    """swapoff reads what all processes of the machine have there, and each page counts in its control group."""
    available = view.host("memory", "MemAvailable")
    total, free = view.host("memory", "SwapTotal"), view.host("memory", "SwapFree")
    everything = swapped if total is None or free is None else max(swapped, total - free)
    group = view.cgroup_limit
    if group and group.used is not None and group.bytes - group.used < 2 * swapped:
        return False
    return available is not None and available > 2 * everything


def _killed(view: View) -> list[Finding]:
    kills = view.host("cgroup", "memory.events.oom_kill")
    if kills is None:
        kills = view.host("cgroup", "memory.oom_control.oom_kill")
    if kills is None:
        kills = view.row("cgroup").get("oom_kills")
    result = []
    if kills:
        # The last one may be what started this server anew. The group may be far older than the server.
        is_of_now = (view.status("Uptime") or 0) < HOUR_SECONDS
        result.append(
            Finding(
                severity="warning" if is_of_now else "note",
                holder="kills in the control group",
                verdict="host",
                headline=f"The kernel's OOM killer has killed {kills} process{'es' if kills > 1 else ''} of the control group",
                evidence="The count is since the group was made; the kernel does not say when.",
                remedy="raise the limit, or lower what the server may take (see the budget)",
                source=view.origin("cgroup"),
            )
        )
    return result


def last_run(view: View) -> list[Finding]:
    """Our server keeps how it ended, and has no rule about it."""
    runs = [row for row in view.rows("memdiag_last_run") if row["SHUT_DOWN"] == "NO" and row["RUN"] == 1]
    return [
        Finding(
            severity="note",
            holder="the last run",
            verdict="host",
            headline=f"The run before this one was killed at {size(run['MAX_RSS_BYTES'])} of RSS",
            evidence=f"Process {run['PROCESS']} was not shut down. Its peak was {size(run['RSS_PEAK_BYTES'])}.",
            remedy="look at its last minutes",
            check="SELECT * FROM information_schema.MEMDIAG_HISTORY WHERE RUN = 1 ORDER BY TIME DESC LIMIT 60",
            source="INFORMATION_SCHEMA.MEMDIAG_HISTORY",
        )
        for run in runs[:1]
    ]


def _stalls(view: View) -> list[Finding]:
    waited = view.host("pressure", "machine.some.avg10")
    if waited is None:
        waited = next((row["avg10"] for row in view.rows("pressure") if row.get("kind") == "some"), None)
    if not waited or waited < 10:
        return []
    return [
        Finding(
            severity="warning",
            holder="pressure",
            verdict="host",
            headline=f"In {percent(waited)} of the last 10 s a task waited for memory",
            evidence="The kernel reclaims pages while statements wait.",
            remedy="end what takes memory on the machine, or give it more",
            check=_OTHERS,
            source="/proc/pressure/memory",
        )
    ]


def _configuration(view: View) -> list[Finding]:
    limit = view.lowest_limit
    pool = view.variable("innodb_buffer_pool_size")
    # MariaDB persists nothing: its option file needs the value, too.
    scope = "GLOBAL" if view.flavour == "mariadb" else "PERSIST"
    result = []
    outside = view.huge_outside(limit.bytes, pool) if limit and isinstance(pool, int) else 0
    if limit and isinstance(pool, int) and (pool - outside) * 10 >= limit.bytes * 9:
        result.append(
            Finding(
                severity="warning",
                holder="innodb_buffer_pool_size",
                verdict="misconfiguration",
                headline=f"The buffer pool may take {size(pool - outside)}{' besides its huge pages' if outside else ''}, and"
                f" {limit.what} is {size(limit.bytes)}",
                evidence="Everything else of the server needs memory, too.",
                remedy=f"{_smaller(view)}, or raise the limit"
                + ("; write the size into the option file" if scope == "GLOBAL" else ""),
                statements=_set_pool(view, limit.bytes * 6 // 10, scope),
                bytes=None,
                source="SHOW GLOBAL VARIABLES; " + limit.source,
            )
        )
    return result
