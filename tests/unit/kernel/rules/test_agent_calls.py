"""Delegation beyond the seed: call trees, background calls, messages to those at work, several requests."""

import asyncio
from typing import Any

import pytest

from antiphon import Agent, Hooks, Limits, Record, ToolCall, UserError, open_run, run_sync, tool
from antiphon.errors import DuplicateName, UnknownName
from antiphon.kernel.facts.fold import calls as fold_calls
from antiphon.models.script import Script, call, finish
from antiphon.styles.delegation import trace
from antiphon.values.actions import ActionContext
from antiphon.values.schema.arguments import MAX_CHARACTERS
from tests.transcript import Gate, effects, line, lines, recorded, results_shown, sent, shown

A, B = Agent("a", "You lead."), Agent("b", "You write.")
PAIR = (A, B)


def ask(name: str, message: str = "m", **more: Any) -> ToolCall:
    return call("call_agent", agent_name=name, message=message, **more)


async def until(run: Any, text: str) -> None:
    """Wait for a record whose line begins with `text`."""
    async for item in run.events(deltas=False):
        if isinstance(item, Record) and line(item).startswith(text):
            return
    raise AssertionError(f"no record begins with {text!r}")


# -- the tree -----------------------------------------------------------------------------------


def test_every_record_says_who_and_for_whom() -> None:
    model = Script([ask("b"), ask("a"), finish("inner"), finish("r"), "end"])
    _, records = recorded(A, "go", agents=PAIR, model=model)
    started = {record.activation: (record.agent, record.parent) for record in records}
    assert started == {0: ("user", 0), 1: ("a", 0), 2: ("b", 1), 3: ("a", 2)}


def test_a_tree_of_calls() -> None:
    c = Agent("c")
    script = {"a": [[ask("b", "1"), ask("c", "2")], "end"], "b": [ask("c", "3"), "b"], "c": ["x", "y"]}
    result, records = recorded(A, "go", agents=[A, B, c], model=Script(script))
    (root,) = trace(records)
    assert [(span.agent, span.call_id) for span in root.children] == [("b", "1/1.c1"), ("c", "1/1.c2")]
    assert [(span.agent, span.parent_call_id) for span in root.children[0].children] == [("c", "1/1.c1")]
    assert len(result.messages) == 8


@pytest.mark.slow
def test_a_thousand_calls_deep_is_no_recursion() -> None:
    depth = 1_000
    model = Script([*(ask("a", str(n)) for n in range(depth)), *(finish(str(n)) for n in range(depth + 1))])
    result, records = recorded(A, "go", model=model, limits=Limits(depth=None, activations=None))
    assert result.output == str(depth)
    spans, levels = trace(records), 0
    while spans:
        spans, levels = spans[0].children, levels + 1
    assert levels == depth + 1


# -- in the background --------------------------------------------------------------------------


def test_every_background_result_can_be_fetched(monkeypatch) -> None:
    monkeypatch.setattr(fold_calls, "KEPT", 2)
    begun = [[ask("b", background=True) for _ in range(5)]]
    fetched = [call("get_result", call_id=f"1/1.c{number}") for number in (5, 1, 2)]
    model = Script({"a": [*begun, *fetched, "end"], "b": [finish(str(number)) for number in range(5)]})
    _, records = recorded(A, "go", agents=PAIR, model=model, background=True)
    found = [each for each in effects(records, "c") if each.startswith(("1/2", "1/3", "1/4"))]
    assert sum(" completed: " in each for each in found) == 3


@pytest.mark.parametrize("yes", [True, "true", 1])
def test_the_caller_goes_on_while_a_background_call_works(yes: Any) -> None:
    held = Gate(finish("late"))
    replies: list[Any] = [
        ask("b", background=yes),
        lambda _: held.open.set() or call("get_result", call_id="1/1.c1"),
    ]
    model = Script({"a": [*replies, "end"], "b": [held]})
    _, records = recorded(A, "go", agents=PAIR, model=model, background=True)
    assert effects(records, "c")[1:] == [
        "1/1.c1 call b started",
        "1/2.c1 wait result 1/1.c1 started",
        "2/1.c1 completed: late",
        "1/1.c1 completed: late",
        "1/2.c1 completed: late",
        "0/1.c1 completed: end",
    ]


