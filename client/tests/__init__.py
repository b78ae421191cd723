"""Unit tests: pure functions on recorded snapshots (fixtures.py) and on literal figures."""

import sys

# Debian's PyMySQL, Jinja2 and rich serve another Python, too.
sys.path.append("/usr/lib/python3/dist-packages")
