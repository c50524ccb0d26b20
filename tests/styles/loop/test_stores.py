"""Sessions that are objects of the user's own."""

import asyncio
from typing import Any

import msgspec
import pytest

from antiphon import ModelError, RunFailed, UserError
from antiphon.models.script import Script, call
from antiphon.styles.loop import LoopAgent
from antiphon.values.model import ChatMessage
from tests.styles.loop.looping import ask, echo
from tests.transcript import shown


class Drawer:
    """Keeps a conversation as JSON, and a log of the model calls."""

    def __init__(self, name: str = "mine") -> None:
        self.session_id, self.text, self.log = name, "[]", list[dict[str, Any]]()

    async def load(self) -> Any:
        return msgspec.json.decode(self.text)

    def save(self, messages: list[ChatMessage]) -> None:
        self.text = msgspec.json.encode(messages).decode()

    def append(self, record: dict[str, Any]) -> None:
        self.log.append(record)


def test_the_conversation_goes_on_from_the_store() -> None:
    drawer = Drawer()
    first = Script([call("echo", value="x"), "I will remember."])
    ask(LoopAgent(llm=first, tools=[echo]), "My name is Ada.", session=drawer)
    second = Script(["Ada."])
    agent = LoopAgent(llm=second, tools=[echo])
    assert ask(agent, "What is my name?", session=drawer) == "Ada."
    told = [
        "user: My name is Ada.", "assistant: [echo]", "tool: ok:x", "assistant: I will remember.",
        "user: What is my name?",
    ]  # fmt: skip
    assert shown(second.requests[0]) == told
    assert len(msgspec.json.decode(drawer.text)) == 6
    assert len(asyncio.run(LoopAgent(llm=Script([])).get_history_messages(drawer))) == 6


def test_the_store_is_right_where_it_says_something_else() -> None:
    drawer, model = Drawer(), Script(["one", "two", "three"])
    agent = LoopAgent(llm=model)
    ask(agent, "a", session=drawer)
    ask(agent, "b", session=drawer)
    drawer.text = '[{"role": "user", "content": "something else"}]'
    ask(agent, "c", session=drawer)
    assert shown(model.requests[1]) == ["user: a", "assistant: one", "user: b"]
    assert shown(model.requests[2]) == ["user: something else", "user: c"]


def test_replaced_messages_are_stored() -> None:
    drawer = Drawer()
    agent = LoopAgent(llm=Script([]))
    asyncio.run(agent.replace_history_messages([ChatMessage("user", "earlier")], session=drawer))
    assert [each["content"] for each in msgspec.json.decode(drawer.text)] == ["earlier"]


def test_each_model_call_is_told_as_a_pair() -> None:
    drawer = Drawer()
    agent = LoopAgent(llm=Script([call("echo", value="x"), "done", ModelError("auth", "no")]), tools=[echo])
    ask(agent, "go", session=drawer)
    with pytest.raises(RunFailed):
        ask(agent, "again", session=drawer)
    kinds = [(each["type"], each["seq"]) for each in drawer.log]
    assert kinds == [(kind, seq) for seq in (1, 2, 3) for kind in ("llm.request", "llm.response")]
    assert [each["content"] for each in drawer.log[2]["input"]["messages"]] == ["go", "", "ok:x"]
    assert drawer.log[3]["output"]["content"] == "done"
    assert drawer.log[5]["error"] == {"kind": "auth", "text": "no"}
    assert msgspec.json.encode(drawer.log)
    assert len(msgspec.json.decode(drawer.text)) == 5


def test_requests_of_one_object_queue_too() -> None:
    async def playing() -> list[str]:
        agent, drawer = LoopAgent(llm=Script(["one", "two"])), Drawer()
        async with agent:
            found = await asyncio.gather(*(agent.run(each, session=drawer) for each in "ab"))
        assert [each["content"] for each in msgspec.json.decode(drawer.text)] == ["a", "one", "b", "two"]
        return found

    assert asyncio.run(playing()) == ["one", "two"]


def test_an_object_may_be_no_more_than_a_name() -> None:
    class Named:
        def __init__(self, **names: str) -> None:
            vars(self).update(names)

    model = Script(["a", "b", "c"])
    agent = LoopAgent(llm=model)
    ask(agent, session=Named(session_id="s", run_id="r"))
    ask(agent, session=Named(run_id="r"))
    ask(agent, session="s")
    assert [each.session for each in model.requests] == ["s", "r", "s"]
    assert shown(model.requests[2])[:2] == ["user: go", "assistant: a"]
    with pytest.raises(UserError, match="has one as session_id or run_id; got a Named"):
        ask(agent, session=Named())


def test_a_store_that_fails_is_raised() -> None:
    class Broken(Drawer):
        async def load(self) -> Any:
            raise OSError("the drawer is stuck")

    agent = LoopAgent(llm=Script(["fine"]))
    with pytest.raises(OSError, match="stuck"):
        ask(agent, session=Broken())
    assert ask(agent, session="mine") == "fine"
