import io
import json
import math
import os
import stat
import time
import unittest
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest import mock

from memdiag.cli import main
from memdiag.collect import queries
from memdiag.collect.snapshot import MOST_STACKS
from memdiag.commands.diff import lines
from memdiag.commands.what_if import budget_lines, of_history
from memdiag.comparison import Difference, allowed_of, differences, faults, missing
from memdiag.files import no_file, whole_file, write_whole
from memdiag.model.budget import rows, sums, with_values
from memdiag.model.view import View
from memdiag.moments import Moment, is_file, of_file, of_snapshot
from memdiag.problem import Problem
from memdiag.recording import FORMAT, parsed
from memdiag.render import html
from memdiag.render import json as as_json
from memdiag.render.page import Page
from memdiag.replay import Sample, replay
from memdiag.report import over_time
from memdiag.report.build import report

from tests import builder, fixtures
from tests.scratch import Scratch

MIB = 1 << 20


def moment(rss, **parts):
    return Moment("m", 0.0, rss, parts)


def clock(second):
    return f"{second // 60:02}:{second % 60:02}"


# Without 12 of 15 pools.
COMPARED = """\
before: a, 1970-01-01 00:00:00 UTC
after:  b, 1970-01-01 00:01:00 UTC

rss                before        after       growth
                  500 MiB      600 MiB     +100 MiB  RSS  too much

pool               before        after       growth
                      0 B     20.0 MiB    +20.0 MiB  p0
                      0 B     19.0 MiB    +19.0 MiB  p1
                      0 B     6.00 MiB    +6.00 MiB  p14
                          2 smaller differences (--all)

route              before        after       growth
                 64.0 KiB          0 B    -64.0 KiB  net

not compared, as one side has no figures: stack, route (in part)

1 too large; the first: rss RSS grew by 100 MiB"""


class Differences(unittest.TestCase):
    def test_largest_change_first_and_new_parts_from_zero(self):
        found = differences(moment(100, pool={"a": 1, "b": 50}), moment(130, pool={"a": 2, "c": 70}))
        self.assertEqual(
            [(one.kind, one.name, one.growth) for one in found],
            [("rss", "RSS", 30), ("pool", "c", 70), ("pool", "b", -50), ("pool", "a", 1)],
        )

    def test_what_only_one_side_has_proves_nothing(self):
        before, after = moment(1, pool={"a": 1}), moment(None, route={"r": 1})
        self.assertEqual(differences(before, after), [])
        self.assertEqual(missing(before, after, ("rss", "pool", "route", "stack")), ["rss", "pool", "route", "stack"])

    def test_what_one_side_could_not_read_is_not_0(self):
        before, after = moment(None, pool={"a": None, "b": 1}), moment(None, pool={"a": 9, "b": 3})
        for one, other in ((before, after), (after, before)):
            self.assertEqual([each.name for each in differences(one, other)], ["b"])
            self.assertEqual(missing(one, other, ("pool",)), ["pool"])

    def test_an_absent_part_had_at_most_the_cut_off(self):
        small, large = moment(1, stack={"a": 9}), moment(1, stack={"a": 9, "b": 5, "c": 30})
        small.cut = {"stack": 8}
        found = differences(small, large, ("stack",))
        self.assertEqual([(one.name, one.before, one.after) for one in found], [("c", 8, 30)])
        found = differences(large, small, ("stack",))
        self.assertEqual([(one.name, one.before, one.after) for one in found], [("c", 30, 8)])

    def test_thresholds(self):
        found = differences(moment(100 * MIB, pool={"a": 10 * MIB}), moment(110 * MIB, pool={"a": 20 * MIB}))
        for words, names in (
            (["64M"], []),
            (["9M"], ["RSS", "a"]),
            (["64M", "pool=9M"], ["a"]),
            (["50%"], ["a"]),
            (["9M", "64M"], ["RSS", "a"]),
            (["9M", "pool=64M"], ["RSS"]),
            (["pool=64M", "9M"], ["RSS"]),
            (["pool=9M", "64M"], ["a"]),
            (["pool=9M", "pool=200%"], ["a"]),
            (["pool=50%", "pool=64M"], ["a"]),
            (["rss=5%"], ["RSS"]),
        ):
            self.assertEqual([one.name for one in faults(found, allowed_of(words))], names, words)
        with self.assertRaises(Problem):
            allowed_of(["pools=5M"])

    def test_differences_in_words(self):
        found = [Difference("rss", "RSS", 500 << 20, 600 << 20), Difference("route", "net", 65536, 0)]
        found += [Difference("pool", f"p{number}", 0, (20 - number) << 20) for number in range(16)]
        found += [Difference("pool", "small", 0, 65535)]
        moments = Moment("a", 0.0, None), Moment("b", 60.0, None)
        said = lines(*moments, found, ["stack", "route"], found[:1], False)
        del said[9:21]
        self.assertEqual("\n".join(said), COMPARED)
        self.assertEqual(len(lines(*moments, found, [], [], True)), 29)
        self.assertEqual(lines(*moments, found, [], [], True)[-1], "within what is allowed")
        self.assertEqual(lines(*moments, [], [], [], False)[2:], ["", "no difference"])


