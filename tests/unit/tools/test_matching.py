"""Where an edit belongs: as given, else in the one place that differs in white space alone, else nowhere."""

from __future__ import annotations

from typing import Any

import pytest

from antiphon.errors import ToolError
from antiphon.tools.folder.text.coding import read_text
from antiphon.tools.folder.text.matching import Edit, applied, place

CODE = """\
class Shop:
    def price(self, what):
        found = self.prices.get(what)
        if found is None:
            raise KeyError(what)
        return found

    def order(self, what):
        self.orders.append(what)
        return self.price(what)
"""
TABBED = CODE.replace("    ", "\t")


def made(text: str, *edits: tuple[str, str]) -> str:
    return applied(text, place(text, [Edit(*each) for each in edits]))


def refused(text: str, *edits: tuple[str, str]) -> str:
    with pytest.raises(ToolError) as caught:
        made(text, *edits)
    return str(caught.value)


def test_a_text_that_stands_there_once_is_replaced_wherever_it_begins_and_ends() -> None:
    assert made(CODE, ("KeyError(what)", "LookupError(what)")) == CODE.replace("KeyError", "LookupError")
    assert made("a b c", ("b", "")) == "a  c"
    assert made("one\ntwo\n", ("one\n", "")) == "two\n"
    assert made("one\r\n".replace("\r", ""), ("one\r\n", "two\r\n")) == "two\n"


def test_several_edits_are_found_in_the_text_as_it_was_in_whatever_order() -> None:
    assert made("a\nb\nc\n", ("c", "a"), ("a", "b"), ("b", "c")) == "b\nc\na\n"


@pytest.mark.parametrize(
    ("edits", "why"),
    [
        ([("what", "x")], "`old` occurs 6 times, at lines 2, 3, 5, 8, 9, 10; give more lines"),
        ([("", "x")], "`old` is empty"),
        ([("found", "found")], "are the same"),
        ([("Shop", "x"), ("missing entirely", "y")], "edit 2 of 2: `old` stands nowhere"),
        ([("class Shop", "x"), ("Shop:", "y")], "edit 2 of 2: it touches the same text as another edit"),
        ([("3: found = None", "x")], "give its lines without their numbers"),
        ([("   \n", "x")], "`old` stands nowhere"),
    ],
)  # fmt: skip
def test_refused(edits: list[tuple[str, str]], why: str) -> None:
    assert why in refused(CODE, *edits)


def test_a_refusal_shows_the_nearest_lines_and_how_they_differ() -> None:
    said = refused(CODE, ("        if found is None:\n            raise ValueError(what)\n", "x"))
    assert said == (
        "`old` stands nowhere in the file. Nearest is line 4; - is `old`, + is the file:\n"
        "          if found is None:\n"
        "-             raise ValueError(what)\n"
        "+             raise KeyError(what)"
    )
    assert "Nearest is line 9" in refused(CODE, ("self.orders.push(what)", "x"))
    assert "nothing like it" in refused(CODE, ("import something_else", "x"))


OLD = "if found is None:\n    raise KeyError(what)\nreturn found"
NEW = "if found is None:\n    log(what)\n    raise KeyError(what)\nreturn found or 0"
RIGHT = CODE.replace("            raise", "            log(what)\n            raise").replace(
    "found\n\n", "found or 0\n\n"
)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (OLD, NEW),
        (OLD + "\n", NEW + "\n"),
        (OLD.replace("\n", "  \n"), NEW.replace("\n", "  \n")),
        (OLD.replace("    ", "\t"), NEW.replace("    ", "\t")),
        (OLD.replace("is None", "is  None"), NEW.replace("is None", "is  None")),
    ],
    ids=["indent lost", "whole lines", "trailing blanks", "tabs", "blanks inside"],
)  # fmt: skip
@pytest.mark.parametrize("text", [CODE, TABBED], ids=["blanks", "tabs"])
def test_the_one_place_that_differs_in_white_space_is_edited_and_new_lines_are_indented_as_the_file(
    text: str, old: str, new: str
) -> None:
    assert made(text, (old, new)) == (RIGHT if text is CODE else RIGHT.replace("    ", "\t"))


