"""The arms of a comparison: which build, in which environment, with which options. This is the only list of them."""

import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Self

from harness.common import SHIPPED
from harness.problem import Problem
from harness.programs import captured
from harness.server import Build, OfAnotherSuite, Server
from tools.build import debian

TOP = Path(__file__).resolve().parents[2]

# These settings of the caller's shell could make one arm behave like another.
_ALLOCATOR_VARIABLES = ("MALLOC_", "LD_PRELOAD", "TCMALLOC_", "MIMALLOC_", "GLIBC_TUNABLES", "_RJEM_MALLOC_CONF")


class Distribution(OfAnotherSuite):
    """Debian's own package of unstable."""

    @classmethod
    def of_preset(cls, top: Path, preset: str) -> Self:
        return cls(debian.programs(top / "build" / preset / "root", "mysql-server-core"))


@dataclass(frozen=True)
class Arm:
    name: str
    preset: str
    note: str
    env: dict[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    # Candidates for LD_PRELOAD; the first one that exists is taken.
    preload: tuple[str, ...] = ()

    @property
    def ours(self) -> bool:
        """True if it is this project's server."""
        return self.preset in (*SHIPPED, "profile", "debug", "sanitize")

    def build(self) -> Build:
        kind = Distribution if self.preset == "debian" else Build
        return kind.of_preset(TOP, self.preset)

    def environment(self) -> dict[str, str]:
        """The whole environment of this arm's mysqld: the caller's, without any allocator setting of the caller's."""
        env = {name: value for name, value in os.environ.items() if not name.startswith(_ALLOCATOR_VARIABLES)}
        env.update(self.env)
        if self.preload:
            env["LD_PRELOAD"] = self.library()
        return env

    def server(self, folder: Path, options: Sequence[str], wrapper: Sequence[str] = ()) -> Server:
        """This arm's, with its options after those of the benchmark."""
        return Server(self.build(), folder, (*options, *self.options), self.environment(), wrapper)

    def library(self) -> str:
        """The preloaded one."""
        found = [path for path in self.preload if Path(path).exists()]
        if not found:
            raise Problem(f"arm '{self.name}' needs one of these libraries: {', '.join(self.preload)}")
        return found[0]

    def describe(self) -> dict[str, object]:
        """For the results: everything that defines the arm, and the versions of its server and of its library."""
        build = self.build()
        described = {
            **asdict(self),
            "version": build.version(),
            # Versions stay the same from build to build.
            "built": time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(build.mysqld.stat().st_mtime)),
        }
        if self.preload:
            described["preload"] = _package(self.library())
        return described


def _package(library: str) -> str:
    """The library with its package and version, where dpkg knows them."""

    def ask(*question: str) -> str:
        try:
            command = ["dpkg-query", *question]
            return captured(command).stdout
        except FileNotFoundError:
            return ""

    owner = ask("-S", library).partition(": ")[0]
    return " ".join([library, *(ask("-W", owner).split() if owner else ())])


_LIBRARIES = "/usr/lib/x86_64-linux-gnu"
_JEMALLOC = (f"{_LIBRARIES}/libjemalloc.so.2",)
_LINKED = {"MALLOC_CONF": "background_thread:true,narenas:default,dirty_decay_ms:1000,muzzy_decay_ms:0,prof:false"}
_FIVE_SECONDS = {"MALLOC_CONF": "background_thread:true,dirty_decay_ms:5000,muzzy_decay_ms:5000"}


def _dev(name: str, note: str, option: str) -> Arm:
    """This project's server with one option more."""
    return Arm(f"dev-{name}", "dev", f"the same {note}", options=(f"--memdiag-{option}",))


