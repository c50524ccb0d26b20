"""The scripted model: order, agents, failures, files."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from antiphon.errors import ConfigError, ModelError
from antiphon.models.script import Script, by_agent, call, finish
from antiphon.models.script.file import parse_script
from antiphon.values.message import ToolCall
from antiphon.values.model import ChatMessage, Delta, ModelRequest, Reply, Usage


def request(*messages: ChatMessage, agent: str = "", effect_id: str = "") -> ModelRequest:
    return ModelRequest("m", f'You are "{agent}". Be kind.' if agent else "", messages, effect_id=effect_id)


def say(script: Script, *requests: ModelRequest) -> list[Any]:
    """The replies, or the errors, in order."""

    async def go() -> list[Any]:
        came: list[Any] = []
        for one in requests:
            try:
                came.append(await script.complete(one, lambda _: None))
            except Exception as error:
                came.append(error)
        return came

    return asyncio.run(go())


SAID = ChatMessage("assistant", "x")


def test_every_kind_of_line() -> None:
    async def later(asked: ModelRequest) -> str:
        await asyncio.sleep(0)
        return f"later {len(asked.messages)}"

    ready = Reply("ready", usage=Usage(1, 2))
    lines = [
        "text",
        ready,
        call("add", a=1),
        [call("a"), call("b")],
        finish("done"),
        lambda _: call("c"),
        later,
    ]
    replies = say(Script(lines), *[request()] * 7)
    assert [reply.content for reply in replies] == ["text", "ready", "", "", "", "", "later 0"]
    assert [[one.name for one in reply.calls] for reply in replies] == [
        [],
        [],
        ["add"],
        ["a", "b"],
        ["finish"],
        ["c"],
        [],
    ]
    assert replies[1] is ready
    assert [reply.stop for reply in replies] == ["stop", "stop", "calls", "calls", "calls", "calls", "stop"]
    assert replies[4].calls[0].arguments == '{"message":"done"}'
    ids = [one.id for reply in replies for one in reply.calls]
    assert len(set(ids)) == len(ids)
    assert "" not in ids


def test_finish_without_a_message() -> None:
    assert finish() == ToolCall("", "finish", "{}")
    assert call("f", name="x", self=1).arguments == '{"name":"x","self":1}'


def test_an_id_that_was_given_is_kept() -> None:
    assert say(Script([ToolCall("mine", "add")]), request())[0].calls[0].id == "mine"


@pytest.mark.parametrize("error", [ModelError("rate_limit", "slow", retry_after=2.0), RuntimeError("bug")])
def test_exceptions_are_raised_and_the_script_goes_on(error: Exception) -> None:
    came = say(Script([error, "after"]), request(), request())
    assert came[0] is error
    assert came[1].content == "after"


def test_raising_one_error_often_does_not_make_it_grow() -> None:
    error = ModelError("overloaded", "busy")
    say(Script([error] * 50), *[request()] * 50)
    depth, frame = 0, error.__traceback__
    while frame:
        depth, frame = depth + 1, frame.tb_next
    assert depth < 5


def test_a_script_that_ran_out_says_so_and_is_not_tried_again() -> None:
    error = say(Script(["one"]), request(), request())[1]
    assert (error.kind, error.retryable) == ("validation", False)
    assert str(error) == "script has no reply left: it holds 1, and one more was asked for"


def test_deltas_are_the_reply_in_pieces() -> None:
    deltas: list[Delta] = []
    reply = Reply("abcdefgh", (call("add", a=1),), "calls", reasoning="hm")
    asyncio.run(Script([reply]).complete(request(), deltas.append))
    assert [(delta.kind, delta.text) for delta in deltas] == [
        ("reasoning", "hm"),
        ("text", "abc"),
        ("text", "def"),
        ("text", "gh"),
        ("call_name", "add"),
        ("call_arguments", '{"a":1}'),
    ]
    quiet: list[Delta] = []
    asyncio.run(Script(["abc"], pieces=0).complete(request(), quiet.append))
    assert quiet == []


def test_each_agent_has_its_lines() -> None:
    script = Script({"a": ["a1", "a2"], "b": ["b1"], "*": lambda asked: f"I am {by_agent(asked)}"})
    came = say(script, *(request(agent=name) for name in ("a", "b", "a", "c")))
    assert [reply.content for reply in came] == ["a1", "b1", "a2", "I am c"]


def test_an_agent_without_lines_is_named() -> None:
    error = say(Script({"a": ["x"], "b": []}), request(agent="c"))[0]
    assert str(error) == "script has no lines for agent 'c'; it has lines for: a, b"


def test_by_turn_remembers_nothing() -> None:
    lines = ["one", call("add"), "three"]
    for order in ([0, 1, 2, 2, 0], [2], [1, 1]):
        came = say(Script(lines, by="turn"), *(request(*[SAID] * turn) for turn in order))
        assert [lines.index(reply.content) if reply.content else 1 for reply in came] == order
    one, two = say(Script(lines, by="turn"), request(SAID)), say(Script(lines, by="turn"), request(SAID))
    assert one == two


def test_by_turn_errors_are_attempts_of_the_reply_after_them() -> None:
    busy, slow = ModelError("overloaded", "busy"), ModelError("rate_limit", "slow")
    lines = [busy, slow, "one", "two"]
    asked = [request(effect_id=f"3/1.m{attempt}") for attempt in (1, 2, 3, 4)]
    came = say(Script(lines, by="turn"), *asked, request(SAID, effect_id="3/2.m1"))
    assert came[:2] == [busy, slow]
    assert [reply.content for reply in came[2:]] == ["one", "one", "two"]


def test_by_turn_counts_a_long_conversation_once() -> None:
    class Watched(list[ChatMessage]):
        read = 0

        def __getitem__(self, place: Any) -> Any:
            self.read += 1
            return super().__getitem__(place)

    run = Watched([ChatMessage("user", "go")])
    script = Script(lambda _: "x", by="turn")
    for _ in range(200):
        say(script, ModelRequest("m", "", run))
        run.append(SAID)
    assert run.read < 1500
    # Another conversation that begins with an equal message is counted for itself.
    assert say(Script(["first", "second"], by="turn"), request(SAID), request())[1].content == "first"


def test_requests_are_recorded_within_a_bound() -> None:
    script = Script(lambda _: "x", record=2)
    asked = [request(agent=name) for name in "abc"]
    say(script, *asked)
    assert script.requests == asked[1:]
    assert script.asked == 3
    assert repr(script) == "Script('script', asked=3)"


@pytest.mark.parametrize("line", [3, None, [], ["a"], {"call": "x"}])
def test_what_is_no_line_is_refused_at_once(line: Any) -> None:
    with pytest.raises(ConfigError, match="line 1 is a"):
        Script([line])


def test_an_unknown_order_is_refused() -> None:
    with pytest.raises(ConfigError, match="'call' or 'turn'"):
        Script([], by="luck")  # type: ignore[arg-type]


def test_a_function_may_give_up() -> None:
    functions: list[Callable[[ModelRequest], Any]] = [lambda _: None, lambda _: 3]
    came = say(Script(functions), request(), request())
    assert [type(error) for error in came] == [ModelError, ConfigError]


# Files

TEXT = """
researcher:
  - Let me see.
  - {call: add, args: {a: 1, b: 2.5, on: 2020-01-01, yes: no}}
  - {text: Both, reasoning: hm, calls: [{call: s, args: {q: x}}, {call: clock}]}
  - {finish: The result.}
  - finish: {message: m, extra: 1}
  - {error: {kind: rate_limit, text: slow down, retry_after: 2, status: 429}}
