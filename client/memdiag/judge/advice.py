"""Our server's own advice, without what our other rules have already said."""

from __future__ import annotations

import re

from memdiag.judge.thresholds import WORTH_BYTES
from memdiag.model.document import Finding
from memdiag.model.view import View

# Words of the evidence, and the holder that a rule here names with more detail.
_SAME = (
    ("prepared statements hold", ("prepared statements",)),
    ("stored programs hold", ("stored programs", "triggers")),
    ("caches of the binary log hold", ("binary log caches",)),
    ("of unused pages are kept", ("unused pages",)),
    ("control group's limit", ("cgroup",)),
    ("are swapped out", ("swap",)),
    ("a task waited for memory", ("pressure",)),
    ("are available", ("machine",)),
    ("the OOM killer has killed", ("kills in the control group",)),
    # The same in recordings of earlier versions.
    ("were killed for its limit", ("kills in the control group",)),
)
_SQL = re.compile(r"\b(?:SELECT|SET GLOBAL|SET PERSIST|FLUSH|KILL|OPTIMIZE)\b[^;]*")
# Words that follow a statement in the advice's sentences.
_AFTER = re.compile(
    r" (?:shows?|names?|bounds?|frees?|writes?|gives?|and after|to bound)\b.*", re.S
)


def findings(view: View, known: list[Finding]) -> list[Finding]:
    result = []
    names = {one.holder for one in known}
    for row in view.rows("memdiag_advice"):
        evidence = row["EVIDENCE"]
        if _said(evidence, row["SUBSYSTEM"], row["VERDICT"], names):
            continue
        if _not_resident(view, row["SUBSYSTEM"], evidence):
            continue
        found = statements(row["REMEDY"])
        result.append(
            Finding(
                severity=row["SEVERITY"],
                holder=row["SUBSYSTEM"],
                verdict=row["VERDICT"],
                headline=_headline(view, row["SUBSYSTEM"], evidence),
                evidence=f"The server's own advice about {row['SUBSYSTEM']}: {row['VERDICT']}.",
                # A remedy that is a statement is shown as one.
                remedy="" if found == [row["REMEDY"]] else row["REMEDY"],
                statements=found,
                source="INFORMATION_SCHEMA.MEMDIAG_ADVICE",
            )
        )
    return result


def _headline(view: View, subsystem: str, evidence: str) -> str:
    if subsystem in view.pool_states():
        return f"Pool {subsystem}: {evidence}"
    return evidence[:1].upper() + evidence[1:]


def _not_resident(view: View, pool: str, evidence: str) -> bool:
    """Pages that were never written count as allocated or dirty, and take no memory. The ledger knows."""
    states = view.pool_states().get(pool)
    if states is None:
        return False
    if "of unused pages are kept" in evidence:
        return (states.get("dirty") or 0) + (states.get("muzzy") or 0) < WORTH_BYTES
    if "caches of the binary log hold" in evidence:
        return (states.get("live") or 0) < WORTH_BYTES
    return False


def _said(evidence: str, subsystem: str, verdict: str, names: set[str]) -> bool:
    for words, holders in _SAME:
        if words in evidence and names.intersection(holders):
            return True
    if verdict == "fragmentation" and f"fragmentation of pool {subsystem}" in names:
        return True
    session = re.match(r"session (\d+) holds", evidence)
    return bool(session) and any(
        name not in ("cgroup", "machine", "swap") for name in names
    )


def statements(remedy: str) -> list[str]:
    found = []
    for match in _SQL.findall(remedy):
        statement = _AFTER.sub("", match).strip()
        if "<" not in statement and len(statement) > 8:
            found.append(statement)
    return found
