"""Words of others: names and messages of a server can have any character."""

from __future__ import annotations

import re
import textwrap
import unicodedata

# Control characters but tabs and ends of lines, marks that turn the direction of text, and halves of characters.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """A terminal obeys none of it, and a person sees all of it: such a character reads as its escape."""
    return _UNSEEN.sub(lambda found: _escape(ord(found[0])), text)


def _escape(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


# --- cells of a terminal ---------------------------------------------------------


def cell_width(text: str) -> int:
    """How many cells it takes."""
    return len(text) if text.isascii() else sum(map(_cells, text))


def _cells(letter: str) -> int:
    """Two for a Chinese letter, none for an accent that is a character of its own."""
    if unicodedata.category(letter) in ("Mn", "Me") or letter == _JOINER:
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


_JOINER = "\u200d"


def cut(text: str, most: int) -> str:
    """Its beginning, in so many cells at the most."""
    taken = 0
    for number, letter in enumerate(text):
        taken += _cells(letter)
        if taken > most:
            return text[:number]
    return text


def ljust(text: str, cells: int) -> str:
    return text + " " * (cells - cell_width(text))


def rjust(text: str, cells: int) -> str:
    return " " * (cells - cell_width(text)) + text


def wrap(text: str, most: int, first: str = "", then: str = "") -> list[str]:
    """textwrap.wrap(), in cells."""
    if text.isascii() or all(_cells(letter) == 1 for letter in text):
        return textwrap.wrap(text, most, initial_indent=first, subsequent_indent=then)
    lines = [first]
    is_begun = False
    # A line ends at ASCII's blanks alone, and those at its end are lost.
    for blanks, word in re.findall(r"( *)([^ ]+)", text.expandtabs().replace("\n", " ")):
        for part in _parts_of(word, most - max(len(first), len(then))):
            if cell_width(lines[-1] + blanks + part) > most:
                blanks = ""
                if is_begun:
                    lines.append(then)
            lines[-1] += blanks + part
            blanks = ""
            is_begun = True
    return lines if is_begun else []


def _parts_of(word: str, most: int) -> list[str]:
    """Between which a line may end: on both sides of a wide letter, and where a part would be too wide."""
    parts = [""]
    taken, last = 0, 1
    for letter in word:
        cells = _cells(letter)
        if taken and cells and (2 in (cells, last) or taken + cells > most):
            parts.append("")
            taken = 0
        parts[-1] += letter
        taken += cells
        last = cells or last
    return parts
