"""All findings about a snapshot, the most important first. Pure: the same snapshot gives the same findings."""

from __future__ import annotations

from memdiag.judge import advice, growth, held, limits, sessions, unexplained, unused
from memdiag.model.document import Finding
from memdiag.model.view import View


def findings(view: View, recording: list[dict] | None = None) -> list[Finding]:
    """`recording`: samples of memdiag record, oldest first."""
    own = [
        *limits.findings(view),
        *growth.findings(view, recording),
        *held.findings(view),
        *sessions.findings(view),
        *unused.findings(view),
        *unexplained.findings(view),
    ]
    own = _once(own)
    return sorted([*own, *advice.findings(view, own)], key=lambda one: one.rank)


def _once(found: list[Finding]) -> list[Finding]:
    """The first of each holder: the rules that know more come first."""
    seen: set[str] = set()
    result = []
    for one in found:
        if one.holder not in seen:
            seen.add(one.holder)
            result.append(one)
    return result
