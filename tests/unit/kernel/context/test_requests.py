"""What an adapter of a model is given: plain data, the conversation so far, and the tail of a turn apart."""

import copy
import json
import pickle

import msgspec
import pytest

from antiphon import Agent, Hooks, run_sync, tool
from antiphon.kernel.context.transcript import Transcript
from antiphon.models.openai.wire import Dialect, encode_request
from antiphon.models.script import Script, call
from antiphon.values.hooks import ModelInput
from antiphon.values.model import ChatMessage, ModelRequest

FORMS = {
    "JSON": lambda request: msgspec.json.decode(msgspec.json.encode(request)),
    "MessagePack": lambda request: msgspec.msgpack.decode(msgspec.msgpack.encode(request)),
    "builtins": msgspec.to_builtins,
    "json of the standard library": lambda request: json.loads(
        json.dumps({name: getattr(request, name) for name in request.__struct_fields__}, default=plain)
    ),
    "a deep copy": lambda request: msgspec.to_builtins(copy.deepcopy(request)),
    "a pickle": lambda request: msgspec.to_builtins(pickle.loads(pickle.dumps(request))),
}


def plain(value):
    return msgspec.to_builtins(value)


@tool(effect="read")
async def look(page: int) -> str:
    """Look at a page."""
    return f"page {page}"


class Own:
    """A model of a user's own: what it makes of each request is kept, and the request is not."""

    name = "own"

    def __init__(self, form):
        self.form, self.formed = form, []
        self.script = Script([call("look", page=1), call("look", page=2), "done"], record=0)

    async def complete(self, request, emit):
        self.formed.append(self.form(request))
        return await self.script.complete(request, emit)


def three_turns(form):
    model = Own(form)
    assert run_sync(Agent("a", "Look.", tools=[look], model=model), "go").output == "done"
    return model.formed


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_request_can_be_encoded_and_copied_by_whoever_answers_it(form):
    formed = three_turns(form)
    assert [len(each["messages"]) for each in formed] == [1, 3, 5]
    last = formed[-1]
    assert [each["role"] for each in last["messages"]] == ["user", "assistant", "tool", "assistant", "tool"]
    assert [each["content"] for each in last["messages"]] == ["go", "", "page 1", "", "page 2"]
    assert [each["name"] for each in last["tools"]] == ["look", "call_agent", "finish"]
    assert last["tool_choice"] == "auto"


def test_a_request_that_is_kept_stays_as_it_was():
    kept = three_turns(lambda request: request)
    assert [len(each.messages) for each in kept] == [1, 3, 5]
    copied = three_turns(copy.deepcopy)
    assert [each.messages for each in copied] == [each.messages for each in kept]
    assert {type(each.messages) for each in copied} == {list}


def test_a_conversation_that_nobody_keeps_is_not_copied_in_any_turn():
    transcript = Transcript()
    transcript.append(ChatMessage("user", "go"))
    given = {id(transcript.upto_now())}
    for number in range(50):
        transcript.append(ChatMessage("assistant", str(number)))
        shown = transcript.upto_now()
        assert list(shown) == transcript.messages
        given.add(id(shown))
        del shown
    assert len(given) == 1
    assert len(set(three_turns(lambda request: id(request.messages)))) == 1


CHANGES = {
    "append": lambda messages: messages.append(messages[0]),
    "insert": lambda messages: messages.insert(0, messages[0]),
    "extend": lambda messages: messages.extend(messages),
    "pop": lambda messages: messages.pop(),
    "remove": lambda messages: messages.remove(messages[0]),
    "clear": lambda messages: messages.clear(),
    "sort": lambda messages: messages.sort(key=str),
    "reverse": lambda messages: messages.reverse(),
    "an item": lambda messages: messages.__setitem__(0, messages[0]),
    "a slice": lambda messages: messages.__delitem__(slice(None)),
    "+=": lambda messages: messages.__iadd__([messages[0]]),
    "*=": lambda messages: messages.__imul__(2),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_later_calls_share_cannot_be_changed(change):
    def attempt(request):
        with pytest.raises(TypeError, match=r"change a copy, list\(request.messages\)"):
            change(request.messages)
        mine = list(request.messages)
        change(mine)
        return len(request.messages)

    assert three_turns(attempt) == [1, 3, 5]


def test_the_tail_of_a_turn_is_no_message_and_is_sent_last():
    def prepare(context):
        told = [ChatMessage("user", each.content) for each in context.new_messages]
        return ModelInput(told, suffix=f"turn {context.turn}")

    model = Script([call("look", page=1), "done"])
    run_sync(Agent("a", tools=[look], hooks=Hooks(prepare_input=prepare), model=model), "go")
    assert [(each.tail, len(each.messages)) for each in model.requests] == [("turn 1", 1), ("turn 2", 3)]
    assert [each.content for each in model.requests[1].messages] == ["go", "", "page 1"]
    sent = json.loads(encode_request("m", model.requests[1], Dialect(), stream=True, tools=b""))
    assert sent["messages"][-1] == {"role": "user", "content": "turn 2"}
    assert run_sync(Agent("b", model=Script(lambda request: request.tail or "none")), "go").output == "none"


def test_what_an_adapter_made_of_a_message_is_made_once_whoever_kept_what():
    transcript, made = Transcript([ChatMessage("user", "0")]), []

    def encode(message):
        made.append(message.content)
        return message.content.encode()

    kept = [transcript.upto_now()]
    for number in range(1, 4):
        assert list(kept[-1].encoded("own", encode)) == [b"%d" % each for each in range(number)]
        transcript.append(ChatMessage("user", str(number)))
        kept.append(transcript.upto_now())
    assert list(kept[0].encoded("own", encode)) == [b"0"]
    assert made == ["0", "1", "2"]


def test_a_request_is_read_back_from_its_json():
    asked = three_turns(msgspec.json.encode)[-1]
    assert msgspec.json.decode(asked, type=ModelRequest).messages[2].content == "page 1"
