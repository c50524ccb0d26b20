"""Permission: who rules on a call, what is asked, and what an answer does."""

import asyncio
import json
from typing import Any

import pytest

from antiphon import (
    Agent,
    Hooks,
    Policy,
    Record,
    RunFailed,
    ToolCall,
    UserError,
    open_journal,
    open_run,
    run,
    tool,
)
from antiphon.kernel.facts.events import ApprovalEffect, EffectStarted, ToolEffect
from antiphon.models.script import Script, call, finish
from tests.transcript import effects, recorded, results_shown, until
from tests.unit.kernel.teams import never


@tool
async def send(to: str) -> str:
    """Send a letter."""
    return f"sent to {to}"


@tool(effect="read")
async def look(where: str) -> str:
    """Look somewhere."""
    return f"seen {where}"


@tool(requires_approval=True)
async def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


@tool(trusted=False)
async def foreign() -> str:
    """A tool from a file."""
    return "done"


A = Agent("a", tools=[send, look, pay, foreign])
SEND, LOOK = call("send", to="x"), call("look", where="x")


def shown_results(wishes: list[ToolCall], agents: Any = (A,), **options: Any) -> list[str]:
    """What the model is told of these calls, with nobody there to ask."""
    model = Script([wishes, "end"])
    recorded(agents[0], "go", agents=agents, model=model, **options)
    return results_shown(model.requests[-1])


DENIED = "Error: permission denied: "
UNGRANTED = DENIED + "send was not granted"


@pytest.mark.parametrize(
    ("policy", "sent", "seen"),
    [
        (Policy(), "sent to x", "seen x"),
        (Policy("guarded"), DENIED + "send acts on the world, and nobody is there to ask", "seen x"),
        (Policy("guarded", allow=("send",)), "sent to x", "seen x"),
        (Policy("strict"), UNGRANTED, DENIED + "look was not granted"),
        (Policy("strict", allow=("lo*",)), UNGRANTED, "seen x"),
        (Policy(deny=("send",), allow=("send",)), DENIED + "the policy denies send", "seen x"),
        (Policy(ask=("l??k",)), "sent to x", DENIED + "look needs approval, and nobody is there to ask"),
        (Policy(ask=("send",), allow=("send",)), "sent to x", "seen x"),
    ],
    ids=["open", "guarded", "allowed", "strict", "granted", "deny first", "ask", "allow before ask"],
)
def test_rules(policy: Policy, sent: str, seen: str) -> None:
    assert shown_results([SEND, LOOK], policy=policy) == [sent, seen]


def test_what_a_tool_itself_asks_for() -> None:
    assert shown_results([call("pay", amount=1), call("foreign")]) == [
        "Error: permission denied: pay needs approval, and nobody is there to ask",
        "Error: permission denied: foreign was not handed over in code, and nobody is there to ask",
    ]


def test_a_callee_has_no_more_rights_than_its_caller() -> None:
    """The strictest ruling counts: of the run, the agent, and every agent that it works for."""
    lead = Agent("lead", policy=Policy(deny=("send",)))
    free = Agent("free", tools=[send, look])

    def said(entry: Agent) -> list[str]:
        wish = call("call_agent", agent_name="free", message="send it")
        model = Script({"lead": [wish, "end"], "free": [[SEND, LOOK], "end"]})
        recorded(entry, "go", agents=[lead, free], model=model)
        return results_shown(
            [each for each in model.requests if each.system.startswith('You are "free"')][-1]
        )

    assert said(free) == ["sent to x", "seen x"]
    assert said(lead) == ["Error: permission denied: the policy denies send", "seen x"]


def test_an_instant_allow_rides_in_the_start() -> None:
    _, records = recorded(A, "go", model=Script([[SEND, LOOK], "end"]))
    details = [each.event.detail for each in records if isinstance(each.event, EffectStarted)]
    assert [(each.name, each.allowed) for each in details if type(each) is ToolEffect] == [
        ("send", True),
        ("look", False),
    ]


async def answered(model: Script, *answers: tuple[str, str], agent: Agent = A, **options: Any) -> list[str]:
    """Run with a person who gives these answers (content, edited arguments) in turn: the effects."""
    to_give = list(answers)
    async with open_run([agent], model=model, **options) as opened:
        call_id = await opened.post(agent, "go")
        async for item in opened.events(deltas=False):
            event = item.event if isinstance(item, Record) else None
            if isinstance(event, EffectStarted) and isinstance(event.detail, ApprovalEffect):
                content, arguments = to_give.pop(0)
                await opened.answer(event.id, content, arguments=arguments)
            if getattr(event, "id", "") == call_id and not isinstance(event, EffectStarted):
                break
        assert not to_give, "every answer was asked for"
        await opened.result(call_id)
        return effects(await opened.records(), "c")


GUARDED = Policy("guarded")


