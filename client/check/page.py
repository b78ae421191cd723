#!/usr/bin/env python3
"""The HTML report in headless Chromium: three sizes, dark and light, print; nothing is requested; axe-core finds no
serious fault; nothing is wider than the window.

Screenshots of one page stay in build/PRESET/client-page, with --pictures those of all: look at them. Chromium is Debian's
package; axe-core comes from npm into the cache.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from html import unescape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "client"), "/usr/lib/python3/dist-packages"]

from memdiag.render import html
from memdiag.render.page import Page
from memdiag.report.build import report
from tests import fixtures

from check import fetched
from harness.checks import Checks
from harness.common import cache_dir
from harness.problem import Problem, run_main
from harness.programs import captured

SIZES = {"phone": (390, 844), "tablet": (820, 1180), "desk": (1440, 900)}
MODES = {"dark": 0, "light": 1}
AXE = "axe-core@4.14.1"
# It has every part that a page can have.
PICTURED = "ours-triggers"
SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="900" height="120"><title>flame</title><rect width="900" height="20" fill="#d98e32"/><text x="4" y="15">main</text></svg>'
# The page, in a frame, tells about itself: loaded resources, errors, overflow, axe's findings.
PROBE = """
<script>
addEventListener("load", async () => {
  const own = [];
  for (const entry of performance.getEntriesByType("resource"))
    if (!entry.name.startsWith("data:")) own.push(entry.name);
  const wide = document.documentElement.scrollWidth - innerWidth;
  let faults = null;
  if (self.axe) {
    document.querySelectorAll("details").forEach((one) => { one.open = true; });
    const found = await axe.run(document, { iframes: false, resultTypes: ["violations"] });
    faults = found.violations.map((one) => ({ id: one.id, impact: one.impact, nodes: one.nodes.length,
      first: one.nodes[0].html.slice(0, 160) }));
  }
  parent.postMessage({ name, told: { own, wide, faults, errors: self.seen,
    charts: document.querySelectorAll(".uplot canvas").length } }, "*");
});
</script>
"""
# A frame has the width that it is given; a window of headless Chromium has 500 pixels or more. The frames lie one upon the
# other, because Chromium does not draw those outside of the window.
FRAMES = """<!doctype html><meta charset="utf-8"><meta name="color-scheme" content="light dark">
<style>iframe { position: absolute; top: 0; left: 0; border: 0; }</style>
<script>
const told = {};
addEventListener("message", (one) => {
  told[one.data.name] = one.data.told;
  document.getElementById("told").textContent = JSON.stringify(told);
});
</script><body><pre id="told"></pre>"""
WATCH = "<script>self.seen = []; addEventListener('error', (e) => seen.push(e.message)); addEventListener('securitypolicyviolation', (e) => seen.push(e.violatedDirective + ' ' + e.blockedURI));</script>"


def axe() -> str:
    return fetched.npm_file(AXE, cache_dir() / "client-axe", "axe-core/axe.min.js").read_text()


def pages() -> dict[str, str]:
    found = {}
    for name in ("ours-idle", "ours-triggers", "stock-fragmentation", "mariadb-idle"):
        if name in fixtures.names():
            data = fixtures.snapshot(name)
            if name == "ours-triggers":
                add_profile(data)
            found[name] = html.render(Page(f"Memory of {name}", [report(data)], [], [data]))
    several = [fixtures.snapshot(name) for name in ("ours-idle", "stock-idle")]
    found["several"] = html.render(
        Page("Memory of two servers", [report(one) for one in several], ["the host 'db9' is not known"], several)
    )
    return found


def add_profile(data: dict) -> None:
    """As a server with the heap profiler has it."""
    rows = [
        {
            "STACK": 1,
            "POOL": "table_cache",
            "ROUTE": "memory/sql/TABLE",
            "LIVE_BYTES": 5 << 20,
            "LIVE_OBJECTS": 40,
            "DIGEST": None,
            "FOLDED": "main;do_command;open_table",
        }
    ]
    data["sources"]["memdiag_profile"] = {"source": "MEMDIAG_PROFILE", "rows": rows, "error": None}
    data["sources"]["memdiag_profile_svg"] = {"source": "memdiag_profile('svg')", "rows": [{"SVG": SVG}], "error": None}


def chromium(folder: Path, page: Path | str, *words: str) -> subprocess.CompletedProcess[str]:
    """@param page  a file, or an address"""
    address = page.as_uri() if isinstance(page, Path) else page
    # A process of the browser before may still hold its profile.
    with tempfile.TemporaryDirectory(dir=folder, ignore_cleanup_errors=True) as profile:
        command = [
            "chromium",
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--no-first-run",
            "--disable-background-networking",
            f"--user-data-dir={profile}",
        ]
        return captured([*command, *words, address], timeout=900)


def made(checks: Checks, name: str, done: subprocess.CompletedProcess[str], file: Path, least: int) -> None:
    """A check that the browser has written this file, of at least so many bytes."""
    good = file.exists() and file.stat().st_size > least
    checks.check(name, good, "" if good else f"status {done.returncode}: {done.stderr[-300:]}")


def probe(checks: Checks, folder: Path, name: str, text: str, script: str | None) -> None:
    """All sizes in one browser for each mode: contrast differs."""
    library = f"<script>{script}</script>" if script else ""
    page, host = folder / f"{name}.probe.html", folder / "frames.html"
    page.write_text(text.replace("<head>", "<head>" + WATCH, 1).replace("</body>", library + PROBE + "</body>"))
    frames = (
        f'<iframe name="{size}" src="{page.name}" width="{width}" height="{height}"></iframe>'
        for size, (width, height) in SIZES.items()
    )
    host.write_text(FRAMES + "".join(frames))
    for mode, number in MODES.items():
        done = chromium(
            folder,
            host,
            "--window-size=1500,1300",
            f"--blink-settings=preferredColorScheme={number}",
            "--virtual-time-budget=5000",
            "--dump-dom",
        )
        found = re.search(r'<pre id="told">(.+?)</pre>', done.stdout, re.S)
        told = json.loads(unescape(found[1])) if found else {}
        for size in SIZES:
            what = f"{name}, {size}, {mode}"
            if size in told:
                of_page(checks, what, told[size], "MEMDIAG_HISTORY" in text, bool(script))
            else:
                checks.check(f"{what}: the page tells of itself", False, done.stderr[-200:])
    page.unlink()
    host.unlink()


def of_page(checks: Checks, what: str, told: dict, charts: bool, axe_runs: bool) -> None:
    checks.check(
        f"{what}: nothing is requested, no error", not told["own"] and not told["errors"], told["own"] + told["errors"]
    )
    checks.check(f"{what}: nothing is wider than the window", told["wide"] <= 0, told["wide"])
    if charts:
        checks.check(f"{what}: charts are drawn", told["charts"] >= 1, told["charts"])
    if axe_runs:
        serious = [one for one in told["faults"] if one["impact"] in ("serious", "critical")]
        checks.check(f"{what}: axe-core finds nothing serious", not serious, serious or f"{len(told['faults'])} lesser")


def pictures(checks: Checks, folder: Path, name: str, text: str) -> None:
    path = folder / f"{name}.html"
    path.write_text(text)
    for mode, number in MODES.items():
        for size, (width, height) in SIZES.items():
            out = folder / f"{name}-{size}-{mode}.png"
            done = chromium(
                folder,
                path,
                f"--window-size={width},{height * 3}",
                f"--blink-settings=preferredColorScheme={number}",
                f"--screenshot={out}",
            )
            made(checks, f"{name}, {size}, {mode}: a picture", done, out, 20_000)
    out = folder / f"{name}.pdf"
    done = chromium(
        folder, path, "--blink-settings=preferredColorScheme=0", f"--print-to-pdf={out}", "--no-pdf-header-footer"
    )
    made(checks, f"{name}: prints", done, out, 20_000)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--preset", default="dev")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--only", action="append")
    parser.add_argument("--pictures", action="store_true", help="of all pages")
    options = parser.parse_args()
    checks = Checks("client page")
    if not shutil.which("chromium"):
        raise Problem("chromium is missing; install it with: apt-get install chromium")
    folder = options.folder or ROOT / "build" / options.preset / "client-page"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    script = None
    with checks.checking("axe-core is there"):
        script = axe()
    for name, text in pages().items():
        if not options.only or name in options.only:
            probe(checks, folder, name, text, script)
            if options.pictures or name == PICTURED:
                pictures(checks, folder, name, text)
    shutil.rmtree(folder / "profile", ignore_errors=True)
    return checks.finish()


if __name__ == "__main__":
    run_main("page", main)
