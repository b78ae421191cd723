"""The SQL that our documents show and that the server itself recommends, for tests that run all of it.

A piece is the list of statements that a reader types in one session. In prose and tables it is `code`. In a block of
code it begins with a word of SQL or follows a prompt; the cells of a table of results may have statements too.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from harness import markdown
from harness.common import ROOT

Piece = tuple[str, ...]

# In capitals, as documents write them. Statements that end the server, or begin or end its replication, are left out.
_WORDS = (
    "ALTER|ANALYZE|CALL|CHANGE|CHECK|CHECKSUM|CREATE|DEALLOCATE|DELETE|DO|DROP|EXPLAIN|FLUSH|GRANT|INSERT|INSTALL|KILL"
    "|LOAD|OPTIMIZE|PREPARE|PURGE|RENAME|REPAIR|REPLACE|RESET|REVOKE|SELECT|SET|SHOW|START TRANSACTION|TABLE|TRUNCATE"
    "|UNINSTALL|UPDATE|USE|WITH"
)
_STATEMENT = re.compile(rf"({_WORDS})\b(?!\.)")
_SETTING = re.compile(r"memdiag_\w+ = \S")
_FENCE = re.compile(r"^ *```[^\n]*\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
_PROMPT = "mysql> "
_CONTINUED = "    -> "
# The name of a statement alone: without an operand, except a memdiag variable.
_NAME = re.compile(r"[A-Z ]+( memdiag_\w+)?")


def documents() -> list[Path]:
    return [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(ROOT.glob("docs/*.md"))]


def documented() -> list[Piece]:
    """The pieces of all documents, each of them once."""
    found = (piece for path in documents() for piece in pieces(path.read_text()))
    return list(dict.fromkeys(found))


def pieces(text: str) -> Iterator[Piece]:
    for block in _FENCE.findall(text):
        yield from _of_block(block)
    for code in re.findall(r"`([^`]+)`", _FENCE.sub("", text)):
        code = " ".join(code.split())
        if _SETTING.match(code):
            code = f"SET GLOBAL {code}"
        if _STATEMENT.match(code):
            yield _split(code)


def _of_block(block: str) -> Iterator[Piece]:
    lines = [re.sub(r"(^|\s)--\s.*$", "", line) for line in block.splitlines()]
    for line in lines:
        if line.startswith("|"):
            yield from (_split(cell) for cell in markdown.cells(line) if _STATEMENT.match(cell))
    if any(line.startswith(_PROMPT) for line in lines):
        typed = [line[len(prompt) :] for line in lines for prompt in (_PROMPT, _CONTINUED) if line.startswith(prompt)]
    elif lines and _STATEMENT.match(lines[0].strip()):
        typed = lines
    else:
        return
    yield _split(" ".join(" ".join(typed).split()))


def _split(code: str) -> Piece:
    parts = (part.strip().removesuffix("\\G") for part in code.split(";"))
    return tuple(part for part in parts if part)


def is_name(statement: str) -> bool:
    """True if a document may only name a kind of statement. The server would reject it as incomplete."""
    return bool(_NAME.fullmatch(statement))


def leaves_log_off(piece: Piece) -> bool:
    """True if the piece leaves the binary log off: replicas would miss what the reader does next in the session."""
    logs = True
    for statement in piece:
        if switch := re.match(r"(?i)SET (SESSION )?sql_log_bin\s*=\s*(\w+)", statement):
            logs = switch[2].upper() not in ("0", "OFF")
    return not logs
