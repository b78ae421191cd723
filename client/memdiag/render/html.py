"""A page as one HTML file that needs nothing else: style, script and figures are in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from memdiag.libraries import library
from memdiag.model.document import Table
from memdiag.model.units import moment, percent, share, shown, size
from memdiag.render import json as as_json
from memdiag.render.page import Page, meanings, numeric

HERE = Path(__file__).resolve().parent
STATIC = HERE / "static"


def render(page: Page) -> str:
    environment = _jinja().Environment(
        loader=_jinja().FileSystemLoader(HERE / "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=_jinja().StrictUndefined,
    )
    environment.filters |= {"size": size, "moment": moment, "percent": percent}
    environment.globals |= {
        "shown": shown,
        "share": share,
        "meanings": meanings,
        "numeric": numeric,
        "widths": widths,
        "part_widths": part_widths,
        "exact": exact,
        "sentence": sentence,
        "short_title": short_title,
        "chart": lambda series: in_script(chart(series)),
        "source": lambda name: (STATIC / name).read_text(encoding="utf-8"),
        "picture_height": picture_height,
    }
    template = environment.get_template("page.html.j2")
    # Its macros leave empty lines.
    return template.render(page=page, data=in_script(json.loads(as_json.render(page)))).lstrip()


def _jinja() -> Any:
    return library(
        "jinja2",
        "Jinja2 is missing, and HTML needs it; install it with: apt-get install python3-jinja2, or pip install"
        " Jinja2. --text, --md and --json do without",
    )


def in_script(value: Any) -> Any:
    """JSON that cannot end the script element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    import markupsafe

    return markupsafe.Markup(text)


# Titles are questions; the menu has one line.
_MENU = {
    "ledger": "Ledger",
    "pools": "Pools",
    "who": "Sessions",
    "stacks": "Stacks",
    "budget": "Budget",
    "host": "Host",
    "configuration": "Configuration",
    "about": "About",
}


def short_title(section: Any) -> str:
    return _MENU.get(section.id, section.title)


def sentence(words: str) -> str:
    """Begins with a capital letter and ends with a stop. SQL stays as it is."""
    if not words:
        return words
    first = words.split(" ", 1)[0]
    start = words if first.isupper() else words[0].upper() + words[1:]
    return start if start[-1] in ".!?" else start + "."


def exact(value: Any) -> str:
    """The figure itself, for programs; what people see is rounded."""
    return "" if value is None else repr(value) if isinstance(value, float) else str(value)


def widths(table: Table, number: int) -> list[float]:
    """Percent of the column's largest, for the bars."""
    values = [row[number] for row in table.rows]
    most = max((value for value in values if isinstance(value, (int, float))), default=0)
    return [
        round(100 * max(0, value) / most, 2) if most > 0 and isinstance(value, (int, float)) else 0 for value in values
    ]


def part_widths(parts: Any) -> list[float]:
    """Percent of the parts that can be drawn; a negative one cannot."""
    drawn = [max(0, part.value or 0) for part in parts.parts]
    total = sum(drawn) or 1
    return [round(100 * one / total, 3) for one in drawn]


def chart(series: Any) -> dict[str, Any]:
    return {
        "times": series.times,
        "lines": [{"label": one.label, "values": one.values} for one in series.lines],
        "events": [{"time": one.time, "label": one.label} for one in series.events],
        "unit": series.unit,
    }


def picture_height(svg: str) -> int:
    import re

    found = re.search(r"<svg[^>]*\bheight=\"(\d+)", svg)
    return min(1600, int(found[1]) + 20) if found else 480
