"""Benchmarks: this server against stock and against the alternatives, interleaved; see README.md."""
