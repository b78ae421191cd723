"""Servers without memdiag: growth that will end the server later. A recording has the samples."""

from __future__ import annotations

from memdiag.model.document import Finding
from memdiag.model.trend import Trend, line_through
from memdiag.model.units import MIB, duration, percent, size
from memdiag.model.view import Limit, View

# A line that fits worse is no trend.
FIT = 0.8
SOON_SECONDS = 86400
WORTH_PER_HOUR = 8 * MIB
LEAST_SECONDS = 300
# A start or a burst takes minutes. Shorter growth is no reason to wake a person.
CRITICAL_SECONDS = 900
# Growth of a minute tells nothing about the next hours.
FORECAST = 10
# The longest stretch of time that grew like a line tells most.
WINDOWS = (86400, 21600, 3600, 900)


def findings(view: View, recording: list[dict] | None) -> list[Finding]:
    # The buffer pool fills after a start and then stays.
    points = [
        (row["time"], row["rss"] - pool)
        for row in _since_restart(recording or [])
        if row.get("rss") is not None and (pool := _pool_in_rss(row)) is not None
    ]
    for window in WINDOWS:
        last = [point for point in points if point[0] >= points[-1][0] - window]
        trend = line_through(last)
        if trend is None or last[-1][0] - last[0][0] < LEAST_SECONDS:
            return []
        if trend.r2 >= FIT and trend.per_second * 3600 >= WORTH_PER_HOUR:
            return [_finding(view, trend, last[-1][0] - last[0][0])]
    return []


def _pool_in_rss(row: dict) -> int | None:
    """Older recordings do not tell huge pages from others."""
    return row["pool_in_rss"] if "pool_in_rss" in row else row.get("buffer_pool")


def _since_restart(recording: list[dict]) -> list[dict]:
    """What the server had before it was started anew is no growth."""
    starts = [number for number, row in enumerate(recording) if row.get("restarted")]
    return recording[starts[-1] :] if starts else recording


def seconds_left(limit: Limit | None, per_second: float) -> float | None:
    """Until the limit, which all processes use together. None: the limit or its use is not known."""
    if limit is None or limit.used is None or per_second <= 0:
        return None
    return max(0.0, (limit.bytes - limit.used) / per_second)


def _finding(view: View, trend: Trend, seconds: float) -> Finding:
    limit = view.limit
    left = seconds_left(limit, trend.per_second)
    seen = left is not None and left <= seconds * FORECAST
    soon = seen and left < SOON_SECONDS and seconds >= CRITICAL_SECONDS
    return Finding(
        severity="critical" if soon else "warning",
        holder="growth",
        verdict="growth",
        headline=f"RSS without the buffer pool grows by {size(trend.per_second * 3600)} an hour"
        + (f" and reaches {limit.what} in {duration(left)}" if seen and limit else ""),
        evidence=f"A straight line fits {percent(trend.r2 * 100)} of the last {duration(seconds)}."
        + ("" if seen else f" That says nothing about more than {duration(seconds * FORECAST)}."),
        remedy="find who takes it: the section of sessions",
        bytes=int(trend.per_second * 3600),
        source="the recording",
    )
