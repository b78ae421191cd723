"""A snapshot as a report: verdict first, then the sections in the order in which a person needs them."""

from __future__ import annotations

from typing import Any

from memdiag.judge.findings import findings as judged
from memdiag.judge.unexplained import not_readable
from memdiag.model.document import Fact, Finding, Report
from memdiag.model.units import percent, size
from memdiag.model.view import View
from memdiag.report import about, budget, ceiling, configuration, host, innodb, ledger, over_time, pools, profile, who


def report(
    snapshot: dict[str, Any], recording: list[dict[str, Any]] | None = None, judge_recording: bool = True
) -> Report:
    """`judge_recording`: the recording ends now, so that its growth is the server's."""
    view = View(snapshot)
    found = judged(view, recording if judge_recording else None)
    sections = [
        over_time.section(view, recording),
        ceiling.section(view),
        ledger.section(view),
        pools.section(view),
        who.section(view),
        profile.section(view),
        budget.section(view),
        innodb.section(view),
        host.section(view),
        configuration.section(view),
        about.section(view),
    ]
    return Report(
        label=view.label,
        product=view.product,
        time=snapshot["time"],
        headline=headline(view, found),
        sections=[one for one in sections if one.blocks],
        findings=found,
        facts=facts(view),
    )


def headline(view: View, found: list[Finding]) -> str:
    """The one sentence at three in the morning."""
    if found and found[0].severity != "note":
        return found[0].headline
    rss, limit = view.rss, view.limit
    unread = not_readable(view) or (view.ours and (view.error("memdiag_ledger") or view.error("memdiag_advice")))
    if rss is None or unread:
        calm = "Nothing was found to be wrong in what could be read."
    elif limit:
        calm = f"Nothing is wrong: {size(rss)} of RSS, and {limit.what} is {size(limit.bytes)}."
    else:
        calm = f"Nothing is wrong: {size(rss)} of RSS."
    return calm.replace("Nothing is wrong", "Nothing urgent") if found else calm


def facts(view: View) -> list[Fact]:
    limit = view.limit
    process = view.copied("process", "/proc/<pid>/status")
    result = [
        Fact("RSS", view.rss, "bytes", "physical memory of the server's process", view.rss_source),
        Fact(
            "peak RSS",
            view.rss_peak,
            "bytes",
            "the highest RSS since the server started, as the kernel saw it",
            f"VmHWM of {process}",
        ),
        Fact("swapped", view.swapped, "bytes", "memory of the server on the swap device", f"VmSwap of {process}"),
    ]
    if view.huge_pages:
        result.insert(
            1,
            Fact(
                "huge pages",
                view.huge_pages,
                "bytes",
                "physical memory of the server that RSS does not count: large_pages is ON",
                f"HugetlbPages of {process}",
            ),
        )
    if limit:
        result.insert(
            1,
            Fact(
                "limit",
                limit.bytes,
                "bytes",
                f"{limit.what}; {percent(limit.used_percent)} of it is used, by all processes together",
                limit.source,
            ),
        )
    if view.ours:
        result.append(
            Fact(
                "to get back at once",
                view.unused,
                "bytes",
                "unused pages of all pools, which memdiag_purge('all') gives back",
                "INFORMATION_SCHEMA.MEMDIAG_LEDGER",
            )
        )
    result.append(_sessions(view))
    result.append(Fact("up for", view.status("Uptime"), "s", "time since the server started", "SHOW GLOBAL STATUS"))
    return result


def _sessions(view: View) -> Fact:
    if "PROCESS" in (view.error("innodb_status") or ""):
        # The list has this account's own sessions alone.
        connected, source = view.status("Threads_connected"), "SHOW GLOBAL STATUS"
        sleep = "it takes PROCESS to tell how many of them sleep"
    else:
        row, source = view.row("sessions"), view.origin("sessions")
        connected = row.get("SESSIONS")
        sleep = f"{row.get('SLEEPING', 'an unknown number')} of them sleep"
    return Fact("sessions", connected, "count", f"connected now; {sleep}", source)
