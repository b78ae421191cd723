"""memdiag top: a live screen. State and keys are in `Screen`, which draws nothing; rich draws what `layout` returns."""

from __future__ import annotations

import argparse
import os
import queue
import select
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memdiag.collect.sample import Sampler
from memdiag.commands.arguments import chosen_targets
from memdiag.connect.options import Target
from memdiag.connect.session import Gone, Refused, Session
from memdiag.durations import seconds_of
from memdiag.files import json_of
from memdiag.judge.ceiling import LEVELS
from memdiag.libraries import library
from memdiag.model.trend import line_through
from memdiag.model.units import duration, percent, share, shown, signed_size, size
from memdiag.model.words import printable
from memdiag.problem import Ended, Problem, WrongOption

KEYS = "o order  |  p purge  |  r report  |  q quit"
# A line is fitted to so many seconds.
TREND_SECONDS = 300
FIT = 0.7
# Part of RSS for each second: 7% an hour.
NOISE = 2e-5
# A look that takes longer is named: the figures are old.
SLOW_SECONDS = 3


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("server", nargs="?", metavar="SERVER", help="as for report")
    parser.add_argument("--every", default="2s", help="time between two looks (default: %(default)s)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    every = seconds_of(options.every)
    if every < 0.2:
        raise WrongOption("--every is at least 0.2s")
    if not sys.stdin.isatty() or not sys.stdout.isatty():
        raise Problem("top needs a terminal; memdiag report --text does without")
    try:
        import termios  # noqa: F401
    except ImportError:
        raise Problem("top needs a terminal of Linux or macOS; memdiag report --text does without") from None
    _rich()
    (target,) = chosen_targets(options, [options.server] if options.server else [])
    screen = Screen(target, every)
    screen.refresh()
    if screen.down:
        raise Problem(screen.down)
    try:
        _show(screen, every)
    except Ended:
        raise
    except KeyboardInterrupt:
        pass  # Ctrl-C leaves it, as q does
    return 0


# --- state ------------------------------------------------------------------------

_SESSIONS = """SELECT PROCESSLIST_ID, PROCESSLIST_USER AS USER, PROCESSLIST_COMMAND AS COMMAND,
 PROCESSLIST_TIME AS SECONDS, {memory} AS BYTES FROM performance_schema.threads
 WHERE TYPE = 'FOREGROUND' AND PROCESSLIST_ID IS NOT NULL AND PROCESSLIST_COMMAND <> 'Daemon'
 ORDER BY {order} DESC LIMIT 30"""
_SESSIONS_MARIADB = """SELECT ID AS PROCESSLIST_ID, USER, COMMAND, TIME AS SECONDS, MEMORY_USED AS BYTES
 FROM information_schema.PROCESSLIST ORDER BY {order} DESC LIMIT 30"""
_PURGES = """SELECT TIME, POOL, REASON, RELEASED_BYTES FROM information_schema.MEMDIAG_PURGES
 ORDER BY SEQUENCE DESC LIMIT 6"""
_DIGESTS = """SELECT DIGEST, STATEMENTS, PEAK_BYTES FROM information_schema.MEMDIAG_DIGESTS
 WHERE DIGEST IS NOT NULL ORDER BY PEAK_BYTES DESC LIMIT 6"""
ORDERS = ("memory", "time")
_NO_RIGHT = (1142, 1227)  # SELECT on a table; PROCESS


@dataclass
class Screen:
    """The figures on the screen, and the work of each key.

    Tasks that ask the server go through `work`, which may do them in another thread, one after the other. All else is
    for the thread that draws. Lists are replaced and never changed, so it may draw meanwhile."""

    target: Target
    every: float = 2.0  # seconds between two looks
    sample: dict[str, Any] = field(default_factory=dict)
    history: list[tuple[float, float]] = field(default_factory=list)
    sessions: list[dict[str, Any]] = field(default_factory=list)
    purges: list[dict[str, Any]] = field(default_factory=list)
    digests: list[dict[str, Any]] = field(default_factory=list)
    order: str = "memory"
    down: str = ""  # why the server does not answer
    asked: float | None = None  # the begin of the look that runs, by the monotonic clock
    message: str = ""
    question: str = ""  # to confirm the purge; no message of a task takes its place
    ended: bool = False
    work: Callable[[Callable[[], None]], None] = lambda task: task()
    undone: deque[str] = field(default_factory=deque)  # what keys asked for; the worker takes out what is done
    warned: bool = False  # that q ends it before all is done
    writing: threading.Lock = field(default_factory=threading.Lock)  # held while a file is written
    _session: Session | None = None
    _sampler: Sampler | None = None
    _run: tuple[dict[str, Any], float] | None = None  # the server that was seen last, and when it was started

    def refresh(self) -> None:
        """Read everything; a server that is gone is asked again the next time."""
        self.asked = time.monotonic()
        try:
            self._refresh()
        finally:
            self.asked = None

    def key(self, key: str) -> None:
        warned, self.warned = self.warned, False
        if self.question:
            self.question = ""
            if key == "y":
                self.message = "purging"
                self._do("a purge", self._purge)
            else:
                self.message = "not purged"
        elif key == "q":
            undone = " and ".join(self.undone)
            if undone and not warned:
                self.warned = True
                self.message = f"q again ends before this is done: {undone}"
            else:
                self.ended = True
        elif key in ("o", "s"):
            self.order = ORDERS[(ORDERS.index(self.order) + 1) % len(ORDERS)]
            self.message = f"ordered by {self.order}"
            self.work(self.refresh)
        elif key == "p":
            sampler = self._sampler
            if sampler is None or not sampler.ours:
                self.message = "only a server with memdiag can be purged"
            else:
                unused = size(self.sample.get("unused"))
                # The keys come first: the end of the line may be cut.
                self.question = f"y: give back {unused}, other keys: no (unused pages, memdiag_purge('all'))"
        elif key == "r":
            self.message = "making a report"
            self._do("a report", self._report)

    @property
    def seconds_to_limit(self) -> float | None:
        """None: there is no limit, its use is not known, or RSS does not grow along a line. Others use the limit, too."""
        limit, used, rss = (self.sample.get(name) for name in ("limit", "used", "rss"))
        trend = line_through(self.history)
        if limit is None or used is None or rss is None or trend is None:
            return None
        # Noise of an idle server also has a direction.
        if trend.r2 < FIT or trend.per_second < rss * NOISE:
            return None
        return max(0.0, (limit - used) / trend.per_second)

    @property
    def growth(self) -> float | None:
        history = self.history
        return history[-1][1] - history[0][1] if history else None

    def close(self) -> None:
        if self._session is not None:
            self._session.close()
        self._session = self._sampler = None

    # Internals.

    def _do(self, name: str, task: Callable[[], None]) -> None:
        def work() -> None:
            try:
                task()
            finally:
                self.undone.popleft()

        self.undone.append(name)
        self.work(work)

    def _refresh(self) -> None:
        had_session = self._session is not None
        try:
            try:
                self._look()
            except Gone:
                # The server or a person may have ended the session, while the server is up.
                if not had_session:
                    raise
                self.close()
                self._look()
            self.down = ""
        except Problem as problem:
            self.down = str(problem)
            self.close()
            return
        rss = self.sample.get("rss")
        if rss is not None:
            newest = self.sample["time"]
            self.history = [one for one in [*self.history, (newest, rss)] if one[0] >= newest - TREND_SECONDS]

    def _look(self) -> None:
        is_new = self._session is None or self._sampler is None
        if is_new:
            self._session = Session(self.target)
            self._session.stay(self.every)
            self._sampler = Sampler(self._session)
        assert self._sampler
        self.sample = self._sampler.sample()
        # It may have been started anew, or be another one behind the same name.
        if is_new and not self._is_same_run(self._sampler.server):
            self.history, self.purges, self.digests = [], [], []
        self.sessions = self._sessions()
        if self._sampler.ours:
            self.purges = self._rows(_PURGES)
            self.digests = self._rows(_DIGESTS)

    def _is_same_run(self, server: dict[str, Any]) -> bool:
        """A new session may be with the run of the server that was asked before. Uptimes are of whole seconds."""
        before, uptime = self._run, self.sample.get("uptime")
        self._run = None if uptime is None else (server, self.sample["time"] - uptime)
        if before is None or self._run is None:
            return False
        return before[0] == server and abs(before[1] - self._run[1]) <= 2

    def _rows(self, statement: str) -> list[dict[str, Any]]:
        assert self._session
        try:
            return self._session.rows(statement)
        except Refused as error:
            if error.code in _NO_RIGHT and not self.message:
                self.message = "lists are empty: this account needs PROCESS, and SELECT on performance_schema"
            return []

    def _sessions(self) -> list[dict[str, Any]]:
        assert self._sampler
        order = "BYTES" if self.order == "memory" else "SECONDS"
        if self._sampler.server["flavour"] == "mariadb":
            return self._rows(_SESSIONS_MARIADB.format(order=order))
        # MySQL before 8.0.31 does not add up a session's memory.
        return self._rows(_SESSIONS.format(memory="TOTAL_MEMORY", order=order)) or self._rows(
            _SESSIONS.format(memory="NULL", order="SECONDS")
        )

    def _purge(self) -> None:
        if self._session is None:
            self.message = "not purged: the server is gone"
            return
        try:
            receipt = json_of(str(self._session.rows("SELECT memdiag_purge('all') AS RECEIPT")[0]["RECEIPT"]))
            released, taken = receipt["released_bytes"], receipt["microseconds"]
            self.message = f"given back: {size(released)} in {taken / 1000:.1f} ms"
        except Refused as error:
            self.message = f"not purged: {error}"
        except Problem as problem:
            self.message = f"not purged: {problem}"
        except (LookupError, TypeError):
            self.message = "not purged: the server sent no receipt"
        # The purge is done, and the look may take long.
        self.work(self.refresh)

    def _report(self) -> None:
        from memdiag.commands.report import RENDERERS, collected, file_name
        from memdiag.files import write_whole

        try:
            page, problems = collected([self.target], None, False)
            if not page.reports:
                raise Problem("; ".join(problems))
            path = Path(file_name(page))
            text = RENDERERS["html"](page)
            with self.writing:
                write_whole(path, text)
            self.message = f"saved here: {path}"
        except Problem as problem:
            self.message = f"no report: {problem}"


# --- drawing ----------------------------------------------------------------------


def _rich() -> Any:
    return library(
        "rich", "rich is missing, and top needs it; install it with: apt-get install python3-rich, or pip install rich"
    )


def layout(screen: Screen, height: int, width: int) -> Any:
    """Fits into so many lines: the lists get what the head leaves."""
    from rich.console import Group
    from rich.text import Text

    sample = screen.sample
    head = _head(screen, width)
    left = max(4, height - len(head) - 3)
    pools = sorted((sample.get("pools") or {}).items(), key=lambda one: -((one[1][0] or 0) + (one[1][1] or 0)))
    parts: list[Any] = [_fitting(Text.from_markup(line)) for line in head]
    holders = pools or sorted((sample.get("instruments") or {}).items(), key=lambda one: -one[1])
    room = max(2, left * 2 // 5)
    parts.append(_pools(pools[:room]) if pools else _instruments(holders[:room]))
    left -= min(room, len(holders)) + 1
    extra = []
    if screen.purges and left > 14:
        extra.append(_purges(screen.purges[:4]))
        left -= 6
    if screen.digests and left > 14:
        extra.append(_digests(screen.digests[:4]))
        left -= 6
    parts.append(_sessions(screen, max(1, left - 2)))
    parts += extra
    foot = screen.question or (f"{screen.message}  |  {KEYS}" if screen.message else KEYS)
    style = "reverse" if screen.question else "dim" if not screen.message else "bold"
    parts.append(Text(f" {_line(foot)} ", style=style, overflow="ellipsis", no_wrap=True))
    return Group(*parts)


def _head(screen: Screen, width: int) -> list[str]:
    from rich.markup import escape

    sample = screen.sample
    rss, limit = sample.get("rss"), sample.get("limit")
    moment = time.strftime("%H:%M:%S UTC", time.gmtime(sample.get("time", 0)))
    # A label may be long, and then its end is cut.
    lines = [
        f"[bold]memdiag top[/]  {moment}  up {duration(sample.get('uptime'))}  {escape(_line(screen.target.label))}"
    ]
    if (asked := screen.asked) is not None and (waited := time.monotonic() - asked) >= SLOW_SECONDS:
        lines.append(f"[bold red]no answer for {duration(waited)}[/]")
    if screen.down:
        lines.append(f"[bold red]{escape(_line(screen.down))}; asking again[/]")
        return lines
    used = share(rss, limit)
    colour = "red" if (used or 0) > 90 else "yellow" if (used or 0) > 75 else "green"
    bar = round(max(10, min(50, width - 60)) * min(100, used or 0) / 100)
    rest = max(10, min(50, width - 60)) - bar
    lines.append(
        f"RSS [bold]{size(rss)}[/] of {size(limit)} [{colour}]{'█' * bar}[/][dim]{'░' * rest}[/] {percent(used)}"
    )
    to_limit = screen.seconds_to_limit
    lines.append(
        f"grown {signed_size(screen.growth)} in view, "
        + (f"[bold]limit in {duration(to_limit)}[/]" if to_limit is not None else "no trend to the limit")
        + f"; unused {size(sample.get('unused'))}"
    )
    lines.append(
        f"buffer pool {size(sample.get('buffer_pool'))}, swapped {size(sample.get('swap'))},"
        f" sessions {shown(sample.get('sessions'))}"
    )
    if ceiling := sample.get("ceiling"):
        level = ceiling["level"]
        name = LEVELS[level] if level < len(LEVELS) else str(level)
        colour = name if name in ("green", "yellow", "red") else "bold"
        lines.append(
            f"ceiling [{colour}]{name}[/]: {size(ceiling['left'])} left of {size(ceiling['target'])},"
            f" parked {size(ceiling['parked'])}, ended {shown(ceiling['ended'])}"
        )
    return lines


def _table(*columns: tuple[str, str]) -> Any:
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", expand=False)
    for title, justify in columns:
        # rich takes room from columns that may wrap first: from names, and never from figures.
        table.add_column(title, justify=justify, no_wrap=justify == "right", overflow="ellipsis")  # type: ignore[arg-type]
    return table


def _fitting(text: Any) -> Any:
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def _line(words: str) -> str:
    return printable(words.replace("\n", " "))


def _add(table: Any, *cells: str) -> None:
    """rich would take brackets in a name for markup."""
    from rich.text import Text

    table.add_row(*(_fitting(Text(_line(cell))) for cell in cells))


def _pools(rows: list[tuple[str, list[int | None]]]) -> Any:
    table = _table(("pool", "left"), ("live", "right"), ("unused", "right"))
    for name, (live, unused) in rows:
        _add(table, name, size(live), size(unused))
    return table


def _instruments(rows: list[tuple[str, int]]) -> Any:
    table = _table(("instrument", "left"), ("counted", "right"))
    for name, held in rows:
        _add(table, name, size(held))
    return table


def _sessions(screen: Screen, room: int) -> Any:
    table = _table(
        ("session", "right"), ("user", "left"), ("command", "left"), ("for", "right"), ("allocated", "right")
    )
    for row in screen.sessions[:room]:
        _add(
            table,
            shown(row["PROCESSLIST_ID"]),
            shown(row["USER"]),
            shown(row["COMMAND"]),
            duration(row["SECONDS"]),
            size(row["BYTES"]),
        )
    return table


def _purges(rows: list[dict[str, Any]]) -> Any:
    table = _table(("last purges", "left"), ("pool", "left"), ("reason", "left"), ("released", "right"))
    for row in rows:
        _add(
            table,
            time.strftime("%H:%M:%S", time.gmtime(row["TIME"])),
            row["POOL"],
            row["REASON"],
            size(row["RELEASED_BYTES"]),
        )
    return table


def _digests(rows: list[dict[str, Any]]) -> Any:
    table = _table(("digest", "left"), ("times", "right"), ("peak allocated", "right"))
    for row in rows:
        _add(table, row["DIGEST"][:20], str(row["STATEMENTS"]), size(row["PEAK_BYTES"]))
    return table


# --- the terminal ------------------------------------------------------------------


@contextmanager
def _raw_keys():
    """Keys come at once and are not shown. The terminal is as before at the end, however that comes."""
    import termios
    import tty

    handle = sys.stdin.fileno()
    before = termios.tcgetattr(handle)
    try:
        tty.setcbreak(handle)
        yield handle
    finally:
        termios.tcsetattr(handle, termios.TCSADRAIN, before)


class _Worker:
    """Does one task after the other, so that keys do not wait for a server that hangs."""

    def __init__(self) -> None:
        self._tasks: queue.Queue[Callable[[], None]] = queue.Queue()
        self._faults: list[BaseException] = []
        # A daemon: the program ends without waiting for it.
        threading.Thread(target=self._work, daemon=True).start()

    def __call__(self, task: Callable[[], None]) -> None:
        self._tasks.put(task)

    def is_busy(self) -> bool:
        """@raises what a task has raised"""
        if self._faults:
            raise self._faults[0]
        return self._tasks.unfinished_tasks > 0

    def _work(self) -> None:
        while True:
            task = self._tasks.get()
            try:
                task()
            except BaseException as fault:
                self._faults.append(fault)
            self._tasks.task_done()


def _show(screen: Screen, every: float) -> None:
    from rich.console import Console
    from rich.live import Live

    console = Console()
    screen.work = worker = _Worker()
    try:
        with _raw_keys() as handle, Live(console=console, screen=True, auto_refresh=False) as live:
            following = time.monotonic() + every
            while not screen.ended:
                live.update(layout(screen, console.size.height, console.size.width), refresh=True)
                if worker.is_busy():
                    # The pause begins at the end of a look. That is drawn soon.
                    following = time.monotonic() + every
                    wait = 0.1
                else:
                    wait = max(0.0, min(following - time.monotonic(), 0.5))
                if select.select([handle], [], [], wait)[0]:
                    for key in os.read(handle, 64).decode(errors="replace"):
                        screen.key(key)
                    continue
                if time.monotonic() >= following:
                    if not screen.question:
                        screen.work(screen.refresh)
                    following = time.monotonic() + every
    finally:
        # For good: the end of the program would leave a file half written.
        screen.writing.acquire()
    if not worker.is_busy():
        screen.close()
