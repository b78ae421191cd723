"""Figures as words. An unknown figure is None and reads `unknown`, never 0."""

from __future__ import annotations

import re
from datetime import datetime, timezone

from memdiag.problem import WrongOption

UNKNOWN = "unknown"
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
_STEPS = ((1 << 40, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB"))


def size(value: float | None) -> str:
    if value is None:
        return UNKNOWN
    sign, amount = ("-" if value < 0 else ""), abs(value)
    for step, name in _STEPS:
        # 1023.6 MiB would read 1024 MiB.
        if amount >= step * 0.9995:
            number = amount / step
            digits = 0 if number >= 99.95 else 1 if number >= 9.995 else 2
            return f"{sign}{number:.{digits}f} {name}"
    return f"{sign}{amount:.0f} B"


def signed_size(value: float | None) -> str:
    return UNKNOWN if value is None else ("+" if value > 0 else "") + size(value)


def count(value: float | None) -> str:
    if value is None:
        return UNKNOWN
    if isinstance(value, int) or float(value).is_integer():
        return f"{int(value):,}"
    return f"{value:,.2f}"


def duration(seconds: float | None) -> str:
    if seconds is None:
        return UNKNOWN
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    if seconds < 172800:
        return f"{seconds / 3600:.0f} h"
    return f"{seconds / 86400:.0f} days"


def percent(value: float | None) -> str:
    if value is None:
        return UNKNOWN
    return f"{value:.0f}%" if abs(value) >= 9.95 else f"{value:.1f}%"


def moment(epoch: float | None) -> str:
    if epoch is None:
        return UNKNOWN
    try:
        return datetime.fromtimestamp(epoch, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):  # no calendar has it: a damaged file
        return UNKNOWN


def share(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else 100.0 * part / whole


_FORMATS = {"bytes": size, "signed bytes": signed_size, "count": count, "s": duration, "%": percent, "time": moment}


def shown(value: object, unit: str = "") -> str:
    """A value of a column or a figure as people read it."""
    if value is None:
        return UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        if unit in _FORMATS:
            return _FORMATS[unit](value)
        words = count(value) if unit else _plain(value)
        return f"{words} {unit}".strip()
    return str(value)


def _plain(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else f"{value:g}"


def bytes_of(text: str) -> int:
    """The bytes that a person wrote: 8G, 512M, 1.5GiB, 4096."""
    found = re.fullmatch(r"\s*([0-9]{1,20}(?:\.[0-9]+)?)\s*([KMGT]?)(?:i?B)?\s*", text, re.I)
    if not found:
        raise WrongOption(f"{text!r} is not a size; write 8G, 512M or a number of bytes")
    power = " KMGT".index(found[2].upper() or " ")
    return int(float(found[1]) * 1024**power)
