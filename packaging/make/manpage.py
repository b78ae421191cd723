"""memdiag(7), made of docs/reference.md, which is made of the table specs: headings,
paragraphs and tables become those of man."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from harness import markdown

HEAD = """.SH NAME
memdiag \\- tables, variables and a function that show where a MySQL server's memory is
.SH DESCRIPTION
Begin with
.B memdiag report
(package memdiag): it writes one page with what is wrong, the proof and the statement that helps.
.PP
The tables that it reads are built into the server of mysql\\-memdiag: nothing is to be loaded or switched on.
"""
FOOT = """.SH FILES
.TP
.I /etc/mysql/mysql.conf.d/memdiag.cnf, /etc/my.cnf.d/memdiag.cnf
Settings, with what they are by default (DEB, RPM).
.TP
.I /var/lib/mysql/memdiag_history.bin
Samples of this run and of the one before. May be removed while the server is down.
.TP
.I /var/lib/mysql/memdiag_profile.bin
Stacks that memdiag_profile = RECORD writes, of this run and of the one before. May be removed while the server is down.
.SH SEE ALSO
.BR memdiag (1),
.BR mysqld (8)
"""


def roff(text: str) -> str:
    text = text.strip().replace("\\_", "_").replace("\\", "\\e").replace("-", "\\-")
    text = re.sub(r"`([^`]*)`", r"\\fI\1\\fP", text)
    return re.sub(r"^([.'])", r"\\&\1", text)


def body(lines: list[str]) -> Iterator[str]:
    rows = 0
    in_example = False
    for line in lines:
        if line.startswith("```"):
            in_example = not in_example
            yield ".EX" if in_example else ".EE"
            continue
        if in_example:
            yield roff(line)
            continue
        rows = rows + 1 if line.startswith("|") else 0
        if line.startswith("## "):
            title = line[3:].removeprefix("INFORMATION_SCHEMA.")
            yield f'.SH "{roff(title)}"'
        elif rows > 2:  # below a table's head
            name, *middle, meaning = (roff(cell) for cell in markdown.cells(line))
            # Type, unit and nullability of a column.
            kind = ", ".join(x for x in middle if x and x not in ("no", "yes"))
            may = ", or NULL" if "yes" in middle else ""
            yield f".TP\n\\fB{name}\\fP {kind}{may}\n{meaning}".rstrip()
        elif line.strip() and not rows and not line.startswith(("<!--", "# ")):
            yield f".PP\n{roff(line)}"


def manual(reference: str, date: int) -> str:
    day = datetime.fromtimestamp(date, UTC).strftime("%Y-%m-%d")
    head = f'.TH MEMDIAG 7 {day} mysql\\-memdiag "MySQL server"\n{HEAD}'
    return head + "\n".join(body(reference.splitlines())) + "\n" + FOOT
