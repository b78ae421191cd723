"""Ports on loopback, and a network that holds nothing but loopback."""

import contextlib
import ctypes
import fcntl
import os
import socket
import struct
from collections.abc import Iterator

# <sched.h>, <linux/sockios.h> and <net/if.h> define these.
_CLONE_NEWNET = 0x40000000
_SIOCSIFFLAGS = 0x8914
_IFF_UP = 1
_libc = ctypes.CDLL(None, use_errno=True)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


# Options of a server. Without names of addresses a client by TCP is not root@localhost, who has no password.
ON_LOOPBACK = ("--skip-networking=OFF", "--bind-address=127.0.0.1", "--skip-name-resolve")


@contextlib.contextmanager
def own_network() -> Iterator[bool]:
    """Moves the calling thread into a network of its own until the block ends. Threads and programs that it starts
    meanwhile are in that network, too. Nothing outside can reach their ports.

    Yields False where the kernel or the account's rights refuse that. The thread stays in the machine's network then.
    """
    with open("/proc/thread-self/ns/net") as before:
        if _libc.unshare(_CLONE_NEWNET):
            yield False
            return
        try:
            _raise_loopback()
            yield True
        finally:
            if _libc.setns(before.fileno(), _CLONE_NEWNET):
                error = ctypes.get_errno()
                raise OSError(error, os.strerror(error), "/proc/thread-self/ns/net")


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh22x", b"lo", _IFF_UP)
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, request)
