"""Live memory by stack, where the server's heap profiler is on. Its columns are discovered."""

from __future__ import annotations

from memdiag.model.document import Column, Note, Picture, Section, Table
from memdiag.model.view import View

_SHOWN = (
    ("POOL", "pool", ""),
    ("ROUTE", "route", ""),
    ("LIVE_BYTES", "live", "bytes"),
    ("LIVE_OBJECTS", "blocks", "count"),
    ("DIGEST", "digest", ""),
    ("FOLDED", "stack", ""),
    ("STACK", "stack", ""),
)
MOST = 40


def section(view: View) -> Section:
    result = Section(
        "stacks", "Stacks that hold memory", "Sampled blocks that live now, by the code that allocated them."
    )
    if not view.ours:
        return result  # the ledger's section has the line about our server
    rows = view.rows("memdiag_profile")
    if not rows:
        result.blocks.append(Note(f"No stacks: {view.error('memdiag_profile')}."))
        return result
    svg = view.row("memdiag_profile_svg").get("SVG")
    if isinstance(svg, str) and "<svg" in svg:
        result.blocks.append(
            Picture(
                "flame",
                "Flame graph of live bytes",
                svg,
                "memdiag_profile('svg')",
                "The width of a frame is what it and those above it hold.",
            )
        )
    else:
        result.blocks.append(Note(f"No picture: {view.error('memdiag_profile_svg') or 'the server made none'}."))
    shown = [column for column in _SHOWN if column[0] in rows[0]]
    if any(name == "FOLDED" for name, _, _ in shown):
        shown = [column for column in shown if column[0] != "STACK"]
    result.blocks.append(
        Table(
            "stacks",
            "The largest stacks",
            [Column(name, title, unit, bar=unit == "bytes") for name, title, unit in shown],
            [[row[name] for name, _, _ in shown] for row in rows[:MOST]],
            "INFORMATION_SCHEMA.MEMDIAG_PROFILE",
            folded=True,
        )
    )
    return result
