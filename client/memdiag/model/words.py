"""Words of others: names and messages of a server can have any character."""

from __future__ import annotations

import re

# Control characters but tabs and ends of lines, marks that turn the direction of text, and halves of characters.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """A terminal obeys none of it, and a person sees all of it: such a character reads as its escape."""
    return _UNSEEN.sub(lambda found: _escape(ord(found[0])), text)


def _escape(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
