"""What a server answers to a statement, compared; and the shortest program that still shows a difference."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from harness.sql import Connection

LOST = "the connection is lost"
_COMMAND = 0x03  # COM_QUERY
_SET_OPTION = 0x1B
_INTERNAL = re.compile(r"#sql[-0-9a-f_]*")
Row = tuple[str | None, ...]
One = TypeVar("One")


@dataclass
class Part:
    """One result set, or one count of rows."""

    columns: tuple[tuple[str, int], ...]  # name and type
    rows: list[Row]
    affected: int
    last_id: int
    message: str
    warned: int = 0


@dataclass
class Answer:
    parts: list[Part] = field(default_factory=list)
    warnings: list[Row] = field(default_factory=list)
    error: int = 0
    text: str = ""
    lost: bool = False  # the connection


def difference(mine: Answer, other: Answer, ordered: bool) -> str:
    """What differs first, in words; empty where nothing does."""
    if mine.lost or other.lost:
        return "" if mine.lost and other.lost else f"{LOST}: {mine.lost} | {other.lost}"
    if (mine.error, _named(mine.text)) != (other.error, _named(other.text)):
        return f"error: {mine.error} {mine.text} | {other.error} {other.text}"
    if len(mine.parts) != len(other.parts):
        return f"results: {len(mine.parts)} | {len(other.parts)}"
    for number, (one, two) in enumerate(zip(mine.parts, other.parts, strict=True)):
        for what in ("columns", "affected", "last_id", "message"):
            if getattr(one, what) != getattr(two, what):
                return f"{what} of result {number}: {getattr(one, what)} | {getattr(two, what)}"
        rows = [_rows(each.rows, ordered) for each in (one, two)]
        if rows[0] != rows[1]:
            if len(rows[0]) != len(rows[1]):
                return f"rows of result {number}: {len(rows[0])} | {len(rows[1])}"
            first = next(pair for pair in zip(*rows, strict=True) if pair[0] != pair[1])
            return f"a row of result {number}: {first[0]} | {first[1]}"
    if _rows(mine.warnings, False) != _rows(other.warnings, False):
        only = [row for row in mine.warnings if row not in other.warnings][:3]
        return (
            f"warnings: {len(mine.warnings)} {only} | {len(other.warnings)}"
            f" {[row for row in other.warnings if row not in mine.warnings][:3]}"
        )
    return ""


def _named(text: str) -> str:
    """Without the number of the process in the names of internal tables."""
    return _INTERNAL.sub("#sql", text)


def _rows(rows: Sequence[Row], ordered: bool) -> list[Row]:
    named = [tuple(_named(value) if value and "#sql" in value else value for value in row) for row in rows]
    return named if ordered else sorted(named, key=repr)


class Session(Connection):
    """Sends a statement now and reads its answer later, so that two servers work at one time."""

    def __init__(self, socket: Path, timeout: float) -> None:
        super().__init__(socket, timeout=timeout)
        self._session.encoding = "latin1"  # any byte, as the statements may change the character set
        self._sent = False

    def allow_several(self) -> None:
        """From now on a text may have several statements."""
        self._session._execute_command(_SET_OPTION, b"\0\0")
        self._session._read_packet()

    def send(self, text: str) -> None:
        """receive() tells if the connection is lost."""
        try:
            self._session._execute_command(_COMMAND, text.encode())
            self._sent = True
        except (self._pymysql.MySQLError, OSError):
            self._sent = False

    def receive(self, between: Callable[[], object] = bool, warnings_of_errors: bool = True) -> Answer:
        """`between`: called after an error, before its warnings are asked for."""
        answer = Answer()
        if not self._sent:
            answer.lost = True
            return answer
        link, warnings = self._session, 0
        try:
            while True:
                link._read_query_result()
                found = link._result
                columns = tuple((column[0], column[1]) for column in found.description or ())
                rows = [tuple(map(_text, row)) for row in found.rows or ()]
                message = found.message or b""
                warnings = found.warning_count
                words = message.decode(errors="replace")
                answer.parts.append(Part(columns, rows, found.affected_rows, found.insert_id or 0, words, warnings))
                if not found.has_next:
                    break
        except self._pymysql.MySQLError as error:
            code = error.args[0] if error.args else 0
            if not isinstance(code, int) or not code or 2000 <= code < 3000:
                answer.lost = True
                return answer
            answer.error, answer.text = code, str(error.args[-1])
        except OSError:
            answer.lost = True
            return answer
        if answer.error:
            between()
        if warnings_of_errors if answer.error else warnings:
            self.send("SHOW WARNINGS")
            try:
                link._read_query_result()
                answer.warnings = [tuple(map(_text, row)) for row in link._result.rows or ()]
            except (self._pymysql.MySQLError, OSError):
                answer.lost = True
        return answer


def _text(value: str | bytes | None) -> str | None:
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else value


def shortest(whole: Sequence[One], shows: Callable[[Sequence[One]], bool], tries: int) -> list[One]:
    """The statements of which none can go, or the shortest list after so many tries. `shows`: asked for parts only."""
    kept = list(whole)
    size = max(1, len(kept) // 2)
    while tries > 0:
        begin = 0
        gone = False
        while begin < len(kept) and tries > 0:
            less = kept[:begin] + kept[begin + size :]
            tries -= 1
            if less and shows(less):
                kept, gone = less, True
            else:
                begin += size
        if size == 1 and not gone:
            break
        size = max(1, size // 2)
    return kept
