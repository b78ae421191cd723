"""The kernel's figures of a process of this machine: /proc and its memory cgroup. Bytes, and names as the kernel's.

Each reading is a source of a snapshot: rows, or the reason why there are none. `root` is / but in tests.
"""

from __future__ import annotations

import os
import re
import socket
import time
from pathlib import Path
from typing import Any

from memdiag.collect.sources import Row, Source, failed, read

_KB = re.compile(r"^(\w+(?:\(\w+\))?):\s+(\d+)(?: (kB))?$", re.MULTILINE)
_ALLOCATORS = re.compile(r"/[^\s/]*((?:jemalloc|tcmalloc|mimalloc)[^\s/]*)(?: \(deleted\))?$")
_V1_NO_LIMIT = 1 << 60
LOOPBACK = ("localhost", "127.0.0.1", "::1")
# A server counts its uptime from some moments after the process began.
_START_SECONDS = 60
# Also mysqld-debug, mysqld-8.0, mysqld.bin and .mysqld-wrapped. mysqld_safe and mysqldump are other programs.
_SERVER = re.compile(rb"(?!.*\.(?:sock|cnf|pid|log))\.?(?:mysqld|mariadbd)(?:[-.\d][-.\w]*)?")
_LISTENS = "0A"  # of /proc/net/tcp


