#!/usr/bin/env python3
"""The client against real servers: ours, and where check/peers.py has unpacked them, Debian's MySQL and MariaDB.

Every error is one line and a report of the rest; figures of the page are the server's; top is driven in tmux.
"""

import argparse
import contextlib
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "client")]

from tests.figures import foreign

from check import peers
from harness.burst import Sampler
from harness.checks import Checks
from harness.common import lock, say
from harness.network import free_port
from harness.problem import Problem, run_main
from harness.programs import captured
from harness.server import Build, OfAnotherSuite, Server, initialise
from harness.sql import Connection
from harness.waiting import PATIENCE, until

OPTIONS = (
    "--innodb-buffer-pool-size=64M",
    "--innodb-redo-log-capacity=64M",
    "--max-connections=1100",
    "--loose-mysqlx=OFF",
)
MIB = 1 << 20


# --- calling it ----------------------------------------------------------------------


def command() -> list[str]:
    return [sys.executable, "-m", "memdiag"]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT / "client"), "HOME": "/nonexistent"}


def memdiag(*words: object, **more: str) -> subprocess.CompletedProcess[str]:
    return captured([*command(), *map(str, words)], env={**environment(), **more}, timeout=PATIENCE)


def to(socket: Path, user: str = "root") -> list[str]:
    return ["--no-defaults", "-S", str(socket), "-u", user]


def report_of(socket: Path, user: str = "root", *words: str) -> dict:
    done = memdiag("report", *to(socket, user), "--json", *words)
    if done.returncode:
        raise AssertionError(done.stderr)
    return json.loads(done.stdout)


def block(page: dict, section: str, name: str) -> dict:
    for one in page["reports"][0]["sections"]:
        if one["id"] == section:
            for found in one["blocks"]:
                if found.get("id") == name:
                    return found
    raise AssertionError(f"the report has no {section}/{name}")


# --- what every server must have -----------------------------------------------------


def kernel_rss(pid: int) -> int:
    text = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", text)[1]) << 10


def any_server(checks: Checks, name: str, socket: Path, pid: int) -> None:
    # A server that has just started gives memory back and takes some for the report, in either order.
    with Sampler(0.02, lambda: kernel_rss(pid)) as kernel:
        page = report_of(socket)
    seen = [rss for _, rss in kernel.samples] + [kernel_rss(pid)]
    parts = block(page, "ledger", "ledger")
    total = sum(part["value"] for part in parts["parts"])
    checks.check(f"{name}: the parts of the ledger add up to RSS", total == parts["total"])
    near = 0.97 * min(seen) <= parts["total"] <= 1.03 * max(seen)
    checks.check(f"{name}: RSS is the kernel's", near, f"{parts['total']}; meanwhile {min(seen)} to {max(seen)}")
    for form in ("--text", "--md", "--html"):
        done = memdiag("report", *to(socket), form, "-o", "-")
        checks.check(f"{name}: report {form}", done.returncode == 0 and len(done.stdout) > 4000, done.stderr[:200])


@contextlib.contextmanager
def held_still(session: Connection) -> Iterator[None]:
    """Meanwhile the server gives no unused pages back."""
    still = {"memdiag_quiet_ms": "all=0", "memdiag_dirty_decay_ms": "all=-1"}
    before = {name: session.query(f"SELECT @@GLOBAL.{name}").scalar() for name in still}
    for name, value in still.items():
        session.query(f"SET GLOBAL {name} = '{value}'")
    try:
        yield
    finally:
        for name, value in before.items():
            session.query(f"SET GLOBAL {name} = '{value}'")


