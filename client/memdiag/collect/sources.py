"""One reading of a snapshot: its rows and where they are from, or the reason why there are none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]


@dataclass
class Source:
    source: str  # a statement or a file
    rows: list[Row] = field(default_factory=list)
    error: str | None = None

    def plain(self) -> dict[str, Any]:
        return {"source": self.source, "rows": self.rows, "error": self.error}


def failed(source: str, reason: str) -> Source:
    return Source(source, error=reason)


def read(source: str, reader: Callable[[], list[Row]]) -> Source:
    try:
        return Source(source, reader())
    except FileNotFoundError:
        return failed(source, "this machine does not have it")
    except PermissionError:
        return failed(source, "this user may not read it; run memdiag as root or as the server's user")
    except (OSError, ValueError) as error:
        return failed(source, getattr(error, "strerror", None) or str(error))
