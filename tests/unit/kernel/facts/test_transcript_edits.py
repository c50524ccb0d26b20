"""Edits of a conversation: replaced by what a provider would take, healed where it was left."""

import msgspec
import pytest

from antiphon.kernel.facts.activation import Activation, AnsweredCall, Turn
from antiphon.kernel.facts.events import EffectFinished, TranscriptCompacted
from antiphon.kernel.facts.fold.transcript_edits import abandon, compact, read_history
from antiphon.values.message import ToolCall, ToolResult
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


# -- a turn that was left in the middle -----------------------------------------------------------


def in_the_middle(**turn):
    """An activation with two calls, of which one has its result."""
    found = Activation(1, "a", phase="calling")
    found.turn = Turn(
        3, calls=(ToolCall("x", "look"), ToolCall("y", "look")), results=[ToolResult("seen"), None],
        waiting=1, pending={1: AnsweredCall(EffectFinished("1/3.c2?", content="yes"), "")}, **turn,
    )  # fmt: skip
    return found


def test_what_has_no_result_gets_one_that_says_why():
    activation = in_the_middle()
    assert abandon(activation, "the caller ended", None) == []
    assert activation.conversation.transcript.messages == [
        ChatMessage("tool", "seen", call_id="x", name="look", ref="1/3.c1"),
        ChatMessage("tool", "Error: the caller ended", call_id="y", name="look", is_error=True, ref="1/3.c2"),
    ]
    turn = activation.turn
    assert (turn.calls, turn.results, turn.waiting, turn.pending) == ((), [], 0, None)


def test_a_plan_has_no_conversation_to_heal():
    activation = in_the_middle(planned=True)
    assert abandon(activation, "the caller ended", None) == ()
    assert activation.conversation.transcript.messages == []
    assert activation.turn.calls == ()


def test_a_turn_without_open_calls_is_left_as_it_is():
    activation = in_the_middle()
    activation.phase = "asking"
    assert abandon(activation, "the caller ended", None) == ()
    assert len(activation.turn.calls) == 2


def test_what_a_compaction_keeps_keeps_where_it_came_from():
    activation = Activation(1, "a")
    transcript = activation.conversation.transcript
    for number, each in enumerate([user("one"), ChatMessage("assistant", "1"), user("two")]):
        transcript.append(each, f"m{number}")
    assert compact(activation, TranscriptCompacted(1, summary="s", last_turns=1, effect="1/2.m1")) == ()
    transcript = activation.conversation.transcript
    said = dict(zip((each.content for each in transcript.messages), transcript.origins, strict=True))
    assert [said[text] for text in ("one", "1", "two")] == ["m0", "m1", "m2"]
    assert [origin for origin in transcript.origins if origin not in ("m0", "m1", "m2")] == ["1/2.m1"]


def test_what_is_trimmed_is_handed_out_to_be_kept():
    activation = Activation(1, "a")
    for number in (1, 2, 3):
        ref = f"1/{number}.c1"
        shown = ChatMessage("tool", f"page {number}", call_id=str(number), name="look", ref=ref)
        activation.conversation.transcript.append(shown, ref)
    kept = compact(activation, TranscriptCompacted(1, trimmed=2))
    assert kept == [("1/1.c1", "page 1"), ("1/2.c1", "page 2")]
    texts = [each.content for each in activation.conversation.transcript.messages]
    assert [text.startswith("page") for text in texts] == [False, False, True]
    assert "1/1.c1" in texts[0]


def test_an_answer_of_no_use_leaves_the_conversation_as_it_is():
    activation = Activation(1, "a")
    activation.conversation.transcript.append(user("one"), "m0")
    assert compact(activation, TranscriptCompacted(1, effect="1/2.m1")) == ()
    assert activation.conversation.transcript.origins == ["m0"]
