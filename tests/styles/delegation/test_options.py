"""Options of a run, background calls, mail, the log, attachments."""

import asyncio
from typing import Any

import pytest

from antiphon import (
    Agent,
    Attachment,
    Limits,
    Message,
    Record,
    RunFailed,
    ToolCall,
    ToolResult,
    UserError,
    open_run,
    run,
    run_sync,
    tool,
)
from antiphon.models.script import Script, call, finish
from antiphon.styles.delegation import event_log, format_trace, trace
from tests.transcript import Gate, effects, lines, recorded, results_shown, sent, shown


def ask(name: str, message: str = "m", **more: Any) -> ToolCall:
    return call("call_agent", agent_name=name, message=message, **more)


A, B = Agent("a", "You lead."), Agent("b", "You write.")
PAIR = (A, B)


def test_finish_cannot_be_disabled() -> None:
    with pytest.raises(ValueError, match="finish cannot be disabled"):
        run_sync(A, "go", model=Script([]), disabled_tools=["finish"])


def test_a_disabled_call_is_gone_and_says_so() -> None:
    model = Script([ask("b"), "went on"])
    recorded(A, "go", agents=PAIR, model=model, disabled_tools=["call_agent"])
    first, second = model.requests
    assert [each.name for each in first.tools] == ["finish"]
    assert "call_agent" not in first.system
    assert "Available agents" not in first.system
    assert results_shown(second) == ["Error: call_agent is disabled in this run"]


def test_an_unknown_name_to_disable() -> None:
    with pytest.raises(UserError, match="Unknown built-in call to disable: search"):
        run_sync(A, "go", model=Script([]), disabled_tools=["search"])


def test_an_own_finish_decides_the_output() -> None:
    @tool(name="finish")
    async def own_finish(message: str, confidence: float) -> str:
        """Finish with a figure."""
        return f"{message} ({confidence:.0%})"

    model = Script([finish("maybe", confidence=0.5)])
    result, _ = recorded(Agent("a", tools=[own_finish]), "go", model=model)
    assert (result.output, model.asked) == ("maybe (50%)", 1)
    assert [each.name for each in model.requests[0].tools] == ["finish", "call_agent"]


def test_an_own_tool_stands_where_the_built_in_is_disabled() -> None:
    @tool(name="call_agent", effect="read")
    async def own_call(who: str) -> str:
        """Call somebody else's agent."""
        return f"{who} says hello"

    model = Script([call("call_agent", who="b"), "end"])
    recorded(Agent("a", tools=[own_call]), "go", model=model, disabled_tools=["call_agent"])
    assert results_shown(model.requests[-1]) == ["b says hello"]


def test_a_background_call_where_there_are_none() -> None:
    model = Script({"a": [ask("b", background=True), "went on"], "b": [finish("never asked")]})
    recorded(A, "go", agents=PAIR, model=model)
    (said,) = results_shown(model.requests[-1])
    assert said.startswith("Error: ")
    assert "background=True" in said
    assert model.asked == 2


def test_the_result_of_a_background_call() -> None:
    replies = [ask("b", "m", background=True), call("get_result", call_id="1/1.c1"), "end"]
    model = Script({"a": replies, "b": [finish("the result text")]})
    result, records = recorded(A, "go", agents=PAIR, model=model, background=True)
    started, fetched = results_shown(model.requests[-1])
    assert (started, fetched) == ("Started in the background as 1/1.c1", "the result text")
    assert "1/1.c1 completed: the result text" in effects(records)
    assert result.output == "end"


async def told(held: Gate, model: Script, *texts: str) -> str:
    """Ask agent `a`, tell it more while its first reply is held back, then let it go on: the output."""
    async with open_run([A], model=model) as opened:
        call_id = await opened.post("a", "go")
        async for item in opened.events(deltas=False):
            if isinstance(item, Record) and getattr(item.event, "id", "") == "1/1.m1":
                break
        for text in texts:
            assert await opened.post(call_id, text) == call_id
        held.open.set()
        return (await opened.result(call_id)).output


def test_messages_to_a_running_agent_come_before_its_next_model_call() -> None:
    held = Gate(ask("nobody"))
    model = Script([held, finish("end")])
    asyncio.run(told(held, model, "one", "two", "three"))
    assert shown(model.requests[0]) == ["user: go"]
    assert shown(model.requests[1])[-3:] == ["user: one", "user: two", "user: three"]


