#!/usr/bin/env python3
"""Makes and updates build/<preset>/mysql, the source tree that a preset builds.

The tree is a hard-link copy of the pristine one in the cache (a plain copy where
that is on another file system) with the patches applied. Symbolic links lead to our
folders where upstream looks for them, and our headers are copied. A file that differs
from the pristine one is always a new file: the pristine tree never changes.

After a change of a patch only the files whose text changes are written, so that
the build that follows is as small as the change.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from harness.common import ROOT, say
from harness.problem import Problem, run_main
from harness.programs import captured
from harness.state_file import read_state, write_state
from tools.build import patches

# The folders in which upstream looks for plugins and test suites -> ours.
FOLDERS = {"plugin/memdiag": "plugin/memdiag", "mysql-test/suite/memdiag": "mysql-test/suite/memdiag"}
# Upstream's files include our headers by their paths in this repository. The root of
# the source tree is searched by every target, so no compile command changes (and with
# it the compiler cache). Copies, not links: where a precompiled header includes one,
# the compiler follows a link, and then looks for that header's neighbours in the wrong
# folder.
HEADERS = (
    "mysys/memdiag/**/*.h",
    "storage/innobase/memdiag/*.h",
    "storage/perfschema/memdiag/*.h",
    "storage/temptable/memdiag/*.h",
    "sql/memdiag/*.h",
)


def hard_link_copy(pristine: Path, tree: Path) -> None:
    done = subprocess.run(["cp", "-al", str(pristine), str(tree)], capture_output=True, check=False)
    if done.returncode:  # another file system
        shutil.rmtree(tree, ignore_errors=True)
        say(f"-- copying the source tree to {tree} (no hard links to the cache)")
        done = captured(["cp", "-a", str(pristine), str(tree)])
    if done.returncode:
        shutil.rmtree(tree, ignore_errors=True)
        raise Problem(f"cannot copy the source tree: {done.stderr.strip()}")


def replace_file(path: Path, content: bytes, mode: int) -> bool:
    """Gives the file new content; True if that changed anything. Writes a new
    file and renames it, which leaves the pristine one alone."""
    if path.is_file() and path.read_bytes() == content:
        return False
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".memdiag-")
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    os.chmod(name, mode)
    os.replace(name, path)
    return True


def sync(pristine: Path, tree: Path, series: list, touched_before: set) -> None:
    """Brings the files that patches touch, or have touched, to what they should
    be: pristine plus the series."""
    names = touched_before.union(*(patch.files for patch in series))
    changed = 0
    with tempfile.TemporaryDirectory(prefix="memdiag-") as folder:
        work = Path(folder)
        patches.check_out(pristine, work, names)
        for patch, note in patches.apply_series(series, work).items():
            say(f"-- {patch}: {note}")
        for name in sorted(names):
            mode = (pristine / name).stat().st_mode & 0o777
            changed += replace_file(tree / name, (work / name).read_bytes(), mode)
    if changed:
        say(f"-- {len(series)} patches: {changed} files changed in {tree}")


def link(place: Path, own: Path) -> None:
    target = os.path.relpath(own, place.parent)
    if place.is_symlink() and os.readlink(place) == target:
        return
    if place.exists() or place.is_symlink():
        place.unlink()
    place.symlink_to(target)


def link_own_folders(tree: Path, root: Path) -> None:
    for place, own in FOLDERS.items():
        link(tree / place, root / own)


def headers_in(root: Path) -> set[Path]:
    found = {path for pattern in HEADERS for path in root.glob(pattern)}
    return {path.relative_to(root) for path in found if "unittest" not in path.parts}


def copy_headers(tree: Path, root: Path) -> None:
    """Copies the headers. Every build calls this, because a header may have changed."""
    wanted = headers_in(root)
    for name in headers_in(tree) - wanted:
        (tree / name).unlink()
    for name in wanted:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        # The copy keeps the header's time: a copy with a new time would look like a change.
        if replace_file(tree / name, (root / name).read_bytes(), 0o644):
            shutil.copystat(root / name, tree / name)


def materialise(pristine: Path, tree: Path, wanted: tuple[str, ...]) -> None:
    """wanted: the series of patches; none: upstream's source alone, without our folders."""
    state_path = tree.with_name(tree.name + ".state.json")
    state = read_state(state_path)
    if tree.exists() and state.get("pristine") != str(pristine):
        say(f"-- {tree} comes from another source; making it anew")
        shutil.rmtree(tree)
    if not tree.exists():
        state_path.unlink(missing_ok=True)
        state = {}
        staging = tree.with_name(f".{tree.name}.new")
        shutil.rmtree(staging, ignore_errors=True)
        staging.parent.mkdir(parents=True, exist_ok=True)
        hard_link_copy(pristine, staging)
        os.replace(staging, tree)
    series = patches.load_series(ROOT / "patches", wanted)
    # Names are only added: a file that a patch once touched may have to go back to the
    # pristine text. The list is written first, so an interruption loses none.
    before = set(state.get("touched", []))
    touched = sorted(before.union(*(patch.files for patch in series)))
    record = {"pristine": str(pristine), "touched": touched}
    if record != state:
        write_state(state_path, record)
    sync(pristine, tree, series, before)
    if wanted:
        link_own_folders(tree, ROOT)
        copy_headers(tree, ROOT)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--pristine", type=Path)
    what.add_argument("--headers-only", action="store_true")
    parser.add_argument("--tree", type=Path, required=True)
    less = parser.add_mutually_exclusive_group()
    less.add_argument("--stock", action="store_true", help="no patches, no links")
    less.add_argument("--no-diets", action="store_true", help="only the patches that connect our layer")
    args = parser.parse_args()
    if args.headers_only:
        copy_headers(args.tree, ROOT)
        return 0
    wanted = () if args.stock else ("hooks",) if args.no_diets else patches.SERIES
    materialise(args.pristine.absolute(), args.tree.absolute(), wanted)
    return 0


if __name__ == "__main__":
    run_main("tree", main)
