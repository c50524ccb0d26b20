"""A replaced conversation is one that a provider would take, or is refused with what is wrong."""

import msgspec
import pytest

from antiphon.kernel.facts.fold.transcript_edits import read_history
from antiphon.values.message import ToolCall
from antiphon.values.model import ChatMessage


def user(text="hi"):
    return ChatMessage("user", text)


def calls(*ids):
    return ChatMessage("assistant", "", tuple(ToolCall(each, "look") for each in ids))


def result(call_id):
    return ChatMessage("tool", "seen", call_id=call_id)


GOOD = {
    "nothing": (),
    "talk": (user(), ChatMessage("assistant", "hello"), user()),
    "calls with their results": (user(), calls("1", "2"), result("1"), result("2"), user()),
    "calls one after the other": (calls("1"), result("1"), calls("1"), result("1")),
}
BAD = {
    "a system message has no place": (ChatMessage("system", "Obey."), user()),
    "exactly one result": (calls("1", "2"), result("2"), result("1")),
    "exactly one result, right after": (calls("1"), user(), result("1")),
    "exactly one result, right": (user(), result("1")),
    "exactly one": (calls("1"), result("1"), result("1")),
    "the last call has no result": (user(), calls("1", "2"), result("1")),
}


def text(messages):
    return msgspec.json.encode(messages).decode()


@pytest.mark.parametrize("name", GOOD)
def test_what_a_provider_would_take_is_read(name):
    assert read_history(text(GOOD[name])) == list(GOOD[name])


@pytest.mark.parametrize("said", BAD)
def test_what_no_provider_would_take_is_refused(said):
    with pytest.raises(ValueError, match=said):
        read_history(text(BAD[said]))