def test_yes() -> None:
    model = Script([SEND, "end"])
    found = asyncio.run(answered(model, ("yes", ""), policy=GUARDED))
    assert found[1:-1] == [
        "1/1.c1? wait approval send started",
        "1/1.c1? completed: yes",
        "1/1.c1 allowed by user",
        "1/1.c1 tool send started",
        "1/1.c1 completed: sent to x",
    ]


def test_no() -> None:
    model = Script([SEND, "end"])
    found = asyncio.run(answered(model, ("no", ""), policy=GUARDED))
    assert found[1:-1] == [
        "1/1.c1? wait approval send started",
        "1/1.c1? completed: no",
        "1/1.c1 refused by user",
        "1/1.c1 denied: permission denied by user: refused",
    ]
    assert results_shown(model.requests[-1]) == ["Error: permission denied by user: refused"]


def test_always_is_for_this_tool_and_the_rest_of_the_run() -> None:
    replies = [SEND, call("send", to="y"), call("pay", amount=1), "end"]
    found = asyncio.run(answered(Script(replies), ("always", ""), ("no", ""), policy=GUARDED))
    assert [each for each in found if "approval" in each] == [
        "1/1.c1? wait approval send started",
        "1/3.c1? wait approval pay started",
    ]
    assert "1/2.c1 completed: sent to y" in found


def test_edited_arguments_bind() -> None:
    model = Script([SEND, "end"])
    found = asyncio.run(answered(model, ("yes", json.dumps({"to": "somebody else"})), policy=GUARDED))
    assert "1/1.c1 completed: sent to somebody else" in found


def test_siblings_do_not_wait_for_an_approval() -> None:
    async def main() -> list[str]:
        model = Script([[SEND, LOOK], "end"])
        async with open_run([A], model=model, policy=GUARDED) as opened:
            call_id = await opened.post(A, "go")
            async for item in opened.events(deltas=False):
                if getattr(getattr(item, "event", None), "content", "") == "seen x":
                    break
            await opened.answer("1/1.c1?", "yes")
            await opened.result(call_id)
            assert results_shown(model.requests[-1]) == ["sent to x", "seen x"]
            return effects(await opened.records(), "c")

    found = asyncio.run(main())
    assert found.index("1/1.c2 completed: seen x") < found.index("1/1.c1? completed: yes")


def test_answers_that_are_none() -> None:
    async def main() -> None:
        async with open_run([A], model=Script([SEND, "end"]), policy=GUARDED) as opened:
            await opened.post(A, "go")
            with pytest.raises(UserError, match=r"1/1.c1 is not an open question or approval"):
                await opened.answer("1/1.c1", "yes")
            async for item in opened.events(deltas=False):
                if isinstance(item.asks, ApprovalEffect):
                    break
            with pytest.raises(UserError, match="answered yes, no or always; got 'maybe'"):
                await opened.answer("1/1.c1?", "maybe")

    asyncio.run(main())


@pytest.mark.parametrize(
    ("answer", "result"), [("yes", "paid 3"), ("who knows", "Error: permission denied by user: refused")]
)
def test_run_asks_through_on_message(answer: str, result: str) -> None:
    """An approval is a message with that intent; whatever is no clear yes is a no."""
    asked: list[Any] = []

    async def on_input(message: Any) -> str:
        asked.append((message.intent, message.sender, message.data))
        return answer

    model = Script([call("pay", amount=3), finish("end")])
    asyncio.run(run(A, "go", model=model, on_input=on_input))
    assert asked == [("approval", "a", {"tool": "pay", "arguments": '{"amount":3}'})]
    assert results_shown(model.requests[-1]) == [result]


def test_who_was_called_by_an_agent_that_is_gone_does_nothing_more() -> None:
    """What its caller would have allowed is not known any more."""
    journal = open_journal()
    b = Agent("b", tools=[send, look], policy=Policy())

    async def leave() -> str:
        model = Script({"a": [call("call_agent", agent_name="b", message="go")], "b": [never]})
        async with open_run([Agent("a"), b], model=model, journal=journal) as opened:
            await opened.post("a", "go")
            await until(opened, "2/1.m1 model started")
            return opened.run_id

    async def come_back(run_id: str) -> int:
        model = Script([[SEND, LOOK], "end"])
        async with open_run([b], model=model, journal=journal, run_id=run_id) as opened:
            with pytest.raises(RunFailed, match="the team has no agent a any more"):
                await opened.result("0/1.c1")
            return len(model.requests)

    assert asyncio.run(come_back(asyncio.run(leave()))) == 0


@pytest.mark.parametrize("said", ["maybe", 3, ("maybe", "who knows")])
def test_a_check_that_says_what_it_cannot_denies_and_the_agent_goes_on(said: Any) -> None:
    checked = Agent("a", tools=[send], hooks=Hooks(authorize=lambda tool, arguments: said))
    model = Script([SEND, "went on"])
    result, _ = recorded(checked, "go", model=model)
    verdict = said[0] if isinstance(said, tuple) else said
    assert results_shown(model.requests[-1]) == [f"{DENIED}the permission check failed: it said {verdict!r}"]
    assert result.output == "went on"
