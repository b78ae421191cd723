"""The report of the code that allocated an object."""

import unittest
from unittest import mock

from bench import object_stacks
from bench.runner import objects


class FakeSession:
    def __init__(self, said):
        self.said = said

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.said.append("close")

    def query(self, text):
        self.said.append(text)
        frames = "wanted < caller"
        folded = "start;caller;wanted;helper"
        return mock.Mock(rows=[("session", frames, folded, "2048", None)])


class FakeServer:
    def __init__(self):
        self.said = []

    def connect(self, _database=None):
        return FakeSession(self.said)


class Stacks(unittest.TestCase):
    def test_only_the_second_step_is_profiled(self):
        server = FakeServer()
        made = []
        kind = objects.Kind(
            "thing",
            2,
            1,
            lambda _server, _sessions, numbers: made.append(
                (list(numbers), any("= ON" in text for text in server.said))
            ),
        )
        (stack,) = object_stacks.stacks_of(server, kind)
        self.assertEqual(made, [([0, 1], False), ([2, 3], True)])
        self.assertEqual(stack.path, ("start", "caller", "wanted"))
        self.assertEqual((stack.pool, stack.bytes, stack.error), ("session", 2048, 0))

    def test_sessions_end_even_if_an_object_cannot_be_made(self):
        server = FakeServer()

        def fail(*_):
            raise OSError("no more")

        with self.assertRaises(OSError):
            object_stacks.stacks_of(server, objects.Kind("thing", 2, 1, fail))
        self.assertEqual(server.said, ["close"])
