"""Makes the source tree that a preset builds: the sources and the patches."""
