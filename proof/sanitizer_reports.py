"""What the thread sanitizer has written: reports, which code is in them, and groups of the same."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

# A file of ours, as the debug information names it, or a function of ours.
_OUR_FILE = re.compile(r"(^|/)((mysys|plugin|sql|storage/\w+)/memdiag/|(plugin|components)/\w+/memdiag_)")
_OUR_FUNCTION = re.compile(r"^(\S+ )?memdiag::")
# Their accesses are made for the function that called them.
_RUNTIME = re.compile(r"libtsan|libstdc\+\+|libsanitizer|/usr/include/|/c\+\+/\d|\((libc|ld-linux)[.-]")
_KIND = re.compile(r"ThreadSanitizer:(?! ?reported) ?(.+?)(?: \(pid=\d+\))?$", re.MULTILINE)
_FRAME = re.compile(r"^ +#\d+ (.*)$")
_PARTS = re.compile(r"^(?P<function>.*) (?P<file>\S+) \(\S+\+0x[0-9a-f]+\)")
# The stacks below such lines tell where a report's thread, mutex and memory come from. A report about mutexes that were
# taken in two orders consists of the stacks that took them.
_ABOUT = re.compile(r"^ +(Location is|Thread T|Mutex M(?!.* acquired )|As if|Hint|\[failed)")


@dataclass(frozen=True)
class Frame:
    function: str
    file: str  # with the line
    text: str

    @classmethod
    def of(cls, text: str) -> "Frame":
        found = _PARTS.match(text)
        return cls(found["function"], found["file"], text) if found else cls(text, "", text)

    @property
    def ours(self) -> bool:
        return bool(_OUR_FILE.search(self.file) or _OUR_FUNCTION.match(self.function))

    @property
    def of_runtime(self) -> bool:
        return bool(_RUNTIME.search(self.text) or self.function.startswith(("std::", "operator ")))

    def __str__(self) -> str:
        where = re.sub(r".*/(?=(mysys|plugin|components|sql|storage)/)", "", self.file)
        return f"{self.function.split('(')[0]} ({where})"


@dataclass(frozen=True)
class Report:
    kind: str
    stacks: tuple[tuple[Frame, ...], ...]  # of what raced, or of the fault
    text: str

    def places(self) -> list[Frame]:
        """Where each stack comes from the code into the library: the access itself, as a rule."""
        return [next((one for one in stack if not one.of_runtime), stack[0]) for stack in self.stacks if stack]

    @property
    def ours(self) -> str:
        """'access' where one of the accesses is in code of ours, 'caller' where such code has called it, or ''."""
        if any(place.ours for place in self.places()):
            return "access"
        return "caller" if any(frame.ours for stack in self.stacks for frame in stack) else ""

    @property
    def group(self) -> str:
        """Reports of one fault have the same: of each stack its first frame of ours, or that of the access."""
        first = (next((one for one in stack if one.ours), None) for stack in self.stacks if stack)
        frames = sorted({str(one or place) for one, place in zip(first, self.places(), strict=True)})
        return f"{self.kind}: {' and '.join(frames) or 'without a stack'}"


def reports_in(text: str) -> list[Report]:
    """Of one file of the sanitizer's."""
    found = []
    for part in re.split(r"^={10,}$", text, flags=re.MULTILINE):
        if not (kind := _KIND.search(part)):
            continue
        stacks: list[list[Frame]] = [[]]
        about = False
        for line in part.splitlines():
            if match := _FRAME.match(line):
                if not about:
                    stacks[-1].append(Frame.of(match[1]))
            elif line.strip():
                about = bool(_ABOUT.match(line))
                if not about:
                    stacks.append([])
        found.append(Report(kind[1], tuple(tuple(stack) for stack in stacks if stack), part.strip()))
    return found


def reports_of(folder: Path, prefix: str) -> list[Report]:
    """Of all processes that wrote to files with this prefix."""
    files = sorted(folder.glob(f"{prefix}.*"))
    return [report for file in files for report in reports_in(file.read_text(errors="replace"))]


def grouped(reports: Iterable[Report]) -> dict[str, list[Report]]:
    """The most frequent group first."""
    groups: dict[str, list[Report]] = {}
    for report in reports:
        groups.setdefault(report.group, []).append(report)
    return dict(sorted(groups.items(), key=lambda item: -len(item[1])))
