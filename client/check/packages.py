#!/usr/bin/env python3
"""The client's packages: made twice they are the same, and the program runs from each without this checkout. pip and pipx
install the wheel with its libraries for a user who is not root."""

import filecmp
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from harness.checks import Checks
from harness.common import preset_of_arguments
from harness.problem import run_main
from harness.programs import captured
from harness.server import Build, Server, initialise, last_line

OPTIONS = ("--innodb-buffer-pool-size=64M", "--innodb-redo-log-capacity=64M")
PATIENCE = 120.0


def main() -> int:
    preset = preset_of_arguments(__doc__)
    build = Build.of_preset(ROOT, preset)
    checks = Checks("client packages")
    folder = ROOT / "build" / preset / "client-packages"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        made = [make(folder / name) for name in ("one", "two")]
        names = sorted(path.name for path in made[0])
        checks.check("a DEB, an RPM and a wheel", len(names) == 3, ", ".join(names))
        for path in made[0]:
            other = folder / "two" / path.name
            same = other.exists() and filecmp.cmp(path, other, shallow=False)
            checks.check(f"made twice, {path.suffix} is the same", same)
        with Server(build, folder / "server", OPTIONS) as server:
            initialise(build, server.data)
            server.start()
            for kind, command in programs(folder, made[0]).items():
                run(checks, kind, command, server)
        (made_wheel,) = [path for path in made[0] if path.suffix == ".whl"]
        without_root(checks, made_wheel)
        built_before(checks, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return checks.finish()


def make(out: Path) -> list[Path]:
    subprocess.run([ROOT / "packaging/build-client", "--out", out], check=True, stdout=subprocess.DEVNULL)
    return sorted(path for path in out.iterdir() if path.suffix in (".deb", ".rpm", ".whl"))


def programs(folder: Path, packages: list[Path]) -> dict[str, list[str]]:
    """{kind: command} of each package, unpacked. Debian's Python runs those of the DEB and the RPM."""
    result = {}
    for package in packages:
        place = folder / package.suffix.strip(".")
        place.mkdir()
        if package.suffix == ".deb":
            subprocess.run(["dpkg-deb", "-x", package, place], check=True)
        elif package.suffix == ".rpm":
            # It writes PACKAGE.tgz beside it.
            copy = shutil.copy2(package, place.with_suffix(".rpm"))
            subprocess.run(["rpm2archive", copy], check=True)
            subprocess.run(["tar", "-xzf", f"{copy}.tgz", "-C", place], check=True)
        else:
            # This Python's pip serves: to install one into the venv takes longer than all else.
            venv.create(place, system_site_packages=True)
            pip = [sys.executable, "-m", "pip", "--python", place / "bin/python", "install", "-q", "--no-deps", package]
            subprocess.run(pip, check=True)
            result["wheel"] = [str(place / "bin/memdiag")]
            continue
        starter = place / "usr/bin/memdiag"
        # Unpacked, it is in another folder than installed.
        text = starter.read_text().replace("/usr/share/memdiag", f"{place}/usr/share/memdiag")
        starter.write_text(text)
        result[package.suffix] = ["/usr/bin/python3", "-I", str(starter)]
    return result


def run(checks: Checks, kind: str, command: list[str], server: Server) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
    words = ["report", "--no-defaults", "-S", str(server.socket), "-u", "root", "-o", "-"]
    # Checks beside this one make tasks of the machine wait for memory, and the report says so for ten seconds.
    end = time.monotonic() + PATIENCE
    while True:
        done = captured([*command, *words], env=environment, cwd="/")
        good = done.returncode == 0 and re.search(r"<h2>Nothing", done.stdout)
        if good or "waited for memory" not in done.stdout or time.monotonic() > end:
            break
        time.sleep(2)
    checks.check(f"{kind}: a report in HTML", bool(good), last_line(done.stderr) if done.stderr else "")
    page = Path(command[-1]).parents[1] / "share/man/man1/memdiag.1.gz"
    if kind != "wheel":
        checks.check(f"{kind}: a manual page", page.exists())
    words = captured([*command, "--help"], env=environment, cwd="/")
    _, _, path = words.stdout.strip().rpartition("All of it: ")
    whole = (ROOT / "docs/client.md").read_bytes()
    checks.check(f"{kind}: --help names the page that describes it", bool(path) and Path(path).read_bytes() == whole)


NOBODY = 65534
PYTHON = "/usr/bin/python3"  # others may be in a folder of root


def without_root(checks: Checks, made_wheel: Path) -> None:
    """The user has a home folder and nothing else."""
    as_nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"] if os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory(prefix="memdiag-") as folder:
        home = Path(folder)
        own = Path(shutil.copy(made_wheel, home))
        if as_nobody:
            for path in (home, own):
                os.chown(path, NOBODY, NOBODY)
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "PYTHON"))}
        environment |= {"HOME": str(home), "PATH": "/usr/local/bin:/usr/bin:/bin"}
        pip = home / "venv/bin/pip"
        for name, commands, program in (
            ("pip", ([PYTHON, "-m", "venv", pip.parents[1]], [pip, "install", "-q", own]), pip.with_name("memdiag")),
            ("pipx", (["pipx", "install", "--python", PYTHON, own],), home / ".local/bin/memdiag"),
        ):
            # It says so after it has found PyMySQL.
            for command in (*commands, [program, "report", "--no-defaults", "-S", "/no.sock"]):
                done = captured([*as_nobody, *command], env=environment, cwd=home)
                if done.returncode and command in commands:
                    break
            good = "there is no socket /no.sock" in done.stderr + done.stdout
            checks.check(f"{name} installs the wheel without root", good, "" if good else last_line(done.stderr))


def built_before(checks: Checks, folder: Path) -> None:
    """pip builds in the folder of the sources, where an older version's build has left a module."""
    source, out = folder / "source", folder / "built_before"
    shutil.copytree(ROOT / "client", source, ignore=shutil.ignore_patterns("build", "__pycache__"))
    left = source / "build/lib/memdiag/gone.py"
    left.parent.mkdir(parents=True)
    left.touch()
    done = captured([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--wheel-dir", out, source])
    names = [name for path in out.glob("*.whl") for name in zipfile.ZipFile(path).namelist()]
    checks.check(
        "a wheel has nothing of an earlier build",
        "memdiag/cli.py" in names and "memdiag/gone.py" not in names,
        last_line(done.stderr) if done.stderr else "",
    )


if __name__ == "__main__":
    run_main("packages", main)
