#!/usr/bin/env python3
"""The patches in patches/, a series of hooks and one of diets: lint, apply, edit, write back.

  lint                 every rule of patches/README.md, against the source in use
  apply --tree DIR     apply both series to a plain copy of the source
  refresh              rewrite the patches in the form that lint wants
  edit DIR             make a git repository of the patched files, a commit a patch
  take DIR FILE...     copy further upstream files into such a repository
  rebase --onto NEW DIR   such a repository, rebased onto another version of the source
  export DIR           write its commits back as patches

To edit: `edit /tmp/e`; change files there; `git commit --amend`, `git rebase -i` or a
new commit whose message is the header; `export /tmp/e`; build.
"""

import argparse
import json
import re
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from harness.common import ROOT, cache_dir, say
from harness.problem import Problem, run_main
from harness.programs import captured

PATCHES = ROOT / "patches"
# In the order of application: the hooks apply to upstream's source, the diets to the result.
SERIES = ("hooks", "diets")
FIELDS = {
    "hooks": ("Subject", "Why", "Why not own code", "Test", "Remove when"),
    "diets": ("Subject", "Why", "Saves", "Why not own code", "Test", "Leave out", "Remove when"),
}
# A header with one of these is a diet's.
OF_DIETS = tuple(field for field in FIELDS["diets"] if field not in FIELDS["hooks"])
PRISTINE_MARK = "pristine:"


