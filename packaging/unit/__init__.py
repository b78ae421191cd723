"""Tests of packaging/ that need no package."""
