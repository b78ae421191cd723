"""Our server's own advice, without what our other rules have already said.

The columns of MEMDIAG_ADVICE do not tell a rule: subsystem and verdict of unused pages are those of prepared statements.
The evidence's fixed words do. tests/test_advice.py holds them against the sentences in the server's source.
"""

from __future__ import annotations

import re

from memdiag.judge.thresholds import WORTH_BYTES
from memdiag.model.document import Finding
from memdiag.model.view import View

UNUSED = "of unused pages are kept"
BINLOG = "caches of the binary log hold"
SESSION = re.compile(r"session (\d+) holds")
# Words of the evidence, and the holder that a rule here names with more detail.
SAME = (
    ("prepared statements hold", ("prepared statements",)),
    ("stored programs hold", ("stored programs", "triggers")),
    (BINLOG, ("binary log caches",)),
    (UNUSED, ("unused pages",)),
    ("of the control group's limit of", ("cgroup",)),
    ("are swapped out", ("swap",)),
    ("a task waited for memory", ("pressure",)),
    ("are available", ("machine",)),
    ("the OOM killer has killed", ("kills in the control group",)),
)
# The same in recordings of earlier versions.
_EARLIER = (("were killed for its limit", ("kills in the control group",)),)
_SET = r"SET (?:GLOBAL|PERSIST) \w+ = (?:\d+|ON|OFF)\b(?:, \w+ = (?:\d+|ON|OFF)\b)*"
_STATEMENT = re.compile(rf"{_SET}|FLUSH (?:LOCAL )?TABLES|KILL \d+|SELECT .*")
# A SELECT ends before a plain word in small letters: its names have capitals, a point, an underscore or parentheses.
_PLAIN = re.compile(r"[,:]? [a-z]+(?=[,:.]?(?:\s|$)).*")


def findings(view: View, known: list[Finding]) -> list[Finding]:
    result = []
    for row in view.rows("memdiag_advice"):
        evidence = row["EVIDENCE"]
        if _said(evidence, row["SUBSYSTEM"], row["VERDICT"], known):
            continue
        if _not_resident(view, row["SUBSYSTEM"], evidence):
            continue
        found = statements(row["REMEDY"])
        if (session := SESSION.match(evidence)) and not view.may_end(int(session[1])):
            found = [one for one in found if not one.startswith("KILL")]
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
    if UNUSED in evidence:
        return (states.get("dirty") or 0) + (states.get("muzzy") or 0) < WORTH_BYTES
    if BINLOG in evidence:
        return (states.get("live") or 0) < WORTH_BYTES
    return False


def _said(evidence: str, subsystem: str, verdict: str, known: list[Finding]) -> bool:
    names = {one.holder for one in known}
    for words, holders in SAME + _EARLIER:
        if words in evidence and names.intersection(holders):
            return True
    if verdict == "fragmentation" and f"fragmentation of pool {subsystem}" in names:
        return True
    # A rule here has named what the session holds.
    return bool(SESSION.match(evidence)) and any(
        one.verdict not in ("host", "misconfiguration", "growth") for one in known
    )


def statements(remedy: str) -> list[str]:
    """Those in a remedy's sentences that can be run as they are. A lower max_prepared_stmt_count frees nothing, and
    applications get errors."""
    found = [_STATEMENT.search(clause) for clause in remedy.split(";")]
    return [
        _PLAIN.sub("", one[0]).strip()
        for one in found
        if one and "<" not in one[0] and "max_prepared_stmt_count" not in one[0]
    ]