@dataclass(frozen=True)
class Patch:
    name: str  # the file's path in patches/, such as hooks/0001-mem-heap-pool.patch
    header: str  # ends with one newline
    body: str  # from the first "--- a/" on

    @property
    def text(self) -> str:
        return f"{self.header}\n{self.body}"

    @property
    def files(self) -> list[str]:
        return re.findall(r"^--- a/(\S+)$", self.body, re.MULTILINE)

    @property
    def series(self) -> str:
        return self.name.split("/")[0]

    @property
    def subject(self) -> str:
        match = re.match(r"Subject: *(.*)", self.header)
        return match.group(1) if match else ""

    def changed(self) -> list[str]:
        """The lines that begin with + or -, except the lines that name the files."""
        lines, left, right = [], 0, 0
        for line in self.body.splitlines():
            if match := re.match(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@", line):
                left, right = (int(x) if x else 1 for x in match.groups())
            elif left > 0 or right > 0:
                left -= line[:1] in " -" or not line
                right -= line[:1] in " +" or not line
                if line[:1] in ("+", "-"):
                    lines.append(line)
        return lines


def parse(name: str, text: str) -> Patch:
    match = re.search(r"^(diff |--- |Index: )", text, re.MULTILINE)
    if not match:
        raise Problem(f"patches/{name} holds no diff (no line that begins with ---).")
    header = text[: match.start()].rstrip("\n") + "\n"
    return Patch(name, header, text[match.start() :])


def series_names(folder: Path, wanted: tuple[str, ...] = SERIES) -> list[str]:
    """The names in these series, in the order of application."""
    names = []
    for series in wanted:
        path = folder / series / "series"
        if not path.is_file():
            raise Problem(f"{path} is missing; it lists the patches, one name a line.")
        lines = (line.split("#")[0].strip() for line in path.read_text().splitlines())
        names += [f"{series}/{line}" for line in lines if line]
    return names


def load_series(folder: Path, wanted: tuple[str, ...] = SERIES) -> list[Patch]:
    """These series, one after the other."""
    patches = []
    for name in series_names(folder, wanted):
        path = folder / name
        if not path.is_file():
            raise Problem(f"patches/{Path(name).parent}/series names {path.name}, which is not there.")
        patches.append(parse(name, path.read_text()))
    return patches


# --- apply -------------------------------------------------------------------


def check_out(pristine: Path, work: Path, names) -> None:
    """Copies those of upstream's files that the patches change."""
    for name in names:
        if not (pristine / name).is_file():
            raise Problem(
                f"a patch changes {name}, which the source in {pristine} does not "
                "have. Files of our own belong into our own folders."
            )
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(pristine / name, work / name)


def apply_one(patch: Patch, tree: Path) -> str:
    """Applies a patch without fuzz; returns patch's messages about offsets, if any."""
    command = ["patch", "-p1", "--fuzz=0", "--forward", "--no-backup-if-mismatch"]
    command += ["--batch", "--reject-file=-", "-d", str(tree)]
    done = captured(command, input=patch.body)
    if done.returncode:
        words = (done.stdout + done.stderr).strip().replace("\n", "\n  ")
        raise Problem(
            f"patches/{patch.name} does not apply:\n  {words}\n"
            "  Where upstream has changed: docs/moving-to-a-new-upstream.md."
        )
    offsets = re.findall(r"^Hunk .* \((?:offset|fuzz).*$", done.stdout, re.MULTILINE)
    return "; ".join(offsets)


def apply_series(series: list[Patch], tree: Path) -> dict[str, str]:
    """Applies the patches in order; returns {patch: offsets} for those that had any."""
    notes = {patch.name: apply_one(patch, tree) for patch in series}
    return {name: note for name, note in notes.items() if note}


# --- the one form of a patch --------------------------------------------------


def diff(old: Path, new: Path, name: str) -> str:
    """A unified diff with one line of context and no time stamps. It depends on the two
    texts alone."""
    labels = ["--label", f"a/{name}", "--label", f"b/{name}"]
    done = captured(["diff", "-a", "-U1", *labels, str(old), str(new)])
    if done.returncode > 1:
        raise Problem(f"diff of {name} failed: {done.stderr.strip()}")
    return done.stdout


def canonical(series: list[Patch], pristine: Path) -> list[Patch]:
    """The series as `export` would write it."""
    result = []
    with tempfile.TemporaryDirectory(prefix="memdiag-") as folder:
        before, after = Path(folder, "before"), Path(folder, "after")
        names = {name for patch in series for name in patch.files}
        check_out(pristine, before, names)
        check_out(pristine, after, names)
        for patch in series:
            apply_one(patch, after)
            body = ""
            for name in sorted(set(patch.files)):
                body += diff(before / name, after / name, name)
                shutil.copy2(after / name, before / name)
            result.append(Patch(patch.name, patch.header, body))
    return result


# --- lint ----------------------------------------------------------------------


def fields_of(header: str) -> list[str]:
    """The fields that are not empty, in the header's order."""
    found = re.findall(r"^([A-Z][A-Za-z ]*): *(\S?)", header, re.MULTILINE)
    known = {field for fields in FIELDS.values() for field in fields}
    return [field for field, text in found if field in known and text]


def lint_header(patch: Patch) -> list[str]:
    problems = []
    fields = FIELDS[patch.series]
    order = fields_of(patch.header)
    if missing := [field for field in fields if field not in order]:
        problems.append(f"header lacks {', '.join(f'{x}:' for x in missing)}")
    elif order != list(fields):
        problems.append(f"header fields: want, once each and in order, {fields}")
    ours = re.findall(r"[\w-]+(?:/[\w.-]+)*/memdiag/[\w./-]+\.(?:cc|h|test)\b", patch.header)
    problems += [f"header names {path}, which is not there" for path in ours if not (ROOT / path).is_file()]
    return problems


def lint_lines(patch: Patch) -> list[str]:
    problems = []
    for line in patch.changed():
        added = line[1:] if line.startswith("+") else ""
        if added != added.rstrip() or re.match(r" +\t", added):
            problems.append(f"whitespace error in an added line: {added!r}")
    if re.search(r"^(---|\+\+\+) /dev/null", patch.body, re.MULTILINE):
        problems.append("adds or removes a file; own files belong into own folders")
    return problems


def is_code(line: str) -> bool:
    """False for a line of comment alone and for a blank one."""
    text = line.strip()
    return bool(text) and not re.match(r"//|/\*|\*( |/|$)", text)


@dataclass(frozen=True)
class Size:
    """What a new version of upstream can break. Deleted lines do not count, so that dead code can go."""

    hunks: int
    functions: int
    added_lines: int  # with code

    def problems(self, series: str) -> list[str]:
        found = (
            (self.hunks, MAX_SIZE[series].hunks, "hunks"),
            (self.functions, MAX_SIZE[series].functions, "functions"),
            (self.added_lines, MAX_SIZE[series].added_lines, "added lines with code"),
        )
        return [
            f"patches/{series} has {count} {what}, more than {most}: logic belongs into own files, a patch is a hook"
            for count, most, what in found
            if count > most
        ]


# What the series were when this was counted last. A new hook has to replace an old one.
MAX_SIZE = {
    "hooks": Size(hunks=85, functions=68, added_lines=119),
    "diets": Size(hunks=125, functions=112, added_lines=168),
}


def size_of(series: list[Patch], functions: int) -> Size:
    hunks = sum(len(re.findall(r"^@@ -\d", patch.body, re.MULTILINE)) for patch in series)
    added = sum(line[0] == "+" and is_code(line[1:]) for patch in series for line in patch.changed())
    return Size(hunks, functions, added)


def changed_functions(before: Path, after: Path, names) -> int:
    """The places that git would name behind a hunk: functions, classes, rules of a grammar."""
    found = set()
    for name in names:
        done = captured(["diff", "-a", "-U1", "-F", "^[A-Za-z_]", str(before / name), str(after / name)])
        if done.returncode > 1:
            raise Problem(f"diff of {name} failed: {done.stderr.strip()}")
        found |= {(name, place) for place in re.findall(r"^@@ [^@]* @@ ?(.*)$", done.stdout, re.MULTILINE)}
    return len(found)


def sizes(patches: list[Patch], pristine: Path) -> dict[str, Size]:
    """What each series changes: the hooks upstream's source, the diets what the hooks have made of it."""
    result = {}
    with tempfile.TemporaryDirectory(prefix="memdiag-") as work:
        before, after = Path(work, "before"), Path(work, "after")
        names = {name for patch in patches for name in patch.files}
        check_out(pristine, before, names)
        check_out(pristine, after, names)
        for series in SERIES:
            own = [patch for patch in patches if patch.series == series]
            apply_series(own, after)
            changed = {name for patch in own for name in patch.files}
            result[series] = size_of(own, changed_functions(before, after, changed))
            check_out(after, before, changed)
    return result


def lint_names(folder: Path) -> list[str]:
    problems = []
    names = series_names(folder)
    on_disk = {str(path.relative_to(folder)) for path in folder.rglob("*.patch")}
    for name in sorted(on_disk - set(names)):
        problems.append(f"{name}: in no series")
    for name in sorted(x for x in set(names) if names.count(x) > 1):
        problems.append(f"{name}: {names.count(name)} times in its series")
    for name in sorted(set(names) - on_disk):
        problems.append(f"{name}: in its series, but not there")
    return problems


def lint(folder: Path, pristine: Path, offsets_allowed: bool) -> list[str]:
    """One sentence for each fault of the patches."""
    if problems := lint_names(folder):
        return problems
    patches = load_series(folder)
    for patch in patches:
        problems += [f"{patch.name}: {x}" for x in lint_header(patch)]
        problems += [f"{patch.name}: {x}" for x in lint_lines(patch)]
    try:
        with tempfile.TemporaryDirectory(prefix="memdiag-") as work:
            check_out(pristine, Path(work), {x for p in patches for x in p.files})
            notes = apply_series(patches, Path(work))
        for series, size in sizes(patches, pristine).items():
            problems += size.problems(series)
        if not offsets_allowed:
            problems += [f"{x}: {y} (try: refresh)" for x, y in notes.items()]
            for patch, wanted in zip(patches, canonical(patches, pristine), strict=True):
                on_file = (folder / patch.name).read_text()
                if not notes.get(patch.name) and on_file != wanted.text:
                    problems.append(
                        f"{patch.name}: not in the form that export writes "
                        "(one line of context, files in order; try: refresh)"
                    )
    except Problem as problem:
        problems.append(str(problem))
    return problems


# --- edit and export -------------------------------------------------------------


# The user's hooks, signing and line ends must not change these repositories. The settings are in
# the repository's own configuration, because the user runs git there, too.
GIT_SETTINGS = {
    "core.hooksPath": "/dev/null",
    "core.autocrlf": "false",
    "commit.gpgSign": "false",
    "user.name": "memdiag",
    "user.email": "memdiag@localhost",
}


def run_git(folder: Path, *args: str, text_in: str | None = None):
    command = ["git", "-C", str(folder), *args]
    return captured(command, input=text_in)


def git(folder: Path, *args: str, text_in: str | None = None) -> str:
    done = run_git(folder, *args, text_in=text_in)
    if done.returncode:
        raise Problem(f"git {args[0]} in {folder}: {done.stderr.strip()}")
    return done.stdout


def commit_all(folder: Path, message: str) -> None:
    git(folder, "add", "-A", "-f", ".")
    verbatim = ("commit", "-q", "--allow-empty", "--cleanup=verbatim", "-F", "-")
    git(folder, *verbatim, text_in=message)


def edit(series: list[Patch], pristine: Path, folder: Path) -> None:
    if folder.exists() and any(folder.iterdir()):
        raise Problem(f"{folder} exists and is not empty; name a new folder.")
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", "patches")
    for name, value in GIT_SETTINGS.items():
        git(folder, "config", name, value)
    check_out(pristine, folder, {x for patch in series for x in patch.files})
    commit_all(folder, f"{PRISTINE_MARK} upstream's files\n")
    for patch in series:
        apply_one(patch, folder)
        commit_all(folder, patch.header)


def take(pristine: Path, folder: Path, names: list[str]) -> None:
    if git(folder, "status", "--porcelain"):
        raise Problem(f"{folder} has changes that are not committed; commit first.")
    if there := [name for name in names if (folder / name).exists()]:
        raise Problem(f"{there[0]} is in {folder} already.")
    check_out(pristine, folder, names)
    commit_all(folder, f"{PRISTINE_MARK} {' '.join(names)}\n")


def rebase(series: list[Patch], old: Path, new: Path, folder: Path) -> str:
    """Makes the repository of `edit` from the old source and rebases its commits onto
    the files of the new source. Git merges three ways: old to new, and old to patched.

    @return  empty, or git's words where it stopped at a conflict. The user then goes on
             with git as in any other rebase."""
    if not new.is_dir():
        raise Problem(f"{new} is no folder; name the unpacked new source.")
    missing = [f"{name} ({patch.name})" for patch in series for name in patch.files if not (new / name).is_file()]
    if missing:
        raise Problem(
            f"the source in {new} lacks {len(missing)} files that patches change:\n  "
            + "\n  ".join(missing)
            + "\n  Upstream has moved or removed them. Take these patches out of "
            "their series, rebase and export the others, then write each again with "
            "edit and take."
        )
    edit(series, old, folder)
    first = git(folder, "rev-list", "--max-parents=0", "HEAD").strip()
    git(folder, "checkout", "-q", "-b", "upstream", first)
    check_out(new, folder, {x for patch in series for x in patch.files})
    commit_all(folder, f"{PRISTINE_MARK} the new source's files\n")
    # The user's configuration may choose other ways to rebase.
    command = ("rebase", "--merge", "--no-autosquash", "--onto", "upstream")
    done = run_git(folder, *command, first, "patches")
    if done.returncode and not rebasing(folder):
        raise Problem(f"git rebase in {folder}: {done.stderr.strip()}")
    if not done.returncode:
        return ""
    progress = r"^Rebasing \(\d+/\d+\)\n"
    return re.sub(progress, "", done.stdout + done.stderr, flags=re.MULTILINE).strip()


def rebasing(folder: Path) -> bool:
    path = git(folder, "rev-parse", "--git-path", "rebase-merge").strip()
    return (folder / path).is_dir()


def slug(subject: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", subject.lower()).strip("-")[:60] + ".patch"


def export(folder: Path, into: Path) -> list[Patch]:
    """Writes the commits to patches/. A header with a field of diets makes its commit a diet, any other one a hook.
    A patch keeps its name while it keeps its subject and its series. Everything is computed before the first file is
    written."""
    if rebasing(folder):
        raise Problem(
            f"a rebase is under way in {folder}, and the patches behind it would be "
            "lost; finish it with git rebase --continue."
        )
    if git(folder, "status", "--porcelain"):
        raise Problem(f"{folder} has changes that are not committed; commit first.")
    old = load_series(into)
    names = {(patch.series, patch.subject): Path(patch.name).name for patch in old}
    result = []
    for commit in git(folder, "rev-list", "--reverse", "HEAD").split():
        header = git(folder, "log", "-1", "--format=%B", commit).rstrip("\n") + "\n"
        if header.startswith(PRISTINE_MARK):
            continue
        changes = git(folder, "diff", "--name-status", f"{commit}^", commit)
        body = ""
        for change in sorted(changes.splitlines()):
            status, name = change.split("\t", 1)
            if status != "M":
                raise Problem(
                    f"commit {header.splitlines()[0]!r} adds or removes {name}; "
                    f"to change one more upstream file: take {folder} {name}"
                )
            body += diff_of_commit(folder, commit, name)
        if not body:
            continue
        series = "diets" if set(OF_DIETS) & set(fields_of(header)) else "hooks"
        if result and SERIES.index(series) < SERIES.index(result[-1].series):
            raise Problem(
                f"commit {header.splitlines()[0]!r} is a hook and comes after a diet. Move it before the diets with "
                f"git rebase -i --root, or give its message the fields of a diet: {', '.join(OF_DIETS)}."
            )
        patch = Patch("", header, body)
        name = f"{series}/{names.get((series, patch.subject)) or slug(patch.subject)}"
        if not patch.subject or name in {x.name for x in result}:
            raise Problem(
                f"two commits, or one without Subject:, would both be {name}; give "
                "each message a Subject: line of its own."
            )
        result.append(Patch(name, header, body))
    write_series(result, old, into)
    return result


def diff_of_commit(folder: Path, commit: str, name: str) -> str:
    with tempfile.TemporaryDirectory(prefix="memdiag-") as scratch:
        old, new = Path(scratch, "old"), Path(scratch, "new")
        old.write_text(git(folder, "show", f"{commit}^:{name}"))
        new.write_text(git(folder, "show", f"{commit}:{name}"))
        return diff(old, new, name)


def write_series(patches: list[Patch], old: list[Patch], into: Path) -> None:
    for patch in patches:
        (into / patch.name).write_text(patch.text)
    for series in SERIES:
        path = into / series / "series"
        comments = [x for x in path.read_text().splitlines() if x.startswith("#")]
        names = [Path(patch.name).name for patch in patches if patch.series == series]
        path.write_text("".join(f"{x}\n" for x in [*comments, *names]))
    for name in {x.name for x in old} - {x.name for x in patches}:
        say(f"-- patches/{name} has no commit any more; removed")
        (into / name).unlink()


# --- main ------------------------------------------------------------------------


def source_in_use() -> tuple[Path, bool]:
    """The pristine tree, fetched if missing; and true if it is the pinned version."""
    from tools.build import sources

    pins = json.loads(sources.PINS.read_text())
    cache = cache_dir()
    with sources.lock(cache / "sources.lock", "fetching the sources"):
        mysql = sources.provide(["mysql"], cache, pins, None)["mysql"]
    return Path(mysql["tree"]), mysql["pinned"]


def say_rebased(words: str, args: argparse.Namespace) -> int:
    export_ = f"tools/build/patches.py export {args.folder}"
    if not words:
        say(f"{args.folder}: rebased without a conflict; now run: {export_}")
        return 0
    say(words)
    say(
        f"\nResolve the conflict in {args.folder}: git status, edit, git add, git rebase "
        f"--continue (or --skip, to drop the patch). After the last one: {export_}"
    )
    return 1


def main() -> int:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("--pristine", type=Path, help="default: the source in use")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for verb in ("lint", "refresh"):
        verbs.add_parser(verb)
    verbs.add_parser("apply").add_argument("--tree", type=Path, required=True)
    for verb in ("edit", "take", "rebase", "export"):
        verbs.add_parser(verb).add_argument("folder", type=Path)
    verbs.choices["take"].add_argument("names", nargs="+")
    verbs.choices["rebase"].add_argument("--onto", type=Path, required=True, metavar="NEW", help="the new source")
    args = parser.parse_args()

    if args.verb == "export":
        written = export(args.folder, PATCHES)
        say(f"{len(written)} patches written; now run: tools/build/patches.py lint")
        return 0
    if args.pristine:
        pristine, pinned = args.pristine, True
    else:
        pristine, pinned = source_in_use()
    if args.verb == "lint":
        problems = lint(PATCHES, pristine, offsets_allowed=not pinned)
        for problem in problems:
            say(f"patches: {problem}")
        if not problems:
            patches = load_series(PATCHES)
            counts = [
                f"{sum(patch.series == series for patch in patches)} {series} ({size.hunks} hunks, {size.functions} "
                f"functions, {size.added_lines} added lines with code)"
                for series, size in sizes(patches, pristine).items()
            ]
            say(f"patches: none with a problem; {', '.join(counts)}")
        return 1 if problems else 0
    series = load_series(PATCHES)
    if args.verb == "apply":
        apply_series(series, args.tree)
    elif args.verb == "refresh":
        write_series(canonical(series, pristine), series, PATCHES)
    elif args.verb == "edit":
        edit(series, pristine, args.folder)
        say(f"{args.folder}: {len(series)} commits; go on with git, then export")
    elif args.verb == "rebase":
        return say_rebased(rebase(series, pristine, args.onto, args.folder), args)
    elif args.verb == "take":
        take(pristine, args.folder, args.names)
    return 0


if __name__ == "__main__":
    run_main("patches", main)
