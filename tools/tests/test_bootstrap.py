"""Messages of ./run-demo and ./run-tests where they cannot install the packages that they need."""

import subprocess

from harness.common import ROOT
from harness.programs import captured
from harness.scratch import Scratch


class Bootstrap(Scratch):
    def setUp(self):
        super().setUp()
        self.calls = self.root / "calls"

    def bootstrap(self) -> subprocess.CompletedProcess:
        """With the commands of this test only: none of the machine's own."""
        script = '. "$1/tools/bootstrap.sh"; memdiag_bootstrap'
        return captured(["/bin/sh", "-eu", "-c", script, "sh", str(ROOT)], env={"PATH": str(self.root)})

    def debian(self, user: int, missing: str = "bison", apt: str = "exit 0") -> None:
        self.make_program("dpkg-query", f'[ "$4" != {missing} ] && echo installed')
        self.make_program("apt-get", f'echo "$@" >> "{self.calls}"; {apt}')
        self.make_program("id", f"echo {user}")

    def test_not_debian(self):
        done = self.bootstrap()
        self.assertEqual(done.returncode, 1)
        self.assertIn("this is not Debian", done.stderr)

    def test_nothing_missing_needs_no_root(self):
        self.debian(user=1000, missing="nothing-of-ours")
        done = self.bootstrap()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertFalse(self.calls.exists())

    def test_no_root_names_packages_and_command(self):
        self.debian(user=1000)
        done = self.bootstrap()
        self.assertEqual(done.returncode, 1)
        self.assertIn("only root can install them", done.stderr)
        self.assertIn("apt-get install bison", done.stderr)
        self.assertFalse(self.calls.exists())

    def test_missing_packages_are_printed_before_they_are_installed(self):
        self.debian(user=0)
        done = self.bootstrap()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"installing these Debian packages.*: bison")
        self.assertRegex(self.calls.read_text(), r"install bison$")

    def test_lists_that_are_too_old(self):
        """They know the packages, and the archive has newer ones. One of two archives is gone."""
        apt = f"""case $* in
        *--simulate*) exit 0 ;;
        *update*) : >"{self.root}/updated"; exit 100 ;;
        *) [ -e "{self.root}/updated" ] || {{ echo "404 Not Found" >&2; exit 100; }} ;;
        esac"""
        self.debian(user=0, apt=apt)
        done = self.bootstrap()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual([x.split()[-1] for x in self.calls.read_text().splitlines()], ["bison", "update", "bison"])

    def test_apt_that_fails(self):
        self.debian(user=0, apt="echo E: no room >&2; exit 100")
        done = self.bootstrap()
        self.assertEqual(done.returncode, 1)
        self.assertIn("E: no room", done.stderr)
        self.assertIn("apt-get could not install them", done.stderr)
