"""The gate runs its pieces, keeps what they did, and lets nothing through that has not passed."""

import time
from unittest import mock

from harness.problem import Problem
from harness.scratch import Scratch
from proof import gate
from proof.gate import Gate, Piece


def piece(script: str, resumes: bool = False) -> Piece:
    return Piece("one", "?", ("sh", "-c", script, "sh"), resumes, ("--fresh",))


class A_gate(Scratch):
    def test_a_piece_passes_by_its_exit_status(self):
        one = Gate(self.root)
        self.assertFalse(one.passed(piece("")))
        outcome = one.run(piece("echo 3 failed; exit 1"))
        self.assertEqual((outcome.word, outcome.last_line), ("failed", "3 failed"))
        self.assertFalse(one.passed(piece("")))
        self.assertEqual(one.run(piece("echo fine; echo")).last_line, "fine")
        self.assertTrue(one.passed(piece("")))

    def test_outcomes_are_kept(self):
        Gate(self.root).run(piece("echo fine"))
        self.assertTrue(Gate(self.root).passed(piece("")))

    def test_half_a_file_of_outcomes_is_none(self):
        """A full disk, or the loss of power, cut it."""
        (self.root / "outcomes.json").write_text('{"one": {"wor')
        one = Gate(self.root)
        self.assertFalse(one.passed(piece("")))
        self.assertEqual(one.run(piece("echo fine")).word, "passed")

    def test_a_long_piece_goes_on_when_it_is_called_again(self):
        one = Gate(self.root)
        script = f"echo step $1; test -e {self.root}/done || exec sleep 1000"

        def wait(_piece, _process, log, _until) -> bool:
            """The time is over when the piece has begun."""
            while "step" not in log.read_text():
                time.sleep(0.02)
            return False

        with mock.patch.object(gate, "_wait", wait):
            self.assertEqual(one.run(piece(script, True)).word, "unfinished")
        self.assertFalse(one.passed(piece("")))
        (self.root / "done").touch()
        self.assertEqual(one.run(piece(script, True)).word, "passed")
        self.assertEqual((self.root / "one.log").read_text(), "step --fresh\nstep\n")

    def test_a_long_piece_that_cannot_go_on_has_failed(self):
        self.assertEqual(Gate(self.root).run(piece("exec sleep 1000"), longest=0.1).word, "failed")
        # It did not run to its end, whatever its status.
        stubborn = piece("trap 'exit 0' INT; echo ready; while :; do sleep 0.1; done")
        self.assertEqual(Gate(self.root).run(stubborn, longest=2).word, "failed")

    def test_the_page_has_every_piece(self):
        page = Gate(self.root).page("abc")
        for each in gate.PIECES:
            self.assertIn(f"`{' '.join(each.command)}`", page)
            self.assertIn("not run", page)

    def test_each_command_is_there(self):
        for each in gate.PIECES:
            self.assertTrue((gate.ROOT / each.command[0]).exists(), each.command[0])

    def test_programs_that_go_on_after_an_interruption_are_unfinished_until_then(self):
        """packaging/build takes three hours, and failed after 110 minutes."""
        resumes = {each.name for each in gate.PIECES if each.resumes}
        self.assertLessEqual({"tests", "packages"}, resumes)

    def test_the_packages_that_are_tested_are_those_that_were_built(self):
        """packaging/build makes those of the optimised build, and packaging/test takes preset dev by default."""
        commands = {each.name: each.command for each in gate.PIECES}
        self.assertEqual(commands["packages"], ("packaging/build",))
        self.assertIn("--preset optimised", " ".join(commands["installed"]))

    def test_an_unknown_piece_is_told(self):
        with self.assertRaisesRegex(Problem, "no piece x; there are tests"):
            gate.chosen(["x"])
        self.assertEqual([each.name for each in gate.chosen(["kills"])], ["kills"])

    def test_a_tree_with_changes_is_refused(self):
        with (
            mock.patch("sys.argv", ["gate.py"]),
            mock.patch.object(gate, "commit_of_tree", return_value="abc-dirty"),
            self.assertRaisesRegex(Problem, "the tree has changes"),
        ):
            gate.main()
