"""Lengths of time as people write them."""

from __future__ import annotations

import re

from memdiag.problem import WrongOption

_MOST = 10 * 365 * 86400  # the interpreter's waits end with an OverflowError at 292 years
_UNITS = {"": 1, "ms": 0.001, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}


def seconds_of(text: str) -> float:
    found = re.fullmatch(r"\s*([0-9]{1,9}(?:\.[0-9]+)?)\s*(ms|s|m|min|h|d|)\s*", text)
    if not found:
        raise WrongOption(f"{text!r} is no length of time; write 10s, 5m, 8h or 2d")
    seconds = float(found[1]) * _UNITS[found[2]]
    if seconds > _MOST:
        raise WrongOption(f"{text!r} is more than 10 years")
    return seconds
