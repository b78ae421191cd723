"""The environment variables that change what a build makes."""

import os
from collections.abc import Sequence

# sources.py and a first configure read these.
ENVIRONMENT = (
    *("MYSQL_SOURCE_VERSION", "MYSQL_SOURCE_TARBALL", "JEMALLOC_SOURCE_TARBALL"),
    *("CC", "CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS"),
)


def environment(names: Sequence[str]) -> str:
    """The variables that are set, with their values."""
    return " ".join(f"{name}={os.environ[name]}" for name in names if name in os.environ)
