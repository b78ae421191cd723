"""memdiag diff: two reports, moments or servers."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from memdiag import comparison
from memdiag.collect.snapshot import take
from memdiag.commands.arguments import chosen_targets
from memdiag.comparison import KINDS, Difference
from memdiag.connect.session import Session
from memdiag.model.units import moment, signed_size, size
from memdiag.model.words import printable
from memdiag.moments import Moment, is_file, of_file, of_snapshot
from memdiag.problem import Problem, WrongOption, warn
from memdiag.progress import Progress

FORMAT = "memdiag-diff/1"
# The exit status of memdiag diff alone: something grew by more than --max-growth.
EXCEEDED = 3
MOST = 15


def add(parser: argparse.ArgumentParser) -> None:
    for name in ("before", "after"):
        parser.add_argument(
            name,
            metavar=name.upper(),
            help="a report (HTML or JSON), a recording with or without @first, @last, @peak, @NUMBER or @TIME, or a server",
        )
    parser.add_argument("--by", default=",".join(KINDS), help="kinds to compare: %(default)s")
    parser.add_argument(
        "--max-growth",
        action="append",
        default=[],
        metavar="SIZE",
        help=f"such as 64M, 10%%, pool=16M: growth by more ends with status {EXCEEDED}; a percentage allows 1 MiB at least;"
        " may be repeated",
    )
    parser.add_argument("--all", action="store_true", help="also small differences")
    parser.add_argument("--json", action="store_true")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    kinds = [kind.strip() for kind in options.by.split(",")]
    for kind in kinds:
        if kind not in KINDS:
            raise WrongOption(f"--by {kind!r}: the kinds are {', '.join(KINDS)}")
    allowed = comparison.allowed_of(options.max_growth)
    before, after = (of_operand(options, operand) for operand in (options.before, options.after))
    if after.time < before.time:
        warn(f"{after.label} is older than {before.label}")
    found = comparison.differences(before, after, kinds)
    missing = comparison.missing(before, after, kinds)
    known = {kind for kind in kinds if before.parts.get(kind) or after.parts.get(kind)}
    if options.max_growth and (ended := ended_meanwhile(before, after)):
        raise Problem(f"{ended}, so --max-growth cannot be checked")
    for gate in not_checked(options.max_growth, kinds, missing, known):
        # A gate that cannot see must not pass.
        raise Problem(gate)
    faults = comparison.faults(found, allowed)
    if options.json:
        print(
            json.dumps(
                {
                    "format": FORMAT,
                    "before": {"label": before.label, "time": before.time},
                    "after": {"label": after.label, "time": after.time},
                    "differences": [asdict(one) for one in found],
                    "not_compared": missing,
                    "exceeded": [asdict(one) for one in faults],
                },
                indent=1,
            )
        )
    else:
        print(printable("\n".join(lines(before, after, found, missing, faults, options.all))))
    return EXCEEDED if faults else 0


def ended_meanwhile(before: Moment, after: Moment) -> str:
    """The reason why growth in a recording is not known: it may have ended the server. "": it is known."""
    for one in (before, after):
        if one.down:
            return f"the server did not answer at the end of {one.label}: {one.down}"
    if before.run and after.run and before.run[0] == after.run[0] and before.run != after.run:
        return f"the server was restarted between {before.label} and {after.label}"
    return ""


def not_checked(max_growth: list[str], kinds: list[str], missing: list[str], known: set[str]) -> list[str]:
    """A line for each gate that cannot be checked. `known`: kinds of which one side at least has figures; a gate for
    all kinds asks for these and for RSS."""
    result = []
    for word in max_growth:
        kind, equals, _ = word.rpartition("=")
        wanted = [kind] if equals else kinds
        if equals and kind not in kinds:
            result.append(f"--max-growth {word}: --by leaves out {kind}")
        elif blind := [one for one in wanted if one in missing and (equals or one == "rss" or one in known)]:
            result.append(
                f"{' and '.join(blind)}: one side has no figures, so --max-growth {word} cannot be checked;"
                " --by names the kinds to compare"
            )
        elif not set(wanted) - set(missing):
            result.append(f"{' and '.join(wanted)}: no side has figures, so --max-growth {word} cannot be checked")
    return result


def of_operand(options: argparse.Namespace, operand: str) -> Moment:
    if is_file(operand):
        return of_file(operand)
    (target,) = chosen_targets(options, [operand])
    progress = Progress(f"{target.label}: ")
    try:
        with Session(target) as session:
            return of_snapshot(take(session, progress))
    finally:
        progress.done()


def lines(
    before: Moment,
    after: Moment,
    found: list[Difference],
    missing: list[str],
    faults: list[Difference],
    everything: bool,
) -> list[str]:
    result = [f"before: {before.label}, {moment(before.time)}", f"after:  {after.label}, {moment(after.time)}"]
    for kind in KINDS:
        rows = [one for one in found if one.kind == kind]
        shown = rows if everything else [one for one in rows if abs(one.growth) >= 1 << 16][:MOST]
        if not rows:
            continue
        result += ["", f"{kind:12} {'before':>12} {'after':>12} {'growth':>12}"]
        for one in shown:
            mark = "  too much" if one in faults else ""
            result.append(
                f"{size(one.before):>25} {size(one.after):>12} {signed_size(one.growth):>12}  {one.name}{mark}"
            )
        left = len(rows) - len(shown)
        if left:
            result.append(f"{'':25} {left} smaller differences (--all)")
    if missing:
        known = {one.kind for one in found}
        names = [f"{kind} (in part)" if kind in known else kind for kind in missing]
        result += ["", f"not compared, as one side has no figures: {', '.join(names)}"]
    result.append("")
    if faults:
        first = faults[0]
        result.append(f"{len(faults)} too large; the first: {first.kind} {first.name} grew by {size(first.growth)}")
    else:
        result.append("within what is allowed" if found else "no difference")
    return result
