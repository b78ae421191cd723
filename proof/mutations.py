"""Finds the places of a C++ or Python text where one small change makes a mutant, from its tokens."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_STRING = r""" "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' """
_WORD = r"(?P<number>(?<![\w.])\d(?:[eE][+-]|[\w.]|'(?=\w))*) | (?P<name>\w+) | (?P<sign>[^\s\w])"
_CPP = re.compile(
    r"""(?P<comment>//(?:\\.|[^\\\n])* | /\*.*?\*/ | ^[ \t]*\#(?:\\.|[^\\\n])*)
    | (?P<string>\bR"(?P<mark>\w*)\(.*?\)(?P=mark)" | """ + _STRING + r""")
    | (?P<two> <=> | -> | :: | && | \|\| | [-+*/<>=!]=) | """ + _WORD,
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)  # fmt: skip
_PYTHON = re.compile(
    r"""(?P<comment>\#[^\n]*)
    | (?P<string>(?<!\w)[rbfuRBFU]{0,2}(?:\"{3}(?:\\.|[^\\])*?\"{3} | '{3}(?:\\.|[^\\])*?'{3} | """ + _STRING + r"""))
    | (?P<two> -> | := | \*\* | // | [-+*/<>=!]=) | """ + _WORD,
    re.DOTALL | re.VERBOSE,
)  # fmt: skip
# Both languages have a space on each side of an operator, and none beside a template's bracket or a pointer's star.
_OPERATORS = {
    **{"<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="), ">=": (">", "<"), "==": ("!=",), "!=": ("==",)},
    **{"+": ("-",), "-": ("+",), "+=": ("-=",), "-=": ("+=",), "*": ("/",), "/": ("*",)},
    **{"&&": ("||",), "||": ("&&",), "and": ("or",), "or": ("and",)},
}
_JUNCTIONS = frozenset(("&&", "||", "and", "or"))
_COMPARISONS = frozenset(("<", "<=", ">", ">=", "==", "!=", "!", "not"))
_VALUES = {"true": "false", "false": "true", "True": "False", "False": "True"}
_LARGEST = {"min": "max", "max": "min"}
_NO_CALL = frozenset(
    re.findall(
        r"\w+",
        "return if elif while for switch case delete throw sizeof using operator template decltype alignas noexcept else"
        " do def class with assert yield raise lambda not await del",
    )
)
_ASSERTS = frozenset(("static_assert", "assert"))
# Without it, the same takes longer.
_COST_ONLY = frozenset(("reserve", "shrink_to_fit"))
_PAIRS = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True)
class Place:
    """The text from `begin` to `end` may become any of `others`."""

    begin: int
    end: int
    others: tuple[str, ...]


@dataclass(frozen=True)
class _Token:
    text: str
    begin: int
    end: int
    is_number: bool


