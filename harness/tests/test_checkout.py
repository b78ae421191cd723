"""What git is asked about a checkout."""

import os
import subprocess
from unittest import mock

from harness import commit
from harness.checkout import git, own_files
from harness.problem import Problem
from harness.scratch import Scratch


class Checkout(Scratch):
    def repository(self) -> None:
        self.make_file("folder/file")
        self.make_file("ignored")
        self.make_file(".gitignore", "ignored\n")
        subprocess.run([*git(self.root), "init", "-q"], check=True)

    def test_of_another_user(self):
        """As root sees a checkout of its user."""
        self.repository()
        with mock.patch.dict(os.environ, {"GIT_TEST_ASSUME_DIFFERENT_OWNER": "1"}):
            names = [str(path.relative_to(self.root)) for path in own_files(self.root)]
            self.assertEqual(names, [".gitignore", "folder/file"])
            named = ["-c", "user.name=n", "-c", "user.email=n@e", "commit", "-q", "--allow-empty", "-mx"]
            subprocess.run([*git(self.root), *named], check=True)
            with mock.patch.object(commit, "ROOT", self.root):
                self.assertRegex(commit.commit(), "^[0-9a-f]{7}")

    def test_the_reason_why_git_lists_none(self):
        self.make_file(".git", "gitdir: /nowhere\n")
        with self.assertRaisesRegex(Problem, "could not list the files of .*: fatal: not a git repository"):
            own_files(self.root)
