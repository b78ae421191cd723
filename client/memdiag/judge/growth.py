"""Growth: what will end the server later."""

from __future__ import annotations

from memdiag.model.document import Finding
from memdiag.model.trend import Trend, line_through
from memdiag.model.units import MIB, duration, percent, size
from memdiag.model.view import View

# A line that fits worse is no trend.
FIT = 0.8
SOON_SECONDS = 86400
WORTH_PER_HOUR = 8 * MIB
LEAST_SECONDS = 300


def findings(view: View, recording: list[dict] | None) -> list[Finding]:
    samples = [(row["TIME"], row["RSS_BYTES"], row.get("BUFFER_POOL_BYTES")) for row in view.rows("memdiag_history")]
    source = "INFORMATION_SCHEMA.MEMDIAG_HISTORY"
    if not samples and recording:
        samples = [(row["time"], row.get("rss"), row.get("buffer_pool")) for row in recording]
        source = "the recording"
    # The buffer pool fills after a start and then stays.
    points = [(moment, rss - pool) for moment, rss, pool in samples if rss is not None and pool is not None]
    points = [point for point in points if point[0] >= points[-1][0] - 900]
    trend = line_through(points)
    if trend is None or points[-1][0] - points[0][0] < LEAST_SECONDS:
        return []
    if trend.r2 < FIT or trend.per_second * 3600 < WORTH_PER_HOUR:
        return []
    return [_finding(view, trend, source, points[-1][0] - points[0][0])]


def _finding(view: View, trend: Trend, source: str, seconds: float) -> Finding:
    limit, rss = view.limit, view.rss
    left = None
    if limit and rss is not None:
        left = max(0.0, (limit.bytes - rss) / trend.per_second)
    soon = left is not None and left < SOON_SECONDS
    grown = _grown_pool(view)
    return Finding(
        severity="critical" if soon else "warning",
        holder=f"growth of pool {grown[0]}" if grown else "growth",
        verdict="growth",
        headline=f"RSS without the buffer pool grows by {size(trend.per_second * 3600)} an hour"
        + (f" and reaches {limit.what} in {duration(left)}" if soon and limit else ""),
        evidence=f"A straight line fits {percent(trend.r2 * 100)} of the last {duration(seconds)}."
        + (f" Pool {grown[0]} grew most: by {size(grown[1])}." if grown else ""),
        remedy="find who takes it: the section of sessions, or count them from now on",
        statements=["SET GLOBAL memdiag_sessions = ON, memdiag_scope_survivors = ON"] if view.ours else [],
        bytes=int(trend.per_second * 3600),
        source=source,
    )


def _grown_pool(view: View) -> tuple[str, int] | None:
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    rows = view.rows("memdiag_history_pools")
    if not rows:
        return None
    since = max(row["TIME"] for row in rows) - 900
    for row in sorted(rows, key=lambda row: row["TIME"]):
        if row["TIME"] >= since and row["LIVE_BYTES"] is not None:
            first.setdefault(row["POOL"], row["LIVE_BYTES"])
            last[row["POOL"]] = row["LIVE_BYTES"]
    growth = {pool: last[pool] - first[pool] for pool in last}
    pool = max(growth, key=lambda name: growth[name], default="")
    return (pool, growth[pool]) if pool and growth[pool] > MIB else None
