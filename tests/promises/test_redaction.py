"""An endpoint may repeat a key in any way it likes: no error shows eight characters of it in a row."""

import asyncio
import html
import json
import traceback
import warnings
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.errors import ModelError
from antiphon.models.openai import OpenAIModel
from antiphon.testing.wire import WireServer, chunk, chunked, http, sse
from antiphon.values.model import ChatMessage, ModelRequest
from antiphon.values.secret import PIECE, redact, shown

KEY = "sk-proj-Ab1/Cd2+Ef3=Gh4_Ij5-Kl6.Mn7~Op8Qr9StU"


def unicode_escapes(text):
    return "".join(f"\\u{ord(letter):04x}" for letter in text)


def percent(text):
    return "".join(f"%{ord(letter):02X}" for letter in text)


def broken_every(size, mark):
    return lambda text: mark.join(text[at : at + size] for at in range(0, len(text), size))


FORMS = {
    "as it is": str,
    "upper case": str.upper,
    "line breaks": broken_every(7, "\n"),
    "one letter a line": broken_every(1, "\r\n  "),
    "zero-width marks": broken_every(3, "\u200b"),
    "a list of pieces": lambda text: json.dumps([text[:6], text[6:12], text[12:]]),
    "an escaped line break": broken_every(6, "\\n"),
    "JSON in JSON": lambda text: json.dumps(json.dumps(broken_every(5, "\n")(text))),
    "escaped slashes": lambda text: text.replace("/", "\\/"),
    "unicode escapes": unicode_escapes,
    "unicode escapes, escaped": lambda text: json.dumps(unicode_escapes(text)),
    "percent": percent,
    "percent of percent": lambda text: quote(percent(text), safe=""),
    "a URL": lambda text: quote(text, safe=""),
    "HTML": lambda text: "".join(f"&#{ord(letter)};" for letter in text),
    "HTML in hexadecimal": lambda text: "".join(f"&#x{ord(letter):x};" for letter in text),
    "HTML entities": lambda text: html.escape(json.dumps(text)),
    "UTF-16 read as bytes": lambda text: text.encode("utf-16-le").decode(),
}


def letters(text):
    """What anyone can read out of a text: every escape undone, nothing between the letters."""
    for _ in range(4):
        text = html.unescape(text)
        with warnings.catch_warnings():
            # An escape that is none stays as it is, which is what is wanted.
            warnings.simplefilter("ignore", DeprecationWarning)
            text = text.encode("latin-1", "replace").decode("unicode_escape", "replace")
        text = "".join(letter for letter in text if letter.isprintable() and letter not in " \"'\\,+[]")
    return text.lower()


def leaks(text):
    key = letters(KEY)
    return [
        key[at : at + PIECE] for at in range(len(key) - PIECE + 1) if key[at : at + PIECE] in letters(text)
    ]


@pytest.mark.parametrize("form", FORMS)
def test_a_key_is_masked_however_it_is_written(form):
    written = FORMS[form](KEY)
    found = redact(f"denied for {written} today", [KEY])
    assert found.startswith("denied for")
    assert found.endswith("today")
    assert "***" in found
    assert not leaks(found)
    assert written not in found


@given(st.integers(0, len(KEY)), st.integers(0, len(KEY)), st.sampled_from(sorted(FORMS)))
def test_what_a_cut_has_left_of_a_key_is_masked(first, last, form):
    assert not leaks(redact(f"key: {FORMS[form](KEY[first:last])}", [KEY]))


@given(st.integers(0, 260), st.sampled_from(sorted(FORMS)))
def test_a_key_that_our_own_cut_meets_is_masked_before(before, form):
    found = shown("x" * before + " " + FORMS[form](KEY) + " y" * 300, [KEY])
    assert len(found) <= 200
    assert not leaks(found)
    assert not any(KEY[at : at + 4] in found for at in range(len(KEY) - 4))


@given(st.text())
def test_a_text_without_the_key_stays_as_it_is(text):
    assert redact(text, ["\u2603" * 40, "", "short"]) == text


def answer(text, where):
    body = {"error": {"message": text, "type": "server_error", "code": text[:300]}}
    if where == "body":
        return (http(json.dumps(body).encode(), 500),)
    if where == "text":
        return (http(text.encode(), 500),)
    if where == "redirect":
        return (http(b"", 302, headers=(f"location: https://x/{quote(text, safe='')}",)),)
    return chunked(sse(chunk(content="so"), body))


@pytest.mark.slow
@pytest.mark.parametrize("where", ["body", "text", "stream", "redirect"])
@pytest.mark.parametrize("before", [0, 150, 180, 190, 780])
def test_no_error_of_an_endpoint_shows_a_piece_of_the_key(where, before):
    async def main():
        async with WireServer() as server:
            model = OpenAIModel("m", base_url=server.url, api_key=KEY)
            for form in FORMS.values():
                text = "".join(letter for letter in form(KEY) if letter != "\x00")
                await server.play(answer("z " * (before // 2) + text, where))
                with pytest.raises(ModelError) as caught:
                    await model.complete(ModelRequest("m", "", (ChatMessage("user", "hi"),)), lambda _: None)
                told = "".join(traceback.format_exception(caught.value)) + repr(caught.value)
                assert not leaks(caught.value.text), caught.value.text
                assert not any(KEY[at : at + PIECE] in told for at in range(len(KEY) - PIECE))

    asyncio.run(main())