def test_lines_that_stay_are_left_as_they_are() -> None:
    text = "if x :\n      odd = 1   \n      even = 2\n"
    assert made(text, ("if x :\n    odd = 1\n    even = 2", "if x :\n    odd = 1\n    even = 4")) == (
        "if x :\n      odd = 1   \n      even = 4\n"
    )


def test_white_space_inside_of_a_line_can_be_changed() -> None:
    old, new = (
        "if found is None:  \n    raise  KeyError(what)",
        "if found is None:  \n    raise KeyError( what )",
    )
    assert made(CODE, (old, new)) == CODE.replace("KeyError(what)", "KeyError( what )")


def test_lines_can_be_deleted_and_moved_in() -> None:
    assert made(CODE, ("if found is None:\n    raise KeyError(what)\n", "")) == CODE.replace(
        "        if found is None:\n            raise KeyError(what)\n", ""
    )
    deeper = made(CODE, ("self.orders.append(what)\nreturn self.price(what)",
                         "if what:\n    self.orders.append(what)\nreturn self.price(what)"))  # fmt: skip
    assert "        if what:\n            self.orders.append(what)\n        return" in deeper


@pytest.mark.parametrize(
    ("text", "old", "new", "why"),
    [
        (CODE + CODE.replace("    ", "  "), "def order(self,  what):", "x", "it does at lines 8, 18"),
        (CODE, "    return found", "    return found\nlog()", "line 6 is indented with 4 blanks more"),
        ("def f():\n    a()\n\n\nb()\n", "a()", "a()\nc()", "line 2 is indented with 4 blanks more"),
        (CODE, "return found", "return found\nelse:\n    log()", "line 6 is indented with 8 blanks more"),
        (CODE, "return found", "return found\n    log()", "line 6 is indented with 8 blanks more"),
        (CODE, "return found", "return found\nif log:\nlog()", "line 6 is indented with 8 blanks more"),
        (CODE, "return found", "return found\nif log:", "line 6 is indented with 8 blanks more"),
        (CODE, "return found", "return found\nif x:\n\tlog()\nx()", "line 6 is indented with 8 blanks more"),
        (
            CODE,
            "if found is None:\nraise KeyError(what)\nreturn found",
            "if found is None:\nlog(what)\nraise KeyError(what)\nreturn found",
            "does not follow from it",
        ),
        ("max = 10\nif a:\n    x  =  10\n", "x = 10", "x = 11", "stands inside of a word at line 1"),
    ],
    ids=[
        "two places", "one line, in part", "one line, the last one", "ends what began before",
        "nothing begins", "nothing in it", "what is in it follows", "tabs among blanks",
        "every line stripped", "inside of a word",
    ],
)  # fmt: skip
def test_what_could_be_meant_in_two_ways_is_refused(text: str, old: str, new: str, why: str) -> None:
    assert why in refused(text, (old, new))


@pytest.mark.parametrize(
    "new",
    [
        "log()\nreturn found",
        "log(\n    what,\n)\nreturn found",
        "if what:\n    log()\nelse:\n    pass\n\nreturn found",
    ],
)
def test_lines_without_an_indent_that_stand_inside_of_something_have_all_lost_it(new: str) -> None:
    """What follows is inside of the class, so nothing before it is outside."""
    indented = "\n".join(f"        {each}" if each else each for each in new.split("\n"))
    assert made(CODE, ("return found", new)) == CODE.replace("        return found", indented)
    (placed,) = place(CODE, [Edit("return found", new)])
    assert placed.fitted