def test_an_agent_that_was_about_to_end_reads_them_first() -> None:
    held = Gate("almost")
    model = Script([held, "now"])
    assert asyncio.run(told(held, model, "wait")) == "now"
    assert shown(model.requests[1]) == ["user: go", "assistant: almost", "user: wait"]


def test_a_full_inbox_refuses_the_newest() -> None:
    """DESIGN section 5: not the oldest is dropped; the newest is refused and its sender is told."""
    held = Gate(ask("nobody"))
    model = Script([held, finish("end")])

    async def main() -> list[Message]:
        async with open_run([A], model=model, limits=Limits(inbox=100)) as opened:
            call_id = await opened.post("a", "go")
            await asyncio.sleep(0)
            for number in range(100):
                await opened.post(call_id, str(number))
            with pytest.raises(UserError, match=r"the inbox of a is full .100 unread messages."):
                await opened.post(call_id, "100")
            waiting = list(opened.activation(1).inbox)
            assert waiting == list(opened.activation(1).inbox), "looking does not consume"
            held.open.set()
            await opened.result(call_id)
            records = await opened.records()
            assert "dead letter for a: 100 (the inbox of a is full (100 unread messages))" in lines(records)
            return waiting

    waiting = asyncio.run(main())
    assert [each.content for each in waiting] == [str(number) for number in range(100)]
    assert shown(model.requests[1])[-100:] == [f"user: {number}" for number in range(100)]


def test_the_result_of_a_failing_call() -> None:
    """An agent's get_result is an error result with the text; the user's `result` raises it."""
    replies = [ask("b", background=True), call("get_result", call_id="1/1.c1"), "end"]
    model = Script({"a": replies, "b": [RuntimeError("out of luck")]})
    recorded(A, "go", agents=PAIR, model=model, background=True)
    fetched = results_shown(model.requests[-1])[1]
    assert fetched.startswith("Error: ")
    assert "out of luck" in fetched

    async def main() -> None:
        async with open_run([A], model=Script([RuntimeError("out of luck")])) as opened:
            await opened.result(await opened.post("a", "go"))

    with pytest.raises(RunFailed, match="out of luck"):
        asyncio.run(main())


def test_several_entry_agents() -> None:
    model = Script({"a": [finish("from a")], "b": [finish("from b")]})
    result = run_sync([A, B], "go", model=model)
    assert result.output == "[a]from a[/a]\n\n[b]from b[/b]"
    assert sent(result) == [
        "forward user>a: go", "return a>user: from a", "forward user>b: go", "return b>user: from b",
    ]  # fmt: skip


def test_one_of_them_fails() -> None:
    """The run fails, and what the others said is kept."""
    model = Script({"a": [RuntimeError("no luck")], "b": [finish("from b")]})
    with pytest.raises(RunFailed, match="no luck") as failed:
        run_sync([A, B], "go", model=model)
    assert failed.value.result.output == "[a][/a]\n\n[b]from b[/b]"


def test_an_entry_agent_that_is_not_among_the_agents() -> None:
    with pytest.warns(UserWarning, match="a is not among the agents"):
        assert run_sync(A, "go", agents=[B], model=Script(["end"])).output == "end"


@pytest.mark.parametrize(("scope", "having"), [("entry", ["a", "a"]), ("all", ["a", "b", "a"])])
def test_extra_instructions(scope: str, having: list[str]) -> None:
    model = Script({"a": [ask("b"), "end"], "b": [finish("r")]})
    recorded(A, "go", agents=PAIR, model=model, extra_instructions="Be brief.", extra_scope=scope)
    told_so = [
        request.system.partition('"')[2][0] for request in model.requests if "Be brief." in request.system
    ]
    assert told_so == having


def test_of_the_entry_agent_only_while_it_serves_the_user() -> None:
    model = Script({"a": [ask("a"), finish("in"), finish("out")]})
    recorded(A, "go", model=model, extra_instructions="Be brief.")
    assert ["Be brief." in request.system for request in model.requests] == [True, False, True]


def test_instructions_for_each_agent() -> None:
    model = Script({"a": [ask("b"), "end"], "b": [finish("r")]})
    recorded(A, "go", agents=PAIR, model=model, extra_instructions={"b": "Be brief."})
    assert ["Be brief." in request.system for request in model.requests] == [False, True, False]


def test_what_cannot_be() -> None:
    with pytest.raises(UserError, match="Unknown agent in extra_instructions: c"):
        run_sync(A, "go", model=Script([]), extra_instructions={"c": "Be brief."})
    with pytest.raises(UserError, match="extra_scope"):
        run_sync(A, "go", model=Script([]), extra_instructions="Be brief.", extra_scope="some")


