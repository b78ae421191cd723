"""memdiag what-if: another limit for the recorded history, other values of variables for the budget."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from memdiag.collect.snapshot import take
from memdiag.commands.arguments import chosen_targets
from memdiag.connect.session import Refused, Session
from memdiag.files import read_text
from memdiag.judge.ceiling import FLOOR_PERCENT, has_ceiling, lowest_limit, marks_of_limit, needed_at_rest, pool_floor
from memdiag.model.budget import NO_SUM, huge_outside, rows, sums, with_values
from memdiag.model.units import bytes_of, duration, moment, signed_size, size
from memdiag.model.view import View
from memdiag.model.words import printable
from memdiag.moments import is_file, snapshot_of, split
from memdiag.problem import Problem, WrongOption
from memdiag.progress import Progress
from memdiag.recording import is_recording, parsed
from memdiag.replay import Outcome, Sample, replay

FORMAT = "memdiag-what-if/1"
# The kernel needs some room, and the next peak is not the last one.
RESERVE = 1.1
NOT_SURVIVED = 3
_RUNS = (
    "SELECT TIME, RSS_BYTES, DIRTY_BYTES, RSS_PEAK_BYTES, RSS_PEAK_TIME FROM information_schema.MEMDIAG_HISTORY"
    " WHERE {runs} ORDER BY TIME"
)


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source", nargs="?", metavar="SERVER|FILE", help="a server, a report, or a recording of memdiag record"
    )
    parser.add_argument("--limit", metavar="SIZE", help="such as 8G")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="VARIABLE=VALUE",
        help="such as max_connections=500; may be repeated. Nothing is set on the server",
    )
    parser.add_argument("--json", action="store_true")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    if not options.limit and not options.set:
        raise WrongOption("say --limit SIZE, or --set VARIABLE=VALUE, or both")
    limit = bytes_of(options.limit) if options.limit else None
    if limit == 0:
        raise WrongOption("--limit must be more than 0")
    values = values_of(options.set)
    samples, view, gives_back = _read(options)
    result: list[str] = []
    document: dict[str, Any] = {"format": FORMAT, "limit": limit, "set": values}
    code = 0
    if limit is not None:
        if not samples:
            raise Problem(
                "there is no history: the server keeps none (memdiag record makes a recording), or its sampling is off"
            )
        outcome = replay(samples, limit)
        # The history counts pages that were never written as unused, too: a purge may give back less.
        counts = gives_back and view is None
        result += limit_lines(outcome, samples, limit, gives_back, counts)
        if outcome.survived_giving_back is not None and view is not None:
            result.append(
                "The history counts pages that were never written as unused, too; they would give nothing back."
                " So a purge does not count in the exit status."
            )
        result += ceiling_lines(view, limit) if view is not None else []
        document["history"] = asdict(outcome) | {
            "from": samples[0].time,
            "until": samples[-1].time,
            "gives_back_by_itself": gives_back,
            "purge_counts": counts,
        }
        if view is not None and has_ceiling(view):
            document["ceiling"] = ceiling_figures(view, limit)
        purged = counts and outcome.survived_giving_back
        code = 0 if outcome.survived or purged else NOT_SURVIVED
    if values:
        if view is None:
            raise Problem("--set needs a server or a report: a recording has no budget")
        result += [""] * bool(result) + budget_lines(view, values, limit)
        document["budget"] = budget_figures(view, values, limit)
    print(json.dumps(document, indent=1) if options.json else printable("\n".join(result)))
    return code


def values_of(words: list[str]) -> dict[str, int]:
    result = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise WrongOption(f"{word!r}: write VARIABLE=VALUE")
        result[name.strip().lower()] = bytes_of(value)
    return result


def _read(options: argparse.Namespace) -> tuple[list[Sample], View | None, bool]:
    """Samples, the server, and whether it purges by itself when memory runs short."""
    source = options.source or ""
    if source and is_file(source):
        path, label = split(source)
        text = read_text(Path(path))
        if is_recording(text):
            recording = parsed(text, path)
            if not any(sample.get("rss") for sample in recording.samples):
                raise Problem(f"{path} has no RSS: it was recorded on another machine than the server's")
            variables = recording.head.get("variables") or {}
            return of_recording(recording.samples), None, _gives_back(variables.get("memdiag_memory_target"))
        view = View(snapshot_of(text, path, label))
        return of_history(view.rows("memdiag_history")), view, _gives_back(view.variable("memdiag_memory_target"))
    (target,) = chosen_targets(options, [source] if source else [])
    progress = Progress(f"{target.label}: ")
    with Session(target) as session:
        try:
            view = View(take(session, progress))
        finally:
            progress.done()
        if not view.ours:
            return [], view, False
        samples = []
        for runs in ("RUN > 0", "RUN = 0"):
            try:
                samples += of_history(session.rows(_RUNS.format(runs=runs)))
            except Refused as error:
                raise Problem(f"{target.label}: {error}") from None
    return samples, view, _gives_back(view.variable("memdiag_memory_target"))


def _gives_back(target: Any) -> bool:
    return str(target or "OFF").upper() not in ("OFF", "WATCH")


def of_history(found: list[dict[str, Any]]) -> list[Sample]:
    if len(found) < 2:  # memdiag_history_interval_ms is 0: it is the sample of the start
        return []
    samples = [Sample(row["TIME"], row["RSS_BYTES"], _unused(row)) for row in found if row["RSS_BYTES"] is not None]
    if samples:
        # The kernel also sees peaks between two samples, in each run its own. The unused pages of such a peak are not
        # known. They are taken to be those of the highest sample.
        highest = max(samples, key=lambda one: one.rss)
        last = max(found, key=lambda row: row.get("RSS_PEAK_BYTES") or 0)
        peak = last.get("RSS_PEAK_BYTES") or 0
        if peak > highest.rss:
            when = last.get("RSS_PEAK_TIME") or highest.time
            samples.append(Sample(when, peak, highest.unused))
            samples.sort(key=lambda one: one.time)
    return samples


def _unused(row: dict[str, Any]) -> int | None:
    """Dirty pages that were never written take no memory; of more than RSS most are such."""
    dirty = row.get("DIRTY_BYTES")
    if dirty is None:
        return None
    return dirty if dirty <= row["RSS_BYTES"] else 0


def of_recording(found: list[dict[str, Any]]) -> list[Sample]:
    samples = [Sample(row["time"], row["rss"], row.get("unused")) for row in found if row.get("rss") is not None]
    return sorted(samples, key=lambda one: one.time)  # the clock may have been set back


def limit_lines(outcome: Outcome, samples: list[Sample], limit: int, gives_back: bool, counts: bool) -> list[str]:
    """@param counts  a purge is known to give back what the samples have as unused"""
    span = duration(samples[-1].time - samples[0].time)
    lines = [
        f"{outcome.samples} samples of {span}, until {moment(samples[-1].time)}.",
        f"highest RSS: {size(outcome.highest.rss)}, at {moment(outcome.highest.time)}",
    ]
    if outcome.survived:
        lines.append(
            f"With a limit of {size(limit)} the server would have survived: {size(limit - outcome.highest.rss)} were free at its peak."
        )
    else:
        first = outcome.first_above
        assert first
        purged = counts and outcome.survived_giving_back
        what = "there would have been a purge" if purged else "the kernel would have ended it"
        lines.append(
            f"With a limit of {size(limit)} {what} at {moment(first.time)}:"
            f" RSS was {size(first.rss)}, and {outcome.above} samples are above the limit."
        )
        if outcome.survived_giving_back is None:
            lines.append("How much of it was unused is not known. Only the server with memdiag records that.")
        elif outcome.survived_giving_back:
            lines.append(
                f"It would have survived, as memdiag_memory_target is not OFF: it gives back unused pages, up to {size(outcome.most_given_back)} at once."
                if counts
                else f"A purge of unused pages, up to {size(outcome.most_given_back)} at once, might have sufficed: "
                + (
                    "the server purges by itself, as memdiag_memory_target is not OFF."
                    if gives_back
                    else "memdiag_memory_target = AUTO purges by itself, below a limit of a control group."
                )
            )
        else:
            lines.append("Giving back unused pages would not have sufficed.")
    lines.append(
        f"lowest limit that would have sufficed: {size(outcome.lowest_limit)} as it was"
        + (
            f", {size(outcome.lowest_limit_giving_back)} at best with unused pages given back"
            if outcome.lowest_limit_giving_back is not None
            else ""
        )
        + f"; with a tenth in reserve {size(outcome.lowest_limit * RESERVE)}."
    )
    lines.append("Only the server's process counts here, not what else shares its limit.")
    return lines


def ceiling_lines(view: View, limit: int) -> list[str]:
    """What the ceiling would do at a limit. None for a server without it."""
    if not has_ceiling(view):
        return []
    marks, floor, need = marks_of_limit(limit), pool_floor(view), needed_at_rest(view)
    if marks.target <= 0:
        return ["", "The ceiling has no target below this limit: its margin alone is more."]
    target = view.variable("memdiag_memory_target")
    now = size(target) if isinstance(target, int) else target or "not known"
    lines = [
        "",
        f"With memdiag_memory_target = AUTO (now: {now}) the server would stay below a target of {size(marks.target)}:"
        f" statements begin while {size(marks.plenty)} are left, and running ones wait below {size(marks.reserve)}.",
    ]
    if floor is not None:
        pool = size(view.variable("innodb_buffer_pool_size"))
        lines.append(f"It would take frames of the buffer pool, down to {size(floor)} of {pool} ({FLOOR_PERCENT}%).")
    if need is None:
        return [*lines, "What the server needs at rest is not known."]
    rest = f"At rest, with the pool at that floor, and without what sessions have, the server needs {size(need)}."
    spare = marks.target - marks.plenty - need
    if spare >= 0:
        return [*lines, f"{rest} It fits: {size(spare)} more can be taken before statements wait."]
    return [
        *lines,
        f"{rest} It does not fit: one statement would run at a time."
        f" The lowest limit that fits is {size(lowest_limit(need))}.",
    ]


def ceiling_figures(view: View, limit: int) -> dict[str, int | None]:
    """As JSON; None: not known. `lowest_limit` is that at which what the server needs at rest fits."""
    need = needed_at_rest(view)
    return asdict(marks_of_limit(limit)) | {
        "pool_floor": pool_floor(view),
        "needed_at_rest": need,
        "lowest_limit": None if need is None else lowest_limit(need),
    }


def budget_figures(view: View, values: dict[str, int], limit: int | None) -> dict[str, Any]:
    """As JSON, after budget_lines() has found that all is known: the sums now and then, and what they have to fit."""
    before = rows(view)
    after = with_values(view, before, values)
    bound = bound_of(view, limit)
    return {
        "now": asdict(sums(before)),
        "then": asdict(sums(after)),
        "in_no_sum": [row.variable for row in after if row.variable in values and row.kind in NO_SUM],
        "limit": bound,
        # A part of `then` that the limit does not count.
        "huge_pages_outside": None if bound is None else huge_outside(view, after, bound),
    }


def bound_of(view: View, limit: int | None) -> int | None:
    own = view.lowest_limit
    return limit if limit is not None else own.bytes if own else None


def budget_lines(view: View, values: dict[str, int], limit: int | None) -> list[str]:
    before = rows(view)
    if not before:
        raise Problem("the budget is not known: this account may not read the variables")
    unknown = [name for name in values if not any(row.variable == name or row.depends_on(name) for row in before)]
    if unknown:
        raise Problem(
            f"the budget does not know {', '.join(unknown)}; it knows, for example,"
            f" {', '.join(row.variable for row in before[:4])}"
        )
    after = with_values(view, before, values)
    old, new = sums(before), sums(after)
    bound = bound_of(view, limit)
    lines = ["budget, worst case".ljust(28) + f"{'now':>12} {'then':>12} {'change':>12}"]
    for label, one, other in (
        ("the server's buffers", old.server_buffers, new.server_buffers),
        ("buffers of all sessions", old.session_buffers, new.session_buffers),
        ("what data can make it", old.growing, new.growing),
    ):
        lines.append(f"{label:28}{size(one):>12} {size(other):>12} {signed_size(other - one):>12}")
    lines += [
        f"{row.variable} is in no sum: {NO_SUM[row.kind]}."
        for row in after
        if row.variable in values and row.kind in NO_SUM
    ]
    if bound is None:
        lines.append("The limit is not known; say --limit.")
    else:
        outside = huge_outside(view, after, bound)
        held = new.at_once - outside
        lines.append(
            f"Buffers alone: {size(held)}, {'within' if held <= bound else 'above'} the limit of {size(bound)}"
            + (f", which does not count {size(outside)} of huge pages." if outside else ".")
        )
    return lines
