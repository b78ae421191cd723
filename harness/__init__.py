"""Code that the demonstration, the tests, the benchmarks and the packages share."""
