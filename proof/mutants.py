#!/usr/bin/env python3
"""Changes one token of our code, and asks whether a unit test notices. Again and again, at random.

  proof/mutants.py [--count 200] [--seconds S] [--seed 1] [--file TEXT]

A mutant is killed if a test fails twice, crashes or hangs. One that does not compile or has the same object code does not
count. The tests are those of the file's room, of programs that include the file or its header, and of files that do;
--far: then all others. It works on a copy in build/mutants. Files that no unit test compiles are counted apart. An
interrupted run goes on. The exit status is 0 if at least 85% are killed.
"""

import argparse
import hashlib
import math
import random
import re
import sys
import time
import tomllib
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness.common import ROOT, lock, say
from harness.problem import run_main
from harness.state_file import read_state, write_state
from proof import mutations
from proof.mutated import TREE, Client, Layer, copy, mutant, tracked
from proof.mutations import places
from proof.places import STATES, add_options, every

GOAL = 85
OURS = re.compile(r"(?:mysys|plugin|sql|storage/\w+|client)/memdiag/(?!unittest/|test/).*(?<!_for_test)\.(?:cc|h|py)")
EXPLAINED = Path(__file__).with_name("survivors.toml")


def sources() -> dict[str, str]:
    return {path: (ROOT / path).read_text() for path in tracked() if OURS.fullmatch(path)}


def digest_of_tests() -> str:
    folders = ("mysys/", "plugin/", "sql/", "storage/", "client/", "cmake/")
    files = [path for path in tracked() if path.startswith(folders)]
    return hashlib.sha256(b"\0".join((TREE / path).read_bytes() for path in files)).hexdigest()


def digest(texts: dict[str, str]) -> str:
    return hashlib.sha256("\0".join(f"{path}\0{text}" for path, text in sorted(texts.items())).encode()).hexdigest()


def interval(part: int, whole: int) -> tuple[float, float]:
    """That of Wilson, in percent, which has the true share 19 times in 20."""
    if not whole:
        return 0.0, 100.0
    share, z = part / whole, 1.96
    middle = share + z * z / (2 * whole)
    half = z * math.sqrt(share * (1 - share) / whole + z * z / (4 * whole * whole))
    return tuple(100 * bound / (1 + z * z / whole) for bound in (middle - half, middle + half))


def share(outcomes: Sequence[str]) -> str:
    killed, whole = outcomes.count("killed"), outcomes.count("killed") + outcomes.count("survived")
    low, high = interval(killed, whole)
    return f"{100 * killed / max(whole, 1):.1f}% of {whole} killed ({low:.0f} to {high:.0f}%)"


def kind(path: str) -> str:
    return "client" if path.endswith(".py") else "layer"


def explanations() -> dict[tuple[str, str, str], str]:
    """Why a survivor does no harm, by its file, its line without its indentation, and its change."""
    listed = tomllib.loads(EXPLAINED.read_text())["survivor"]
    return {(each["file"], each["line"], each["change"]): each["why"] for each in listed}


def report(tried: dict[str, list[str]], log: Path) -> str:
    why, folders = explanations(), defaultdict(list)
    lines = [
        f"{name} ({how}) {line}\n  {why.get((name.split(':')[0], line, change), 'NOT EXPLAINED')}"
        for name, (word, how, line, change) in sorted(tried.items())
        if word == "survived"
    ]
    log.write_text("\n".join(lines) + "\n")
    for name, (word, *_) in tried.items():
        path = name.split(":")[0]
        for group in (kind(path), str(Path(path).parent)):
            folders[group].append(word)
    for name, words in sorted(folders.items()):
        say(f"{name:36} {share(words)}")
    words = [word for word, *_ in tried.values()]
    return (
        f"{share(words)}; {sum('NOT EXPLAINED' in line for line in lines)} of {len(lines)} survivors are not explained"
        f" ({log}). Not counted: {words.count('not compiled')} that do not compile, {words.count('same code')} whose code"
        " is the same"
    )


def unreached(layer: Layer, texts: dict[str, str]) -> str:
    lines = {path: text.count("\n") for path, text in texts.items() if kind(path) == "layer"}
    left = [path for path in lines if not layer.reached(path)]
    part = sum(lines[path] for path in left)
    return f"not reached by unit tests: {len(left)} files, {100 * part / sum(lines.values()):.0f}% of the lines in C++"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200, help="mutants that count (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=math.inf, help="then it stops")
    parser.add_argument("--file", default="", help="only files with this text in their paths; nothing is kept")
    parser.add_argument(
        "--far", action="store_true", help="also with the tests that seem to have nothing to do with it"
    )
    add_options(parser)
    options = parser.parse_args()
    until = time.monotonic() + options.seconds
    kept, log = STATES / f"mutants-{options.seed}.json", STATES / f"mutants-{options.seed}.survivors"
    with lock(STATES / "mutants.lock", "trying mutants in this checkout"):
        copy()
        texts = sources()
        population = digest({**texts, "rules": Path(mutations.__file__).read_text()})
        state = {} if options.fresh else read_state(kept)
        if state.get("population") != population:
            state = {"population": population, "tests": "", "timed": {}, "tried": {}}
        if state["tests"] != (tests := digest_of_tests()):
            # They may notice now.
            tried = {name: each for name, each in state["tried"].items() if each[0] != "survived"}
            state |= {"tests": tests, "tried": tried}
        layer, client = Layer(options.far, state["timed"]), Client(state["timed"])
        words = unreached(layer, texts)
        write_state(kept, state)
        tried = {} if options.file else state["tried"]
        drawn = [
            (path, place)
            for path, text in texts.items()
            if options.file in path and (kind(path) == "client" or layer.reached(path))
            for place in places(text, path.endswith(".py"))
        ]
        random.Random(options.seed).shuffle(drawn)
        counted, due = 0, every(20)
        for path, place in drawn:
            if counted >= options.count or time.monotonic() > until:
                break
            one = mutant(path, texts[path], place, str(options.seed))
            if one.name not in tried:
                word, how = (client if kind(path) == "client" else layer).try_one(one)
                tried[one.name] = [word, how, one.line, one.change]
                if not options.file:
                    write_state(kept, state)
                if word == "survived" or due():
                    say(f"{counted}/{options.count} {one.name}: {word} {how}")
            counted += tried[one.name][0] in ("killed", "survived")
        words = f"{report(tried, log)}; {words}"
    say(words)
    killed = [word for word, *_ in tried.values()].count("killed")
    return 0 if counted and 100 * killed >= GOAL * counted else 1


if __name__ == "__main__":
    run_main("mutants", main)