def same_figures(checks: Checks, server: Server) -> None:
    """The server's own figures, while it gives nothing back."""
    with server.connect("information_schema") as session, held_still(session):
        page = report_of(server.socket)

        def ask(statement: str) -> dict[str, int | None]:
            rows = session.query(statement).rows
            return {str(row[0]): None if row[1] is None else int(row[1]) for row in rows}

        budget = ask("SELECT VARIABLE, WORST_CASE_BYTES FROM MEMDIAG_BUDGET WHERE KIND IN ('buffer', 'growing')")
        variables = ask(
            "SELECT VARIABLE_NAME, VARIABLE_VALUE FROM performance_schema.global_variables WHERE VARIABLE_VALUE REGEXP '^[0-9]{1,18}$'"
        )
        pools = {row[0] for row in session.query("SELECT POOL FROM MEMDIAG_POOLS").rows}
        ledger = ask("SELECT CONCAT(COMPONENT, '/', NAME, '/', STATE), RESIDENT_BYTES FROM MEMDIAG_LEDGER")
    shown = {row[0]: row[5] for row in block(page, "budget", "budget")["rows"]}
    # Some sizes are measured, such as that of an open table, and move between two reads.
    differing = [
        name for name, value in budget.items() if abs((shown.get(name) or 0) - (value or 0)) > (value or 0) * 0.05
    ]
    checks.check("the budget is the server's", not differing and len(shown) > 10, differing)
    settings = {row[0]: row[1] for row in block(page, "configuration", "configuration")["rows"] if row[1] != ""}
    wrong = [name for name, value in settings.items() if variables.get(name) != value]
    checks.check("settings are the server's", not wrong and len(settings) > 20, wrong)
    checks.check("all pools are there", {row[0] for row in block(page, "pools", "pools")["rows"]} == pools)
    rows = {f"{row[0]}/{row[1]}/{row[2]}": row[3] for row in block(page, "ledger", "ledger-rows")["rows"]}
    # It takes memory for what it is asked.
    far = [name for name, value in rows.items() if abs((value or 0) - (ledger.get(name) or 0)) > 4 * MIB]
    checks.check("rows of the ledger are the server's", not far and len(rows) > 20, far)


def forms_agree(checks: Checks, server: Server) -> None:
    """Each number of the page is that of its own JSON."""
    done = memdiag("report", *to(server.socket), "--html", "-o", "-")
    page = done.stdout
    data = json.loads(re.search(r'id="memdiag-data">(.*?)</script>', page, re.S)[1])
    wrong = 0
    found = re.findall(r'<data value="([^"]*)" data-at="([^"]*)"', page)
    for value, place in found:
        node = data
        for step in place.split("/"):
            node = node[int(step)] if step.isdigit() else node[step]
        wrong += str(node) != value
    checks.check("each number of the page is in its JSON", not wrong and len(found) > 300, f"{len(found)} numbers")
    others = foreign(data["reports"][0], data["snapshots"][0])
    checks.check("each number of a table or a chart is an answer of the server", not others, others[:5])


# --- faults ----------------------------------------------------------------------------


def one_line(checks: Checks, name: str, done: subprocess.CompletedProcess[str], words: str) -> None:
    lines = done.stderr.strip().splitlines()
    good = done.returncode == 1 and len(lines) == 1 and re.search(words, lines[0]) and not done.stdout
    checks.check(f"{name}: one line and status 1", bool(good), done.stderr.strip()[:160])


def faults(checks: Checks, server: Server, folder: Path) -> None:
    report = ("report", "--no-defaults", "--text")
    one_line(checks, "unknown host", memdiag(*report, "nohost.invalid"), "is not known")
    one_line(checks, "no socket", memdiag(*report, "/nowhere/x.sock"), "there is no socket")
    one_line(checks, "nobody listens", memdiag(*report, "127.0.0.1:1"), "does not answer")
    one_line(
        checks,
        "refused login",
        memdiag(*report, "-S", server.socket, "-u", "root", "-pwrong"),
        "refused the login of 'root'",
    )
    one_line(
        checks,
        "a folder that is not there",
        memdiag("report", *to(server.socket), "-o", folder / "no/x.html"),
        "cannot be written",
    )
    one_line(checks, "top without a terminal", memdiag("top", *to(server.socket)), "needs a terminal")
    done = memdiag(*report, "-u", "root", server.socket, "nohost.invalid")
    good = done.returncode == 1 and "Not asked" not in done.stdout and "WHAT IS WRONG" in done.stdout
    checks.check("one of two servers: a report, a line, status 1", good, done.stderr.strip())


