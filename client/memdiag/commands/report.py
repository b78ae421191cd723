"""memdiag report: one page about one or several servers."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import Any

from memdiag.anonymize import Names, anonymized
from memdiag.collect.snapshot import take
from memdiag.commands.arguments import chosen_targets
from memdiag.connect.options import Target
from memdiag.connect.session import Refused, Session
from memdiag.files import write_whole
from memdiag.model.view import View
from memdiag.model.words import printable
from memdiag.problem import Problem
from memdiag.progress import Progress
from memdiag.recording import read_recording
from memdiag.render import html, json, markdown, text
from memdiag.render.page import Page
from memdiag.report.build import report

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
        ("html", "one file that needs no network (default)"),
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
    recording = read_recording(Path(options.recording)).samples if options.recording else None
    page, problems = collected(chosen_targets(options, options.servers), recording, options.anonymize)
    if not page.reports:
        raise Problem("; ".join(problems))
    text_of_page = RENDERERS[options.form](page)
    place = options.out or (file_name(page) if options.form == "html" else "-")
    if place == "-":
        sys.stdout.write(text_of_page)
    else:
        write_whole(Path(place), text_of_page)
        print(Path(place).resolve())
    old = [f"{view.label}: {view.too_old}" for view in map(View, page.snapshots) if view.too_old]
    for line in [*problems, *old]:
        print(f"memdiag: {printable(line)}", file=sys.stderr)
    return 1 if problems else 0


def collected(targets: list[Target], recording: list[dict[str, Any]] | None, anonymous: bool) -> tuple[Page, list[str]]:
    """A page of those that answer, and a line for each that does not: the page has it, too, without names if
    `anonymous`."""
    page, problems, names = Page("", []), [], Names()
    for target in targets:
        progress = Progress(f"{target.label}: ")
        problem = ""
        try:
            with Session(target) as session:
                snapshot = take(session, progress, partial=True)
        except Refused as error:
            problem = f"{target.label}: {error}"
        except Problem as error:
            problem = str(error)
        finally:
            progress.done()
        if problem:
            problems.append(problem)
            page.problems.append(names.problem(problem, _names_of(target)) if anonymous else problem)
            continue
        if snapshot["gone"]:
            problems.append(f"{target.label} did not answer any more: the report has what was read until then")
        if anonymous:
            snapshot = anonymized(snapshot, names)
        page.snapshots.append(snapshot)
        page.reports.append(report(snapshot, recording))
    labels = ", ".join(one.label for one in page.reports)
    page.title = f"Memory of {labels}"
    return page, problems


def _names_of(target: Target) -> dict[str, str]:
    return {"server": target.label, "host": target.host, "user": target.user}


def file_name(page: Page) -> str:
    import time

    first = re.sub(r"[^\w.-]+", "-", page.reports[0].label).strip("-")[-40:]
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(page.reports[0].time))
    return f"memdiag-{first}-{stamp}.html"
