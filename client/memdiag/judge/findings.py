"""All findings about a snapshot, the most important first. Pure: the same snapshot gives the same findings.

Our server judges itself: its findings are shown as they are. The rules here are for servers without memdiag.
"""

from __future__ import annotations

from memdiag.judge import advice, growth, held, limits, sessions, unexplained
from memdiag.model.document import Finding
from memdiag.model.view import View


def findings(view: View, recording: list[dict] | None = None) -> list[Finding]:
    """`recording`: samples of memdiag record, oldest first."""
    if view.ours:
        return _of_the_server(view)
    own = [
        *limits.findings(view),
        *growth.findings(view, recording),
        *held.findings(view),
        *sessions.findings(view),
        *unexplained.findings(view),
    ]
    return sorted(_once(own), key=lambda one: one.rank)


def _of_the_server(view: View) -> list[Finding]:
    """And what it cannot know, or did not get to say."""
    if view.error("memdiag_advice"):
        # An account without PROCESS: the kernel's figures still tell whether a limit is near.
        return sorted(limits.findings(view), key=lambda one: one.rank)
    return [*limits.gone(view), *advice.findings(view), *limits.last_run(view)]


def _once(found: list[Finding]) -> list[Finding]:
    """The first of each holder: the rules that know more come first."""
    seen: set[str] = set()
    result = []
    for one in found:
        if one.holder not in seen:
            seen.add(one.holder)
            result.append(one)
    return result
