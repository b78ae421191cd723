"""Tests of harness/."""
