"""docs/reference.md: the unit of a column follows from its name."""

import re
import unittest
from pathlib import Path

REFERENCE = Path(__file__).resolve().parents[2] / "docs/reference.md"
# The first that matches counts.
UNITS = {
    r"\w+_BYTES_PER_SECOND": "bytes/s",
    r"(\w+_)?BYTES(_\w+)?|\w+_BYTES_\w+": "bytes",
    r"(\w+_)?SECONDS(_\w+)?": "s",
    r"(\w+_)?MICROSECONDS": "µs",
    r"\w+_MS": "ms",
    r"PERCENT": "%",
}


def columns() -> list[tuple[str, str]]:
    """Names and units."""
    return re.findall(r"^\| (\w+) \| [A-Z][^|]* \| ([^|]*?) ?\| (?:yes|no) \|", REFERENCE.read_text(), re.MULTILINE)


class Units(unittest.TestCase):
    def test_of_each_column(self) -> None:
        found = columns()
        self.assertGreater(len(found), 200)
        for name, unit in found:
            for pattern, expected in UNITS.items():
                if re.fullmatch(pattern, name):
                    self.assertEqual(expected, unit, name)
                    break

    def test_no_name_leaves_its_unit_open(self) -> None:
        self.assertNotIn("AGE", [name for name, _ in columns()])
