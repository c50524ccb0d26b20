"""Texts from models and tools, made fit for a terminal."""

import json
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from antiphon.cli import safe
from antiphon.cli.tree import message_of, short_arguments

ANYTHING = st.text(st.characters(codec=None), max_size=200)


def harmless(text):
    return all(
        unicodedata.category(each) not in ("Cc", "Cs", "Zl", "Zp") and not 0x202A <= ord(each) <= 0x202E
        for each in text.replace("\n", "")
    )


@given(ANYTHING)
def test_nothing_harmful_is_left(text):
    assert harmless(safe.clean(text))
    one = safe.line(text, 20)
    assert harmless(one)
    assert "\n" not in one
    assert len(one) <= 20


@given(ANYTHING)
def test_json_keeps_its_value(text):
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    for written in (safe.json_line({"x": text}), safe.json_text({"x": text})):
        assert json.loads(written) == {"x": text}
        assert harmless(written)
    assert "\n" not in safe.json_line({"x": text})


def test_signs_say_what_was_there():
    assert safe.clean("a\x1b[31mb\x07\x00c\x7f\x9b") == "a␛[31mb␇␀c␡\ufffd"
    assert safe.clean("one\r\ntwo\rthree\tfour") == "one\ntwo␍three    four"
    assert safe.clean("a\u202eb\u2066c") == "a\ufffdb\ufffdc"
    assert safe.clean("Zürich 東京 🙂") == "Zürich 東京 🙂"
    assert safe.clean("👩\u200d🔬 a\u200db") == "👩\u200d🔬 a\ufffdb"
    assert safe.clean("plain") == "plain"


def test_lines_are_cut_visibly():
    assert safe.line("  one\n two\t three ") == "one two three"
    assert safe.line("one two three", 8) == "one two…"
    assert safe.line("x" * 1_000_000, 5) == "xxxx…"
    assert safe.line("", 5) == ""


def test_arguments_on_one_line():
    assert short_arguments('{"a": "x\\ny", "n": [1, 2]}') == 'a="x\\ny", n=[1,2]'
    assert short_arguments('{"a": "' + "x" * 500 + '"}', 20) == 'a="xxxxxxxxxxxxxxxx…'
    assert short_arguments("not json\x1b") == "not json␛"
    assert message_of("[1]") == ""
    assert message_of('{"message": 5}') == "5"
