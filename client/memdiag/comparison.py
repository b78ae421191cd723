"""Two moments compared: a pure function, and the limits above which the difference is a fault."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memdiag.model.units import bytes_of
from memdiag.moments import Moment
from memdiag.problem import WrongOption

KINDS = ("rss", "pool", "route", "instrument", "stack")


@dataclass(frozen=True)
class Difference:
    kind: str
    name: str
    before: int
    after: int

    @property
    def growth(self) -> int:
        return self.after - self.before


@dataclass(frozen=True)
class Allowed:
    """Growth by more than this is a fault. Of a percentage, from `least` bytes on."""

    bytes: int | None = None
    percent: float | None = None
    least: int = 1 << 20

    def exceeded(self, one: Difference) -> bool:
        if self.bytes is not None:
            return one.growth > self.bytes
        assert self.percent is not None
        return one.growth > self.least and one.growth * 100 > one.before * self.percent


def differences(before: Moment, after: Moment, kinds: Sequence[str] = KINDS) -> list[Difference]:
    """Largest change first. A part that only one side has is 0 on the other, or as much as the other's source leaves out.
    A kind that only one side has is left out, and so is a part that one side does not know: they prove nothing."""
    result = []
    if "rss" in kinds and before.rss is not None and after.rss is not None:
        result.append(Difference("rss", "RSS", before.rss, after.rss))
    for kind in kinds:
        old, new = before.parts.get(kind), after.parts.get(kind)
        if old is None or new is None:
            continue
        found = []
        for name in sorted({*old, *new}):
            one = old[name] if name in old else _absent(new[name], before, kind)
            other = new[name] if name in new else _absent(old[name], after, kind)
            if one is not None and other is not None and one != other:
                found.append(Difference(kind, name, one, other))
        result += sorted(found, key=lambda one: -abs(one.growth))
    return result


def _absent(on_the_other_side: int | None, moment: Moment, kind: str) -> int | None:
    """The most that the part may have, but not so much that it seems to have changed where it need not."""
    if on_the_other_side is None:
        return None
    return min(on_the_other_side, moment.cut.get(kind, 0))


def missing(before: Moment, after: Moment, kinds: Sequence[str]) -> list[str]:
    """Kinds that cannot be compared, or not whole."""
    result = [
        kind
        for kind in kinds
        if kind != "rss" and any(not one.parts.get(kind) or None in one.parts[kind].values() for one in (before, after))
    ]
    if "rss" in kinds and (before.rss is None or after.rss is None):
        result.insert(0, "rss")
    return result


def faults(found: Sequence[Difference], allowed: Mapping[str, Sequence[Allowed]]) -> list[Difference]:
    return [one for one in found if any(limit.exceeded(one) for limit in allowed.get(one.kind, ()))]


def allowed_of(words: Sequence[str]) -> dict[str, list[Allowed]]:
    """`64M` or `10%` for all kinds but those that have their own, as `pool=16M`. Of several, each counts."""
    of_all: list[Allowed] = []
    result: dict[str, list[Allowed]] = {}
    for word in words:
        kind, equals, amount = word.rpartition("=")
        if equals and kind not in KINDS:
            raise WrongOption(f"{word!r}: the kinds are {', '.join(KINDS)}")
        percent = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*%\s*", amount)
        one = Allowed(percent=float(percent[1])) if percent else Allowed(bytes=bytes_of(amount))
        (result.setdefault(kind, []) if equals else of_all).append(one)
    return dict.fromkeys(KINDS, of_all) | result if of_all else result
