"""Python libraries that the distribution or pip provides."""

from __future__ import annotations

import importlib
import os
import sys
from types import ModuleType

from memdiag.problem import Problem

# Debian's packages serve Debian's Python; another Python may come first in PATH.
_DEBIAN = "/usr/lib/python3/dist-packages"


def library(name: str, missing: str) -> ModuleType:
    """@raises Problem with the words `missing`, which say what to install."""
    for folder in ("", _DEBIAN):
        if folder and folder not in sys.path:
            sys.path.append(folder)
        try:
            return _imported(name)
        except ImportError:
            continue
    raise Problem(missing)


def _imported(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except OSError:
        # PyMySQL before 1.2 asks the system for the user's name when it is imported. Python 3.13 and later raise OSError
        # for a user without a name, as in a container.
        os.environ["LOGNAME"] = "unknown"
        try:
            return importlib.import_module(name)
        finally:
            os.environ.pop("LOGNAME", None)  # another thread may have done the same
