"""The report itself: when, of what, and what could not be read."""

from __future__ import annotations

from memdiag import __version__
from memdiag.model.document import Column, Fact, Note, Section, Table
from memdiag.model.view import View


def section(view: View) -> Section:
    server = view.data["server"]
    result = Section(
        "about",
        "About this report",
        f"Made by memdiag {__version__}. Reading changes nothing on the server.",
        [
            Fact("taken", view.data["time"], "time", "the moment of the figures", "this machine's clock"),
            Fact("it took", view.data.get("seconds"), "s", "the time to read everything", "this machine's clock"),
            Fact("account", server.get("account"), "", "decides what may be read", "CURRENT_USER()"),
            Fact(
                "server",
                f"{server['version']} {server.get('comment') or ''}".strip(),
                "",
                "as it says itself",
                "VERSION(), @@version_comment",
            ),
            *(
                [Fact("release", server["release"], "", "tells releases of one version apart", "@@version_with_update")]
                if server.get("release")
                else []
            ),
            Fact("host", server.get("hostname"), "", "as the server says", "@@hostname"),
        ],
    )
    if view.too_old:
        result.blocks.append(Note(f"{view.too_old}."))
    missing = [
        [name.upper() if name.startswith("memdiag") else name, source["error"]]
        for name, source in sorted(view.data["sources"].items())
        if source.get("error")
    ]
    if missing:
        result.blocks.append(
            Table(
                "missing",
                "What could not be read",
                [Column("source", "source"), Column("reason", "why")],
                missing,
                "this report",
                "Figures that depend on it read `unknown`, and no finding rests on them.",
            )
        )
    return result
