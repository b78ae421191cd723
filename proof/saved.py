"""Results that git keeps: one short page for each program, with the commit that it is of."""

from __future__ import annotations

import argparse
import time

from bench.runner import arms as arm_list
from harness.commit import commit, require_clean
from harness.common import ROOT, say

FOLDER = ROOT / "proof" / "results"


class _Save(argparse.Action):
    """Refused before the run, rather than after it."""

    def __call__(self, _parser, namespace, _values, _option=None) -> None:
        require_clean(commit())
        setattr(namespace, self.dest, True)


def add_argument(parser: argparse.ArgumentParser) -> None:
    text = f"keep the result in {FOLDER.relative_to(ROOT)}; not from a tree with changes"
    parser.add_argument("--save", action=_Save, nargs=0, default=False, help=text)


def save(name: str, text: str, options: argparse.Namespace) -> None:
    """`options`: of the program, with `arm`."""
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{name}.md"
    server = arm_list.choose(options.arm)[0].build().version()
    day = time.strftime("%-d %B %Y")
    path.write_text(f"# {name}\n\nAt {commit()}, {day}, seed {options.seed}: {server}\n\n{text}\n")
    say(f"saved in {path.relative_to(ROOT)}")
