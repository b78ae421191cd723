"""Tables of Markdown, written and read."""

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table, padded so that it can also be read as it is; the first column left, the others right."""
    cells = [list(head), *[list(row) for row in rows]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    rule = ["-" * widths[0], *["-" * (width - 1) + ":" for width in widths[1:]]]

    def line(row: Sequence[str]) -> str:
        padded = [
            row[0].ljust(widths[0]),
            *[text.rjust(width) for text, width in zip(row[1:], widths[1:], strict=True)],
        ]
        return "| " + " | ".join(padded) + " |"

    return "\n".join(line(row) for row in [cells[0], rule, *cells[1:]])


def cells(line: str) -> list[str]:
    """The texts of a row's cells."""
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def tables(text: str, heading: str) -> list[list[list[str]]]:
    """The tables below a heading of a page, up to the next heading: of each its rows below the rule, of each its cells."""
    below = text.partition(f"\n## {heading}\n")[2].partition("\n#")[0]
    found: list[list[list[str]]] = []
    in_table = False
    for line in below.splitlines():
        if not line.startswith("|"):
            in_table = False
        elif in_table:
            found[-1].append(cells(line))
        elif set(line) <= set("|-: "):
            found.append([])
            in_table = True
    return found