ARMS: dict[str, Arm] = {
    arm.name: arm
    for arm in (
        Arm("stock", "stock", "upstream as it is, with the C library's allocator"),
        Arm(
            "linked",
            "linked",
            "upstream with this project's jemalloc merely linked: the allocator without the pools and the diet",
            _LINKED,
        ),
        Arm("dev", "dev", "this project's server with the options that are compiled into it"),
        Arm(
            "dev-prof-off",
            "dev",
            "the same without heap profiling ready to be switched on, to see what that costs",
            {"MALLOC_CONF": "prof:false"},
        ),
        _dev("sessions", "with memory counted for sessions and statements", "sessions=ON"),
        _dev("ceiling", "below the ceiling, with more room than it needs", "memory-target=16G"),
        _dev("tuned", "without the ceiling; bench/ceiling.py gives it a buffer pool that fits", "memory-target=OFF"),
        _dev("profile", "with the heap profiler at its default rate", "profile=ON"),
        _dev("record", "with the heap profiler's stacks written to the flight recorder's file too", "profile=RECORD"),
        _dev("no-pools", "with all pools disabled: jemalloc, the diet and the tables", "disabled-pools=all"),
        Arm(
            "optimised",
            "optimised",
            "the same compiled by the profile of bench/pgo_train.py, with link-time optimization",
        ),
        Arm("profile", "profile", "the same writing that profile: slow, only for bench/pgo_train.py"),
        Arm("debug", "debug", "the same with upstream's assertions, for proof/"),
        Arm(
            "sanitize",
            "sanitize",
            "the same under the address and undefined sanitizers, for proof/",
            {
                "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
                "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
            },
        ),
        Arm("debian", "debian", "Debian's own mysql-server of unstable, unpacked"),
        Arm(
            "debian-jemalloc",
            "debian",
            "the same with the distribution's jemalloc preloaded, at the options of linked",
            _LINKED,
            preload=_JEMALLOC,
        ),
        Arm("glibc-arenas2", "stock", "stock, with the usual advice for containers", {"MALLOC_ARENA_MAX": "2"}),
        Arm(
            "tcmalloc",
            "stock",
            "stock with tcmalloc preloaded",
            preload=(f"{_LIBRARIES}/libtcmalloc_minimal.so.4", f"{_LIBRARIES}/libtcmalloc.so.4"),
        ),
        Arm(
            "jemalloc-preload",
            "stock",
            "stock with the distribution's jemalloc preloaded, at its defaults",
            preload=_JEMALLOC,
        ),
        Arm(
            "jemalloc-preload-5s",
            "stock",
            "the same with background threads and five seconds of decay, the usual advice for operators",
            _FIVE_SECONDS,
            preload=_JEMALLOC,
        ),
        Arm("mimalloc", "stock", "stock with mimalloc preloaded", preload=(f"{_LIBRARIES}/libmimalloc.so.2",)),
    )
}

DEFAULT = ("stock", "linked", "dev")
# Every allocator that people put under MySQL.
ALLOCATORS = (
    "stock",
    "glibc-arenas2",
    "tcmalloc",
    "mimalloc",
    "jemalloc-preload",
    "jemalloc-preload-5s",
    "linked",
    "dev",
)


def choose(names: str) -> list[Arm]:
    """The arms of a comma-separated list, each checked to be there before anything is started."""
    wanted = [name for name in names.split(",") if name]
    unknown = [name for name in wanted if name not in ARMS]
    if unknown or not wanted:
        raise Problem(f"unknown arm {', '.join(unknown) or '(none given)'}; there are: {', '.join(ARMS)}")
    if len(set(wanted)) < len(wanted):
        raise Problem(f"an arm is named twice in '{names}'")
    chosen = [ARMS[name] for name in wanted]
    for arm in chosen:
        arm.build()
        arm.environment()
    return chosen


def rotated(arms: Sequence[Arm], round_number: int) -> list[Arm]:
    """The order of a round: every arm gets every place in turn, so that no arm always comes after the same other."""
    shift = round_number % len(arms)
    return [*arms[shift:], *arms[:shift]]
