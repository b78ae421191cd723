"""Unit tests: pure functions on recorded snapshots (fixtures.py) and on literal figures."""