def accounts(checks: Checks, server: Server) -> None:
    with server.connect() as session:
        for statement in (
            "CREATE USER onlyprocess@localhost IDENTIFIED BY 'p w'",
            "GRANT PROCESS ON *.* TO onlyprocess@localhost",
            "CREATE USER nothing@localhost",
        ):
            session.query(statement)
    page = report_of(server.socket, "onlyprocess", "-pp w")
    missing = {row[0] for row in block(page, "about", "missing")["rows"]}
    ours = {name for name in missing if name.startswith("MEMDIAG") and "PROFILE" not in name}
    checks.check("PROCESS alone reads all tables of ours", not ours, ", ".join(ours))
    checks.check("PROCESS alone: Performance Schema is named as missing", "memory" in missing)
    page = report_of(server.socket, "nothing")
    reasons = {row[0]: row[1] for row in block(page, "about", "missing")["rows"]}
    lacking = "PROCESS" in reasons.get("MEMDIAG_LEDGER", "")
    checks.check("without privileges: what is lacking is said", lacking, reasons.get("MEMDIAG_LEDGER"))
    rss = next(fact for fact in page["reports"][0]["facts"] if fact["label"] == "RSS")
    checks.check("without privileges: RSS comes from the kernel", bool(rss["value"]))
    found = [one["headline"] for one in page["reports"][0]["findings"] if one["verdict"] != "host"]
    checks.check("without privileges: nothing is found but of the host", not found, found)


def ways_in(checks: Checks, server: Server, build: Build, folder: Path) -> None:
    """Option files, login paths, TLS."""
    with server.connect() as session:
        session.query("CREATE USER tls@'%' IDENTIFIED BY 'secret' REQUIRE SSL")
        session.query("GRANT PROCESS ON *.* TO tls@'%'")
        session.query("CREATE USER no_tls@'%' IDENTIFIED BY 'secret'")
        port = session.query("SELECT @@port").scalar()
    options = folder / "client.cnf"
    options.write_text(f"[client]\nsocket = {server.socket}\nuser = root\n")
    options.chmod(0o600)
    done = memdiag("report", f"--defaults-file={options}", "--json")
    checks.check("an option file", done.returncode == 0, done.stderr)
    over = ("-h", "127.0.0.1", "-P", port, "-u", "tls", "-psecret")
    done = memdiag("report", "--no-defaults", *over, "--ssl-mode=REQUIRED", "--json")
    checks.check("TLS", done.returncode == 0, done.stderr)
    if done.returncode == 0:
        checks.check("a server on loopback is found in /proc", json.loads(done.stdout)["snapshots"][0]["local"])
    done = memdiag(
        "report", "--no-defaults", *over, f"--ssl-ca={server.data / 'ca.pem'}", "--ssl-mode=VERIFY_CA", "--json"
    )
    checks.check("TLS with the server's CA", done.returncode == 0, done.stderr)
    over_socket = ("-S", server.socket, "-u", "tls", "-psecret")
    done = memdiag("report", "--no-defaults", *over_socket, "--ssl-mode=REQUIRED", "--json")
    checks.check("TLS over the socket", done.returncode == 0, done.stderr)
    one_line(
        checks,
        "no authority",
        memdiag("report", "--no-defaults", *over, "--ssl-mode=VERIFY_CA"),
        "not trusted.*--ssl-ca",
    )
    one_line(
        checks, "TLS switched off", memdiag("report", "--no-defaults", *over, "--ssl-mode=DISABLED"), "requires TLS"
    )
    first = ("-h", "127.0.0.1", "-P", port, "-u", "no_tls", "-psecret", "--ssl-mode=DISABLED")
    one_line(checks, "a password by an RSA key of the server", memdiag("report", "--no-defaults", *first), "RSA key")
    one_line(
        checks,
        "a wrong CA file",
        memdiag("report", "--no-defaults", *over, "--ssl-mode=VERIFY_CA", "--ssl-ca=/etc/hostname"),
        "TLS files",
    )
    if shutil.which("expect") is None and not build.program("mysql_config_editor").exists():
        checks.skip("a login path", "there is no mysql_config_editor")
        return
    file = folder / "mylogin.cnf"
    set_path = [
        build.program("mysql_config_editor"),
        "set",
        "--login-path=here",
        f"--socket={server.socket}",
        "--user=root",
    ]
    subprocess.run(set_path, env={**os.environ, "MYSQL_TEST_LOGIN_FILE": str(file)}, check=True)
    path = f"{build.mysqld.parent}:{os.environ['PATH']}"
    done = memdiag("report", "--login-path=here", "--no-defaults", "--json", MYSQL_TEST_LOGIN_FILE=str(file), PATH=path)
    checks.check("a login path", done.returncode == 0, done.stderr)
    one_line(
        checks,
        "a login path that is not there",
        memdiag("report", "--login-path=no", "--no-defaults", MYSQL_TEST_LOGIN_FILE=str(file), PATH=path),
        "there is no login path",
    )