class _Text:
    def __init__(self, text: str, is_python: bool) -> None:
        self._text, self._is_python = text, is_python
        found = (_PYTHON if is_python else _CPP).finditer(text)
        # A string stays, as something that has two sides.
        self._tokens = [
            _Token('""' if each["string"] else each[0], each.start(), each.end(), each["number"] is not None)
            for each in found
            if each["comment"] is None
        ]

    def places(self) -> Iterator[Place]:
        depth, position = 0, 0
        while position < len(self._tokens):
            token = self._tokens[position]
            depth += (token.text in _PAIRS) - (token.text in _PAIRS.values())
            if token.text in _ASSERTS:
                position = self._end_of_statement(position)
                continue
            yield from self._of_token(position)
            if token.text in ("if", "elif") and depth >= 0:
                yield from self._condition(position)
            if not (self._is_python and depth) and self._begins_statement(position):
                yield from self._call(position)
            position += 1

    def _at(self, position: int) -> str:
        return self._tokens[position].text if 0 <= position < len(self._tokens) else ""

    def _of_token(self, position: int) -> Iterator[Place]:
        token, before, after = self._tokens[position], self._at(position - 1), self._at(position + 1)
        others: tuple[str, ...] = ()
        if token.is_number:
            others = _beside(token.text)
        elif (
            token.text in _OPERATORS
            and self._text[token.begin - 1 : token.end + 1 : token.end - token.begin + 1].isspace()
        ):
            others = _OPERATORS[token.text]
        elif token.text in _VALUES:
            others = (_VALUES[token.text],)
        elif token.text in _LARGEST and after in ("(", "<") and (before != "." if self._is_python else before == "::"):
            others = (_LARGEST[token.text],)
        elif token.text == "!" or (token.text == "not" and self._is_python and before != "is" and after != "in"):
            others = ("",)
        if others:
            yield Place(token.begin, token.end, others)

    def _closing(self, position: int) -> int:
        """The position of the bracket that closes this one, or of the last token."""
        depth = 0
        for at in range(position, len(self._tokens)):
            depth += (self._at(at) in _PAIRS) - (self._at(at) in _PAIRS.values())
            if not depth:
                return at
        return len(self._tokens) - 1

    def _end_of_statement(self, position: int) -> int:
        if not self._is_python:
            return self._closing(position + 1) + 1
        line = self._text.find("\n", self._tokens[position].end)
        while position < len(self._tokens) and self._tokens[position].begin < line:
            position += 1
        return position

    def _condition(self, position: int) -> Iterator[Place]:
        """That of an `if` statement, negated."""
        first = position + 1
        if not self._is_python:
            if self._at(first) != "(":
                return
            last = self._closing(first) - 1
            for at in range(first, last):
                first = at if self._at(at) == ";" else first  # after a declaration
            first += 1
        else:
            if not self._begins_statement(position):
                return
            last = first
            while self._at(last) not in (":", ""):
                last = (self._closing(last) if self._at(last) in _PAIRS else last) + 1
            last -= 1
        words = {self._at(at) for at in range(first, last + 1)}
        # Its one operator has a mutant of its own that does the same.
        if first <= last and (words & _JUNCTIONS or not words & _COMPARISONS):
            begin, end = self._tokens[first].begin, self._tokens[last].end
            yield Place(begin, end, (f"{'not ' if self._is_python else '!'}({self._text[begin:end]})",))

    def _begins_statement(self, position: int) -> bool:
        if not self._is_python:
            return self._at(position - 1) in (";", "{", "}", ")", "else")
        begin = self._tokens[position].begin
        return not self._text[self._text.rfind("\n", 0, begin) + 1 : begin].strip()

    def _call(self, position: int) -> Iterator[Place]:
        """A statement that is a call without a result, removed."""
        at, is_name, is_call = position, True, False
        while True:
            word = self._at(at)
            if is_name and re.fullmatch(r"[A-Za-z_]\w*", word) and word not in _NO_CALL:
                at, is_name, is_call = at + 1, False, False
            elif not is_name and word in (".", "->", "::"):
                at, is_name = at + 1, True
            elif not is_name and word == "(":
                if self._at(at - 1) in _COST_ONLY:
                    return
                at, is_call = self._closing(at) + 1, True
            else:
                break
        if not is_call:
            return
        begin, end = self._tokens[position].begin, self._tokens[at - 1].end
        if self._is_python:
            if at == len(self._tokens) or "\n" in self._text[end : self._tokens[at].begin]:
                yield Place(begin, end, ("pass",))
        elif self._at(at) == ";":
            # As many lines: the objects are compared.
            lines = self._text[begin:end].count("\n")
            yield Place(begin, self._tokens[at].end, ("{}" + "\n" * lines,))


def _beside(number: str) -> tuple[str, ...]:
    if not (plain := re.fullmatch(r"(0|[1-9][\d_']*)([a-zA-Z]*)", number)):
        return (f"({number} + 1)", f"({number} - 1)")
    value = int(re.sub("[_']", "", plain[1]))
    return tuple(f"{other}{plain[2]}" for other in ((value - 1, value + 1) if value else (1,)))


def places(text: str, is_python: bool) -> Sequence[Place]:
    """All of them, in order."""
    return sorted(_Text(text, is_python).places(), key=lambda place: (place.begin, place.end))
