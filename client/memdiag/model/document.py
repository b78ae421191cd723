"""A report as data: sections of blocks. The renderers show it and add nothing.

Every figure has its unit, what it is, and where it is from. A value of None is unknown, and says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class Fact:
    """One figure that stands alone."""

    label: str
    value: Any
    unit: str
    what: str
    source: str
    kind: str = "fact"


@dataclass
class Column:
    name: str
    title: str
    unit: str = ""
    what: str = ""
    bar: bool = False  # drawn as a bar where the form allows it


@dataclass
class Table:
    id: str
    title: str
    columns: list[Column]
    rows: list[list[Any]]
    source: str
    note: str = ""
    folded: bool = False  # long: closed at first where the form allows it
    kind: str = "table"

    @classmethod
    def of(
        cls, id: str, title: str, columns: list[Column], rows: Iterable[Mapping[str, Any]], source: str, **more: Any
    ) -> Table:
        """Each row has its values by the names of the columns. `more`: note, folded."""
        return cls(id, title, columns, [[row.get(column.name) for column in columns] for row in rows], source, **more)


@dataclass
class Part:
    label: str
    value: int | None
    group: str  # decides the colour: see render/static/style.css
    what: str = ""


@dataclass
class Parts:
    """Parts that add up to a total, each of them once."""

    id: str
    title: str
    parts: list[Part]
    total: int | None
    total_label: str
    source: str
    note: str = ""
    unit: str = "bytes"
    kind: str = "parts"


@dataclass
class Line:
    label: str
    values: list[float | None]
    stacked: bool = False
    what: str = ""


@dataclass
class Event:
    time: float
    label: str


@dataclass
class Series:
    id: str
    title: str
    times: list[float]
    lines: list[Line]
    source: str
    note: str = ""
    events: list[Event] = field(default_factory=list)
    unit: str = "bytes"
    kind: str = "series"


@dataclass
class Picture:
    """An SVG that the server made, such as a flame graph."""

    id: str
    title: str
    svg: str
    source: str
    note: str = ""
    kind: str = "picture"


@dataclass
class Note:
    text: str
    kind: str = "note"


SEVERITIES = ("critical", "warning", "note")


@dataclass
class Finding:
    """A fault, its proof, and its remedy. `statements` can be run as they are and free most of what the finding names. The
    rows of one with a single column RUN are the statements."""

    severity: str  # one of SEVERITIES
    holder: str  # who has the memory
    verdict: str  # leak, growth, fragmentation, cache, misconfiguration, host, unexplained, session
    headline: str
    evidence: str
    remedy: str
    statements: list[str] = field(default_factory=list)
    check: str = ""  # how to tell this verdict from another
    bytes: int | None = None  # at stake; resident, unless the headline says allocated
    source: str = ""
    share: float | None = None  # percent of the memory besides the buffer pool; those of one report are at most 100
    rule: str = ""  # of our server: a name that stays the same
    kind: str = "finding"

    @property
    def rank(self) -> tuple[int, int]:
        """Holders of memory come before settings that may lead to trouble."""
        order = SEVERITIES.index(self.severity)
        if self.verdict == "misconfiguration" and order:
            order = 3
        return order, -(self.bytes or 0)


@dataclass
class Section:
    id: str
    title: str
    lead: str = ""
    blocks: list[Any] = field(default_factory=list)


@dataclass
class Report:
    """The report of one server."""

    label: str
    product: str
    time: float
    headline: str
    sections: list[Section]
    findings: list[Finding]
    facts: list[Fact]

    def plain(self) -> dict[str, Any]:
        return asdict(self)
