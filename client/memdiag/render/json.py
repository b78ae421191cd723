"""A page as JSON: the report's document, and the snapshot that it was made of."""

from __future__ import annotations

import json

from memdiag import __version__
from memdiag.render.page import Page

FORMAT = "memdiag-report/1"


def render(page: Page, indent: int | None = 1) -> str:
    return (
        json.dumps(
            {
                "format": FORMAT,
                "memdiag": __version__,
                "title": page.title,
                "problems": page.problems,
                "reports": [report.plain() for report in page.reports],
                "snapshots": page.snapshots,
            },
            indent=indent,  # ASCII alone: a name in it cannot steer the terminal
        )
        + "\n"
    )
