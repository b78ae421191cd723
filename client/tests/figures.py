"""Every number of a report, held against the answers of the server that it was made of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

# A report computes these itself: sums, shares and estimates. They have tests of their own.
RECKONED = {
    ("holders", "bytes"),
    ("holders", "share"),
    ("holders", "usual"),
    ("budget", "each"),
    ("budget", "worst"),
    ("budget", "seen"),
    ("buffer-pool", "bytes"),
    ("ceiling", "time"),
    ("ceiling", "statements wait"),
    ("ceiling", "running ones wait"),
    ("pools", "unused"),
    ("sessions-by-pool", "BYTES"),
    ("sessions-by-pool", "IN_POOL"),
}


def numbers(value: Any) -> Iterator[int | float]:
    if isinstance(value, dict):
        for one in value.values():
            yield from numbers(one)
    elif isinstance(value, list):
        for one in value:
            yield from numbers(one)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield value


def of_tables(report: dict[str, Any]) -> Iterator[tuple[str, str, int | float]]:
    """(block, column, number) of tables and charts."""
    for section in report["sections"]:
        for block in section["blocks"]:
            for row in block.get("rows", ()):
                for column, value in zip(block["columns"], row):
                    yield from ((block["id"], column["name"], one) for one in numbers(value))
            for line in block.get("lines", ()):
                yield from ((block["id"], line["label"], one) for one in numbers(line["values"]))
            yield from ((block["id"], "time", one) for one in block.get("times", ()))


def foreign(report: dict[str, Any], snapshot: dict[str, Any]) -> list[tuple[str, str, int | float]]:
    """Numbers that the server did not give. @raises AssertionError if there is next to nothing to compare"""
    own = set(numbers(snapshot["sources"]))
    found = [one for one in of_tables(report) if one[:2] not in RECKONED]
    assert len(found) > 100, len(found)
    return [one for one in found if one[2] not in own]
