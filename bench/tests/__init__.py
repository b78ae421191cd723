"""Tests of bench/ that need no server."""
