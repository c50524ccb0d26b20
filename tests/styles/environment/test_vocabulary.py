"""Messages, where they wait and where they are remembered."""

import asyncio
import json
import subprocess
import sys
from dataclasses import dataclass
from datetime import date
from typing import Any

import msgspec
import pydantic
import pytest

from antiphon import Message as KernelMessage
from antiphon import UserError
from antiphon.styles.environment.message import (
    AIMessage,
    Message,
    SystemMessage,
    UserMessage,
    from_kernel,
    to_kernel,
)
from antiphon.styles.environment.roles.memory import IGNORED_ID, Memory, NotRemembered
from antiphon.styles.environment.roles.queue import MessageQueue
from antiphon.styles.environment.topic import (
    MESSAGE_ROUTE_TO_ALL,
    MESSAGE_ROUTE_TO_NONE,
    MESSAGE_ROUTE_TO_SELF,
    USER_REQUIREMENT,
    topic_of,
)


class Draw:
    """An action."""


class Painter:
    """A role."""


DRAW, PAINTER = f"{__name__}.Draw", f"{__name__}.Painter"


class Sketch(msgspec.Struct):
    lines: list[str]
    due: date
    sizes: dict[int, str] = {}


@dataclass
class Frame:
    width: int
    title: str = ""


class Form(pydantic.BaseModel):
    name: str
    sizes: dict[int, str] = {}


# -- messages -----------------------------------------------------------------------------------


def test_a_message_needs_nothing_but_its_text() -> None:
    message = Message("Draw a cat")
    assert (message.content, message.role, message.instruct_content) == ("Draw a cat", "user", None)
    assert (message.cause_by, message.sent_from) == (USER_REQUIREMENT, "")
    assert (message.send_to, message.metadata) == ({MESSAGE_ROUTE_TO_ALL}, {})
    assert len(message.id) == 32
    assert message.id != Message("Draw a cat").id
    assert Message(content="x", id="7").id == "7"


def test_the_routes_are_the_seeds() -> None:
    routes = (MESSAGE_ROUTE_TO_ALL, MESSAGE_ROUTE_TO_NONE, MESSAGE_ROUTE_TO_SELF)
    assert routes == ("<all>", "<none>", "<self>")


def test_a_field_nobody_knows_is_passed_over() -> None:
    message = Message("x", colour="red")
    assert not hasattr(message, "colour")


def test_a_content_that_is_no_text_is_refused() -> None:
    with pytest.raises(UserError, match=r"is a text, not list; .* instruct_content"):
        Message(["a"])  # type: ignore[arg-type]


def test_half_a_surrogate_pair_is_replaced() -> None:
    message = Message("a\ud800b")
    assert message.content == "a�b"
    assert Message.load(message.dump()) == message


def test_what_cannot_be_written_is_refused_where_it_is_made() -> None:
    with pytest.raises(UserError, match=r"Message 7 cannot be written as JSON at instruct_content: .*object"):
        Message("x", id="7", instruct_content=object())
    with pytest.raises(UserError, match="cannot be written as JSON"):
        Message("x", metadata={"half": "\ud800"})


@pytest.mark.parametrize("several", [list, set, tuple, frozenset])
def test_send_to_takes_texts_and_classes(several: type) -> None:
    message = Message("x", send_to=several(["Bob", Painter]))
    assert message.send_to == {"Bob", PAINTER}


@pytest.mark.parametrize(
    ("given", "found"),
    [("Bob", {"Bob"}), (Painter, {PAINTER}), (Painter(), {PAINTER}), (None, {"<all>"}), ((), {"<all>"})],
)
def test_send_to_takes_one_address_alone(given: Any, found: set[str]) -> None:
    assert Message("x", send_to=given).send_to == found


def test_an_empty_set_assigned_later_stays_empty() -> None:
    message = Message("x")
    message.send_to = set()
    assert message.send_to == set()
    loaded = Message.load(message.dump())
    assert loaded is not None
    assert loaded.send_to == set()
    message.send_to = {Painter, "Bob"}
    assert message.send_to == {PAINTER, "Bob"}


@pytest.mark.parametrize(("given", "found"), [(Draw, DRAW), (Draw(), DRAW), ("draw", "draw")])
def test_cause_by_is_a_topic(given: Any, found: str) -> None:
    message = Message("x")
    message.cause_by = given
    assert (message.cause_by, Message("x", cause_by=given).cause_by) == (found, found)
    assert topic_of(given) == found