class Files(Scratch):
    def test_an_interruption_leaves_what_was_there(self):
        path = self.root / "report.html"
        write_whole(path, "old")
        with self.assertRaises(KeyboardInterrupt), whole_file(path) as file:
            file.write("half")
            raise KeyboardInterrupt
        self.assertEqual(path.read_text(), "old")
        self.assertEqual([one.name for one in self.root.iterdir()], ["report.html"])

    def test_no_file_takes_the_place_of_a_device(self):
        """Root would do so for the whole machine."""
        pipe, link = self.root / "pipe", self.root / "stdout"
        os.mkfifo(pipe)
        link.symlink_to("/proc/self/fd/1")
        for path in (pipe, link, Path("/dev/null"), Path("/dev/stdout")):
            self.assertTrue(no_file(path), path)
        for path in (self.root, self.root / "new.html", Path(__file__)):
            self.assertFalse(no_file(path), path)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        write_whole(pipe, "a page")
        self.assertEqual(os.read(reader, 99), b"a page")
        self.assertTrue(pipe.is_fifo())
        self.assertEqual(sorted(one.name for one in self.root.iterdir()), ["pipe", "stdout"])

    def test_where_others_may_write_a_link_and_a_pipe_are_replaced(self):
        """Root would write over a file of the system, or wait for ever."""
        system, shared = self.write("system", "secret"), self.root / "shared"
        places = [shared, shared / "own"]
        places[1].mkdir(parents=True)
        shared.chmod(0o777)
        for folder in places:
            link, pipe = folder / "night.html", folder / "pipe"
            link.symlink_to(f"/proc/self/root{system}")
            os.mkfifo(pipe)
            device = folder / "null"
            device.symlink_to("/dev/null")
            for path in (link, pipe, device):
                with self.subTest(path):
                    self.assertFalse(no_file(path))
                    write_whole(path, "a page")
                    self.assertEqual(path.read_text(), "a page")
                    self.assertTrue(path.is_file() and not path.is_symlink())
        self.assertEqual(system.read_text(), "secret")

    @unittest.skipUnless(os.geteuid() == 0, "only root can give a folder away")
    def test_in_a_folder_of_another_user_a_link_is_replaced(self):
        link = self.root / "null"
        link.symlink_to("/dev/null")
        self.assertTrue(no_file(link))
        os.chown(self.root, 1, 1)
        self.assertFalse(no_file(link))

    def test_in_a_user_namespace_root_is_nobody(self):
        """And so is each other user: only devices below /dev itself are known to be root's."""

        def seen(path, *, follow_symlinks=True, whole=Path.stat):
            about = list(whole(path, follow_symlinks=follow_symlinks))
            about[stat.ST_UID] = 65534
            return os.stat_result(about)

        link = self.root / "null"
        link.symlink_to("/dev/null")
        with mock.patch.object(Path, "stat", seen):
            for path in (Path("/dev/null"), Path("/dev/stdout")):
                self.assertTrue(no_file(path), path)
            self.assertFalse(no_file(link))

    def test_half_a_character_is_no_reason_to_write_nothing(self):
        write_whole(self.root / "x", "a\udce9b")
        self.assertEqual((self.root / "x").read_text(), "a?b")

    def test_a_folder_that_is_not_there(self):
        with self.assertRaisesRegex(Problem, "cannot be written"):
            write_whole(self.root / "no" / "x", "")

    def recording(self, name, *samples, every=10.0, **variables):
        path = self.root / name
        lines = [{"format": FORMAT, "label": "db", "server": {}, "every": every, "variables": variables}, *samples]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return path

    def test_a_recorder_that_was_killed(self):
        path = self.recording("r", {"time": 1.0, "rss": 5})
        text = path.read_text() + '{"time": 2.0, "rs'
        self.assertEqual(len(parsed(text, "r").samples), 1)
        with self.assertRaisesRegex(Problem, "damaged in line 2"):
            parsed(text.replace('{"time": 1.0', '{"time": 1.0,,') + "\n{}", "r")
        for line in ("5", "[]", '{"rss": 5}'):
            with self.assertRaisesRegex(Problem, "damaged in line 3"):
                parsed(f"{path.read_text()}{line}\n", "r")

    def test_times_are_utc_as_they_are_shown(self):
        path = self.recording("r", *({"time": hour * 3600.0, "rss": hour} for hour in range(24)))
        before = os.environ.get("TZ")
        os.environ["TZ"] = "Asia/Tokyo"
        time.tzset()
        try:
            for when in ("1970-01-01T03:00:00", "1970-01-01 03:00:00 UTC", "1970-01-01T05:00:00+02:00"):
                self.assertEqual(of_file(f"{path}@{when}").rss, 3, when)
        finally:
            os.environ.pop("TZ")
            if before:
                os.environ["TZ"] = before
            time.tzset()

    def test_a_time_that_the_recording_does_not_have(self):
        """The nearest sample would let a gate pass that compared nothing."""
        samples = ({"time": 1000.0, "rss": 1}, {"time": 1010.0, "rss": 2}, {"time": 1020.0, "down": "x"})
        path = self.recording("r", *samples, {"time": 1070.0, "rss": 3}, every=10.0)
        for second, rss in ((990, 1), (1004, 1), (1006, 2), (1020, 2), (1060, 3), (1080, 3)):
            self.assertEqual(of_file(f"{path}@1970-01-01T00:{clock(second)}").rss, rss, second)
        for second in (0, 989, 1021, 1059, 1081):
            with self.assertRaisesRegex(Problem, "no sample.*1970-01-01 00:16:40 UTC to 1970-01-01 00:17:50 UTC"):
                of_file(f"{path}@1970-01-01T00:{clock(second)}")
        with self.assertRaisesRegex(Problem, "no sample"):
            self.output("diff", f"{path}@2020-01-01", f"{path}@2020-01-02", "--max-growth", "0M")

    def test_a_time_is_shown_in_whole_seconds(self):
        path = self.recording("r", {"time": 1000.9, "rss": 1}, {"time": 1001.0, "rss": 2}, every=0.1)
        self.assertEqual(of_file(f"{path}@1970-01-01T00:16:40").rss, 1)

    def output(self, *words):
        out = io.StringIO()
        with redirect_stdout(out):
            code = main(list(map(str, words)))
        return code, out.getvalue()

    def test_moments_of_a_recording(self):
        path = self.recording(
            "r",
            {"time": 1.0, "rss": 100 * MIB, "pools": {"a": [10 * MIB, 0]}},
            {"time": 2.0, "down": True},
            {"time": 3.0, "rss": 300 * MIB, "pools": {"a": [200 * MIB, 0]}},
            {"time": 4.0, "rss": 120 * MIB, "pools": {"a": [20 * MIB, 0]}},
        )
        code, words = self.output("diff", f"{path}@first", f"{path}@peak", "--max-growth", "64M")
        self.assertEqual(code, 3)
        self.assertIn("too much", words)
        code, _ = self.output("diff", f"{path}@first", path, "--max-growth", "64M")
        self.assertEqual(code, 0)
        code, words = self.output("diff", f"{path}@1", f"{path}@3", "--json")
        self.assertEqual(json.loads(words)["differences"][0]["after"], 300 * MIB)
        with self.assertRaisesRegex(Problem, "@first"):
            self.output("diff", f"{path}@when", path)
        with self.assertRaisesRegex(Problem, "cannot be checked"):
            self.output("diff", path, path, "--max-growth", "stack=1M")
        with self.assertRaisesRegex(Problem, "--by leaves out pool"):
            self.output("diff", path, path, "--by", "rss", "--max-growth", "pool=1M")

    def test_small_instruments_are_in_no_sample(self):
        path = self.recording(
            "r",
            {"time": 1.0, "rss": 1, "instruments": {"a": 5 * MIB}},
            {"time": 2.0, "rss": 1, "instruments": {"a": 5 * MIB, "b": 1_060_000}},
        )
        gate = ("--max-growth", "instrument=100K")
        self.assertEqual(self.output("diff", f"{path}@1", f"{path}@2", *gate)[0], 0)
        self.assertEqual(self.output("diff", f"{path}@1", f"{path}@2", "--max-growth", "instrument=10K")[0], 3)

    def test_a_profile_has_its_largest_stacks_only(self):
        def snapshot(stacks):
            rows = [{"FOLDED": f"s{number}", "LIVE_BYTES": 1000 - number} for number in range(stacks)]
            return of_snapshot(builder.snapshot("memdiag", memdiag_profile=rows))

        whole, cut = snapshot(MOST_STACKS - 1), snapshot(MOST_STACKS)
        self.assertEqual((whole.cut, cut.cut), ({}, {"stack": 1001 - MOST_STACKS}))

    def test_a_stack_of_unknown_size_does_not_lower_the_cut_off(self):
        rows = [{"FOLDED": f"s{number}", "LIVE_BYTES": 1000} for number in range(MOST_STACKS)]
        rows[0]["LIVE_BYTES"] = None
        cut = of_snapshot(builder.snapshot("memdiag", memdiag_profile=rows)).cut
        self.assertEqual(cut, {"stack": 1000})

    def test_a_gate_without_any_figure_does_not_pass(self):
        path = self.recording("r", {"time": 1.0, "rss": None})
        with self.assertRaisesRegex(Problem, "cannot be checked"):
            self.output("diff", path, path, "--max-growth", "64M")
        # If only RSS can be compared, it decides.
        path = self.recording("r", {"time": 1.0, "rss": MIB})
        self.assertEqual(self.output("diff", path, path, "--max-growth", "64M")[0], 0)

    def test_a_pool_that_could_not_be_read_is_no_success(self):
        data = fixtures.snapshot("ours-idle")
        paths = []
        for name in ("known", "unknown"):
            paths.append(self.root / f"{name}.json")
            paths[-1].write_text(as_json.render(Page("", [report(data)], [], [data])))
            for row in data["sources"]["memdiag_ledger"]["rows"]:
                if row["NAME"] == "session":
                    row["RESIDENT_BYTES"] = None
        for words in (paths, paths[::-1]):
            with self.assertRaisesRegex(Problem, "pool: one side has no figures"):
                self.output("diff", *words, "--max-growth", "pool=1G")
        for row in data["sources"]["memdiag_ledger"]["rows"]:
            if (row["NAME"], row["STATE"]) == ("dictionary", "live"):
                row["RESIDENT_BYTES"] += 5
        paths[1].write_text(as_json.render(Page("", [report(data)], [], [data])))
        code, words = self.output("diff", *paths)
        self.assertIn("no figures: pool (in part), stack", words)

    def test_a_file_that_is_not_there(self):
        for name in ("night.rec", "night@peak", "night@3", "report.html"):
            with self.subTest(name), self.assertRaisesRegex(Problem, "there is no file"):
                self.output("diff", self.root / name, self.root / name)
        with self.assertRaisesRegex(Problem, "there is no file"):
            self.output("what-if", self.root / "night.rec", "--limit", "1G")
        with self.assertRaisesRegex(Problem, "neither a file nor a socket .*/night$"):
            self.output("diff", self.root / "night", self.root / "night")

    def test_a_file_with_the_name_of_an_account_is_none_of_ours(self):
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.root)
        Path("app").write_text("notes\n")
        self.assertFalse(is_file("app@db1"))
        self.assertFalse(is_file("app@10.0.0.1:3307"))
        self.assertTrue(is_file("app"))
        with mock.patch.object(Path, "open", side_effect=PermissionError):
            self.assertTrue(is_file("app@db1"), "its reader tells why")
        self.recording("night", {"time": 1.0, "rss": 5})
        data = fixtures.snapshot("ours-idle")
        page = Page("", [report(data)], [], [data])
        for name, text in (("json", as_json.render(page)), ("page", html.render(page)), ("broken.json", "[1]")):
            Path(name).write_text(text)
        for operand in ("night", "night@peak", "night@soon", "json@db1", "page@db1", "broken.json@db1"):
            self.assertTrue(is_file(operand), operand)

    def test_a_digit_that_is_no_number(self):
        path = self.recording("r", {"time": 1.0, "rss": 5})
        with self.assertRaisesRegex(Problem, "write @first"):
            self.output("diff", f"{path}@²", path)

    def test_a_later_moment_first_is_told(self):
        path = self.recording("r", {"time": 1.0, "rss": 5}, {"time": 9.0, "rss": 6})
        for first, last, told in (("@first", "@last", False), ("@last", "@first", True)):
            with redirect_stderr(io.StringIO()) as words:
                self.output("diff", f"{path}{first}", f"{path}{last}")
            self.assertEqual("is older than" in words.getvalue(), told)

    def test_reports_of_driven_states(self):
        paths = []
        for name in ("ours-idle", "ours-leak"):
            data = fixtures.snapshot(name)
            path = self.root / f"{name}.json"
            path.write_text(as_json.render(Page("", [report(data)], [], [data])))
            paths.append(path)
        code, words = self.output("diff", *paths, "--max-growth", "pool=64M")
        self.assertEqual(code, 3)
        self.assertIn("pool session grew by", words)
        self.assertEqual(self.output("diff", paths[0], paths[0], "--max-growth", "0")[0], 0)

    def test_another_file_is_told(self):
        path = self.root / "x"
        path.write_text("[1]")
        with self.assertRaisesRegex(Problem, "neither a report"):
            self.output("diff", path, path)

    def test_a_file_that_means_harm(self):
        """Python's reader of JSON calls itself for each bracket."""
        deep = self.root / "deep"
        deep.write_text("[" * 100_000)
        with self.assertRaisesRegex(Problem, "neither a report"):
            self.output("diff", deep, deep)
        with self.assertRaisesRegex(Problem, "neither a report"):
            self.output("what-if", deep, "--limit", "1G")
        page = self.root / "page.html"
        page.write_text(f'<script type="application/json" id="memdiag-data">{"[" * 100_000}</script>')
        with self.assertRaisesRegex(Problem, "neither a report"):
            self.output("diff", page, page)
        path = self.recording("r", {"time": 1.0, "rss": 1})
        whole = path.read_text()
        for line in ("[" * 100_000, '{"time": "1"}', '{"time": null}'):
            path.write_text(f"{whole}{line}\n{{}}\n")
            with self.subTest(line[:20]), self.assertRaisesRegex(Problem, "damaged in line 3"):
                self.output("diff", path, path)

    def test_a_recording_with_values_of_other_kinds(self):
        for name, value in (
            *((name, value) for name in ("rss", "unused", "limit", "buffer_pool") for value in ("5", [], {}, math.nan)),
            ("pool_in_rss", "5"),
            *(("time", value) for value in (math.inf, 1e300, -1, True)),
            ("limit_of", 5),
            *(("pools", value) for value in ([], {"a": 1}, {"a": ["1", 2]}, {"a": [1]})),
            *(("instruments", value) for value in (5, {"a": "1"}, {"a": None})),
            *(("ceiling", value) for value in ("red", {"level": "1"})),
        ):
            sample = {"time": 2.0, "rss": 1} | {name: value}
            path = self.recording("r", {"time": 1.0, "rss": 1}, sample, {"time": 3.0, "rss": 1})
            for words in (("diff", path, path), ("what-if", path, "--limit", "1G")):
                with self.subTest((name, value, words[0])), self.assertRaisesRegex(Problem, "damaged in line 3"):
                    self.output(*words)
        path = self.recording("r", {"time": 1.0, "rss": 1})
        for name in ("variables", "server"):
            lines = path.read_text().splitlines()
            path.write_text("\n".join((json.dumps(json.loads(lines[0]) | {name: [1]}), lines[1])))
            with self.subTest(name), self.assertRaisesRegex(Problem, "damaged in line 1"):
                self.output("what-if", path, "--limit", "1G")

    def test_what_if_of_a_recording(self):
        samples = ({"time": 1.0, "rss": 100 * MIB, "unused": 0}, {"time": 3.0, "rss": 300 * MIB, "unused": 150 * MIB})
        for variables in ({}, {"memdiag_memory_target": "OFF"}, {"memdiag_memory_target": "WATCH"}):
            path = self.recording("off", *samples, **variables)
            code, words = self.output("what-if", path, "--limit", "200M")
            self.assertEqual(code, 3)
            self.assertIn("A purge of unused pages, up to 100 MiB at once, might have sufficed", words)
        path = self.recording("r", *samples, memdiag_memory_target="AUTO")
        code, words = self.output("what-if", path, "--limit", "320M")
        self.assertEqual((code, "would have survived: 20.0 MiB" in words), (0, True))
        code, words = self.output("what-if", path, "--limit", "200M")
        self.assertEqual(code, 0)
        self.assertIn("memdiag_memory_target is not OFF: it gives back unused pages, up to 100 MiB", words)
        self.assertNotIn("the kernel would have ended it", words)
        code, words = self.output("what-if", path, "--limit", "140M")
        self.assertEqual(code, 3)
        self.assertIn("the kernel would have ended it", words)
        self.assertIn("would not have sufficed", words)
        with self.assertRaisesRegex(Problem, "no budget"):
            self.output("what-if", path, "--set", "max_connections=5")

    def test_a_clock_that_was_set_back(self):
        """The recording lasted -1 h."""
        samples = [{"time": time, "rss": rss * MIB} for time, rss in ((7200.0, 100), (7210.0, 300), (3600.0, 200))]
        _, words = self.output("what-if", self.recording("r", *samples), "--limit", "1G")
        self.assertIn("3 samples of 60 min, until 1970-01-01 02:00:10 UTC", words)
        (series,) = over_time.section(View(fixtures.snapshot("stock-idle")), samples).blocks
        self.assertEqual(series.times, sorted(series.times))
        self.assertEqual(series.lines[0].values, [200 * MIB, 100 * MIB, 300 * MIB])

    def test_small_differences_are_counted_and_not_shown(self):
        found = [Difference("pool", "small", 0, (1 << 16) - 1), Difference("pool", "large", 1 << 16, 0)]
        moment = of_snapshot(fixtures.snapshot("ours-idle"))
        words = "\n".join(lines(moment, moment, found, [], [], False))
        self.assertIn("-64.0 KiB  large", words)
        self.assertNotIn("  small\n", words)
        self.assertIn("1 smaller differences", words)
        self.assertIn("  small\n", "\n".join(lines(moment, moment, found, [], [], True)))

    def test_a_history_that_was_thinned_says_so(self):
        data = fixtures.snapshot("ours-idle")
        rows = data["sources"]["memdiag_history"]["rows"]
        for count, thinned in ((queries.POINTS - 1, False), (queries.POINTS, True)):
            data["sources"]["memdiag_history"]["rows"] = [rows[0]] * count
            said = over_time.section(View(data), None).blocks[0].note
            self.assertEqual("Of each stretch" in said, thinned, count)

    def test_the_sample_of_the_start_is_no_history(self):
        """The server takes it with memdiag_history_interval_ms = 0, too."""
        data = fixtures.snapshot("ours-idle")
        rows = data["sources"]["memdiag_history"]["rows"]
        del rows[1:]
        recording = [{"time": 1.0, "rss": MIB}, {"time": 2.0, "rss": 2 * MIB}]
        said = over_time.section(View(data), recording).blocks[0]
        self.assertEqual(said.lines[0].values, [MIB, 2 * MIB])
        said = over_time.section(View(data), None).blocks[0]
        self.assertEqual(said.text, "There is no history: memdiag_history_interval_ms is 0.")
        self.assertEqual(of_history(rows), [])

    def test_what_if_as_json(self):
        samples = ({"time": 1.0, "rss": 100 * MIB, "unused": 0}, {"time": 3.0, "rss": 300 * MIB, "unused": 150 * MIB})
        path = self.recording("r", *samples, memdiag_memory_target="AUTO")
        for limit, status, survived in (("320M", 0, True), ("200M", 0, False), ("140M", 3, False)):
            code, words = self.output("what-if", path, "--limit", limit, "--json")
            found = json.loads(words)
            self.assertEqual((code, found["history"]["survived"]), (status, survived))
        history = found["history"]
        self.assertEqual((history["from"], history["until"], history["highest"]["rss"]), (1.0, 3.0, 300 * MIB))
        self.assertEqual((history["lowest_limit_giving_back"], history["gives_back_by_itself"]), (150 * MIB, True))
        self.assertTrue(history["purge_counts"])
        self.assertEqual((found["limit"], found["set"]), (140 * MIB, {}))
        self.assertNotIn("budget", found)

        data = fixtures.snapshot("ours-idle")
        path = self.root / "report.json"
        path.write_text(as_json.render(Page("", [report(data)], [], [data])))
        found = json.loads(self.output("what-if", path, "--set", "sort_buffer_size=1G", "--json")[1])
        now, then = found["budget"]["now"], found["budget"]["then"]
        self.assertGreater(then["growing"] - now["growing"], 1 << 30)
        self.assertEqual(then["server_buffers"], now["server_buffers"])
        self.assertEqual(found["set"], {"sort_buffer_size": 1 << 30})

    def test_a_terminal_obeys_no_word_of_a_server(self):
        data = fixtures.snapshot("ours-idle")
        data["sources"]["variables"]["rows"][0]["memdiag_memory_target"] = "\x1b[2J"
        path = self.root / "report.json"
        path.write_text(as_json.render(Page("", [report(data)], [], [data])))
        self.assertIn(r"(now: \x1b[2J)", self.output("what-if", path, "--limit", "1G")[1])

    def test_what_if_below_the_limit_needs_no_unused_pages(self):
        path = self.recording("r", {"time": 1.0, "rss": 100 * MIB, "unused": None}, memdiag_memory_target="AUTO")
        self.assertEqual(self.output("what-if", path, "--limit", "200M")[0], 0)
        self.assertEqual(self.output("what-if", path, "--limit", "50M")[0], 3)

    def test_a_gate_for_all_kinds_needs_rss_and_what_either_side_has(self):
        both = {"rss": 5, "instruments": {"a": 5 * MIB}}
        path = self.recording(
            "r",
            {"time": 1.0} | both,
            {"time": 2.0} | both | {"rss": None},
            {"time": 3.0, "rss": 5},
            {"time": 4.0} | both,
        )
        for before, after in ((1, 2), (2, 2), (1, 3), (3, 1)):
            with self.subTest((before, after)), self.assertRaisesRegex(Problem, "cannot be checked"):
                self.output("diff", f"{path}@{before}", f"{path}@{after}", "--max-growth", "1M")
        self.assertEqual(self.output("diff", f"{path}@1", f"{path}@4", "--max-growth", "1M")[0], 0)

    def test_a_gate_does_not_pass_a_server_that_ended(self):
        """Growth that ended it is not in what is left."""
        samples = (
            {"time": 1.0, "rss": 50 * MIB},
            {"time": 2.0, "rss": 60 * MIB},
            {"time": 3.0, "down": "it does not answer"},
            {"time": 4.0, "rss": 5 * MIB, "restarted": True},
            {"time": 5.0, "rss": 6 * MIB},
            {"time": 6.0, "down": "it does not answer"},
        )
        path = self.recording("r", *samples)
        for before, after, why in (
            ("@first", "@5", "was restarted between"),
            ("@2", "@4", "was restarted between"),
            ("@4", "@last", "did not answer at the end"),
            ("@4", "", "did not answer at the end"),
        ):
            words = ("diff", f"{path}{before}", f"{path}{after}")
            with self.subTest(words), self.assertRaisesRegex(Problem, why):
                self.output(*words, "--max-growth", "rss=64M")
            self.assertEqual(self.output(*words)[0], 0)
        for before, after in (("@1", "@2"), ("@4", "@5")):
            self.assertEqual(self.output("diff", f"{path}{before}", f"{path}{after}", "--max-growth", "rss=64M")[0], 0)
        # The same load on a server before and after it was upgraded.
        other = self.recording("s", *samples[3:5])
        self.assertEqual(self.output("diff", f"{path}@1", f"{other}", "--max-growth", "rss=64M")[0], 0)

    def test_a_moment_without_figures_is_none_to_compare(self):
        path = self.recording("r", {"time": 1.0, "rss": 5}, {"time": 2.0, "down": "it does not answer"})
        with self.assertRaisesRegex(Problem, "@2 has no figures"):
            self.output("diff", f"{path}@1", f"{path}@2")

    def test_a_page_of_several_servers_says_which(self):
        one, other = fixtures.snapshot("stock-idle"), fixtures.snapshot("stock-leak")
        one["label"], other["label"] = "db1", "db2:3307"
        path = self.root / "two.json"
        path.write_text(as_json.render(Page("", [report(one), report(other)], [], [one, other])))
        for words in (
            ["diff", path, path],
            ["what-if", path, "--set", "max_connections=5"],
            ["diff", f"{path}@x", path],
        ):
            with self.assertRaisesRegex(Problem, "two.json@db1, .*two.json@db2:3307"):
                self.output(*words)
        code, words = self.output("diff", f"{path}@db1", f"{path}@db2:3307")
        self.assertEqual(code, 0)
        self.assertIn("two.json@db2:3307", words)
        self.assertEqual(self.output("what-if", f"{path}@db1", "--set", "max_connections=5")[0], 0)

    def test_a_recording_without_rss_is_told(self):
        path = self.recording("r", {"time": 1.0, "rss": None})
        with self.assertRaisesRegex(Problem, "has no RSS"):
            self.output("what-if", path, "--limit", "1G")

    def test_what_if_of_a_history_counts_on_no_purge(self):
        """Its DIRTY_BYTES have pages that were never written."""
        data = fixtures.snapshot("ours-idle")
        data["sources"]["variables"]["rows"][0]["memdiag_memory_target"] = "AUTO"
        data["sources"]["memdiag_history"]["rows"] = [
            {"TIME": 1.0, "RSS_BYTES": 300 * MIB, "DIRTY_BYTES": 200 * MIB},
            {"TIME": 9.0, "RSS_BYTES": 100 * MIB, "DIRTY_BYTES": 0},
        ]
        path = self.root / "report.json"
        path.write_text(as_json.render(Page("", [report(data)], [], [data])))
        code, words = self.output("what-if", path, "--limit", "200M")
        self.assertEqual(code, 3)
        self.assertIn("might have sufficed: the server purges by itself", words)
        self.assertIn("never written", words)
        self.assertIn("does not count in the exit status", words)
        history = json.loads(self.output("what-if", path, "--limit", "200M", "--json")[1])["history"]
        self.assertEqual((history["gives_back_by_itself"], history["purge_counts"]), (True, False))
        # A target in bytes is a number in the snapshot.
        data["sources"]["variables"]["rows"][0]["memdiag_memory_target"] = 1 << 30
        path.write_text(as_json.render(Page("", [report(data)], [], [data])))
        self.assertIn("the server purges by itself", self.output("what-if", path, "--limit", "200M")[1])
        data["sources"]["variables"]["rows"][0]["memdiag_memory_target"] = "OFF"
        path.write_text(as_json.render(Page("", [report(data)], [], [data])))
        words = self.output("what-if", path, "--limit", "200M")[1]
        self.assertIn("AUTO purges by itself, below a limit of a control group", words)