def test_a_background_call_may_be_fetched_twice() -> None:
    fetch = call("get_result", call_id="1/1.c1")
    model = Script({"a": [ask("b", background=True), fetch, fetch, "end"], "b": [finish("r")]})
    recorded(A, "go", agents=PAIR, model=model, background=True)
    assert results_shown(model.requests[-1])[1:] == ["r", "r"]


def test_an_unknown_background_call() -> None:
    model = Script([call("get_result", call_id="9/9.c9"), "end"])
    recorded(A, "go", model=model, background=True)
    assert results_shown(model.requests[-1]) == ["Error: No background call 9/9.c9. Known: (none)"]


def test_what_still_works_in_the_background_ends_with_its_caller() -> None:
    model = Script({"a": [ask("b", background=True), finish("end")], "b": [Gate("never")]})
    result, records = recorded(A, "go", agents=PAIR, model=model, background=True)
    assert (result.output, result.outcome) == ("end", "completed")
    assert effects(records)[-3:] == [
        "2/1.m1 cancelled: the caller ended",
        "1/1.c1 cancelled: the caller ended",
        "0/1.c1 completed: end",
    ]


def test_an_agent_writes_to_one_that_works_in_the_background() -> None:
    held = Gate(call("nothing"))

    def opened(_: object) -> ToolCall:
        held.open.set()
        return call("get_result", call_id="1/1.c1")

    tell = call("send_message", call_id="1/1.c1", message="and be quick")
    model = Script({"a": [ask("b", "write", background=True), tell, opened, "end"], "b": [held, finish("r")]})
    result, _ = recorded(A, "go", agents=PAIR, model=model, background=True)
    second_of_b = [each for each in model.requests if each.system.startswith('You are "b"')][1]
    assert shown(second_of_b)[-1] == "user: and be quick"
    assert results_shown(model.requests[-1])[1:] == ["Delivered to b", "r"]
    assert "forward a>b: and be quick" in sent(result)


def test_a_message_to_a_call_that_has_ended() -> None:
    fetch, tell = call("get_result", call_id="1/1.c1"), call("send_message", call_id="1/1.c1", message="late")
    model = Script({"a": [ask("b", background=True), fetch, tell, "end"], "b": [finish("r")]})
    recorded(A, "go", agents=PAIR, model=model, background=True)
    assert results_shown(model.requests[-1])[-1] == "Error: No background call 1/1.c1. Known: 1/1.c1"


def test_a_message_to_a_full_inbox() -> None:
    tell = call("send_message", call_id="1/1.c1", message="more")
    replies = [ask("b", background=True), [tell, tell], finish("end")]
    model = Script({"a": replies, "b": [Gate("never")]})
    _, records = recorded(A, "go", agents=PAIR, model=model, background=True, limits=Limits(inbox=1))
    full = "the inbox of b is full (1 unread messages)"
    assert results_shown(model.requests[-1])[1:] == ["Delivered to b", f"Error: {full}"]
    assert f"dead letter for b: more ({full})" in lines(records)


# -- from outside -------------------------------------------------------------------------------


def test_several_requests_at_once() -> None:
    """Each has its own result, messages and books; they end in the order in which they are done."""
    held = Gate(finish("slow"))

    async def main() -> None:
        model = Script({"a": [held], "b": [finish("fast")]})
        async with open_run(PAIR, model=model) as run:
            slow = await run.post("a", "take your time")
            fast = await run.post(B, "hurry")
            assert (slow, fast) == ("0/1.c1", "0/2.c1")
            second = await run.result(fast)
            assert await run.open_requests() == (slow,)
            held.open.set()
            first = await run.result(slow)
            assert (first.output, second.output) == ("slow", "fast")
            assert sent(second) == ["forward user>b: hurry", "return b>user: fast"]
            assert await run.result(fast) == second, "a result can be asked for again"

    asyncio.run(main())


