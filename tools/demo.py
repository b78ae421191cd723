#!/usr/bin/env python3
"""The main job on real text: build, start a private server, search for phrases in a burst, and show its memory.

./run-demo starts it. Everything lives in build/<preset>/demo. Each step leaves a mark only when it is complete, so an
interrupted run continues where it stopped and does nothing twice.
"""

import argparse
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness import phrase_searches
from harness.checks import Checks
from harness.common import ROOT, known_preset, lock, presets, run_step, say
from harness.problem import run_main
from harness.programs import captured
from harness.server import Build, Server


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="run-demo", description="Build the server and show what it does with memory.")
    parser.add_argument("--stop", action="store_true", help="end the server that an earlier run left, and nothing else")
    parser.add_argument("--smoke", action="store_true", help="short run that checks itself; always ends its server")
    parser.add_argument("--clients", type=int, default=8, help="concurrent searches (default: %(default)s)")
    parser.add_argument("--seconds", type=float, help="length of the burst (default: 20; 5 with --smoke)")
    parser.add_argument("--documents", type=int, help="take so many of the texts (default: all; 5000 with --smoke)")
    parser.add_argument("--preset", default="dev", help="build and run this CMake preset (default: %(default)s)")
    parser.add_argument("--no-build", action="store_true", help="take the build as it is")
    # run-demo checks the arguments before it installs anything.
    parser.add_argument("--check-arguments", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.seconds is None:
        options.seconds = 5 if options.smoke else 20
    if options.documents is None:
        options.documents = 5_000 if options.smoke else sys.maxsize
    if not 1 <= options.clients <= 100:
        parser.error("--clients must lie between 1 and 100")
    if not 1 <= options.seconds <= 3600:
        parser.error("--seconds must lie between 1 and 3600")
    if options.documents < 1000:
        parser.error("--documents must be 1000 or more: fewer show nothing")
    return options


def main() -> int:
    options = arguments()
    known_preset(options.preset)
    if options.check_arguments:
        return 0
    folder = ROOT / "build" / options.preset / ("demo-smoke" if options.smoke else "demo")
    if options.stop:
        return stop(options.preset, folder)
    if not options.no_build:
        build(options.preset)
    server = Server(Build.of_preset(ROOT, options.preset), folder, phrase_searches.MYSQLD_OPTIONS)
    guard = folder.with_name(f"{folder.name}.lock")
    with lock(guard, "running the demonstration in this checkout"):
        return demonstrate(options, server)


def build(preset: str) -> None:
    say("== building the server (half an hour the first time, seconds when nothing has changed)")
    for command in (["cmake", "--preset", preset], ["cmake", "--build", "--preset", preset, "--target", "server"]):
        run_step(command)


def stop(preset: str, folder: Path) -> int:
    server = Server(Build(ROOT / "build" / preset / "bld"), folder)
    if not server.attach():
        say("no server of the demonstration is running")
        return 0
    say(f"stopping the server (process {server.pid})")
    server.stop()
    return 0


def demonstrate(options: argparse.Namespace, server: Server) -> int:
    say(f"== server: {server.build.version()}")
    keep = False
    try:
        phrase_searches.start(server)
        statements = phrase_searches.prepare(server, options.documents)
        checks = Checks("demo", show=False)
        # The others have no memdiag tables, so the checks of these do not count.
        ours = presets()[options.preset] == "product"
        counted = checks if ours else Checks(show=False)
        phrase_searches.run(server, statements, options.clients, options.seconds, counted)
        write_report(server, checks)
        keep = not options.smoke
    finally:
        if not keep:
            server.stop()
    if keep:
        which = "" if options.preset == "dev" else f" --preset {options.preset}"
        say("\nThe server stays up.")
        say(f"  connect: {server.client_line(phrase_searches.DATABASE)}")
        say(f"  stop:    ./run-demo --stop{which}\n")
    else:
        checks.check("the server ended", not server.alive())
    return checks.finish()


def write_report(server: Server, checks: Checks) -> None:
    """Let the program memdiag (client/) make the page that a person reads, as for any server."""
    command = [sys.executable, "-m", "memdiag", "report", "--no-defaults", "-u", "root"]
    page = server.folder / "report.html"
    done = captured(
        [*command, "-S", str(server.socket), "-o", str(page)], env={**os.environ, "PYTHONPATH": str(ROOT / "client")}
    )
    checks.check("there is a report", done.returncode == 0, done.stderr.strip())
    if done.returncode == 0:
        say(f"\nreport of this run, for a browser: {page}")


if __name__ == "__main__":
    run_main("run-demo", main)
