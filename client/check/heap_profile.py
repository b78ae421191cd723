#!/usr/bin/env python3
"""The texts of memdiag_profile() where people look at them: pprof and speedscope read the profile of a server, and
headless Chromium shows its flame graphs, searches in them, zooms, and requests nothing; memdiag stacks adds source lines.

Screenshots stay in build/PRESET/heap-profile: look at them. pprof comes through the Go module proxy and speedscope through
npm, into the cache (fetched.py).
"""

import base64
import json
import os
import re
import shutil
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "client")]

from memdiag.collect.lines import symbolizer

from check import fetched
from check.browser import Browser
from check.page import made
from harness.checks import Checks
from harness.common import cache_dir, preset_of_arguments
from harness.problem import Problem, run_main
from harness.programs import captured
from harness.server import Build, Server, initialise
from harness.waiting import until

OPTIONS = ("--innodb-buffer-pool-size=64M", "--innodb-redo-log-capacity=64M", "--max-prepared-stmt-count=100000")
PPROF = "github.com/google/pprof@v0.0.0-20260906184651-6331bc6350fe"
SPEEDSCOPE = "speedscope@1.25.0"
COMPARED = 8  # functions
READING_SECONDS = 15.0
MIB = 1 << 20
# Two readings of one quiet server, of some 500 samples each, differ by what the reading itself allocates.
NEAR = 0.02

# The picture reports its own state after a search, a zoom by click and Escape.
PROBE = """(() => {
  const svg = document.documentElement;
  const frames = [...svg.querySelectorAll('.f')];
  const shown = () => frames.filter((one) => one.style.display != 'none').length;
  const found = svg.querySelector('.found');
  const field = svg.querySelector('input');
  const told = { frames: frames.length, errors: self.seen };
  const search = (words) => { field.value = words; field.dispatchEvent(new Event('input')); return found.textContent; };
  told.all = shown();
  told.found = search('user_var');
  told.matches = svg.querySelectorAll('.match').length;
  told.none = search('no_function_is_called_so');
  told.wrong = search('(');
  search('');
  const deepest = frames.find((one) => one.textContent.includes('user_var'));
  deepest.dispatchEvent(new Event('click'));
  told.zoomed = shown();
  told.width = deepest.getAttribute('width');
  document.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape' }));
  told.back = shown();
  told.own = performance.getEntriesByType('resource').map((one) => one.name);
  return told;
})()"""
WATCH = "<script>self.seen = []; addEventListener('error', (e) => seen.push(e.message)); addEventListener('securitypolicyviolation', (e) => seen.push(e.blockedURI));</script>"
ZOOM = "[...document.querySelectorAll('.f')].find((one) => one.textContent.includes('user_var')).dispatchEvent(new Event('click'))"


# --- the tools -----------------------------------------------------------------------


def pprof() -> Path:
    return fetched.go_program(PPROF, cache_dir() / "pprof", "pprof")


def speedscope() -> Path:
    return fetched.npm_file(SPEEDSCOPE, cache_dir() / "speedscope", "speedscope/dist/release/index.html")


# --- the profile ---------------------------------------------------------------------


def load(server: Server, folder: Path) -> dict[str, str]:
    """Memory of known holders, and the texts of one moment. It is freed when the sessions end."""
    with server.connect() as one, server.connect() as other:
        one.query("SET GLOBAL memdiag_profile_sample_bytes = 65536")
        one.query("SET GLOBAL memdiag_profile = ON")
        for number in range(6):
            one.query(f"SET @before{number} = REPEAT('x', {4 * MIB})")
        earlier = one.query("SELECT memdiag_profile('folded')").scalar() or ""
        with server.connect() as session:
            for number in range(300):
                session.query(f"PREPARE s{number} FROM 'SELECT {', '.join(f'1 AS c{n}' for n in range(100))}'")
            for number in range(8):
                session.query(f"SET @kept{number} = REPEAT('x', {4 * MIB})")
            for number in range(3):
                one.query(f"SET @before{number} = NULL")
            # The server's own threads work meanwhile, and the first reading takes memory itself.
            texts: dict[str, str] = {}

            def read() -> bool:
                for name in ("folded", "pprof", "svg"):
                    texts[name] = other.query(f"SELECT memdiag_profile('{name}')").scalar() or ""
                texts["folded again"] = other.query("SELECT memdiag_profile('folded')").scalar() or ""
                return len(unchanged(texts["folded"], texts["folded again"])) >= COMPARED

            until(read, READING_SECONDS)
            kept = other.query(f"SELECT memdiag_profile('svg', {literal(earlier)})")
            texts["difference"] = kept.scalar() or ""
            texts["lines"] = lines(server)
            other.query("SET GLOBAL memdiag_profile = OFF")
    (folder / "profile.folded").write_text(texts["folded"])
    (folder / "profile.pb.gz").write_bytes(base64.b64decode(texts["pprof"]))
    return texts


def lines(server: Server) -> str:
    """The output of memdiag stacks: here the program itself has the debug information."""
    command = [sys.executable, "-m", "memdiag", "stacks", "--no-defaults", "-S", str(server.socket), "-u", "root"]
    done = captured(command, env={**os.environ, "PYTHONPATH": str(ROOT / "client")})
    return done.stdout + done.stderr


def literal(text: str) -> str:
    return "0x" + text.encode().hex() if text else "''"


def held(folded: str) -> Counter[str]:
    """Bytes of each function and of what it called. A stack begins with its pool."""
    found: Counter[str] = Counter()
    for line in folded.splitlines():
        stack, _, amount = line.rpartition(" ")
        for name in set(stack.split(";")[1:]):
            found[name] += int(amount)
    return found