def test_a_message_that_comes_after_the_end() -> None:
    async def main() -> None:
        async with open_run([A], model=Script(["end"])) as run:
            call_id = await run.post("a", "go")
            await run.result(call_id)
            with pytest.raises(UnknownName, match=r"Unknown open call: 0/1\.c1\. Known: \(none\)"):
                await run.post(call_id, "late")

    asyncio.run(main())


def test_unread_mail_of_an_agent_that_ends_is_a_dead_letter() -> None:
    held = Gate(finish("end"))

    async def main() -> list[str]:
        async with open_run([A], model=Script([held])) as run:
            call_id = await run.post("a", "go")
            await until(run, "1/1.m1 model")
            await run.post(call_id, "one more thing")
            held.open.set()
            await run.result(call_id)
            return lines(await run.records())

    found = asyncio.run(main())
    assert "mail for a: user: one more thing" in found
    assert "dead letter for a: one more thing (a ended before it read this)" in found


def test_only_calls_take_messages() -> None:
    held = Gate("end")

    async def main() -> None:
        async with open_run([A], model=Script([held])) as run:
            await run.post("a", "go")
            await until(run, "1/1.m1 model")
            with pytest.raises(UnknownName, match=r"Unknown open call: 1/1\.m1\. Known: 0/1\.c1"):
                await run.post("1/1.m1", "hello, model")

    asyncio.run(main())


# -- who may call whom --------------------------------------------------------------------------


def test_can_call() -> None:
    a = Agent("a", can_call=["b"])
    model = Script({"a": [[ask("c"), ask("user"), ask("b")], "end"], "b": [finish("r")]})
    recorded(a, "go", agents=[a, B, Agent("c", "You review.")], model=model, interactive=True)
    assert "- c" not in model.requests[0].system
    assert results_shown(model.requests[-1]) == [
        "Error: Unknown agent: c. Available agents: b",
        "Error: Unknown agent: user. Available agents: b",
        "r",
    ]


def test_who_may_call_nobody_is_not_offered_it() -> None:
    model = Script(["end"])
    hermit = Agent("hermit", can_call=[])
    recorded(hermit, "go", agents=[hermit, B], model=model, background=True)
    assert [each.name for each in model.requests[0].tools] == ["finish"]
    assert "call_agent" not in model.requests[0].system
    assert "- b" not in model.requests[0].system


def test_an_unknown_name_in_can_call() -> None:
    with pytest.raises(UnknownName, match=r"Unknown agent in can_call of a: nobody. Known: a"):
        run_sync(Agent("a", can_call=["nobody"]), "go", model=Script([]))


def test_names() -> None:
    """Two agents of one name are refused, also when one of them is the entry; so are two tools."""
    with pytest.raises(DuplicateName, match="Two agents are named 'a'"):
        run_sync(A, "go", agents=[A, Agent("a", "Another.")], model=Script([]))
    with pytest.raises(DuplicateName), pytest.warns(UserWarning, match="not among the agents"):
        run_sync(Agent("a", "Another."), "go", agents=[A], model=Script([]))

    @tool(name="same")
    def one() -> None:
        """One."""

    @tool(name="same")
    def two() -> None:
        """Two."""

    with pytest.raises(DuplicateName, match="Two tools are named 'same'"):
        run_sync(Agent("a", tools=[one, two]), "go", model=Script([]))
    with pytest.raises(UnknownName, match=r"Unknown agent: nobody. Known: a"):
        run_sync("nobody", "go", agents=[A], model=Script([]))
    with pytest.raises(UserError, match="needs an entry agent"):
        run_sync([], "go", agents=[A], model=Script([]))


@pytest.mark.parametrize(("size", "outcome"), [(MAX_CHARACTERS, "completed"), (MAX_CHARACTERS + 1, "failed")])
def test_a_user_s_message_is_as_long_as_any_text_may_be(size: int, outcome: str) -> None:
    async def act(ctx: ActionContext) -> str:
        return str(len(ctx.new_messages[0].content))

    result, _ = recorded(Agent("a", hooks=Hooks(act=act)), "x" * size)
    assert result.outcome == outcome
    assert result.output == str(size) if outcome == "completed" else "1,048,577 characters" in result.reason
