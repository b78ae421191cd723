"""Reads the names in a statement of memdiag: tables, columns, functions, variables. It knows the few forms in use."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_KEYWORDS = {
    "SELECT",
    "FROM",
    "WHERE",
    "AND",
    "OR",
    "NOT",
    "IN",
    "IS",
    "NULL",
    "LIKE",
    "ORDER",
    "GROUP",
    "BY",
    "DESC",
    "DISTINCT",
    "LIMIT",
    "LEFT",
    "JOIN",
    "ON",
    "USING",
    "AS",
    "SECOND",
}
_TABLE = re.compile(
    r"\b(?:FROM|JOIN)\s+(\w+\.\w+)(?:\s+(?:AS\s+)?(?!(?:WHERE|ORDER|GROUP|JOIN|ON|USING|LIMIT)\b)(\w+))?"
)


@dataclass
class Named:
    tables: list[str] = field(default_factory=list)
    columns: set[str] = field(default_factory=set)
    functions: set[str] = field(default_factory=set)
    variables: list[str] = field(default_factory=list)
    # Names of a SELECT's columns, each with its expression.
    outputs: dict[str, str] = field(default_factory=dict)


def named(statement: str) -> Named:
    """ValueError: a form that this does not know."""
    text = " ".join(statement.split()).rstrip(";")
    if found := re.fullmatch(
        r"SHOW (?:GLOBAL|SESSION) (?:VARIABLES|STATUS) (?:WHERE Variable_name IN|LIKE) (.*)", text
    ):
        return Named(variables=[name.lower() for name in re.findall(r"'(\w+)'", found[1])])
    if re.fullmatch(
        r"SET NAMES utf8mb4|SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED|SHOW ENGINE INNODB STATUS|SHOW FULL PROCESSLIST|FLUSH LOCAL TABLES|KILL \d+|ALTER TABLE `\w+`\.`\w+` ENGINE = InnoDB",
        text,
    ):
        return Named()
    if found := re.fullmatch(r"SET (?:SESSION|GLOBAL|PERSIST) (\w+) = \S+", text):
        return Named(variables=[found[1].lower()])
    if text.startswith("SELECT "):
        return _select(text)
    raise ValueError(text)


def _parts(head: str) -> list[str]:
    """Split at commas that are in no parentheses."""
    parts, depth = [""], 0
    for letter in head:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _select(text: str) -> Named:
    text = re.sub(r"'(?:[^'\\]|\\.|'')*'", "''", text)
    result = Named()
    head = re.split(r"\bFROM\b", text)[0].removeprefix("SELECT ")
    for one in _parts(head):
        expression, _, name = one.strip().rpartition(" AS ")
        result.outputs[name.split(".")[-1].strip()] = expression.strip() or name
    derived = set(re.findall(r"\) ([a-z])\b", text))  # SELECTs in FROM, by their names
    aliases = set(derived)
    for table, alias in _TABLE.findall(text):
        result.tables.append(table.lower())
        aliases.add(alias)
    result.functions = {name for name in re.findall(r"\b(\w+)\(", text) if name not in _KEYWORDS}
    body = _TABLE.sub(" ", text)
    body = re.sub(r"\bAS \w+", " ", body)
    body = re.sub(r"\b(\w+)\.(?=\w)", lambda one: "" if one[1] in aliases else one[0], body)
    body = re.sub(r"\b\w+\(", "(", body)
    words = set(re.findall(r"\b[A-Za-z_]\w*\b", body)) - _KEYWORDS - derived
    # ORDER BY may name an output; such a word is a column only if it is no alias.
    renamed = {name for name, expression in result.outputs.items() if name != expression.split(".")[-1]}
    renamed |= set(re.findall(r" AS (\w+) FROM\b", text))
    result.columns = words - renamed
    return result