def test_nothing_is_the_topic_of_a_user_and_the_sender_of_nobody() -> None:
    message = Message("x", cause_by=Draw, sent_from=Painter())
    assert message.sent_from == PAINTER
    message.cause_by = message.sent_from = ""
    assert (message.cause_by, message.sent_from) == (USER_REQUIREMENT, "")
    assert topic_of(None) == USER_REQUIREMENT


def test_dump_and_load() -> None:
    message = Message("hi", role="system", cause_by=Draw, send_to={Painter}, metadata={"a": [1]})
    loaded = Message.load(message.dump())
    assert loaded is not None
    assert loaded is not message
    assert (loaded.content, loaded.role, loaded.id) == ("hi", "system", message.id)
    assert loaded == message
    assert Message.load("{") is None
    assert Message.load("") is None


def test_json_that_is_no_message_says_where() -> None:
    for text, where in (("[]", "Expected `object`"), ('{"role": "user"}', "`content`"),
                        ('{"content": "x", "send_to": [1]}', r"\$.send_to\[0\]")):  # fmt: skip
        with pytest.raises(UserError, match=where):
            Message.load(text)
    with pytest.raises(UserError, match="recursion"):
        Message.load('{"content": "x", "metadata": ' + '{"a": ' * 100_000)


def test_a_dump_is_the_same_for_equal_messages() -> None:
    one = Message("x", id="7", send_to=["b", "a", "c"])
    assert one.dump() == Message("x", id="7", send_to=["c", "b", "a"]).dump()


VALUES = [Sketch(["-", "|"], date(2026, 1, 2), {1: "one"}), Frame(3), Form(name="f", sizes={1: "one"})]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_structured_content_is_data_that_its_reader_types(value: Any) -> None:
    message = Message("x", instruct_content=value)
    assert message.instruct_content is value
    assert message.instruct_as(type(value)) is value

    loaded = Message.load(message.dump())
    assert loaded is not None
    assert isinstance(loaded.instruct_content, dict)
    assert type(value).__name__ not in message.dump()
    assert loaded.instruct_as(type(value)) == value
    assert loaded == message


def test_a_model_made_at_run_time_round_trips() -> None:
    made = pydantic.create_model("Made", field1=(str, ...), field2=(list[str], ...))
    message = Message("x", instruct_content=made(field1="a", field2=["b"]))
    loaded = Message.load(message.dump())
    assert loaded is not None
    assert loaded.instruct_as(made) == made(field1="a", field2=["b"])


def test_data_that_does_not_fit_says_where() -> None:
    message = Message("x", id="7", instruct_content={"lines": ["-", 3], "due": "2026-01-02"})
    with pytest.raises(UserError, match=r"of message 7 is no Sketch: .*\$\.lines\[1\]"):
        message.instruct_as(Sketch)
    with pytest.raises(UserError, match="is no Form"):
        message.instruct_as(Form)
    with pytest.raises(UserError, match="name a Struct"):
        message.instruct_as(object())


def test_a_live_object_is_read_as_another_type_too() -> None:
    message = Message("x", instruct_content=Frame(3, "t"))
    assert message.instruct_as(dict[str, Any]) == {"width": 3, "title": "t"}


