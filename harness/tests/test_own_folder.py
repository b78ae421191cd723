from pathlib import Path

from harness.common import ROOT
from harness.own_folder import own_folder
from harness.problem import Problem
from harness.scratch import Scratch


class OwnFolder(Scratch):
    def test_a_new_or_empty_one_and_the_same_again(self):
        new = self.root / "a" / "b"
        own_folder(new)
        mark = {path.name for path in new.iterdir()}
        self.assertEqual(len(mark), 1)
        (new / "x.deb").touch()
        own_folder(new)
        self.assertEqual({path.name for path in new.iterdir()}, {*mark, "x.deb"})
        (self.root / "c").mkdir()
        own_folder(self.root / "c")
        self.assertEqual({path.name for path in (self.root / "c").iterdir()}, mark)

    def test_files_of_the_user(self):
        (self.root / "x.deb").touch()
        with self.assertRaisesRegex(Problem, "files of yours.*name a new folder"):
            own_folder(self.root)
        self.assertEqual(["x.deb"], [path.name for path in self.root.iterdir()])

    def test_a_way_through_the_build_folder_is_not_the_build_folder(self):
        (self.root / "x.deb").touch()
        back = ROOT / "build" / Path(*[".."] * len(ROOT.parts))
        with self.assertRaisesRegex(Problem, "files of yours"):
            own_folder(back / self.root.relative_to("/"))

    def test_no_folder(self):
        path = self.root / "file"
        path.touch()
        for one in (path, path / "below"):
            with self.assertRaisesRegex(Problem, "cannot be used: Not a directory"):
                own_folder(one)
