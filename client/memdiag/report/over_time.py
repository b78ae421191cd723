"""RSS over time, with what happened."""

from __future__ import annotations

from typing import Any

from memdiag.model.document import Column, Event, Line, Note, Section, Series, Table
from memdiag.model.units import MIB, size
from memdiag.model.view import View

# Smaller purges would cover the chart.
WORTH_AN_EVENT = 8 * MIB
MOST_EVENTS = 12
# From a start to the first sample, with the difference of two machines' clocks.
START_SECONDS = 60


def section(view: View, recording: list[dict[str, Any]] | None) -> Section:
    result = Section(
        "time",
        "Over time",
        "RSS is what the kernel counts against the limit. The buffer pool fills after a start and then stays.",
    )
    # With memdiag_history_interval_ms = 0 there is the sample of the start alone.
    if len(history := view.rows("memdiag_history")) > 1:
        result.blocks.append(_history(view, history))
        result.blocks += _runs(view)
    elif recording:
        result.blocks.append(_recording(recording))
    elif samples := view.rows("health_process"):
        result.blocks.append(_health(view, samples))
    elif view.ours:
        result.blocks.append(
            Note(f"There is no history: {view.error('memdiag_history') or 'memdiag_history_interval_ms is 0'}.")
        )
    else:
        result.blocks.append(
            Note(
                "This server keeps no history. memdiag record samples it into a file, and memdiag report --recording"
                " FILE shows that here. A server with memdiag keeps an hour by itself, also of a run that was killed."
            )
        )
    return result


def _history(view: View, rows: list[dict[str, Any]]) -> Series:
    lines = [
        Line("RSS", [row["RSS_BYTES"] for row in rows], what="VmRSS of the process"),
        Line(
            "buffer pool", [row.get("BUFFER_POOL_BYTES") for row in rows], what="resident bytes of InnoDB's buffer pool"
        ),
        Line(
            "unused pages",
            [_resident(row) for row in rows],
            what="dirty pages of all pools; left out where most of them were never written, so that RSS is less",
        ),
    ]
    if any(row.get("SWAP_BYTES") for row in rows):
        lines.append(Line("swapped", [row["SWAP_BYTES"] for row in rows], what="VmSwap"))
    return Series(
        "rss",
        "RSS of the server",
        [row["TIME"] for row in rows],
        lines,
        "INFORMATION_SCHEMA.MEMDIAG_HISTORY",
        "Of each stretch of samples the one with the highest RSS is shown." if len(rows) >= 400 else "",
        _events(view, rows),
    )


def _health(view: View, rows: list[dict[str, Any]]) -> Series:
    lines = [Line("RSS", [row["VM_RSS"] for row in rows], what="VmRSS of the process")]
    if any(row["VM_SWAP"] for row in rows):
        lines.append(Line("swapped", [row["VM_SWAP"] for row in rows], what="VmSwap"))
    return Series("rss", "RSS of the server", [row["TIME"] for row in rows], lines, view.origin("health_process"))


def _resident(row: dict[str, Any]) -> int | None:
    dirty, rss = row.get("DIRTY_BYTES"), row["RSS_BYTES"]
    return None if dirty is None or rss is None or dirty > rss else dirty


def _events(view: View, rows: list[dict[str, Any]]) -> list[Event]:
    first, last = rows[0]["TIME"], rows[-1]["TIME"]
    events = _start(view, first)
    peak = max(
        (row for row in rows if row.get("RSS_PEAK_TIME")), key=lambda row: row["RSS_PEAK_BYTES"] or 0, default=None
    )
    if peak:
        words = f"peak: {size(peak['RSS_PEAK_BYTES'])}"
        if peak.get("RSS_PEAK_SESSION"):
            words += f", most in session {peak['RSS_PEAK_SESSION']}"
        events.append(Event(peak["RSS_PEAK_TIME"], words))
    purges = [
        row
        for row in view.rows("memdiag_purges")
        if (row["RELEASED_BYTES"] or 0) >= WORTH_AN_EVENT or row["REASON"] == "pressure"
    ]
    purges.sort(key=lambda row: -(row["RELEASED_BYTES"] or 0))
    for row in purges[:MOST_EVENTS]:
        events.append(Event(row["TIME"], f"purge of {row['POOL']} ({row['REASON']}): {size(row['RELEASED_BYTES'])}"))
    return sorted((event for event in events if first <= event.time <= last), key=lambda event: event.time)


def _start(view: View, first: float) -> list[Event]:
    """The restart, if the history reaches back to it."""
    runs, uptime = view.rows("memdiag_last_run"), view.status("Uptime")
    if not runs or uptime is None or view.data["time"] - uptime < first - START_SECONDS:
        return []
    last = min(runs, key=lambda run: run["RUN"] or 0)
    how = "was killed" if last["SHUT_DOWN"] == "NO" else "was shut down"
    return [Event(first, f"start; the run before {how}")]


def _runs(view: View) -> list[Table]:
    runs = view.rows("memdiag_last_run")
    if not runs:
        return []
    return [
        Table.of(
            "runs",
            "Earlier runs",
            [
                Column("RUN", "run", "", "1 is the last one before this"),
                Column("STARTED", "started", "time"),
                Column("LAST_TIME", "last sample", "time"),
                Column("SHUT_DOWN", "shut down", "", "NO: it was killed or crashed"),
                Column("MAX_RSS_BYTES", "highest RSS of the samples", "bytes", bar=True),
                Column("RSS_PEAK_BYTES", "peak RSS", "bytes", "as the kernel saw it"),
                Column("VERSION", "version"),
            ],
            runs,
            "INFORMATION_SCHEMA.MEMDIAG_HISTORY",
        )
    ]


def _recording(samples: list[dict[str, Any]]) -> Series:
    samples = sorted(samples, key=lambda row: row["time"])  # the clock may have been set back
    names = {
        "rss": ("RSS", "VmRSS of the process"),
        "buffer_pool": ("buffer pool", "pages that hold something"),
        "counted": ("counted by Performance Schema", "all instruments but the buffer pool's"),
        "unused": ("unused pages", "dirty pages of all pools"),
        "swap": ("swapped", "VmSwap"),
    }
    lines = [
        Line(label, [row.get(key) for row in samples], what=what)
        for key, (label, what) in names.items()
        if any(row.get(key) for row in samples)
    ]
    return Series(
        "rss",
        "RSS of the server",
        [row["time"] for row in samples],
        lines,
        "the recording",
        events=[Event(row["time"], "the server restarted") for row in samples if row.get("restarted")],
    )