def nothing_is_written(checks: Checks, server: Server) -> None:
    """No statement of a report changes anything: the server's counters of writing commands stay."""
    wanted = "'Com_insert','Com_update','Com_delete','Com_flush','Com_kill','Com_create_table','Com_drop_table','Com_alter_table','Com_set_option'"
    ask = (
        f"SELECT VARIABLE_NAME, VARIABLE_VALUE FROM performance_schema.global_status WHERE VARIABLE_NAME IN ({wanted})"
    )
    with server.connect() as session:
        variables = "SELECT * FROM performance_schema.global_variables"
        before, settings = session.query(ask).rows, session.query(variables).rows
        report_of(server.socket)
        after = session.query(ask).rows
        changed = [name for (name, old), (_, new) in zip(before, after, strict=True) if old != new]
        # SET SESSION of its own session.
        checks.check("a report writes nothing", changed in ([], ["Com_set_option"]), changed)
        checks.check("and sets nothing", session.query(variables).rows == settings)


def settings_of_others(checks: Checks, server: Server) -> None:
    """GLOBAL values that would cut, refuse or garble what a session reads."""
    with server.connect() as session:
        session.query("CREATE USER plain@localhost")
        session.query("GRANT PROCESS ON *.* TO plain@localhost")

        def seen() -> tuple[set[str], ...]:
            sources = report_of(server.socket, "plain")["snapshots"][0]["sources"]
            pools = {row["POOL"] for row in sources["memdiag_pools"]["rows"]}
            return set(sources["variables"]["rows"][0]), pools, {name for name, one in sources.items() if one["error"]}

        before = seen()
        for name, value in (
            ("sql_select_limit", "1"),
            ("max_join_size", "1"),
            ("init_connect", "'SET character_set_results = utf16le'"),
        ):
            session.query(f"SET GLOBAL {name} = {value}")
            checks.check(f"GLOBAL {name} = {value} does not change the report", seen() == before)
            session.query(f"SET GLOBAL {name} = DEFAULT")


def kept_locks(checks: Checks, server: Server) -> None:
    """Performance Schema shows the metadata locks of LOCK TABLES as those of a transaction."""
    with server.connect() as keeper, server.connect() as other:
        numbers = [int(session.query("SELECT CONNECTION_ID()").scalar() or 0) for session in (keeper, other)]
        other.query("BEGIN")
        other.query("SELECT COUNT(*) FROM mysql.help_category")
        for mode in ("READ", "WRITE"):
            keeper.query(f"LOCK TABLES mysql.help_topic {mode}")
            sources = report_of(server.socket)["snapshots"][0]["sources"]
            keepers = {row["LOCK_KEEPER"] for row in sources["lock_keepers"]["rows"]}
            checks.check(
                f"LOCK TABLES ... {mode} keeps a lock, an open transaction does not",
                keepers.intersection(numbers) == {numbers[0]},
                keepers,
            )
            keeper.query("UNLOCK TABLES")


