"""State that one run leaves to the next."""

import os
from unittest import mock

from harness.scratch import Scratch
from harness.state_file import read_state, write_state


class StateFile(Scratch):
    def setUp(self):
        super().setUp()
        self.path = self.root / "folder" / "state.json"

    def test_what_was_written_is_read(self):
        self.assertEqual(read_state(self.path), {})
        write_state(self.path, {"a": [1]})
        self.assertEqual(read_state(self.path), {"a": [1]})

    def test_a_damaged_file_is_none(self):
        write_state(self.path, {"a": 1})
        whole = self.path.read_bytes()
        for content in (b"", whole[:-3], b"[]", b"\xff"):
            self.path.write_bytes(content)
            self.assertEqual(read_state(self.path), {})

    def test_a_write_that_fails_leaves_what_was_there(self):
        write_state(self.path, {"a": 1})
        with mock.patch.object(os, "replace", side_effect=OSError("the disk is full")), self.assertRaises(OSError):
            write_state(self.path, {"a": 2})
        self.assertEqual(read_state(self.path), {"a": 1})
