"""Python libraries that Debian has as packages, imported when they are needed."""

import importlib
import sys
from types import ModuleType

from harness.problem import Problem

# Debian's packages serve Debian's Python. Another Python may come first in PATH.
DEBIAN_FOLDER = "/usr/lib/python3/dist-packages"


def library(name: str, package: str) -> ModuleType:
    """Import a module; a Problem that names its Debian package where it is missing."""
    try:
        return importlib.import_module(name)
    except ImportError:
        if DEBIAN_FOLDER not in sys.path:
            sys.path.append(DEBIAN_FOLDER)
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Problem(
            f"{sys.executable} cannot import {name} ({error}); install it with: apt-get install {package}"
        ) from None
