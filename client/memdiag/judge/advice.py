"""What our server found. MEMDIAG_ADVICE is shown as it is, in the server's order."""

from __future__ import annotations

from memdiag.model.document import SEVERITIES, Finding
from memdiag.model.units import size
from memdiag.model.view import Row, View


def findings(view: View) -> list[Finding]:
    return [_finding(view, row) for row in view.rows("memdiag_advice")]


def _finding(view: View, row: Row) -> Finding:
    statement = row["STATEMENT"]
    severity = row["SEVERITY"]
    return Finding(
        # A later server may have another word.
        severity=severity if severity in SEVERITIES else "warning",
        holder=row["HOLDER"] or row["SUBSYSTEM"],
        verdict=row["VERDICT"],
        headline=_headline(view, row),
        evidence=_proof(row),
        # A remedy that is the statement is shown once.
        remedy="" if row["REMEDY"] == statement else row["REMEDY"],
        statements=[statement] if statement else [],
        bytes=row["BYTES"],
        source="INFORMATION_SCHEMA.MEMDIAG_ADVICE",
        rule=row["RULE"],
    )


def _headline(view: View, row: Row) -> str:
    evidence, subsystem = row["EVIDENCE"], row["SUBSYSTEM"]
    if subsystem in view.pool_states() and not row["HOLDER"]:
        return f"Pool {subsystem}: {evidence}"
    return evidence[:1].upper() + evidence[1:]


def _proof(row: Row) -> str:
    words = f"The server's own advice about {row['SUBSYSTEM']}: {row['VERDICT']}, by its rule {row['RULE']}"
    resident, allocated = row["BYTES"], row["ALLOCATED_BYTES"]
    if resident is not None:
        words += f"; {size(resident)} are resident"
        if allocated is not None:
            words += f" of {size(allocated)} allocated"
    return words + "."