def many_sessions(checks: Checks, server: Server) -> None:
    """bench/README.md has the time that this takes."""
    with contextlib.ExitStack() as stack:
        for _ in range(1000):
            session = Connection(server.socket)
            stack.callback(session.close)
        page = report_of(server.socket)
        number = page["snapshots"][0]["sources"]["sessions"]["rows"][0]["SESSIONS"]
        checks.check("a report of 1,000 sessions counts them", number >= 1000, number)


def interrupted(checks: Checks, server: Server, folder: Path) -> None:
    """Ctrl-C keeps a recording whole, and leaves no other file."""
    out = folder / "recording"
    process = subprocess.Popen(
        [*command(), "record", *to(server.socket), "--every", "0.2s", "-o", out],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_interruptible,
    )
    unfinished = folder / "recording.unfinished"
    until(lambda: unfinished.exists() and unfinished.read_text().count("\n") >= 4)
    try:
        process.send_signal(signal.SIGINT)
        words, complaint = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    checks.check(
        "Ctrl-C ends a recording, which is whole",
        process.returncode == 0 and out.exists() and not unfinished.exists(),
        words or complaint,
    )
    done = memdiag("what-if", out, "--limit", "4G")
    checks.check(
        "what-if reads it", done.returncode == 0 and "would have survived" in done.stdout, done.stdout.splitlines()[:1]
    )
    done = memdiag("diff", f"{out}@first", f"{out}@last", "--max-growth", "256M")
    checks.check("diff reads it", done.returncode == 0, done.stdout.splitlines()[-1:])
    done = memdiag("report", *to(server.socket), "--recording", out, "--text")
    checks.check("report takes it", done.returncode == 0, done.stderr)