def is_server(pid: int, uptime: Any, root: Path = Path("/")) -> bool:
    """Also true for a server that runs with another loader. Its name is then in a later word, and the age decides: ssh and
    socat forward the socket of another host's server, whose file may be called mysqld, and began at another time."""
    try:
        command = (root / f"proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    # A process keeps its age when it executes another program, as entry points of images do after minutes of work. A
    # program that forwards has its own name in the first word.
    first, *later = (_SERVER.fullmatch(os.path.basename(word)) is not None for word in command[:5])
    return first or (any(later) and _started_with(pid, uptime, root))


def pid_on_loopback(variables: Row, uptime: Any, port: int, root: Path = Path("/")) -> int:
    """The process of the server that was asked on this port of loopback; 0 where that is not proven.

    Behind a tunnel or a container's port is a server of another host or of another container, and the process whose
    number is in the file here is another server's."""
    if variables.get("hostname") != socket.gethostname():
        return 0
    pid = _pid_from_file(variables, root)
    if not pid or not _started_with(pid, uptime, root):
        return 0
    return pid if _has_uuid(variables, root) or _listens(pid, port, root) else 0


def _started_with(pid: int, uptime: Any, root: Path) -> bool:
    """Whether the process began when the server says that it did."""
    if not isinstance(uptime, int):
        return False
    try:
        # starttime, the field 22 of proc(5); the second one ends with ")".
        ticks = int((root / f"proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
        # LXC has another /proc/uptime in a container, and starttime counts from the start of the host.
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return False
    return -2 <= age - uptime <= _START_SECONDS


def _has_uuid(variables: Row, root: Path) -> bool:
    uuid, folder = variables.get("server_uuid"), variables.get("datadir")
    if not uuid or not folder:
        return False
    path = root / str(folder).lstrip("/") / "auto.cnf"
    try:
        if not path.is_file():  # a server that lies could name a device
            return False
        with open(path, errors="replace") as file:
            text = file.read(4096)
    except (OSError, ValueError):
        return False
    return re.search(rf"^server-uuid\s*=\s*{re.escape(str(uuid))}\s*$", text, re.MULTILINE) is not None


def _listens(pid: int, port: int, root: Path) -> bool:
    """Whether the process has the socket on which this port is served."""
    folder = root / f"proc/{pid}"
    inodes = set()
    for name in ("tcp", "tcp6"):
        try:
            lines = (folder / "net" / name).read_text().splitlines()[1:]
        except OSError:
            continue
        for words in map(str.split, lines):
            if len(words) > 9 and words[3] == _LISTENS and int(words[1].rpartition(":")[2], 16) == port:
                inodes.add(f"socket:[{words[9]}]")
    try:
        handles = list((folder / "fd").iterdir())
    except OSError:  # only root and the server's user may see them
        return False
    return any(_link(handle) in inodes for handle in handles)


def _link(path: Path) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _pid_from_file(variables: Row, root: Path) -> int:
    name = str(variables.get("pid_file") or "")
    if not name:
        return 0
    path = Path(name)
    if not path.is_absolute():
        path = Path(str(variables.get("datadir") or "/")) / path
    path = root / str(path).lstrip("/")
    try:
        if not path.is_file():  # a server that lies could name a device
            return 0
        with open(path, errors="replace") as file:
            return int(file.read(32))
    except (OSError, ValueError):
        return 0


def fields(text: str) -> dict[str, int]:
    """The `Name:  12 kB` lines, in bytes; figures without a unit as they are."""
    return {name: int(number) << (10 if kb else 0) for name, number, kb in _KB.findall(text)}


def process(pid: int, root: Path = Path("/")) -> dict[str, Source]:
    folder = root / f"proc/{pid}"
    return {
        "process": read(f"/proc/{pid}/status", lambda: [fields((folder / "status").read_text()) | _oom(folder)]),
        "allocator_library": read(f"/proc/{pid}/maps", lambda: [_allocator(folder)]),
        "cgroup": cgroup(pid, root),
    }


def machine(root: Path = Path("/")) -> dict[str, Source]:
    return {
        "meminfo": read("/proc/meminfo", lambda: [fields((root / "proc/meminfo").read_text())]),
        "pressure": read("/proc/pressure/memory", lambda: _pressure(root)),
        "numa": read("/sys/devices/system/node", lambda: _nodes(root)),
        "huge_pages": read(
            "/sys/kernel/mm/transparent_hugepage/enabled",
            lambda: [
                {"transparent_hugepage": _chosen((root / "sys/kernel/mm/transparent_hugepage/enabled").read_text())}
            ],
        ),
        "kernel": read(
            "/proc/sys/vm",
            lambda: [
                {
                    f"vm.{name}": int((root / f"proc/sys/vm/{name}").read_text())
                    for name in ("swappiness", "overcommit_memory", "overcommit_ratio")
                }
            ],
        ),
    }


def _oom(folder: Path) -> dict[str, int]:
    return {name: int((folder / name).read_text()) for name in ("oom_score", "oom_score_adj")}


def _allocator(folder: Path) -> dict[str, str | None]:
    """The library that serves malloc(): one that is loaded besides the C library, or None for the C library's own."""
    text = (folder / "maps").read_text()
    found = sorted({match[1] for line in text.splitlines() if (match := _ALLOCATORS.search(line))})
    environment = {}
    try:
        for entry in (folder / "environ").read_bytes().split(b"\0"):
            name, _, value = entry.partition(b"=")
            if name in (b"MALLOC_CONF", b"MALLOC_ARENA_MAX", b"LD_PRELOAD"):
                environment[name.decode()] = value.decode(errors="replace")
    except OSError:
        pass  # only the same user may read it
    return {"library": " ".join(found) or None, **environment}


def _pressure(root: Path) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for line in (root / "proc/pressure/memory").read_text().splitlines():
        kind, *pairs = line.split()
        figures = dict(pair.split("=") for pair in pairs)
        rows.append(
            {"kind": kind} | {name: float(figures[name]) for name in ("avg10", "avg60", "avg300") if name in figures}
        )
    return rows


def _nodes(root: Path) -> list[Row]:
    """One row for each node with memory, in the order of their numbers."""
    found = {
        int(path.parent.name.removeprefix("node")): path.read_text()
        for path in (root / "sys/devices/system/node").glob("node[0-9]*/meminfo")
    }
    return [
        {"node": f"node{number}"} | fields(re.sub(r"(?m)^Node \d+ ", "", text))
        for number, text in sorted(found.items())
    ]


def _chosen(text: str) -> str:
    found = re.search(r"\[(\w+)\]", text)
    return found[1] if found else text.strip()


# --- memory cgroups ----------------------------------------------------------------


def cgroup(pid: int, root: Path = Path("/")) -> Source:
    """One row for each group that the process is in, its own first. A limit of None: the group has none."""
    try:
        return _cgroup(pid, root)
    except OSError as error:
        return failed(f"/proc/{pid}/cgroup", error.strerror or str(error))
    except (ValueError, IndexError):
        return failed(f"/proc/{pid}/cgroup", "it has another form than expected")


def _cgroup(pid: int, root: Path) -> Source:
    entries = (root / f"proc/{pid}/cgroup").read_text(errors="replace")
    mounts = (root / "proc/self/mountinfo").read_text(errors="replace")
    version, folders = _groups(entries, mounts, root)
    # Folders above one that is not here are memdiag's own.
    if version and not (folders and folders[0].is_dir()):
        return failed(f"/proc/{pid}/cgroup", _OTHER_NAMESPACE)
    if not folders:
        return failed(f"/proc/{pid}/cgroup", "the process is in no memory cgroup")
    rows = []
    for folder in folders:
        row = _group(version, folder)
        if row is not None:
            rows.append({"version": version, "folder": _shown(folder, root), **row})
    return Source(_shown(folders[0], root), rows)


_OTHER_NAMESPACE = "the server is in a control group that is not visible from here; run memdiag on the host"


def _shown(folder: Path, root: Path) -> str:
    return "/" + str(folder.relative_to(root)) if root != Path("/") else str(folder)


def _below(path: str, mounted: str) -> str | None:
    """The group's path below the one that is mounted; None if it is elsewhere.

    The kernel shows a group outside of this process's namespace with a path that begins with /.. ."""
    mounted = mounted.rstrip("/")
    if path != mounted and not path.startswith(f"{mounted}/"):
        return None
    inner = path[len(mounted) :].strip("/")
    return None if ".." in inner.split("/") else inner


def _groups(entries: str, mounts: str, root: Path) -> tuple[int, list[Path]]:
    """The version of cgroups, 0 for none, and the folders of the group and of those above it. No folder: the group is
    not visible here."""
    for version in (1, 2):
        for line in entries.splitlines():
            number, controllers, path = line.split(":", 2)
            if version == 1 and "memory" not in controllers.split(","):
                continue
            if version == 2 and number != "0":
                continue
            for mount in mounts.splitlines():
                words = mount.split()
                dash = words.index("-")
                kind = words[dash + 1]
                if version == 1 and not (kind == "cgroup" and "memory" in words[-1].split(",")):
                    continue
                if version == 2 and kind != "cgroup2":
                    continue
                top = root / words[4].lstrip("/")
                inner = _below(path, words[3])
                if inner is None:
                    return version, []
                own = top / inner if inner else top
                folders = [own, *own.parents]
                return version, folders[: folders.index(top) + 1]
    return 0, []


_FILES = {
    1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "memory.max_usage_in_bytes"),
    2: ("memory.max", "memory.current", "memory.peak"),
}


def _group(version: int, folder: Path) -> dict[str, object] | None:
    limit, usage, peak = (_number(folder / name) for name in _FILES[version])
    if usage is None:
        return None
    if limit is not None and limit >= _V1_NO_LIMIT:
        limit = None
    stat = _pairs(folder / "memory.stat")
    events = _pairs(folder / ("memory.oom_control" if version == 1 else "memory.events"))
    return {
        "limit": limit,
        "usage": usage,
        "reclaimable_cache": _reclaimable(version, stat),
        "peak": peak,
        "oom_kills": events.get("oom_kill"),
    }


_CACHE = {
    1: ("total_inactive_file", "total_active_file", "total_dirty", "total_writeback", "total_mapped_file"),
    2: ("inactive_file", "active_file", "file_dirty", "file_writeback", "file_mapped"),
}


def _reclaimable(version: int, stat: dict[str, int]) -> int | None:
    """What the kernel takes back, as the server has it: page cache that is idle, or clean and not mapped, whichever is
    more, and slab. None: not known."""
    idle, active, *busy = (stat.get(name) for name in _CACHE[version])
    parts = [stat.get("slab_reclaimable"), idle]
    if idle is not None and active is not None and None not in busy:
        parts[1] = max(idle, idle + active - sum(busy))  # type: ignore[arg-type]
    return None if parts == [None, None] else sum(filter(None, parts))


def _number(path: Path) -> int | None:
    try:
        text = path.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() else None


def _pairs(path: Path) -> dict[str, int]:
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return {}
    words = (line.split() for line in lines)
    return {pair[0]: int(pair[1]) for pair in words if len(pair) == 2 and pair[1].isdecimal()}
