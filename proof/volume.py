"""A file system that loses its power: ext4 in a file, by a loop device. What was not synced is gone then."""

import contextlib
import fcntl
import os
import struct
from collections.abc import Iterator
from pathlib import Path

from harness.at_the_end import at_the_end
from harness.problem import NotPossible
from harness.programs import captured
from harness.server import last_line

# <linux/ext4.h>: EXT4_IOC_SHUTDOWN with EXT4_GOING_FLAGS_NOLOGFLUSH. From then on nothing reaches the device.
_SHUTDOWN = 0x8004587D
_NO_LOG_FLUSH = 2


class Volume:
    """Mounted on a folder. Not for use by several threads at once."""

    def __init__(self, image: Path, mount: Path) -> None:
        self._image = image
        self.mount = mount

    def attach(self) -> None:
        _run("mount", "-t", "ext4", "-o", "loop", str(self._image), str(self.mount))

    def lose_power(self) -> None:
        """Drops what was not synced. Programs get errors from then on, until restore()."""
        folder = os.open(self.mount, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.ioctl(folder, _SHUTDOWN, struct.pack("I", _NO_LOG_FLUSH))
        except OSError as error:
            raise NotPossible(f"ext4 does not lose its power here: {error.strerror}") from None
        finally:
            os.close(folder)

    def restore(self) -> None:
        """What a machine does that has power again. No program may have a file open."""
        _run("umount", str(self.mount))
        self.attach()


@contextlib.contextmanager
def volume(folder: Path, megabytes: int) -> Iterator[Volume]:
    """An empty one, for the block. A NotPossible where this machine does not allow it."""
    image, mount = folder / "volume.ext4", folder / "volume"
    mount.mkdir(parents=True, exist_ok=True)
    with image.open("wb") as file:
        file.truncate(megabytes << 20)
    # Detached lazily, as a server of a run that was killed may still use it.
    with at_the_end('umount "$1" || umount -l "$1"; rm -f "$2"', mount, image):
        _run("mkfs.ext4", "-q", "-F", str(image))
        made = Volume(image, mount)
        made.attach()
        yield made


def _run(*command: str) -> None:
    try:
        done = captured(command)
    except FileNotFoundError:
        raise NotPossible(f"{command[0]} is missing") from None
    if done.returncode:
        raise NotPossible(f"{command[0]} did not work here: {last_line(done.stderr)}")
