"""The stages that make the packages, and the inputs of each: see packaging/README.md, "The optimised build"."""

import importlib.util
import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from harness.common import ROOT, run_step
from harness.digest import digest
from harness.libraries import DEBIAN_FOLDER
from harness.programs import captured
from make.stages import Inputs, Stage
from tools.build.environment import ENVIRONMENT, environment

PLAIN, COUNTING, OPTIMISED = "dev", "profile", "optimised"  # presets
STAMP = "stage.json"
GB = {PLAIN: 6, COUNTING: 5, OPTIMISED: 8}  # of a build folder
GB_TRAINING = 3  # data of the workloads, and a copy
# Programs that have to be installed, with their Debian packages. CMake looks for the libraries.
TOOLS = {
    "autoconf": "autoconf",
    "bison": "bison",
    "c++": "g++",
    "cc": "gcc",
    "cmake": "cmake",
    "make": "make",
    "ninja": "ninja-build",
    "patch": "patch",
    "pkg-config": "pkg-config",
}
TRAINING_TOOLS = {"sysbench": "sysbench"}
TRAINING_LIBRARIES = {"pymysql": "python3-pymysql"}
# The environment that the tools of the packages read.
PACKAGING_ENVIRONMENT = ("DEB_BUILD_OPTIONS", "DPKG_DEB_COMPRESSOR_TYPE")
SOURCES = (
    "components/**/*.cc",
    *(
        f"{folder}/**/{name}"
        for folder in ("mysys", "plugin", "sql", "storage")
        for name in ("*.c", "*.cc", "*.h", "CMakeLists.txt")
    ),
)
PATCHES = ("patches/*/*.patch", "patches/*/series")
# tools/build makes the tree that CMake compiles.
BUILD_FILES = ("CMakeLists.txt", "cmake/**/*", "tools/build/*.py")
# The workloads of bench/pgo_train.py.
TRAINING = (
    "bench/pgo_train.py",
    *(
        f"bench/workloads/{name}.py"
        for name in ("base", "connection_storm", "dump_oltp", "phrase_burst", "sysbench", "sysbench_program")
    ),
    "harness/burst.py",
)
PACKAGED = (
    *(f"packaging/{name}" for name in ("build", "contents.txt", "copyright.in", "libraries.txt", "sbom.toml")),
    *(f"packaging/{name}/**/*" for name in ("common", "deb", "make", "rpm", "tar")),
    "mysql-test/suite/memdiag/**/*",
    "docs/reference.md",
    "LICENSE",
)


def needed_programs(plain: bool) -> dict[str, str]:
    return TOOLS if plain else {**TOOLS, **TRAINING_TOOLS}


def missing_libraries(plain: bool) -> list[str]:
    """Debian packages of Python libraries."""
    if plain:
        return []
    return [
        package
        for name, package in TRAINING_LIBRARIES.items()
        if importlib.util.find_spec(name) is None and not Path(DEBIAN_FOLDER, name).exists()
    ]


def needed_disk(plain: bool) -> list[tuple[Path, float, str]]:
    """For the builds that have not begun."""
    presets = [PLAIN] if plain else [COUNTING, OPTIMISED]
    needs: list[tuple[Path, float, str]] = [
        (folder(preset), GB[preset], f"the build of preset {preset}")
        for preset in presets
        if not (folder(preset) / "bld").exists()
    ]
    if not plain and not (folder(COUNTING) / "data/trained").exists():
        needs.append((ROOT / "build/bench", GB_TRAINING, "the training"))
    return needs


def folder(preset: str) -> Path:
    return ROOT / "build" / preset


def mysqld(preset: str) -> Path:
    return folder(preset) / "bld/runtime_output_directory/mysqld"


# --- inputs -------------------------------------------------------------------------


def compiler(variable: str, default: str) -> str:
    """The first line that the compiler says of itself, or empty."""
    command = [*shlex.split(os.environ.get(variable, default)), "--version"]
    if not shutil.which(command[0]):
        return ""
    done = captured(command)
    return done.stdout.partition("\n")[0]


def options_of(preset: str, text: str | None = None) -> str:
    """The entries of CMakePresets.json for a preset and for the one that it inherits from."""
    described = json.loads(text or (ROOT / "CMakePresets.json").read_text())
    chosen = [
        {name: value for name, value in one.items() if name != "displayName"}
        for one in described["configurePresets"]
        if one["name"] in ("base", preset)
    ]
    return json.dumps(chosen, sort_keys=True)


def code() -> Inputs:
    """The files and programs that make the build, beside the preset."""
    return {
        "sources": digest(ROOT, SOURCES, ["unittest"]),
        "patches": digest(ROOT, PATCHES),
        "build files": digest(ROOT, BUILD_FILES),
        "compilers": f"{compiler('CC', 'cc')}; {compiler('CXX', 'c++')}",
        "environment": environment(ENVIRONMENT),
        "folder": str(ROOT),  # the names of profiles contain it
    }


# --- stages -------------------------------------------------------------------------


def compile_preset(preset: str) -> None:
    """Only what packages need: not our unit tests."""
    run_step(["cmake", "--preset", preset])
    update(preset)


def update(preset: str) -> None:
    run_step(["cmake", "--build", "--preset", preset, "--target", "upstream"])


def build_stage(name: str, minutes: int, preset: str, more: Callable[[], Inputs]) -> Stage:
    return Stage(
        name,
        minutes,
        lambda: {f"options of {preset}": options_of(preset), **more()},
        lambda: [mysqld(preset)],
        folder(preset) / STAMP,
        lambda: compile_preset(preset),
    )


def training() -> Stage:
    data = folder(COUNTING) / "data"
    return Stage(
        "training",
        10,
        lambda: {"workloads": digest(ROOT, TRAINING)},
        lambda: [data / "trained"],
        data / STAMP,
        lambda: run_step([sys.executable, "bench/pgo_train.py"]),
    )


def packages(
    out: Path, kinds: Sequence[str], version: str, made: Callable[[], list[Path]], make: Callable[[], None]
) -> Stage:
    """`version`: names the commit and the date."""
    return Stage(
        "packages",
        8,
        lambda: {
            "commit": version,
            "kinds": " ".join(kinds),
            "packaging": digest(ROOT, PACKAGED),
            "packaging environment": environment(PACKAGING_ENVIRONMENT),
        },
        made,
        out / STAMP,
        make,
    )


def stages(plain: bool, last: Stage) -> list[Stage]:
    if plain:
        return [build_stage("build", 60, PLAIN, code), last]
    return [
        build_stage("server that counts", 70, COUNTING, code),
        training(),
        build_stage("optimised build", 100, OPTIMISED, dict),
        last,
    ]
