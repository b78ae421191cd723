"""What the ceiling did (memdiag_memory_target)."""

from __future__ import annotations

from memdiag.judge.ceiling import LEVELS, has_ceiling, has_no_limit, marks_of_target
from memdiag.model.document import Event, Fact, Line, Section, Series
from memdiag.model.units import size
from memdiag.model.view import View

STATUS = "SHOW GLOBAL STATUS"
MOST_EVENTS = 12
# These actions changed a statement. The giver's other steps would cover the chart.
_FELT = ("end", "refuse", "went_on")


def section(view: View) -> Section:
    result = Section(
        "ceiling",
        "The ceiling",
        "With memdiag_memory_target the server stays below a limit: it takes frames of the buffer pool, lets statements"
        " wait, and at last ends the one that grew most.",
    )
    if not has_ceiling(view):
        return result
    target = str(view.variable("memdiag_memory_target") or "OFF").upper()
    wanted = target not in ("OFF", "0")
    level, rows = view.status("Memdiag_ceiling_level"), view.rows("memdiag_ceiling")
    if level is None or not (wanted or rows):
        return result
    if not (level or rows) and target in ("AUTO", "WATCH") and has_no_limit(view):
        what = "no control group limits the server's memory; memdiag_memory_target takes a number of bytes, too"
        result.blocks.append(Fact("level", "no limit: nothing to do", "", what, STATUS))
        return result
    result.blocks += _facts(view, LEVELS[level] if wanted and level < len(LEVELS) else "off")
    if rows:
        result.blocks.append(_chart(view))
    return result


def _facts(view: View, level: str) -> list[Fact]:
    def fact(label: str, name: str, unit: str, what: str) -> Fact:
        return Fact(label, view.status(f"Memdiag_ceiling_{name}"), unit, what, STATUS)

    longest = view.status("Memdiag_ceiling_longest_wait_microseconds")
    seconds = None if longest is None else longest / 1e6
    return [
        Fact("level", level, "", "green: statements begin; yellow: they wait; red: running ones wait, too", STATUS),
        fact("target", "target_bytes", "bytes", "the server's memory stays below it"),
        fact("left below the target", "left_bytes", "bytes", "0 above it"),
        fact("parked", "parked_bytes", "bytes", "frames of the buffer pool whose memory the system has now"),
        fact("ended", "ended", "count", "statements that were told to end, since the server started"),
        fact("did not begin", "refused", "count", "statements that waited in vain"),
        fact("went on without room", "went_on", "count", "running statements that waited as long as they may"),
        Fact("longest wait", seconds, "s", "of a running statement, a packet or a replica's reader of events", STATUS),
    ]


def _chart(view: View) -> Series:
    rows = view.rows("memdiag_ceiling")
    points = []
    for row in rows:
        points.append((row["TIME"], row["LEFT_BEFORE_BYTES"]))
        points.append((row["TIME"] + (row["DURATION_MICROSECONDS"] or 0) / 1e6, row["LEFT_AFTER_BYTES"]))
    # A wait is shown when it ends, and may have begun before other actions.
    points.sort(key=lambda point: point[0])
    lines = [Line("left", [left for _, left in points], what="below the target; negative above it")]
    if target := view.status("Memdiag_ceiling_target_bytes"):
        marks = marks_of_target(view, target)
        lines += [
            Line("statements wait", [marks.plenty] * len(points), what="while less is left; with today's target"),
            Line("running ones wait", [marks.reserve] * len(points), what="while less is left; with today's target"),
        ]
    felt = [row for row in rows if row["ACTION"] in _FELT]
    return Series(
        "ceiling",
        "Left below the target when the ceiling acted",
        [time for time, _ in points],
        lines,
        "INFORMATION_SCHEMA.MEMDIAG_CEILING",
        "The last 1,024 actions; between two of them nothing was done.",
        [Event(row["TIME"], _words(row)) for row in felt[-MOST_EVENTS:]],
    )


def _words(row: dict) -> str:
    session = f", session {row['PROCESSLIST_ID']}" if row["PROCESSLIST_ID"] is not None else ""
    return f"{row['ACTION'].replace('_', ' ')}{session}: {size(row['BYTES'])}"
