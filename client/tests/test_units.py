import unittest

from memdiag.durations import seconds_of
from memdiag.model.units import bytes_of, duration, moment, share, shown, signed_size, size
from memdiag.problem import Problem


class Sizes(unittest.TestCase):
    def test_sizes_have_three_digits(self):
        for value, words in (
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.00 KiB"),
            (1536 * 1024, "1.50 MiB"),
            (10 * 1024**2, "10.0 MiB"),
            (1024**3 - 1, "1.00 GiB"),
            (-(5 << 20), "-5.00 MiB"),
        ):
            self.assertEqual(size(value), words)

    def test_what_grew_has_its_sign(self):
        for value, words in ((0, "0 B"), (1, "+1 B"), (2048, "+2.00 KiB"), (-1, "-1 B"), (None, "unknown")):
            self.assertEqual(signed_size(value), words)

    def test_unknown_is_never_zero(self):
        for unit in ("bytes", "count", "s", "%", "time", ""):
            self.assertEqual(shown(None, unit), "unknown")
        self.assertIsNone(share(None, 5))
        self.assertIsNone(share(5, 0))

    def test_a_time_that_no_calendar_has_is_unknown(self):
        for epoch in (1e308, -1e308, 1 << 64, float("inf"), float("nan")):
            self.assertEqual(moment(epoch), "unknown")

    def test_sizes_of_people(self):
        self.assertEqual(bytes_of("8G"), 8 << 30)
        self.assertEqual(bytes_of("1.5GiB"), 3 << 29)
        self.assertEqual(bytes_of("4096"), 4096)
        self.assertEqual(bytes_of("18446744073709551615"), 1 << 64)
        for wrong in ("", "8X", "-1M", "8G 4M", "G", "9" * 400, "9" * 5000):
            with self.assertRaises(Problem):
                bytes_of(wrong)

    def test_durations(self):
        self.assertEqual(duration(0.5), "500 ms")
        self.assertEqual(duration(7200), "2 h")
        self.assertEqual(seconds_of("5m"), 300)
        self.assertEqual(seconds_of("3650d"), 3650 * 86400)
        for wrong in ("soon", "9" * 400, "3651d", "200000d"):
            with self.assertRaises(Problem):
                seconds_of(wrong)
