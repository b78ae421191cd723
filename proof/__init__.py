"""Long runs that prove promises: the same answers as stock's, nothing lost; see README.md."""
