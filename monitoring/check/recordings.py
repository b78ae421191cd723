"""What record.py has recorded, by the name of the state. It lies in one archive, as client/tests/fixtures.py does it: the
texts resemble each other, and have an eighth of their size there."""

import functools
import io
import json
import tarfile
from typing import Any

from monitoring import running

ARCHIVE = running.FOLDER / "mixin/tests/recorded.tar.xz"


@functools.cache
def read() -> dict[str, dict[str, Any]]:
    with tarfile.open(ARCHIVE) as archive:
        return {one.name.removesuffix(".json"): json.load(archive.extractfile(one)) for one in archive}


def write(states: dict[str, dict[str, Any]]) -> None:
    with tarfile.open(ARCHIVE, "w:xz", preset=9) as archive:
        for name, made in sorted(states.items()):
            text = (json.dumps(made, indent=1) + "\n").encode()
            about = tarfile.TarInfo(f"{name}.json")
            about.size = len(text)
            archive.addfile(about, io.BytesIO(text))
    read.cache_clear()
