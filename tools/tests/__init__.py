"""Tests of the tools; run: python3 -m unittest discover -s tools/tests -t ."""