def unchanged(folded: str, again: str) -> Counter[str]:
    """Those functions that hold as many bytes in both texts."""
    later = held(again)
    return Counter({name: bytes_ for name, bytes_ in held(folded).items() if later[name] == bytes_})


# --- the checks ----------------------------------------------------------------------


def with_lines(checks: Checks, text: str) -> None:
    if symbolizer() is None:
        raise Problem("neither llvm-symbolizer nor addr2line is installed: apt-get install binutils")
    found = re.search(r"^  user_var_entry::\w+.*  \S+\.cc:\d+$", text, re.M)
    checks.check("memdiag stacks: source lines", bool(found), found[0].strip() if found else text[-500:])
    found = re.search(r"^  .*\.(cc|h):\d+  \(inlined\)$", text, re.M)
    checks.check("memdiag stacks: inlined functions", bool(found), found[0].strip() if found else text[-500:])


def with_pprof(checks: Checks, folder: Path, folded: str, again: str) -> None:
    """profile.proto was read between the two folded texts."""
    program = pprof()
    command = [
        program,
        "-top",
        "-unit=B",
        "-nodefraction=0",
        "-nodecount=1000",
        "-symbolize=none",
        "-sample_index=inuse_space",
        folder / "profile.pb.gz",
    ]
    done = captured(command, env={**os.environ, "HOME": str(folder)})
    checks.check("pprof -top reads profile.proto", done.returncode == 0, done.stderr.strip())
    rows = re.findall(r"^\s*\S+\s+\S+\s+\S+\s+(\d+)B\s+\S+\s+(.+?)$", done.stdout, re.M)
    cumulative = {name.strip(): int(number) for number, name in rows}
    ours = unchanged(folded, again)
    checks.check(
        "pprof: it has the functions of the folded stacks",
        len(ours) >= COMPARED and set(ours) <= set(cumulative),
        f"{len(ours)} compared, missing: {sorted(set(ours) - set(cumulative))}",
    )
    for name, bytes_ in ours.most_common(COMPARED):
        theirs = cumulative.get(name, 0)
        checks.check(
            f"pprof: {name} has the bytes of the folded stacks",
            abs(theirs - bytes_) <= NEAR * bytes_,
            f"{theirs} and {bytes_}",
        )


def with_speedscope(checks: Checks, folder: Path) -> None:
    page = speedscope()
    with Browser(folder, "--allow-file-access-from-files", "--enable-unsafe-swiftshader") as browser:
        for name in ("profile.pb.gz", "profile.folded"):
            data = base64.b64encode((folder / name).read_bytes()).decode()
            script = folder / f"{name}.js"
            # As speedscope's own command does it.
            script.write_text(f"speedscope.loadFileFromBase64({json.dumps(name)}, {json.dumps(data)})")
            browser.open(f"{page.as_uri()}#localProfilePath={script}", 1200, 700, False)
            until(lambda name=name: name in browser.tells("document.title"))
            title = browser.tells("document.title")
            checks.check(f"speedscope reads {name}", name in title, title)
            if name == "profile.pb.gz":
                browser.picture(folder / "speedscope.png")
            script.unlink()


def picture(checks: Checks, browser: Browser, folder: Path, name: str, svg: str) -> None:
    path = folder / f"{name}.svg"
    path.write_text(svg)
    tested = folder / f"{name}.probe.svg"
    tested.write_text(with_script(svg, WATCH))
    browser.open(tested.as_uri(), 1300, 900, False)
    told = browser.tells(PROBE)
    checks.check(
        f"{name}: nothing is requested, no error", not told["own"] and not told["errors"], told["own"] + told["errors"]
    )
    checks.check(
        f"{name}: a search marks frames and adds them up", told["matches"] > 0 and "MiB" in told["found"], told["found"]
    )
    checks.check(f"{name}: a search without a match says so", told["none"].startswith("0 frames"), told["none"])
    checks.check(f"{name}: a wrong expression is said", "no regular expression" in told["wrong"], told["wrong"])
    checks.check(
        f"{name}: a click zooms in, Escape goes back",
        told["zoomed"] < told["all"] == told["back"] == told["frames"] and told["width"] == "100%",
        told,
    )
    tested.unlink()
    for what, address, dark, before in (
        ("dark", path.as_uri(), True, ""),
        ("search", path.as_uri() + "#s=user_var", False, ""),
        ("zoom", path.as_uri(), False, ZOOM),
    ):
        shot = folder / f"{name}-{what}.png"
        with checks.checking(f"{name}, {what}: a picture"):
            browser.open(address, 1300, 900, dark)
            browser.tells(before)
            browser.picture(shot)
            made(shot, 15_000)


def with_script(svg: str, script: str) -> str:
    """The script before the picture's own."""
    begin = svg.index("<title>")
    return svg[:begin] + script + svg[begin:]


def main() -> int:
    preset = preset_of_arguments(__doc__)
    build = Build.of_preset(ROOT, preset)
    checks = Checks("heap profile")
    folder = ROOT / "build" / preset / "heap-profile"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with Server(build, folder / "server", OPTIONS) as server:
        initialise(build, server.data, OPTIONS[:2])
        server.start()
        texts = load(server, folder)
    shutil.rmtree(folder / "server")
    # A missing program fails its own check. The other checks run.
    with checks.checking("memdiag stacks: all checks were run"):
        with_lines(checks, texts["lines"])
    with checks.checking("pprof: all checks were run"):
        with_pprof(checks, folder, texts["folded"], texts["folded again"])
    with checks.checking("speedscope: all checks were run"):
        with_speedscope(checks, folder)
    with Browser(folder) as browser:
        for name in ("svg", "difference"):
            with checks.checking(f"{name}: all checks were run"):
                picture(checks, browser, folder, name, texts[name])
    return checks.finish()


if __name__ == "__main__":
    run_main("heap_profile", main)
