"""The project's own tools: build support, the demonstration, and what the benchmarks share with it."""
