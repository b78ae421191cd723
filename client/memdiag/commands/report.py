"""memdiag report: one page about one or several servers."""

from __future__ import annotations

import argparse
import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Optional

from memdiag.anonymize import Names, anonymized
from memdiag.collect.snapshot import silent, take
from memdiag.commands.arguments import chosen_targets
from memdiag.connect.options import Target
from memdiag.connect.session import Refused, Session
from memdiag.files import write_whole
from memdiag.model.view import View
from memdiag.problem import Problem, WrongOption, warn
from memdiag.progress import Progress
from memdiag.recording import Recording, is_fresh, of_another_server, read_recording
from memdiag.render import html, json, markdown, text
from memdiag.render.page import Page
from memdiag.report.build import report

# Servers that are asked at the same time.
MOST_AT_ONCE = 32
RENDERERS = {"html": html.render, "text": text.render, "md": markdown.render, "json": json.render}


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "servers",
        nargs="*",
        metavar="SERVER",
        help="host, host:port, user@host, or the path of a socket; several are compared",
    )
    form = parser.add_mutually_exclusive_group()
    for name, words in (
        ("html", "one file that needs no network, and the answer in short on a terminal (default)"),
        ("text", "plain text"),
        ("md", "Markdown"),
        ("json", "all figures, and what the report was made of"),
    ):
        form.add_argument(f"--{name}", dest="form", action="store_const", const=name, help=words)
    parser.add_argument("-o", "--out", metavar="FILE", help="- is standard output (default for all but HTML)")
    parser.add_argument(
        "--anonymize",
        action="store_true",
        help="hide names of users, hosts, schemas, tables and control groups, paths, and statements with their digests",
    )
    parser.add_argument(
        "--recording", metavar="FILE", help="of memdiag record: shows it where the server keeps no history"
    )
    parser.set_defaults(form="html", run=run)


def run(options: argparse.Namespace) -> int:
    recording = read_recording(Path(options.recording)) if options.recording else None
    chosen = chosen_targets(options, options.servers)
    if recording and len(chosen) > 1:
        raise WrongOption("--recording is of one server; name one")
    page, problems = collected(chosen, recording, options.anonymize)
    if not page.reports:
        raise Problem("; ".join(problems))
    text_of_page = RENDERERS[options.form](page)
    place = options.out or (file_name(page) if options.form == "html" else "-")
    if place == "-":
        sys.stdout.write(text_of_page)
    else:
        try:
            write_whole(Path(place), text_of_page)
        except Problem as problem:
            raise problem if options.out else Problem(f"{problem}; see -o FILE, or --text") from None
        if sys.stdout.isatty():
            sys.stdout.write(text.brief(page))
        print(Path(place).resolve())
    old = [f"{view.label}: {view.too_old}" for view in map(View, page.snapshots) if view.too_old]
    for line in [*problems, *old]:
        warn(line)
    return 1 if problems else 0


def collected(targets: list[Target], recording: Recording | None, anonymous: bool) -> tuple[Page, list[str]]:
    """A page of those that answer, and a line for each that does not: the page has it, too, without names if
    `anonymous`.

    @raises Problem if the recording is not of the server"""
    page, problems, names = Page("", []), [], Names()
    for target, (snapshot, problem) in zip(targets, asked(targets)):
        if snapshot is None:
            problems.append(problem)
            page.problems.append(names.problem(problem, _names_of(target)) if anonymous else problem)
            continue
        if recording and (reason := of_another_server(recording, snapshot)):
            raise Problem(
                f"the recording does not belong to this report: {reason}; memdiag diff compares moments of it"
            )
        if snapshot["gone"]:
            problems.append(f"{target.label} did not answer any more: the report has what was read until then")
        if anonymous:
            snapshot = anonymized(snapshot, names)
        page.snapshots.append(snapshot)
        samples = recording.samples if recording else None
        page.reports.append(report(snapshot, samples, judge_recording=recording is not None and is_fresh(recording)))
    labels = ", ".join(one.label for one in page.reports)
    page.title = f"Memory of {labels}"
    return page, problems


Answer = tuple[Optional[dict[str, Any]], str]


def asked(targets: list[Target]) -> list[Answer]:
    """The snapshot of each server, or a line on why there is none, in the order of the targets. They are asked at the
    same time, so that one that hangs costs the others nothing."""
    if len(targets) == 1:
        progress = Progress(f"{targets[0].label}: ")
        try:
            return [_ask(targets[0], progress)]
        finally:
            progress.done()
    progress = Progress()
    answers: dict[int, Answer] = {}
    faults: list[BaseException] = []
    turn = threading.Semaphore(MOST_AT_ONCE)

    def work(number: int) -> None:
        try:
            with turn:
                answers[number] = _ask(targets[number], silent)
        except BaseException as fault:
            faults.append(fault)

    # Daemons: Ctrl-C ends the program without waiting for a server that hangs.
    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(len(targets))]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            progress(f"{len(answers)} of {len(targets)} servers have answered")
            thread.join()
    finally:
        progress.done()
    if faults:
        raise faults[0]
    return [answers[number] for number in range(len(targets))]


def _ask(target: Target, progress: Callable[[str], None]) -> Answer:
    try:
        with Session(target) as session:
            return take(session, progress, partial=True), ""
    except Refused as error:
        return None, f"{target.label}: {error}"
    except Problem as error:
        return None, str(error)


def _names_of(target: Target) -> dict[str, str]:
    return {"server": target.label, "host": target.host, "user": target.user}


def file_name(page: Page) -> str:
    import time

    first = re.sub(r"[^\w.-]+", "-", page.reports[0].label).strip("-")[-40:]
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(page.reports[0].time))
    return f"memdiag-{first}-{stamp}.html"
