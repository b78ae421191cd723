"""The machine, the control group, and the kernel's settings."""

from __future__ import annotations

from memdiag.model.document import Column, Note, Section, Table
from memdiag.model.view import View

_SUBJECTS = {
    "memory": "the machine",
    "process": "the process",
    "cgroup": "the control group",
    "pressure": "pressure stall information",
    "oom": "the kernel's choice of whom to kill",
    "huge_pages": "huge pages",
    "numa": "NUMA nodes",
    "kernel": "settings of the kernel",
    "device": "the data directory's device",
}
# Figures that decide something; --json has the others.
_PROCESS = ("VmRSS", "VmHWM", "VmSwap", "VmSize", "RssAnon", "RssFile", "RssShmem", "HugetlbPages", "VmPTE", "Threads")
_MEMORY = (
    "MemTotal",
    "MemAvailable",
    "MemFree",
    "Cached",
    "SwapTotal",
    "SwapFree",
    "Committed_AS",
    "CommitLimit",
    "AnonHugePages",
)


def section(view: View) -> Section:
    result = Section("host", "The host", "A limit ends the server, and the limit is the host's.")
    rows = _ours(view) if view.rows("memdiag_host") else _read_here(view)
    if rows:
        result.blocks.append(
            Table(
                "host",
                "Figures of the host",
                [
                    Column("subject", "subject"),
                    Column("name", "figure", "", "by the kernel's name"),
                    Column("bytes", "bytes", "bytes"),
                    Column("value", "value"),
                    Column("source", "read from"),
                ],
                rows,
                "INFORMATION_SCHEMA.MEMDIAG_HOST"
                if view.rows("memdiag_host")
                else "/proc and the memory cgroup of this machine"
                if view.data["local"]
                else "the Health Monitor of the server",
                folded=True,
            )
        )
    if not view.rows("memdiag_host"):
        for name, what in (("process", "The process"), ("cgroup", "The control group"), ("pressure", "Pressure")):
            if reason := view.error(name):
                result.blocks.append(Note(f"{what}: unknown, {reason}."))
                if name == "process" and not view.data["local"]:
                    break
    if not any(row[0] == _SUBJECTS["numa"] for row in rows):
        result.blocks.append(Note("NUMA: not told; there is no figure for it."))
    return result


def _cells(number: object, unit: str, word: object) -> list:
    if word not in (None, ""):
        return ["", word]
    if unit == "bytes":
        return [number, ""]
    shown = number
    if isinstance(number, float) and number.is_integer():
        shown = int(number)
    return ["", shown if not unit or unit == "count" or shown is None else f"{shown} {unit}"]


def _ours(view: View) -> list[list]:
    result = []
    for row in view.rows("memdiag_host"):
        subject, name = row["SUBJECT"], row["NAME"]
        if subject == "process" and name not in _PROCESS:
            continue
        if subject == "memory" and name not in _MEMORY:
            continue
        if subject == "huge_pages" and name.startswith("pool.") and not row["NUMBER"]:
            continue
        number = row["NUMBER"]
        if isinstance(number, float) and number.is_integer():
            number = int(number)
        result.append(
            [_SUBJECTS.get(subject, subject), name, *_cells(number, row["UNIT"], row["VALUE"]), row["SOURCE"]]
        )
    return result


def _read_here(view: View) -> list[list]:
    result: list[list] = []
    pid = view.data["server"].get("pid")
    for name in _MEMORY:
        if (value := view.row("meminfo").get(name)) is not None:
            result.append([_SUBJECTS["memory"], name, value, "", view.copied("meminfo", "/proc/meminfo")])
    for name in (*_PROCESS, "oom_score", "oom_score_adj"):
        value = view.row("process").get(name)
        if value is not None:
            size = name not in ("Threads", "oom_score", "oom_score_adj")
            subject = "oom" if name.startswith("oom") else "process"
            result.append(
                [
                    _SUBJECTS[subject],
                    name,
                    value if size else "",
                    "" if size else value,
                    view.copied("process", f"/proc/{pid}/{name if subject == 'oom' else 'status'}"),
                ]
            )
    for row in view.rows("cgroup"):
        for name in ("limit", "usage", "reclaimable_cache", "peak"):
            value = row.get(name)
            none = "no limit" if name == "limit" and value is None else ""
            result.append([_SUBJECTS["cgroup"], name, "" if none else value, none, row["folder"]])
        if row.get("oom_kills") is not None:
            result.append([_SUBJECTS["cgroup"], "oom_kills", "", row["oom_kills"], row["folder"]])
    for row in view.rows("pressure"):
        result.append([_SUBJECTS["pressure"], f"{row['kind']} avg10", "", f"{row['avg10']} %", "/proc/pressure/memory"])
    for row in view.rows("numa"):
        for name in ("MemTotal", "MemFree"):
            if name in row:
                place = f"/sys/devices/system/node/{row['node']}/meminfo"
                result.append([_SUBJECTS["numa"], f"{row['node']}.{name}", row[name], "", place])
    for source in ("huge_pages", "kernel"):
        for name, value in view.row(source).items():
            result.append([_SUBJECTS[source], name, "", value, view.origin(source)])
    library = view.row("allocator_library")
    if library:
        result.append(
            [_SUBJECTS["process"], "allocator", "", library.get("library") or "the C library's", f"/proc/{pid}/maps"]
        )
        for name in ("LD_PRELOAD", "MALLOC_CONF", "MALLOC_ARENA_MAX"):
            if name in library:
                result.append([_SUBJECTS["process"], name, "", library[name], f"/proc/{pid}/environ"])
    return result