def _interruptible() -> None:
    """A shell starts what it runs in the background with the signal ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


EVIL = "<script>[/]\x1b]0;x\x07`|"


def hostile(checks: Checks, server: Server, folder: Path) -> None:
    """A user whose name is markup and commands a terminal."""
    with server.connect() as session:
        session.query(f"CREATE USER '{EVIL}'@localhost")
    with Connection(server.socket, user=EVIL) as session:
        session.query("SET @x = REPEAT('x', 32 << 20)")
        for form in ("--text", "--md"):
            words = memdiag("report", *to(server.socket), form).stdout
            unseen = {one for one in words if not one.isprintable() and one != "\n"}
            checks.check(
                f"a hostile name in {form} is only read", not unseen and "x1b]" in words.replace("\\", ""), unseen
            )
        words = memdiag("report", *to(server.socket), "-o", "-").stdout
        checks.check("a hostile name in HTML is only read", "<script>[" not in words and "&lt;script&gt;[" in words)
        if shutil.which("tmux") is None:
            return
        words = [sys.executable, "-m", "memdiag", "top", *to(server.socket)]
        with terminal(folder, words) as screen:
            shown = screen.shows(r"<script>\[/\]\\x1b")
            checks.check("a hostile name in top is only read", bool(shown), "" if shown else screen.text()[:300])


def two_servers(checks: Checks, server: Server) -> None:
    words = ("--no-defaults", "-u", "root", server.socket, server.socket)
    done = memdiag("diff", *words, "--max-growth", "512M")
    checks.check("diff of servers", done.returncode == 0 and "RSS" in done.stdout, done.stderr)
    done = memdiag("report", *words, "--text")
    checks.check("a report of two servers", done.returncode == 0 and "verdict" in done.stdout, done.stderr)


def what_if(checks: Checks, server: Server) -> None:
    done = memdiag("what-if", *to(server.socket), "--limit", "16G", "--set", "max_connections=10")
    checks.check(
        "what-if of a server's own history",
        done.returncode == 0 and "would have survived" in done.stdout,
        done.stdout.splitlines()[2:3],
    )
    done = memdiag("what-if", *to(server.socket), "--limit", "1M")
    checks.check("what-if of a limit that is too low ends with 3", done.returncode == 3)
    one_line(
        checks,
        "what-if of an unknown variable",
        memdiag("what-if", *to(server.socket), "--set", "no_such=1"),
        "does not know no_such",
    )


# --- top ---------------------------------------------------------------------------


class Terminal:
    """A pane of tmux, on a socket of its own: a server of tmux that is told to end still answers there for a moment,
    and refuses a new session."""

    _numbers = itertools.count(1)

    def __init__(self, folder: Path, words: list[str]) -> None:
        self._socket = folder / f"tmux{next(self._numbers)}"
        setting = f"env PYTHONPATH={ROOT / 'client'} HOME={folder} TERM=screen-256color"
        shell = f"cd {folder} && {setting} {' '.join(words)}; echo ended with $?; sleep 3600"
        self._run("new-session", "-d", "-s", "t", "-x", "110", "-y", "32", shell)

    def _run(self, *words: str) -> str:
        done = captured(["tmux", "-S", str(self._socket), "-f", "/dev/null", *words])
        if done.returncode != 0:
            raise Problem(f"tmux {words[0]} failed: {done.stderr.strip()}")
        return done.stdout

    def shows(self, words: str) -> str:
        """The screen as soon as it matches; an empty text if it never does."""
        seen = ""

        def matches() -> bool:
            nonlocal seen
            seen = self.text()
            return re.search(words, seen) is not None

        return seen if until(matches) else ""

    def text(self) -> str:
        return self._run("capture-pane", "-p", "-t", "t")

    def press(self, key: str) -> None:
        self._run("send-keys", "-t", "t", key)

    def resize(self, width: int, height: int) -> None:
        self._run("resize-window", "-t", "t", "-x", str(width), "-y", str(height))

    def end(self) -> None:
        self._run("kill-server")


@contextlib.contextmanager
def terminal(folder: Path, words: list[str]) -> Iterator[Terminal]:
    one = Terminal(folder, words)
    try:
        yield one
    finally:
        one.end()


def top(checks: Checks, server: Server, folder: Path) -> None:
    if shutil.which("tmux") is None:
        raise Problem("tmux is missing; install it with: apt-get install tmux")
    words = [sys.executable, "-m", "memdiag", "top", *to(server.socket), "--every", "0.5s"]
    with terminal(folder, words) as screen:
        shown = screen.shows(r"RSS .*of.*\n(.*\n)*.*pool +live +unused")
        checks.check("top shows RSS, limit and pools", bool(shown), "" if shown else screen.text()[:300])
        if not shown:
            return
        screen.press("o")
        checks.check("o orders", bool(screen.shows("ordered by time")))
        screen.press("p")
        checks.check("p asks", bool(screen.shows(r"y: give back .* other keys: no")))
        screen.press("n")
        checks.check("and takes no for an answer", bool(screen.shows("not purged")))
        screen.press("p")
        screen.shows("y: give back")
        screen.press("y")
        checks.check("the purge has a receipt", bool(screen.shows(r"given back: .* in .* ms")))
        screen.press("r")
        checks.check(
            "r saves a report", bool(screen.shows(r"saved here: .*html")) and any(folder.glob("memdiag-*.html"))
        )
        screen.resize(70, 18)
        small = screen.shows(r"(?ms)^RSS.*session")
        lines = small.rstrip("\n").split("\n")
        checks.check("a small terminal still has RSS and a session", bool(small) and len(lines) <= 18, len(lines))
        screen.resize(110, 32)
        os.kill(server.pid, signal.SIGKILL)
        # The line wraps where the path of the socket is long.
        checks.check("a server that dies is told", bool(screen.shows(r"asking\s+again")))
        server.stop()
        server.start()
        back = screen.shows(r"(?s)\A(?!.*asking\s+again).*RSS .*of")
        checks.check("and comes back", bool(back))
        screen.press("q")
        checks.check("q ends it", bool(screen.shows("ended with 0")))
    with terminal(folder, words) as screen:
        screen.shows("RSS .*of")
        os.kill(server.pid, signal.SIGSTOP)
        try:
            waited = screen.shows(r"no answer for \d+ s")
            began = time.monotonic()
            screen.press("q")
            ended = screen.shows("ended with 0")
            seconds = time.monotonic() - began
        finally:
            os.kill(server.pid, signal.SIGCONT)
        # The time-out of an answer is 30 s, of which three have passed.
        checks.check("top says how long it waits for a stopped server", bool(waited))
        checks.check(
            "q ends it while a stopped server is waited for", waited and ended and seconds < 25, f"{seconds:.1f} s"
        )


# --- main ------------------------------------------------------------------------------


def ours(checks: Checks, build: Build, folder: Path) -> None:
    port = free_port()
    options = (
        *OPTIONS,
        "--skip-networking=OFF",
        "--bind-address=127.0.0.1",
        f"--port={port}",
        "--memdiag-history-interval-ms=200",
    )
    with Server(build, folder / "ours", options) as server:
        initialise(build, server.data)
        server.start()
        any_server(checks, "ours", server.socket, server.pid)
        same_figures(checks, server)
        forms_agree(checks, server)
        nothing_is_written(checks, server)
        settings_of_others(checks, server)
        faults(checks, server, folder)
        accounts(checks, server)
        ways_in(checks, server, build, folder)
        what_if(checks, server)
        two_servers(checks, server)
        hostile(checks, server, folder)
        interrupted(checks, server, folder)
        many_sessions(checks, server)
        top(checks, server, folder)
    with Server(build, folder / "ours", (*OPTIONS, "--performance-schema=OFF")) as server:
        server.start()
        any_server(checks, "ours without Performance Schema", server.socket, server.pid)
        page = report_of(server.socket)
        reasons = {row[0]: row[1] for row in block(page, "about", "missing")["rows"]}
        checks.check("performance_schema=OFF is the reason", reasons.get("memory") == "performance_schema is OFF")


def stock(checks: Checks, programs: Path, folder: Path) -> None:
    build = OfAnotherSuite(programs)
    with Server(build, folder / "stock", OPTIONS) as server:
        initialise(build, server.data)
        server.start()
        any_server(checks, "Debian's MySQL", server.socket, server.pid)
        checks.check(
            "a line says what our server would show",
            "Only the server with memdiag" in memdiag("report", *to(server.socket), "--text").stdout.replace("\n", " "),
        )
        one_line(
            checks,
            "what-if without history",
            memdiag("what-if", *to(server.socket), "--limit", "1G"),
            "there is no history",
        )
        kept_locks(checks, server)
        interrupted(checks, server, folder)
    with Server(build, folder / "stock", (*OPTIONS, "--performance-schema=OFF")) as server:
        server.start()
        any_server(checks, "Debian's MySQL without Performance Schema", server.socket, server.pid)


def mariadb(checks: Checks, programs: Path, folder: Path) -> None:
    for name, options in (
        ("MariaDB", ()),
        ("MariaDB with Performance Schema", ("--performance-schema=ON", "--performance-schema-instrument=memory/%=ON")),
    ):
        place = folder / name.replace(" ", "-")
        server = peers.MariaDb(programs, place, options)
        server.initialise()
        with server.running():
            any_server(checks, name, server.socket, server.pid)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--preset", default="dev")
    parser.add_argument("--build", type=Path, help="folder of a build, instead of --preset")
    parser.add_argument("--peers", type=Path, default=peers.folder())
    parser.add_argument("--only", action="append", choices=("ours", "stock", "mariadb"))
    options = parser.parse_args()
    build = Build(options.build) if options.build else Build.of_preset(ROOT, options.preset)
    checks = Checks("client servers")
    folder = ROOT / "build" / options.preset / "client-servers"
    with lock(folder.with_name("client-servers.lock"), "checking the client"):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        every_server(checks, build, options, folder)
    return checks.finish()


def every_server(checks: Checks, build: Build, options: argparse.Namespace, folder: Path) -> None:
    try:
        for name, run in (("ours", ours), ("stock", stock), ("mariadb", mariadb)):
            if options.only and name not in options.only:
                continue
            programs = options.peers / name
            if name != "ours" and not programs.exists():
                checks.skip(name, f"{programs} is not there (client/check/peers.py)")
                continue
            say(f"-- {name}")
            with checks.checking(f"{name}: all checks were run"):
                run(checks, build if name == "ours" else programs, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    run_main("servers", main)
