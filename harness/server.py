"""A private mysqld: initialise its data directory, start it on a Unix socket, ask it, watch its memory, stop it."""

import contextlib
import hashlib
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from harness import signals
from harness.common import lock
from harness.problem import Problem
from harness.programs import captured
from harness.sql import Connection, Result, SqlError
from harness.waiting import until

# sockaddr_un holds 108 bytes with the final NUL; mysqld also makes SOCKET.lock beside it, and mysql.sock.lock must fit
# in a file name only, so the socket's own length is what counts.
_SOCKET_PATH_MAX = 107
_PAGE_KB = os.sysconf("SC_PAGE_SIZE") // 1024
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Build:
    """The programs of one finished build: upstream's build directory of a preset."""

    directory: Path

    @classmethod
    def of_preset(cls, top: Path, preset: str) -> Self:
        """The build of a CMake preset of this checkout, or a Problem that says how to make it."""
        build = cls(top / "build" / preset / "bld")
        if not os.access(build.mysqld, os.X_OK):
            raise Problem(
                f"there is no server of preset '{preset}' ({build.mysqld} is missing); "
                f"build it with: cmake --preset {preset} && cmake --build --preset {preset}"
            )
        return build

    def program(self, name: str) -> Path:
        return self.directory / "runtime_output_directory" / name

    @property
    def mysqld(self) -> Path:
        return self.program("mysqld")

    def command(self) -> list[str | Path]:
        """The command that starts mysqld, without its options."""
        return [self.mysqld]

    def version(self) -> str:
        """The output of `mysqld --version` without the program's path."""
        done = captured([*self.command(), "--no-defaults", "--version"])
        if done.returncode != 0:
            raise Problem(f"{self.mysqld} does not run: {last_line(done.stderr)}")
        return done.stdout.strip().split("  ", 1)[-1]

    def common_options(self) -> list[str]:
        """Options that every start of this build's mysqld needs, --no-defaults first as mysqld demands."""
        options = [
            "--no-defaults",
            f"--basedir={self.directory}",
            "--secure-file-priv=NULL",  # the compiled-in folder need not exist
            f"--plugin-dir={self.directory / 'plugin_output_directory'}",
        ]
        if os.geteuid() == 0:
            # Without this option mysqld refuses to run as root.
            options.append("--user=root")
        return options


class Unpacked(Build):
    """The programs of a server's package, below a folder."""

    def program(self, name: str) -> Path:
        return self.directory / ("usr/sbin" if name == "mysqld" else "usr/bin") / name

    def common_options(self) -> list[str]:
        messages = next((self.directory / "usr/share").glob("mysql*/english")).parent
        plugins = self.directory / "usr/lib/mysql/plugin"
        options = [option for option in super().common_options() if "-dir=" not in option and "basedir" not in option]
        return [*options, f"--basedir={self.directory}/usr", f"--lc-messages-dir={messages}", f"--plugin-dir={plugins}"]


class OfAnotherSuite(Unpacked):
    """The same with the C library of the package's own suite of Debian, which is newer than this machine's."""

    def command_of(self, name: str) -> list[str | Path]:
        """The command that starts a program, without its options."""
        usr = self.directory / "usr"
        loader = usr / "lib64/ld-linux-x86-64.so.2"
        libraries = usr / "lib/x86_64-linux-gnu"
        return [loader, "--library-path", libraries, self.program(name)]

    def command(self) -> list[str | Path]:
        return self.command_of("mysqld")


@dataclass(frozen=True)
class Memory:
    """The kernel's figures of the process, in kB. lazy_free_kb: given back by MADV_FREE, but still in RSS."""

    rss_kb: int
    peak_kb: int
    anon_kb: int
    lazy_free_kb: int

    @property
    def rss_less_lazy_kb(self) -> int:
        return self.rss_kb - self.lazy_free_kb