class Replay(unittest.TestCase):
    def test_the_lowest_limit(self):
        samples = [Sample(1, 100, 0), Sample(2, 300, 250), Sample(3, 200, 10)]
        outcome = replay(samples, 195)
        self.assertEqual((outcome.lowest_limit, outcome.lowest_limit_giving_back), (300, 190))
        self.assertTrue(outcome.survived_giving_back)
        self.assertEqual((outcome.above, outcome.most_given_back), (2, 105))

    def test_unknown_stays_unknown(self):
        outcome = replay([Sample(1, 300, None)], 200)
        self.assertIsNone(outcome.survived_giving_back)
        self.assertIsNone(outcome.lowest_limit_giving_back)


class History(unittest.TestCase):
    def test_the_peak_of_an_earlier_run_counts(self):
        rows = [
            {"TIME": 1.0, "RSS_BYTES": 300, "DIRTY_BYTES": 50, "RSS_PEAK_BYTES": 900, "RSS_PEAK_TIME": 0.5},
            {"TIME": 9.0, "RSS_BYTES": 200, "DIRTY_BYTES": 10, "RSS_PEAK_BYTES": 250, "RSS_PEAK_TIME": 8.5},
        ]
        samples = of_history(rows)
        self.assertEqual(samples[0], Sample(0.5, 900, 50))
        self.assertEqual(replay(samples, 500).lowest_limit, 900)
        self.assertEqual(of_history([]), [])


