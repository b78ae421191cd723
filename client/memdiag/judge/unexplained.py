"""Servers that do not know where their memory is: what neither the buffer pool nor Performance Schema explains.

The difference to RSS is a fact. Its verdict is a conclusion from the peaks that Performance Schema kept, and the
finding has the check that tells retention by the allocator from a leak.
"""

from __future__ import annotations

from memdiag.judge.sessions import memory_of_sessions
from memdiag.judge.thresholds import WORTH_BYTES
from memdiag.model.document import Finding
from memdiag.model.units import percent, share, size
from memdiag.model.view import View

# A stock server has a fifth of its RSS unexplained when it has just started: stacks, headers and rounding of blocks,
# libraries' memory.
USUAL_PART = 0.25
LEAST_BYTES = 2 * WORTH_BYTES


def bytes_unexplained(view: View) -> int | None:
    """RSS less files, less the buffer pool's pages in it that hold something, less what Performance Schema counts."""
    rss, files, pool = view.rss, file_backed(view), view.pool_in_rss
    if rss is None or files is None or pool is None:
        return None
    return rss - files - pool - (view.counted or 0)


def _locks(view: View) -> int:
    """Where Performance Schema counts nothing, the locks are part of the rest, and a finding of their own."""
    return 0 if view.counted else sum(row["LOCK_BYTES"] or 0 for row in view.rows("transactions"))


def file_backed(view: View) -> int | None:
    files = view.host("process", "RssFile")
    shared = view.host("process", "RssShmem")
    return None if files is None else int(files + (shared or 0))


def not_readable(view: View) -> bool:
    """Performance Schema counts memory, but not for this account."""
    asked = "memory" in view.data["sources"]
    off = str(view.variable("performance_schema")).upper() in ("OFF", "0")
    return asked and not off and view.error("memory") is not None


def _switched_off(view: View) -> bool:
    """Most of the memory instruments. In MariaDB they are, by default."""
    row = view.row("instruments")
    return (row.get("SWITCHED_OFF") or 0) * 2 > (row.get("INSTRUMENTS") or 0)


def once_higher(view: View) -> int | None:
    """How much more Performance Schema has seen in use: each instrument's peak less its present. The peaks were not
    all at one time, so this is an upper bound."""
    rows = [row for row in view.rows("memory") if not row["EVENT_NAME"].startswith("memory/innodb/buf_buf_pool")]
    if not rows:
        return None
    return sum(max(0, (row["HIGH_BYTES"] or 0) - max(0, row["BYTES"] or 0)) for row in rows)


def findings(view: View) -> list[Finding]:
    if not_readable(view):
        # Most of the rest is what the account may not see. The report says so where it is missing.
        return []
    rest, rss = bytes_unexplained(view), view.rss
    if rest is None or rss is None:
        return []
    rest -= _locks(view)
    # MariaDB counts what its sessions have without Performance Schema, and they are findings of their own.
    alone = view.flavour == "mariadb" and (not view.counted or _switched_off(view))
    of_sessions = memory_of_sessions(view) or 0 if alone else 0
    if rest - of_sessions < max(LEAST_BYTES, rss * USUAL_PART):
        return []
    high = once_higher(view)
    if high is None or _switched_off(view):
        holder, verdict, evidence = (
            "memory that is not counted",
            "unexplained",
            "Performance Schema counts no memory here, so the holder is not known."
            if high is None
            else "Most memory instruments of Performance Schema are switched off, so the holder is not known.",
        )
        if view.allocated:
            evidence += f" MariaDB itself counts {size(view.allocated)} that it has allocated, resident or not."
        remedy = (
            "switch performance_schema and its memory instruments on (performance_schema = ON and"
            " performance_schema_instrument = 'memory/%=ON' in the option file, and a restart), and look again"
        )
    elif high * 2 >= rest:
        holder, verdict = "unused pages", "retention"
        evidence = (
            f"Performance Schema once saw up to {size(high)} more in use than now (the instruments' peaks together)."
            " The memory was freed, and the allocator kept it for reuse."
        )
        remedy = "the check gives it back; from the next start on, bound it: " + _for_good(view)
    else:
        holder, verdict = "memory that is not counted", "leak"
        evidence = (
            f"Performance Schema never saw more than {size(high)} above what is in use now. So it was not freed memory"
            " of an instrument: it is memory that no instrument counts, or a leak, or small blocks with large gaps."
        )
        remedy = (
            "record it under steady load: a leak grows, retention does not (memdiag record -o leak.rec --every 10s --for 1h); "
            + _for_good(view)
            + " ends retention at the next start"
        )
    return [
        Finding(
            severity="warning",
            holder=holder,
            verdict=verdict,
            headline=f"{size(rest)} are in neither buffer pool nor Performance Schema: {percent(share(rest, rss))} of RSS",
            evidence=evidence,
            remedy=remedy,
            check=check(view),
            bytes=rest,
            share=share(rest, rss),
            source="VmRSS and RssFile of /proc/<pid>/status; SHOW GLOBAL STATUS; " + view.origin("memory"),
        )
    ]


def allocator(view: View) -> str:
    library = str(view.row("allocator_library").get("library") or "")
    for name in ("jemalloc", "tcmalloc", "mimalloc"):
        if name in library:
            return name
    return "glibc" if view.rows("allocator_library") else ""


def check(view: View) -> str:
    """The command that releases what the allocator keeps. RSS tells the rest."""
    pid = view.data["server"].get("pid") or "<pid>"
    calls = {"glibc": "(int) malloc_trim(0)", "tcmalloc": "(void) MallocExtension_ReleaseFreeMemory()"}
    kind = allocator(view)
    after = "If RSS falls by about as much, the allocator had kept freed memory. If it does not, the memory is in use."
    if kind not in calls:
        return f"Restart the server, apply the same load, and compare. {after}"
    return (
        f"gdb -p {pid} --batch -ex 'call {calls[kind]}' stops the server for a moment (seconds if it holds gigabytes). "
        + after
    )


def _for_good(view: View) -> str:
    return {
        "glibc": "LD_PRELOAD of jemalloc, or MALLOC_ARENA_MAX=2 in the service's environment",
        "tcmalloc": "TCMALLOC_RELEASE_RATE=10 in the service's environment",
        "jemalloc": "MALLOC_CONF=background_thread:true,dirty_decay_ms:1000 in the service's environment",
    }.get(allocator(view), "another allocator, such as jemalloc by LD_PRELOAD")
