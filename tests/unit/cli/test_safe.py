"""Texts from models and tools, made fit for a terminal."""

import io
import json
import re
import unicodedata

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Group
from rich.live import Live
from rich.text import Text

from antiphon.cli.display import output, terminal_escape
from antiphon.view.wording import short_arguments

ANYTHING = st.text(st.characters(codec=None), max_size=200)


def harmless(text):
    return all(
        unicodedata.category(each) not in ("Cc", "Cs", "Zl", "Zp") and not 0x202A <= ord(each) <= 0x202E
        for each in text.replace("\n", "")
    )


@given(ANYTHING)
def test_nothing_harmful_is_left(text):
    assert harmless(terminal_escape.clean(text))
    one = terminal_escape.line(text, 20)
    assert harmless(one)
    assert "\n" not in one
    assert len(one) <= 20


@given(
    st.recursive(
        st.none() | st.floats() | st.text("ab"),
        lambda each: st.lists(each) | st.dictionaries(st.text("ab"), each),
    )
)
def test_json_has_no_number_that_json_does_not_have(value):
    def refuse(word):
        raise ValueError(f"{word} is no JSON")

    texts = [write(value) for write in (terminal_escape.json_text, terminal_escape.json_line)]
    one, other = [json.loads(text, parse_constant=refuse) for text in texts]
    assert one == other


@given(ANYTHING)
def test_json_keeps_its_value(text):
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    for written in (terminal_escape.json_line({"x": text}), terminal_escape.json_text({"x": text})):
        assert json.loads(written) == {"x": text}
        assert harmless(written)
    assert "\n" not in terminal_escape.json_line({"x": text})


def test_signs_say_what_was_there():
    assert terminal_escape.clean("a\x1b[31mb\x07\x00c\x7f\x9b") == "a␛[31mb␇␀c␡\ufffd"
    assert terminal_escape.clean("one\r\ntwo\rthree\tfour") == "one\ntwo␍three    four"
    assert terminal_escape.clean("a\u202eb\u2066c") == "a\ufffdb\ufffdc"
    assert terminal_escape.clean("Zürich 東京 🙂") == "Zürich 東京 🙂"
    assert terminal_escape.clean("👩\u200d🔬 a\u200db") == "👩\u200d🔬 a\ufffdb"
    assert terminal_escape.clean("plain") == "plain"


def test_lines_are_cut_visibly():
    assert terminal_escape.line("  one\n two\t three ") == "one two three"
    assert terminal_escape.line("one two three", 8) == "one two…"
    assert terminal_escape.line("x" * 1_000_000, 5) == "xxxx…"
    assert terminal_escape.line("", 5) == ""


def test_arguments_on_one_line():
    assert short_arguments('{"a": "x\\ny", "n": [1, 2]}') == 'a="x\\ny", n=[1,2]'
    assert short_arguments('{"a": "' + "x" * 500 + '"}', 20) == 'a="xxxxxxxxxxxxxxxx…'
    assert short_arguments("not json\x1b") == "not json␛"


@given(ANYTHING)
def test_what_is_drawn_on_a_terminal_is_cleaned_and_its_colours_stay(text):
    screen = io.StringIO()
    console = output.CleanConsole(file=screen, force_terminal=True, width=60, color_system="standard")
    console.print(Text(text, "red"), soft_wrap=True)
    with Live(console=console, auto_refresh=False) as live:
        live.update(Group(Text(text, "bold"), Text.assemble("x", (text, "dim"))), refresh=True)
    drawn = screen.getvalue()
    # Colours, erased lines, the cursor up and shown again: what rich itself says, and nothing else.
    assert harmless(re.sub("\x1b\\[[0-9;?]*[mKAhl]|\r", "", drawn))


def test_a_terminal_that_lacks_a_sign_is_shown_its_number(monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(raw, encoding="ascii"))
    output.say("Z\u00fcrich")
    assert raw.getvalue() == b"Z\\xfcrich\n"


def test_a_program_without_a_console_says_nothing(monkeypatch):
    monkeypatch.setattr("sys.stderr", None)
    output.tell("nobody hears it")