@dataclass(frozen=True)
class Usage:
    """CPU seconds and page faults of the process since its start."""

    user_seconds: float
    system_seconds: float
    minor_faults: int
    major_faults: int

    @property
    def cpu_seconds(self) -> float:
        return self.user_seconds + self.system_seconds

    def since(self, earlier: Self) -> Self:
        return Usage(
            self.user_seconds - earlier.user_seconds,
            self.system_seconds - earlier.system_seconds,
            self.minor_faults - earlier.minor_faults,
            self.major_faults - earlier.major_faults,
        )


def last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "(it said nothing)"


def private_folder(folder: Path) -> None:
    """Makes the folder of a server, or closes an existing one to other users.

    A client that reaches the socket is root@localhost, and can make mysqld write files with the rights of its user.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.stat()
    if status.st_uid != os.getuid():
        raise Problem(f"{folder} belongs to another user (number {status.st_uid}); remove it")
    if status.st_mode & 0o077:
        folder.chmod(0o700)


def private_socket(folder: Path) -> Path:
    """The socket of the server that lives in `folder`: always the same, and short enough for a Unix socket.

    A deep checkout gets it in a folder of this user's under the temporary directory, named after `folder`.
    """
    near = folder / "mysqld.sock"
    if len(os.fsencode(near)) <= _SOCKET_PATH_MAX:
        return near
    name = hashlib.sha256(os.fsencode(folder)).hexdigest()[:12]
    far = Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()) / f"memdiag-{os.getuid()}-{name}"
    far.mkdir(mode=0o700, exist_ok=True)
    status = far.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise Problem(f"{far} is not a folder of this user alone; remove it, or set TMPDIR to another place")
    if len(os.fsencode(far / "mysqld.sock")) > _SOCKET_PATH_MAX:
        raise Problem(f"the path of the socket is too long ({far}/mysqld.sock); set TMPDIR to a shorter folder")
    return far / "mysqld.sock"


def initialise(build: Build, data: Path, options: Sequence[str] = ()) -> None:
    """Make a fresh data directory with an account root@localhost without a password.

    It is made under another name and renamed when complete, so that `data` is either absent or whole. That of a preset's
    build is a copy of the first one: mysqld takes a dozen times as long.
    """
    if data.exists():
        raise Problem(f"{data} exists already")
    unfinished = data.with_name(data.name + ".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    private_folder(data.parent)
    if type(build) is Build:
        _copy_initialised(build, unfinished, options)
    else:
        _make_initialised(build, unfinished, options)
    unfinished.rename(data)


def _make_initialised(build: Build, data: Path, options: Sequence[str]) -> None:
    command = [*build.command(), *build.common_options(), "--initialize-insecure", f"--datadir={data}", *options]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode != 0:
        shutil.rmtree(data, ignore_errors=True)
        raise Problem(f"mysqld could not initialise {data}:\n{_tail(done.stdout)}")


def _copy_initialised(build: Build, data: Path, options: Sequence[str]) -> None:
    folder = build.directory / "initialised"
    status = build.mysqld.stat()
    of_server = f"{status.st_size}-{status.st_mtime_ns}"
    first = folder / of_server / hashlib.sha256("\0".join(options).encode()).hexdigest()[:12]
    private_folder(folder)
    with lock(folder / "lock", "initialising a data directory"):
        if not first.is_dir():
            for earlier in folder.iterdir():
                if earlier.is_dir() and earlier.name != of_server:
                    shutil.rmtree(earlier)
            first.parent.mkdir(exist_ok=True)
            unfinished = first.with_name(first.name + ".unfinished")
            shutil.rmtree(unfinished, ignore_errors=True)
            _make_initialised(build, unfinished, options)
            unfinished.rename(first)
        # A server without this file gives itself a UUID of its own.
        shutil.copytree(first, data, ignore=shutil.ignore_patterns("auto.cnf"))


class Server:
    """One mysqld on its own folder: FOLDER/data, FOLDER/mysqld.pid, FOLDER/mysqld.err and a private socket.

    As a context manager it stops the server at the end of the block.
    """

    def __init__(
        self,
        build: Build,
        folder: Path,
        options: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        wrapper: Sequence[str] = (),
    ) -> None:
        """`env` replaces the whole environment (None: inherit). `wrapper` goes before mysqld, e.g. valgrind."""
        self.build = build
        self.folder = folder.resolve()
        self.data = self.folder / "data"
        self.socket = private_socket(self.folder)
        self.pid_file = self.folder / "mysqld.pid"
        self.error_log = self.folder / "mysqld.err"
        self.pid = 0
        self._options = list(options)
        self._env = dict(env) if env is not None else None
        self._wrapper = list(wrapper)
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # Starting and stopping.

    def start(self, timeout: float = 180) -> None:
        """Start mysqld and wait until it answers; a Problem with the tail of its error log when it does not."""
        if not self.data.is_dir():
            raise Problem(f"{self.data} is missing; initialise it first")
        private_folder(self.folder)
        owner = self.socket_owner()
        if owner is not None:
            raise Problem(
                f"another server{f' (process {owner})' if owner else ''} is using the socket {self.socket}; stop it first"
            )
        self.socket.unlink(missing_ok=True)  # left by a dead server
        self.error_log.unlink(missing_ok=True)
        command = [
            *self._wrapper,
            *self.build.command(),
            *self.build.common_options(),
            f"--datadir={self.data}",
            f"--socket={self.socket}",
            f"--pid-file={self.pid_file}",
            f"--log-error={self.error_log}",
            "--skip-networking",
            "--loose-mysqlx=OFF",  # preset profile has none
            *self._options,
        ]
        try:
            with self.error_log.open("ab") as log, signals.held():
                # A session of its own: Ctrl-C in the terminal must not reach mysqld, which we stop ourselves.
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=self._env,
                    cwd=self.folder,
                    start_new_session=True,
                )
                self.pid = self._process.pid
            self._wait_until_it_answers(timeout)
        except BaseException:
            self._end_process()
            raise

    def attach(self) -> bool:
        """Take over a server that an earlier run left on this folder; False when there is none."""
        owner = self.socket_owner()
        if owner is None:
            return False
        try:
            pid = int(self.pid_file.read_text())
            command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except (OSError, ValueError):
            raise Problem(f"a server that this program did not start answers on {self.socket}; stop it first") from None
        if os.fsencode(f"--datadir={self.data}") not in command:
            raise Problem(f"a server that this program did not start answers on {self.socket}; stop it first")
        self.pid = pid
        return True

    def runs_current_program(self) -> bool:
        """True if the process runs the present mysqld of the build directory: nobody has rebuilt it since."""
        try:
            return os.path.samefile(f"/proc/{self.pid}/exe", self.build.mysqld)
        except OSError:
            return False

    def socket_owner(self) -> int | None:
        """None where no process listens on the socket; else the process in its lock file, or 0 if that is not known."""
        try:
            self._knock()
        except (FileNotFoundError, ConnectionRefusedError):
            return None
        except OSError:
            pass  # a process listens, although it refuses this connection
        try:
            return int(Path(f"{self.socket}.lock").read_text())
        except (OSError, ValueError):
            return 0

    def stop(self, timeout: float = 120) -> None:
        """Ask for a clean shutdown and wait for the end of the process; kill it, by its pid, only as a last resort."""
        if not self.pid or not self.alive():
            self._forget()
            return
        try:
            with Connection(self.socket, timeout=10) as connection:
                connection.query("SHUTDOWN")
        except (SqlError, OSError, Problem):  # a Problem: this machine has no pymysql
            self._signal(signal.SIGTERM)  # for mysqld the same clean shutdown
        if not self._wait_for_the_end(min(5, timeout)):
            # Upstream's main thread sleeps through a signal that comes just before it waits for connections.
            with contextlib.suppress(OSError):
                self._knock()
        if not self._wait_for_the_end(timeout):
            print(f"mysqld (process {self.pid}) did not end within {timeout:.0f} s: killing it", file=sys.stderr)
            self._signal(signal.SIGKILL)
            self._wait_for_the_end(30)
        self._forget()

    def alive(self) -> bool:
        if self._process is not None:
            return self._process.poll() is None
        try:
            state = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            return False
        return state not in "ZX"

    # Asking.

    def connect(self, database: str = "", timeout: float | None = None) -> Connection:
        return Connection(self.socket, database, timeout=timeout)

    def query(self, sql: str, database: str = "") -> Result:
        """Run one statement in a session of its own."""
        with self.connect(database) as connection:
            return connection.query(sql)

    def client_line(self, database: str = "") -> str:
        """The shell line with which a person connects."""
        words = [str(self.build.program("mysql")), "--no-defaults", "-uroot", f"--socket={self.socket}", database]
        return " ".join(word for word in words if word)

    # Watching.

    def rss_kb(self) -> int:
        """Resident memory alone: one cheap read, suited for sampling during a run."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * _PAGE_KB

    def memory(self) -> Memory:
        """Resident memory with its parts; smaps_rollup walks the page tables, so not for tight sampling."""
        status = _kb_fields(Path(f"/proc/{self.pid}/status"))
        rollup = _kb_fields(Path(f"/proc/{self.pid}/smaps_rollup"))
        return Memory(status["VmRSS"], status["VmHWM"], status["RssAnon"], rollup["LazyFree"])

    def reset_peak(self) -> None:
        """Make VmHWM start again from the present RSS (see proc(5), clear_refs)."""
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")

    def usage(self) -> Usage:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        # proc(5) counts fields from 1. The list begins with the state, field 3: field N is fields[N - 3].
        return Usage(int(fields[11]) / _TICKS, int(fields[12]) / _TICKS, int(fields[7]), int(fields[9]))

    # Internals.

    def _knock(self) -> None:
        """Connect and hang up, which needs no library."""
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(5)
            client.connect(str(self.socket))

    def _wait_until_it_answers(self, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if not self.alive():
                raise Problem(f"mysqld ended while starting (exit {self._exit_code()}):\n{self.log_tail()}")
            try:
                with self.connect(timeout=10) as connection:
                    connection.query("SELECT 1")
                return
            except (FileNotFoundError, ConnectionError, TimeoutError):
                time.sleep(0.05)
            except SqlError as error:
                raise Problem(f"mysqld does not let root in without a password: {error}") from None
        raise Problem(f"mysqld did not answer within {timeout:.0f} s:\n{self.log_tail()}")

    def log_tail(self) -> str:
        """The last errors of the error log; where it has none, its last lines."""
        try:
            return _tail(self.error_log.read_text(errors="replace"))
        except OSError:
            return "(no error log)"

    def _exit_code(self) -> int | None:
        return self._process.returncode if self._process else None

    def _wait_for_the_end(self, timeout: float) -> bool:
        return until(lambda: not self.alive(), timeout, 0.05)

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def _end_process(self) -> None:
        """End a mysqld that never answered."""
        if self.alive():
            self._signal(signal.SIGTERM)
            if not self._wait_for_the_end(60):
                self._signal(signal.SIGKILL)
                self._wait_for_the_end(30)
        self._forget()

    def _forget(self) -> None:
        if self._process is not None:
            self._process.wait()
        self._process = None
        self.pid = 0


def _tail(log: str, lines: int = 12) -> str:
    every = [line for line in log.splitlines() if line.strip()]
    errors = [line for line in every if "[ERROR]" in line]
    return "\n".join("  " + line for line in (errors or every)[-lines:]) or "  (the log is empty)"


def _kb_fields(path: Path) -> dict[str, int]:
    """The `Name:  123 kB` lines of a /proc file."""
    fields = {}
    for line in path.read_text().splitlines():
        words = line.split()
        if len(words) == 3 and words[2] == "kB":
            fields[words[0].rstrip(":")] = int(words[1])
    return fields