def test_nobody_loads_pydantic_who_does_not_use_it() -> None:
    """A style costs only what its user uses."""
    code = (
        "import sys; from antiphon.styles.environment.message import Message; "
        "Message.load(Message('x', instruct_content={'a': 1}).dump()).instruct_as(dict); "
        "sys.exit('pydantic' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_messages_are_equal_by_id_and_fields() -> None:
    one = Message("x", id="7", cause_by=Draw)
    assert one == Message("x", id="7", cause_by=DRAW)
    assert one == UserMessage("x", id="7", cause_by=Draw)
    for other in (
        Message("x", id="8", cause_by=Draw),
        Message("y", id="7", cause_by=Draw),
        Message("x", id="7"),
        Message("x", id="7", cause_by=Draw, send_to="Bob"),
        Message("x", id="7", cause_by=Draw, metadata={"a": 1}),
        Message("x", id="7", cause_by=Draw, instruct_content={"a": 1}),
        "x",
    ):
        assert one != other


def test_messages_of_a_fixed_role() -> None:
    assert UserMessage("x", role="assistant").role == "user"
    assert SystemMessage(content="x").role == "system"
    said = AIMessage("x", send_to="Bob").with_agent("Painter")
    assert (said.role, said.agent, said.send_to) == ("assistant", "Painter", {"Bob"})
    assert said.metadata == {"agent": "Painter"}
    assert AIMessage("x").agent == ""


def test_a_message_shows_what_it_is() -> None:
    message = AIMessage("hi", id="7", cause_by="draw")
    assert str(message) == "assistant: hi"
    assert repr(message) == str(message) == "assistant: hi"


# -- the kernel's messages ----------------------------------------------------------------------


def test_a_message_is_carried_by_the_kernels() -> None:
    message = Message(
        "x",
        role="assistant",
        cause_by=Draw,
        sent_from="Ann",
        send_to={"Bob", Painter},
        instruct_content=Frame(3),
        metadata={"a": 1},
    )
    carried = to_kernel(message, "Bob")
    assert (carried.type, carried.sender, carried.receiver) == ("forward", "Ann", "Bob")
    assert (carried.id, carried.topic, carried.content) == (message.id, DRAW, "x")
    stored = msgspec.json.decode(msgspec.json.encode(carried), type=KernelMessage)
    assert stored == carried
    back = from_kernel(stored)
    assert back == message
    assert back.instruct_as(Frame) == Frame(3)


def test_a_message_of_another_style_is_read_as_it_is() -> None:
    back = from_kernel(KernelMessage("forward", "user", "Bob", "hi", id="7", data={"a": 1}))
    assert (back.id, back.content, back.sent_from) == ("7", "hi", "user")
    assert (back.cause_by, back.send_to, back.role) == (USER_REQUIREMENT, {"<all>"}, "user")
    assert (back.instruct_content, back.metadata) == ({"a": 1}, {})
    assert from_kernel(KernelMessage("forward", "user", "Bob", "hi")).instruct_content is None
    theirs = {"role": "king", "send_to": [], "crown": 1}
    back = from_kernel(KernelMessage("forward", "user", "Bob", "hi", data=theirs))
    assert (back.role, back.instruct_content) == ("user", theirs)


# -- the queue ----------------------------------------------------------------------------------


def test_a_queue_keeps_its_order() -> None:
    queue = MessageQueue()
    assert queue.empty()
    assert queue.pop() is None
    first, second = Message("1"), Message("2", cause_by=Draw)
    queue.push(first)
    queue.push(second)
    text = asyncio.run(queue.dump())
    assert not queue.empty()
    assert asyncio.run(queue.dump()) == text
    assert queue.pop() is first
    assert queue.pop_all() == [second]
    assert queue.empty()
    assert queue.pop_all() == []

    loaded = MessageQueue.load(text)
    assert loaded.pop_all() == [first, second]
    assert asyncio.run(loaded.dump()) == "[]"


def test_a_text_that_is_no_queue_is_refused() -> None:
    for text in ("{", "{}", '[{"role": "user"}]'):
        with pytest.raises(UserError, match="JSON list of messages"):
            MessageQueue.load(text)
    assert json.loads(asyncio.run(MessageQueue.load("[]").dump())) == []


def test_nothing_is_not_a_message() -> None:
    queue = MessageQueue()
    queue.push(None)
    assert queue.empty()


# -- memory -------------------------------------------------------------------------------------


def remembering() -> tuple[Memory, list[Message]]:
    messages = [
        UserMessage("draw a cat"),
        AIMessage("a cat", cause_by=Draw),
        AIMessage("a better cat", cause_by=Draw),
        AIMessage("nice", cause_by="review"),
    ]
    return Memory(messages), messages


def test_an_equal_message_is_stored_once() -> None:
    memory = Memory()
    message = Message("x", id="7")
    memory.add(message)
    memory.add(message)
    memory.add(Message("x", id="7"))
    assert memory.count() == 1
    memory.add_batch([Message("x", id="8"), Message("y", id="7")])
    assert [(each.id, each.content) for each in memory.storage] == [("7", "x"), ("8", "x"), ("7", "y")]


def test_get_gives_the_last_k() -> None:
    memory, messages = remembering()
    assert memory.get() == messages
    assert memory.get(1) == messages[-1:]
    assert memory.get(3) == messages[1:]
    assert memory.get(5) == messages
    memory.get().clear()
    assert memory.count() == 4


def test_find_by_role_content_and_action() -> None:
    memory, messages = remembering()
    assert memory.get_by_role("user") == messages[:1]
    assert memory.get_by_content("cat") == messages[:3]
    assert memory.try_remember("better") == messages[2:3]
    assert memory.get_by_action(Draw) == memory.get_by_action(DRAW) == messages[1:3]
    assert memory.get_by_action("unknown") == []
    assert memory.get_by_actions(["review", Draw, DRAW]) == [messages[3], *messages[1:3]]
    assert memory.index[DRAW] == messages[1:3]
    assert "unknown" not in memory.index


def test_news_is_what_is_not_remembered() -> None:
    memory, messages = remembering()
    fresh = Message("new")
    assert memory.find_news([messages[0], fresh, messages[3]]) == [fresh]
    assert memory.find_news([messages[0], fresh, messages[3]], k=1) == [messages[0], fresh]


def test_delete_forgets_everywhere() -> None:
    memory, messages = remembering()
    memory.delete(messages[1])
    assert memory.get() == [messages[0], *messages[2:]]
    assert memory.get_by_action(Draw) == [messages[2]]
    assert memory.find_news(messages) == [messages[1]]
    with pytest.raises(NotRemembered, match=f"{messages[1].id} cannot be deleted: it is not in this memory"):
        memory.delete(messages[1])
    assert issubclass(NotRemembered, ValueError)
    assert issubclass(NotRemembered, UserError)
    memory.add(messages[1])
    assert memory.get(1) == [messages[1]]


def test_delete_newest_and_clear() -> None:
    memory, messages = remembering()
    assert memory.delete_newest() is messages[3]
    assert memory.get_by_action("review") == []
    assert memory.find_news(messages) == [messages[3]]
    memory.clear()
    assert (memory.count(), memory.get(), memory.get_by_action(Draw)) == (0, [], [])
    assert memory.find_news(messages) == messages
    assert memory.delete_newest() is None


def test_a_memory_may_ignore_ids() -> None:
    memory = Memory(ignore_id=True)
    first = Message("x", cause_by=Draw)
    memory.add(first)
    memory.add(Message("x", cause_by=Draw))
    memory.add(Message("x", cause_by="review"))
    assert [each.id for each in memory.storage] == [IGNORED_ID, IGNORED_ID]
    assert first.id != IGNORED_ID
    assert memory.find_news([Message("x", cause_by=Draw), Message("z")])[0].content == "z"
    assert memory.find_news([Message("x", cause_by=Draw)], k=1) != []
    memory.delete(Message("x", cause_by=Draw))
    assert [each.cause_by for each in memory.storage] == ["review"]


def test_a_mark_tells_what_came_after_it() -> None:
    memory, messages = remembering()
    start, mark = Memory().mark(), memory.mark()
    assert memory.since(mark) == []
    fresh = Message("new")
    memory.add_batch([messages[0], fresh])
    assert memory.holds(mark)
    assert memory.since(mark) == [fresh]
    assert memory.since(start) == [*messages, fresh]


@pytest.mark.parametrize("forget", ["delete", "delete_newest", "clear"])
def test_a_mark_does_not_outlive_forgetting(forget: str) -> None:
    memory, messages = remembering()
    mark = memory.mark()
    if forget == "delete":
        memory.delete(messages[0])
    else:
        getattr(memory, forget)()
    assert not memory.holds(mark)
    again = memory.mark()
    memory.add_batch([Message(str(number)) for number in range(9)])
    assert not memory.holds(mark)
    assert memory.since(mark) == memory.get()
    assert memory.holds(again)
    assert memory.since(again) == memory.get(9)


@pytest.mark.parametrize("ignore_id", [False, True])
def test_adding_and_news_compare_no_message_that_cannot_be_equal(
    monkeypatch: pytest.MonkeyPatch, ignore_id: bool
) -> None:
    memory = Memory([Message(str(number)) for number in range(1_000)], ignore_id=ignore_id)
    compared = 0
    equal = Message.__eq__

    def counting(self: Message, other: object) -> bool:
        nonlocal compared
        compared += 1
        return equal(self, other)

    monkeypatch.setattr(Message, "__eq__", counting)
    memory.add(Message("new"))
    memory.find_news([Message("newer"), Message("other")])
    assert compared == 0
    copy = Message.load(memory.storage[500].dump())
    assert copy is not None
    memory.add(copy)
    assert memory.find_news([copy]) == []
    assert compared <= 3
