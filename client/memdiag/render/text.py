"""A page as plain text for a terminal or a mail: no line is wider than WIDTH, and no figure is cut."""

from __future__ import annotations

import re
from typing import Any

from memdiag.model.document import Report
from memdiag.model.units import moment, percent, share, shown, size
from memdiag.model.words import cell_width, ljust, printable, rjust, wrap
from memdiag.render.page import Page, cells, meanings, numeric, series_grid

WIDTH = 80
MOST_IN_BRIEF = 3
# A column of words is not made narrower than this; the columns behind it go into a grid of their own.
NARROWEST = 12
STATEMENT_INDENT = 12
_MARKS = {"critical": "!!", "warning": " !", "note": "  "}


def render(page: Page) -> str:
    lines: list[str] = []
    for problem in page.problems:
        lines += _wrap(f"not asked: {problem}")
    if len(page.reports) > 1:
        lines += [*_title(page.title, "="), *_comparison(page), ""]
    for report in page.reports:
        lines += _report(report)
    return _joined(lines)


def brief(page: Page) -> str:
    """The answer in short: what is wrong and what helps."""
    lines: list[str] = []
    for report in page.reports:
        lines += _wrap(f"{report.product} at {report.label}, {moment(report.time)}")
        if not report.findings:
            lines += _wrap(report.headline)
        for number, finding in enumerate(report.findings[:MOST_IN_BRIEF], 1):
            lines += _finding(number, finding, ("proof", "remedy"))
        if left := len(report.findings) - MOST_IN_BRIEF:
            lines += ["", f"{left} more on the page"] if left > 0 else []
        lines.append("")
    return _joined(lines)


# A figure and its unit, a date and its time: no line ends between them.
_FIGURE = re.compile(
    r"(?<=\d) (?=(?:[KMGTP]i)?B\b|[mµ]?s\b|min\b|h\b|days?\b)|(?<=\d{4}-\d\d-\d\d) (?=\d\d:)|(?<=:\d\d) (?=UTC)"
)
_GLUE = "\xa0"


def _glued(words: str) -> str:
    return _FIGURE.sub(_GLUE, printable(words))


def _joined(lines: list[str]) -> str:
    return "\n".join(line.replace(_GLUE, " ").rstrip() for line in lines) + "\n"


def _wrap(words: str, first: str = "", then: str = "") -> list[str]:
    return wrap(_glued(words), WIDTH, first, then)


def _title(words: str, line: str) -> list[str]:
    lines = _wrap(words)
    return [*lines, line * max(map(cell_width, lines), default=0)]


# A string, a name in backquotes, or anything else up to a blank; before a dot or a comma a statement may end its line.
_WORD = re.compile(r"(?:'(?:[^'\\]|\\.|'')*'|`(?:[^`]|``)*`|[^\s'`.,]|[.,](?![\s`]))+[.,]?|\S")


def statement_lines(statement: str, width: int = WIDTH - STATEMENT_INDENT) -> list[str]:
    """A statement in several lines that runs as it did in one: a line never ends within a name, and a string that is
    longer than a line is written as several, which SQL takes for one."""
    lines = [""]
    end = 0
    for found in _WORD.finditer(statement):
        blank = " " if found.start() > end else ""
        end = found.end()
        for number, part in enumerate(_parts_of_word(found[0], width)):
            glue = blank if number == 0 else ""
            if number == 0 and cell_width(lines[-1] + glue + part) <= width:
                lines[-1] += glue + part
            else:
                lines.append(part)
    return [line for line in lines if line]


def _parts_of_word(word: str, width: int) -> list[str]:
    """A word that is too long is cut between letters of a string in it."""
    parts = []
    while len(word) > width:
        # The string that goes on at `width`, without what an escape or a quote makes special.
        within = [
            found
            for found in re.finditer(r"'(?:[^'\\]|\\.|'')*'", word)
            if found.start() + 1 < width - 1 < found.end() - 1
        ]
        cut = width - 1
        while within and cut > within[0].start() + 2 and not (word[cut - 1].isalnum() and word[cut].isalnum()):
            cut -= 1
        if not within or cut <= within[0].start() + 2:
            break
        parts.append(word[:cut] + "'")
        word = "'" + word[cut:]
    return [*parts, word]