class Budget(unittest.TestCase):
    def change(self, fixture="ours-idle", **values):
        """{variable: (worst case before, after)} of the rows that change."""
        view = View(fixtures.snapshot(fixture))
        before = rows(view)
        after = with_values(view, before, values)
        return {one.variable: (one.worst, other.worst) for one, other in zip(before, after) if one.worst != other.worst}

    def test_the_buffer_pool_has_a_control_block_for_each_page(self):
        found = self.change(innodb_buffer_pool_size=64 << 30)
        self.assertEqual(found, {"innodb_buffer_pool_size": (137232384, 137232384 * 512)})
        found = self.change("stock-idle", innodb_buffer_pool_size=64 << 30)
        self.assertEqual(found["innodb_buffer_pool_size"][1], 64 << 30)

    def test_a_number_of_measured_ones(self):
        found = self.change(table_open_cache=8000, table_definition_cache=1000)
        self.assertEqual(
            found, {"table_open_cache": (99392000, 198784000), "table_definition_cache": (33946000, 16973000)}
        )

    def test_connections_change_all_that_depends_on_them(self):
        found = self.change(max_connections=1510, sort_buffer_size=1 << 20)
        self.assertEqual(found["thread_stack"], (158334976, 1583349760))
        self.assertEqual(found["max_allowed_packet"], (20266876928, 202668769280))
        self.assertEqual(found["binlog_cache_size"], (4947968, 49479680))
        self.assertEqual(found["sort_buffer_size"], (39583744, 1510 << 20))
        self.assertNotIn("innodb_buffer_pool_size", found)
        found = self.change("stock-idle", max_connections=302)
        self.assertEqual(found["thread_stack"][1], 2 * found["thread_stack"][0])

    def test_what_is_measured_is_not_computed(self):
        with self.assertRaisesRegex(Problem, "performance_schema are measured"):
            self.change(performance_schema=2)

    def test_no_connections_are_no_reason_to_guess(self):
        view = View(fixtures.snapshot("ours-idle"))
        view.row("variables").pop("max_connections")
        with self.assertRaisesRegex(Problem, "max_connections is not known"):
            with_values(view, rows(view), {"max_connections": 10})

    def test_no_limit_is_not_0(self):
        found = self.change(range_optimizer_max_mem_size=0, parser_max_mem_size=1 << 20)
        self.assertEqual(
            found, {"range_optimizer_max_mem_size": (1266679808, None), "parser_max_mem_size": (None, 151 << 20)}
        )

    def test_a_variable_without_a_sum_of_its_own_is_told(self):
        view = View(fixtures.snapshot("ours-idle"))
        values = {"tmp_table_size": 5, "range_optimizer_max_mem_size": 0}
        words = "\n".join(budget_lines(view, values, None))
        self.assertIn("tmp_table_size is in no sum: it is counted with another", words)
        self.assertIn("range_optimizer_max_mem_size is in no sum: the variable does not bound", words)

    def test_packets_and_temporary_tables_of_mariadb_are_in_the_estimate(self):
        view = View(fixtures.snapshot("mariadb-idle"))
        of = {row.variable: row for row in rows(view)}
        self.assertEqual(of["max_allowed_packet"].worst, 2 * 151 * (16 << 20))
        self.assertEqual(of["tmp_table_size"].worst, 151 * (16 << 20))
        self.assertEqual(of["max_heap_table_size"].kind, "part")
        self.assertGreaterEqual(sums(rows(view)).growing, 3 * 151 * (16 << 20))

    def test_the_smaller_of_two_bounds_a_temporary_table(self):
        def growing(**values):
            view = View(fixtures.snapshot("mariadb-idle"))
            found = with_values(view, rows(view), values)
            return {row.variable: row.worst for row in found if row.kind == "growing" and "t" in row.variable[:1]}

        self.assertEqual(growing(tmp_table_size=1 << 30), {})
        self.assertEqual(growing(tmp_table_size=1 << 30, max_heap_table_size=2 << 30), {"tmp_table_size": 151 << 30})
        self.assertEqual(growing(tmp_table_size=1 << 20), {"tmp_table_size": 151 << 20})

    def test_temporary_tables_in_temptable_are_counted_with_its_bound(self):
        view = View(fixtures.snapshot("stock-idle"))
        found = {row.variable: row.kind for row in rows(view)}
        self.assertEqual((found["tmp_table_size"], found["temptable_max_ram"]), ("part", "growing"))
        words = "\n".join(budget_lines(view, {"tmp_table_size": 1 << 30}, None))
        self.assertIn("tmp_table_size is in no sum: it is counted with another", words)

    def test_a_part_of_a_name_is_no_variable(self):
        view = View(fixtures.snapshot("ours-idle"))
        for name in ("connections", "the", "value", "log_bin"):
            self.assertEqual(self.change(**{name: 10}), {})
            with self.assertRaisesRegex(Problem, f"does not know {name}"):
                budget_lines(view, {name: 10}, None)


class Usage(unittest.TestCase):
    def test_one_of_both_is_needed(self):
        with self.assertRaisesRegex(Problem, "--limit"):
            main(["what-if"])

    def test_wrong_options_have_a_status_of_their_own(self):
        for words in (
            ["what-if"],
            ["what-if", "--limit", "8X"],
            ["what-if", "--limit", "0"],
            ["what-if", "--set", "max_connections"],
            ["record", "-o", "x", "--every", "soon"],
            ["record", "-o", "x", "--every", "1ms"],
            ["top", "--every", "0"],
            ["top", "--every", "0.1s"],
            ["diff", "a", "b", "--by", "rows"],
            ["diff", "a", "b", "--max-growth", "rows=5M"],
            ["stacks", "--top", "0"],
            ["report", "--no-defaults", "db1:99999"],
            ["report", "--no-defaults", "--ssl-mode=MAYBE"],
        ):
            with self.subTest(words), self.assertRaises(Problem) as caught:
                main(words)
            self.assertEqual(caught.exception.status, 2, words)
        with self.assertRaises(Problem) as caught:
            main(["what-if", "no-such.rec", "--limit", "1G"])
        self.assertEqual(caught.exception.status, 1)