def test_a_line_that_ends_in_a_colon_in_both_texts_says_nothing_of_what_is_in_it() -> None:
    text = 'def f():\n    """Does it:\n    at once.\n    """\n    g()\n'
    edit = ('"""Does it:\nat once.\n"""\ng()', '"""Does it:\nat once.\n"""\ng()\nh()')
    assert made(text, edit) == text + "    h()\n"


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        (
            "def f():\n    if a:\n        b\n",
            "def f():\n  if a:\n    b",
            "def f():\n  if a:\n    if c:\n      b",
            "def f():\n    if a:\n        if c:\n            b\n",
        ),
        (
            "\t\tif a:\n\t\t\tb\n",
            "if a:\n    b",
            "if a:\n    if c:\n        b",
            "\t\tif a:\n\t\t\tif c:\n\t\t\t\tb\n",
        ),
        ("    a\n    b\n", "\ta\n\tb", "\ta\n\tif c:\n\t\tb", "    a\n    if c:\n        b\n"),
        ("  a\n  b\n", "    a\n    b", "    a\n      c\n    b", "  a\n    c\n  b\n"),
        ("  a = 1\n    b = 2\n", "a = 1\nb = 2", "a = 1\nb = 3", "  a = 1\n    b = 3\n"),
        ("  a\n  b\n    c\n", "a\nb\nc", "a\nx\nb\nc", "  a\n  x\n  b\n    c\n"),
    ],
    ids=[
        "two for four",
        "tabs, and lost",
        "blanks for tabs",
        "too deep",
        "line for line",
        "between two alike",
    ],
)
def test_indents_of_new_lines_follow_from_those_that_stay(
    text: str, old: str, new: str, expected: str
) -> None:
    assert made(text, (old, new)) == expected


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        ("  a = 1\n    b = 2\n", "a = 1\nb = 2", "a = 1\nc = 3\nb = 3"),
        ("  a\n    b\n", "a\nb", "a\nx\nb"),
        ("\t\ta\n\t\tb\n", "a\nb", "a\n    c\nb"),
        ("if a:\n  b\n", "if a:\n    b", "if a:\n    b\n   c"),
        ("    a\n    b\n", "        a\n        b", "        a\n      c\n        b\n  d"),
        ("    if a:\n        b\n", "if a:\n        b  ", "if a:\n    c\n        b"),
    ],
    ids=["more lines", "between two that differ", "no unit", "between two steps", "less deep", "one is lost"],
)  # fmt: skip
def test_where_nothing_follows_nothing_is_changed(text: str, old: str, new: str) -> None:
    assert "does not follow from it" in refused(text, (old, new))


def test_part_of_a_line_with_other_white_space_is_refused() -> None:
    assert "Nearest is line 5" in refused(CODE, ("raise  KeyError", "raise LookupError"))


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_and_marks_stay(end: str, mark: bytes) -> None:
    data = mark + end.join(["one", "two", "three", ""]).encode()
    text = read_text(data, "a")
    assert text.text == "one\ntwo\nthree\n"
    edits = place(text.text, [Edit("two\n", "2\n2b\n")])
    assert text.changed(edits) == mark + end.join(["one", "2", "2b", "three", ""]).encode()
    assert text.replaced("x\r\ny") == mark + end.join(["x", "y"]).encode()


def test_lines_with_different_ends_keep_theirs() -> None:
    text = read_text(b"a\r\nb\nc\r\nd", "a")
    edits = place(text.text, [Edit("b\nc", "B\nnew\nC")])
    assert text.changed(edits) == b"a\r\nB\nnew\r\nC\r\nd"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be", "latin-1"])
def test_encodings_stay(encoding: str) -> None:
    mark: Any = {"utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}.get(encoding, b"")
    data = mark + "Grüße an alle\n".encode(encoding)
    text = read_text(data, "a")
    assert text.changed(place(text.text, [Edit("alle", "Zoë")])) == mark + "Grüße an Zoë\n".encode(encoding)
    if encoding == "latin-1":
        with pytest.raises(ToolError, match="a is written in latin-1, which has no '€'"):
            text.changed(place(text.text, [Edit("alle", "5 €")]))


def test_half_a_character_and_what_is_no_text_are_refused() -> None:
    with pytest.raises(ToolError, match="is written in utf-8, which has no"):
        read_text(b"a", "a").replaced("\ud800")
    for data in (b"\x7fELF\0\0", b"\xff\xfe\x00"):
        with pytest.raises(ToolError, match="text"):
            read_text(data, "a")
