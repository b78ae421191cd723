"""The machine says what is missing, loads modules after those that they need, and its program's status is the run's."""

from unittest import mock

from harness.problem import NotPossible, Problem
from harness.scratch import Scratch
from proof import machine


class A_machine(Scratch):
    def kernel(self):
        modules = self.root / "kernel/lib/modules/6"
        modules.mkdir(parents=True)
        needs = {name: [] for name in machine.MODULES}
        needs |= {"overlay": ["base"], "ext4": ["journal", "base"], "journal": ["base"], "base": []}
        for name in needs:
            (modules / f"{name}.ko").touch()
        lines = (f"{name}.ko: {' '.join(f'{each}.ko' for each in each_needs)}" for name, each_needs in needs.items())
        (modules / "modules.dep").write_text("\n".join(lines))
        return self.root / "kernel"

    def run_with(self, console: str) -> int:
        """What qemu would write to its console."""

        def qemu(_command, stdout, **_):
            stdout.write(console.encode())
            stdout.flush()
            return 0

        with (
            mock.patch.object(machine.shutil, "which", return_value="/bin/true"),
            mock.patch.object(machine, "_kernel", return_value=self.kernel()),
            mock.patch.object(machine, "_disk", return_value=self.root / "disk"),
            mock.patch.object(machine, "_first_root", return_value=self.root / "first"),
            mock.patch.object(machine, "run_group", qemu),
        ):
            (self.root / "kernel/boot").mkdir()
            (self.root / "kernel/boot/vmlinuz-6").touch()
            return machine.run(["true"], 512, 1)

    def test_what_is_missing_is_said(self):
        with mock.patch.object(machine.shutil, "which", return_value=None), self.assertRaises(NotPossible) as said:
            machine.run(["true"], 512, 1)
        self.assertIn(machine.PACKAGES, str(said.exception))

    def test_modules_come_after_those_that_they_need(self):
        program = self.make_program("busybox", "")
        done = mock.Mock(returncode=0, stdout=b"")
        with (
            mock.patch.object(machine.shutil, "which", return_value=str(program)),
            mock.patch.object(machine.subprocess, "run", return_value=done),
        ):
            machine._first_root(self.root, self.kernel())
        order = (self.root / "root/modules/order").read_text().split()
        self.assertEqual(len(order), len(set(order)))
        self.assertLess(order.index("base.ko"), order.index("overlay.ko"))
        self.assertLess(order.index("journal.ko"), order.index("ext4.ko"))

    def test_the_status_of_the_program_is_that_of_the_run(self):
        self.assertEqual(self.run_with(f"boot\n{machine.END}3\n[ 1.0] reboot\n"), 3)

    def test_a_machine_without_a_status_is_a_problem(self):
        with self.assertRaises(Problem):
            self.run_with("boot\nKernel panic")