"*":
  - |
    Two
    lines
"""


def test_a_file_holds_every_kind_of_line() -> None:
    found = parse_script(TEXT)
    assert isinstance(found, dict)
    text, add, both, done, more, error = found["researcher"]
    assert text == "Let me see."
    assert isinstance(add, Reply)
    assert isinstance(both, Reply)
    assert isinstance(done, Reply)
    assert isinstance(more, Reply)
    assert add.calls[0].arguments == '{"a":1,"b":2.5,"on":"2020-01-01","yes":"no"}'
    assert (both.content, both.reasoning, [one.name for one in both.calls]) == ("Both", "hm", ["s", "clock"])
    assert done.calls[0].arguments == '{"message":"The result."}'
    assert more.calls[0].arguments == '{"message":"m","extra":1}'
    assert isinstance(error, ModelError)
    assert (error.kind, error.retry_after, error.status) == ("rate_limit", 2.0, 429)
    assert found["*"] == ["Two\nlines\n"]


def test_a_loaded_script_goes_by_turns(tmp_path: Path) -> None:
    path = tmp_path / "lines.yaml"
    path.write_text("- one\n- {call: add}\n")
    script = Script.load(path)
    assert script.name == f"script:{path}"
    came = say(script, request(SAID), request(), request(SAID))
    assert [reply.content for reply in came] == ["", "one", ""]
    assert came[0].calls[0].id


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("a: 1", "1:4", "expected a list"),
        ("- ok\n- {cal: x}", "2:4", "unknown key 'cal'; did you mean 'call'?"),
        ("- [a]", "1:3", "a text or a mapping"),
        ("- {error: {kind: z}}", "1:18", "kind 'z' is none of: auth"),
        ("- {error: {kind: auth}, text: x}", "1:3", "error stands alone"),
        ("- {error: {retry_after: soon}}", "1:25", "expected a number"),
        ("- &a x\n- *a", "2:3", "aliases"),
        ("- !!int 3", "1:3", "the tag tag:yaml.org,2002:int"),
        ("- {a", "1:5", "is not YAML"),
        ("- " + "[" * 60, "1:42", "nested deeper than 40"),
        ("- {call: a, call: b}", "1:13", "'call' stands here twice"),
        ("- {calls: [{args: {}}]}", "1:12", "call is missing"),
        ("- {calls: x}", "1:11", "expected a list"),
        ("- {call: [x]}", "1:10", "call: expected a text"),
        ("- {args: {}}", "1:10", "args belongs to call"),
        ("- {[a]: x}", "1:4", "a key: expected a text"),
        ("- {}", "1:3", "an empty reply"),
        ("", "1:1", "is empty"),
        ("a: [x]\n---\nb: [y]", "2:1", "another document"),
        ("- \x00", "", "is not YAML"),
    ],
)
def test_what_is_wrong_in_a_file_has_a_place(text: str, place: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_script(text, "f.yaml")
    assert str(caught.value).startswith(f"f.yaml:{place}: " if place else "f.yaml: ")
    assert words in str(caught.value)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        Script.load(tmp_path / "none.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"- ok\n- \xff\n")
    with pytest.raises(ConfigError, match=r"latin\.yaml:2: is not UTF-8"):
        Script.load(tmp_path / "latin.yaml")