def test_the_user_answers_an_agent() -> None:
    asked: list[Message] = []

    async def on_input(message: Message) -> str:
        asked.append(message)
        return "tea"

    async def main() -> Any:
        return await run(A, "order", model=model, on_input=on_input)

    model = Script([ask("user", "tea or coffee?"), finish("tea it is")])
    result = asyncio.run(main())
    assert [(each.sender, each.receiver, each.content) for each in asked] == [("a", "user", "tea or coffee?")]
    assert shown(model.requests[1])[-1] == "tool: tea"
    assert sent(result) == [
        "forward user>a: order",
        "forward a>user: tea or coffee?",
        "return user>a: tea",
        "return a>user: tea it is",
    ]


def test_nobody_is_there() -> None:
    model = Script([ask("user", "tea or coffee?"), "went on"])
    recorded(A, "order", model=model)
    assert results_shown(model.requests[1]) == ["Error: nobody is there to answer; go on without the user"]


def test_the_event_log() -> None:
    model = Script({"a": [[ask("b", "m"), ask("nobody")], finish("end")], "b": [finish("r")]})
    _, records = recorded(A, "go", agents=PAIR, model=model)
    log = event_log(records)
    assert [(each.type, each.agent, each.text) for each in log if not each.type.startswith("llm")] == [
        ("agent_call", "a", "go"),
        ("agent_call", "b", "m"),
        ("error", "a", "Unknown agent: nobody. Available agents: b"),
        ("finish", "b", "r"),
        ("agent_return", "b", "r"),
        ("finish", "a", "end"),
        ("agent_return", "a", "end"),
    ]
    assert [each.type for each in event_log(records, agent="b")] == [
        "agent_call", "llm_call", "llm_response", "finish", "agent_return",
    ]  # fmt: skip
    assert [each.agent for each in event_log(records, type="finish")] == ["b", "a"]
    assert [each.agent for each in event_log(records, agent="a", type="finish")] == ["a"]
    log.clear()
    assert event_log(records), "a log is a copy"


def test_the_trace() -> None:
    @tool(effect="read")
    async def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    lead = Agent("a", tools=[add])
    model = Script({"a": [[call("add", a=1, b=2), ask("b", "m")], finish("end")], "b": [finish("r")]})
    _, records = recorded(lead, "go", agents=[lead, B], model=model)
    (root,) = trace(records)
    assert (root.agent, root.call_id, root.parent_call_id, root.result) == ("a", "0/1.c1", "", "end")
    assert [(use.name, use.arguments, use.result) for use in root.tool_calls] == [
        ("add", '{"a":1,"b":2}', "3")
    ]
    (child,) = root.children
    assert (child.agent, child.call_id, child.parent_call_id, child.result) == ("b", "1/1.c2", "0/1.c1", "r")
    assert root.start <= child.start <= (child.end or 0) <= (root.end or 0)
    text = [each.partition(" s ") for each in format_trace((root,)).splitlines()]
    assert [before.rpartition(" ")[0] + " " + after for before, _, after in text] == [
        "a 0/1.c1 → end",
        '  add({"a":1,"b":2}) → 3',
        "  b 1/1.c2 → r",
    ]


def test_an_empty_trace() -> None:
    assert (event_log([]), trace([]), format_trace(trace([]))) == ([], (), "(empty trace)")


PICTURE = Attachment("image/png", data="aGk=", name="hi.png")


def test_attachments_of_a_run() -> None:
    model = Script({"a": [ask("b"), "end"], "b": [finish("r")]})
    run_sync(A, "look", agents=PAIR, model=model, attachments=[PICTURE])
    of_a, of_b, _ = [request.messages[0] for request in model.requests]
    assert (of_a.content, of_a.attachments) == ("look", (PICTURE,))
    assert of_b.attachments == ()


def test_attachments_of_a_tool_result() -> None:
    @tool(effect="read")
    async def photo() -> ToolResult:
        """Take a photo."""
        return ToolResult("one photo", (PICTURE,))

    model = Script([call("photo"), "end"])
    recorded(Agent("a", tools=[photo]), "go", model=model)
    shown_result = model.requests[1].messages[-1]
    assert (shown_result.role, shown_result.content, shown_result.attachments) == (
        "tool",
        "one photo",
        (PICTURE,),
    )


def test_without_them_nothing_changes() -> None:
    model = Script(["end"])
    run_sync(A, "look", model=model)
    assert [each.attachments for each in model.requests[0].messages] == [()]