def _statement(statement: str) -> list[str]:
    indent = " " * STATEMENT_INDENT
    if not statement[:1].islower():
        return [indent + line for line in statement_lines(statement)]
    # A command of the shell. A line that ends in a backslash goes on at the first column of the next, but not within
    # quotes, which end before it and begin again. shlex.quote() writes a ' of a name as '"'"'.
    lines = []
    rest = indent + statement
    while len(rest) > WIDTH:
        cut = next(
            (at for at in range(WIDTH - 2, WIDTH // 2, -1) if not {*rest[at - 1 : at + 1]} & {*"'\""}), WIDTH - 2
        )
        quote = "'" * (rest[:cut].replace('"\'"', "").count("'") % 2)
        lines.append(f"{rest[:cut]}{quote}\\")
        rest = quote + rest[cut:]
    return [*lines, rest]


def _comparison(page: Page) -> list[str]:
    titles = ["", *(report.label for report in page.reports)]
    rows = [
        [label, *(shown(fact.value, fact.unit) if fact else "-" for fact in facts)] for label, facts in page.comparison
    ]
    rows.append(["verdict", *(report.headline for report in page.reports)])
    return _grid(titles, rows, [False] + [False] * len(page.reports))


def _report(report: Report) -> list[str]:
    title = f"{report.product} at {report.label}, {moment(report.time)}"
    lines = [*_title(title, "="), "", *_wrap(report.headline), ""]
    for fact in report.facts:
        lines += _fact(fact)
    lines += ["", "WHAT IS WRONG", "-------------"]
    if not report.findings:
        lines.append("Nothing was found.")
    for number, finding in enumerate(report.findings, 1):
        lines += _finding(number, finding)
    for section in report.sections:
        lines += ["", section.title.upper(), "-" * len(section.title)]
        lines += _wrap(section.lead)
        for block in section.blocks:
            lines += _BLOCKS[block.kind](block)
    return [*lines, ""]


def _finding(number: int, finding: Any, wanted: tuple[str, ...] = ("proof", "from", "remedy", "check")) -> list[str]:
    def part(label: str, words: str) -> list[str]:
        if not words or label not in wanted:
            return []
        return _wrap(words, f"    {label:8}", " " * 12)

    return [
        "",
        *_wrap(f"{_MARKS[finding.severity]} {number}. {finding.headline}", then="      "),
        *_wrap(f"{finding.severity}, {finding.verdict}: {finding.holder}", "    ", "    "),
        *part("proof", finding.evidence),
        *part("from", finding.source),
        *part("remedy", finding.remedy),
        *(line for statement in finding.statements for line in _statement(printable(statement))),
        *part("check", finding.check),
    ]


def _fact(fact: Any) -> list[str]:
    return _wrap(f"{fact.label}: {shown(fact.value, fact.unit)} ({fact.what}; from {fact.source})", then="    ")


def _note(note: Any) -> list[str]:
    return ["", *_wrap(note.text)]


def _parts(parts: Any) -> list[str]:
    rows = []
    for part in parts.parts:
        of = share(part.value, parts.total)
        # A part is larger than the whole where both were read at different moments.
        width = round(15 * min(max(0.0, of or 0), 100) / 100)
        rows.append([part.label, size(part.value), percent(of), "#" * width, part.what])
    rows.append([parts.total_label, size(parts.total), "", "", "the sum"])
    return [
        "",
        f"{parts.title}",
        *_grid(["part", "size", "share", "", "what it is"], rows, [False, True, True, False, False]),
        *_tail(parts),
    ]


def _series(series: Any) -> list[str]:
    span = f"from {moment(series.times[0])} to {moment(series.times[-1])}, {len(series.times)} samples"
    lines = ["", *_wrap(f"{series.title}, {span}"), *_grid(*series_grid(series))]
    for event in series.events:
        lines += _wrap(f"{moment(event.time)}  {event.label}", "  ", "    ")
    return [*lines, *_tail(series)]


def _table(table: Any) -> list[str]:
    right = [numeric(table, number) for number in range(len(table.columns))]
    lines = ["", table.title, *_grid([column.title for column in table.columns], cells(table), right)]
    for words in meanings(table):
        lines += _wrap(words, "  ", "    ")
    return [*lines, *_tail(table)]


def _picture(picture: Any) -> list[str]:
    return ["", *_wrap(f"{picture.title}: see the HTML report. {picture.note}"), *_from(picture)]


def _tail(block: Any) -> list[str]:
    return [*_wrap(block.note, "  ", "  "), *_from(block)]


def _from(block: Any) -> list[str]:
    return _wrap(f"from {block.source}", "  ", "    ")


_BLOCKS = {"fact": _fact, "note": _note, "parts": _parts, "series": _series, "table": _table, "picture": _picture}


def _grid(titles: list[str], rows: list[list[str]], right: list[bool]) -> list[str]:
    """Columns that are aligned. Long words take several lines, figures never. Columns that find no room go into a grid
    of their own, which begins with the first column, too."""
    whole = [[_glued(cell) for cell in row] for row in [titles, *rows]]
    lines: list[str] = []
    rest = list(range(len(titles)))
    while rest:
        chosen = _fitting(whole, rest, right)
        rest = [column for column in rest if column not in chosen]
        if lines:
            lines.append("")
        lines += _one_grid(whole, chosen, right)
        if rest:
            rest = [0, *rest]
    return lines


_NUMBER = re.compile(r"[-+]?\d[\d.,]*[%x]?$")


def _natural(whole: list[list[str]], column: int) -> int:
    return max((cell_width(row[column]) for row in whole), default=0)


def _least(whole: list[list[str]], column: int, right: list[bool]) -> int:
    """Its width at the least: figures are whole, and so are the words of their title."""
    if not right[column]:
        figures = [
            cell_width(word) for row in whole for word in row[column].split(" ") if _GLUE in word or _NUMBER.match(word)
        ]
        return max([min(_natural(whole, column), NARROWEST), *figures])
    words = whole[0][column].split()
    return max([cell_width(row[column]) for row in whole[1:]] + [cell_width(word) for word in words], default=0)


def _fitting(whole: list[list[str]], columns: list[int], right: list[bool]) -> list[int]:
    """As many of the first ones as have room; the first two in any case."""
    chosen: list[int] = []
    for column in columns:
        width = sum(2 + _least(whole, one, right) for one in [*chosen, column])
        if width > WIDTH and len(chosen) > 1:
            break
        chosen.append(column)
    return chosen


def _one_grid(whole: list[list[str]], columns: list[int], right: list[bool]) -> list[str]:
    widths = {column: _least(whole, column, right) for column in columns}
    left = WIDTH - sum(2 + width for width in widths.values())
    # The narrow ones first get what they want.
    for number, column in enumerate(sorted(columns, key=lambda one: _natural(whole, one) - widths[one])):
        more = min(_natural(whole, column) - widths[column], max(0, left) // (len(columns) - number))
        widths[column] += more
        left -= more
    lines = []
    for number, row in enumerate(whole):
        wrapped = {column: wrap(row[column], max(1, widths[column])) or [""] for column in columns}
        for height in range(max(map(len, wrapped.values()))):
            words = []
            for column, cell in wrapped.items():
                text = cell[height] if height < len(cell) else ""
                words.append((rjust if right[column] else ljust)(text, widths[column]))
            lines.append("  " + "  ".join(words))
        if number == 0:
            lines.append("  " + "  ".join("-" * width for width in widths.values()))
    return lines
