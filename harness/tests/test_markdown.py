from unittest import TestCase

from harness import markdown

PAGE = """# Page

## Other
| a |
|---|
| not this |

## Wanted

Text with | a bar.

| a | b |
|---|--:|
| 1 | x y |
| 2 | |

Text.

| c |
|---|
| 3 |

## Next
| d |
|---|
| nor this |
"""


class Tables(TestCase):
    def test_of_one_heading(self):
        self.assertEqual(markdown.tables(PAGE, "Wanted"), [[["1", "x y"], ["2", ""]], [["3"]]])

    def test_of_no_heading(self):
        self.assertEqual(markdown.tables(PAGE, "Gone"), [])

    def test_what_table_writes_is_read(self):
        rows = [["a", "1"], ["b", ""]]
        text = "\n## T\n" + markdown.table(("name", "n"), rows)
        self.assertEqual(markdown.tables(text, "T"), [rows])

    def test_a_row_without_text_begins_no_table(self):
        rows = [["a", "1"], ["", ""], ["b", "-"]]
        text = "\n## T\n" + markdown.table(("name", "n"), rows)
        self.assertEqual(markdown.tables(text, "T"), [rows])
