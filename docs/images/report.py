#!/usr/bin/python3
"""Makes docs/images/report.png: the report of a server whose triggers fill the table cache, as it was recorded for the tests.

  docs/images/report.py

Needs the Debian packages chromium, python3-jinja2 and python3-pil.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "client"))

from memdiag.render import html
from memdiag.render.page import Page
from memdiag.report.build import report
from PIL import Image
from tests import fixtures

SIZE = "1180,1040"


def main() -> None:
    data = fixtures.snapshot("ours-triggers")
    text = html.render(Page("Memory of server1", [report(data)], [], [data]))
    with tempfile.TemporaryDirectory() as scratch:
        page = Path(scratch) / "report.html"
        page.write_text(text)
        words = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        words += [f"--window-size={SIZE}", "--blink-settings=preferredColorScheme=1"]
        words += [f"--user-data-dir={scratch}/profile"]
        shot = Path(scratch) / "report.png"
        subprocess.run(["chromium", *words, f"--screenshot={shot}", page.as_uri()], check=True, capture_output=True)
        # 256 colours are enough for it, and a third of the size.
        Image.open(shot).convert("RGB").quantize(dither=Image.Dither.NONE).save(HERE / "report.png", optimize=True)


if __name__ == "__main__":
    main()
