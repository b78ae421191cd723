"""Unit tests: pure functions on recorded snapshots (fixtures/) and on literal figures."""
