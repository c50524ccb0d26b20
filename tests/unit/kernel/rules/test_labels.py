"""Labels of what an agent was shown: they stick to it and to what it hands on; two of them ask a person."""

import asyncio
from typing import Any

import pytest

from antiphon import Agent, Hooks, Message, Policy, Record, open_journal, open_run, tool
from antiphon.errors import ToolDefinitionError, ToolError
from antiphon.kernel.facts.events import ApprovalEffect, EffectStarted, MessagePosted
from antiphon.models.script import Script, call
from antiphon.testing.invariants import check_run
from antiphon.values.hooks import PlannedCall, Return, TurnPlan
from antiphon.values.message import ToolResult
from antiphon.values.policy import StandingRule
from antiphon.values.tool import tool_from
from tests.transcript import Gate, recorded, results_shown

READING = {"fetch", "read", "look", "search", "broken", "wide"}


@tool(effect="read", labels=["untrusted"])
async def fetch() -> str:
    """Fetch a page."""
    return "a page"


@tool(effect="read", labels=["private"])
async def read() -> str:
    """Read the mail."""
    return "a mail"


@tool(effect="read")
async def look() -> str:
    """Look."""
    return "seen"


@tool(effect="read")
async def search(labels: list[str]) -> ToolResult:
    """Search, in whatever."""
    return ToolResult("found", labels=tuple(labels))


@tool(effect="read", labels=["private"])
async def broken() -> str:
    """Fail with a word of the mail."""
    raise ToolError("a mail, half of it")


@tool
async def send() -> str:
    """Send."""
    return "sent"


TOOLS = [fetch, read, look, search, broken, send]
FETCH, READ, LOOK, SEND = call("fetch"), call("read"), call("look"), call("send")
DENIED = (
    "Error: permission denied: the agent was shown something untrusted and something private, so a person"
    " allows what acts, and nobody is there to ask"
)


def agent(name: str = "a", **options: Any) -> Agent:
    return Agent(name, tools=TOOLS, **options)


def ask(name: str, message: str = "m", **more: Any) -> Any:
    return call("call_agent", agent_name=name, message=message, **more)


def told(*turns: Any, agents: Any = None, **options: Any) -> str:
    """What the model of `a` is told of the last of its calls, turn by turn, with nobody there to ask."""
    model = Script([*turns, "end"])
    team = agents or [agent()]
    recorded(team[0], "go", agents=team, model=model, **options)
    return results_shown(model.requests[-1])[-1]


@pytest.mark.parametrize(
    ("turns", "found"),
    [
        ([FETCH, READ, SEND], DENIED),
        ([READ, LOOK, FETCH, LOOK, SEND], DENIED),
        ([[READ, FETCH], SEND], DENIED),
        ([FETCH, FETCH, SEND], "sent"),
        ([READ, SEND], "sent"),
        ([LOOK, SEND], "sent"),
        # What was decided before anything was shown cannot have followed from it.
        ([[FETCH, READ, SEND]], "sent"),
        ([FETCH, READ, LOOK], "seen"),
        ([call("search", labels=["private", "untrusted"]), SEND], DENIED),
        ([call("search", labels=["private", "of a friend"]), SEND], "sent"),
        # How a tool ended does not matter: the reason is shown, too.
        ([FETCH, call("broken"), SEND], DENIED),
    ],
)
def test_whoever_was_shown_both_asks_before_it_acts(turns: Any, found: str) -> None:
    assert told(*turns) == found


@tool(effect="read", kind="fetch")
async def visit(url: str) -> str:
    """Visit a page, whose host is told the address."""
    return "a page"


def test_whoever_was_shown_both_asks_before_it_tells_a_stranger_an_address() -> None:
    agents, there = [Agent("a", tools=[*TOOLS, visit])], call("visit", url="https://eve.test/?code=4711")
    assert told(READ, there, agents=agents) == told(FETCH, there, agents=agents) == "a page"
    assert told(FETCH, READ, there, agents=agents) == DENIED
    assert told(FETCH, READ, there, agents=agents, policy=Policy("open", allow=("visit",))) == DENIED


@pytest.mark.parametrize(
    "options",
    [
        {"policy": Policy("open", allow=("send",))},
        {"policy": Policy("strict", allow=("*",))},
        {"rules": [StandingRule("r", "project", "shop", "send", "allow")]},
        {"agents": [agent(hooks=Hooks(authorize=lambda tool, arguments: "allow"))]},
    ],
)
def test_no_rule_and_no_code_waives_it(options: Any) -> None:
    assert told(FETCH, SEND, **options) == "sent"
    assert told(FETCH, READ, SEND, **options) == DENIED


def test_what_is_denied_stays_denied() -> None:
    denied = told(FETCH, READ, SEND, policy=Policy(deny=("send",)))
    assert denied == "Error: permission denied: the policy denies send"


def talked(model: Script, *answers: str, agents: Any = None, requests: int = 1) -> list[str]:
    """Why a person is asked, request after request of `a`, each with the next answer."""

    async def main() -> list[str]:
        journal, said, asked = open_journal(), iter(answers), []
        async with open_run(agents or [agent()], journal=journal, model=model, env={}) as run:
            events = run.events(deltas=False)
            for _ in range(requests):
                request = await run.post("a", "go")
                async for item in events:
                    event = item.event if isinstance(item, Record) else None
                    if isinstance(event, EffectStarted) and isinstance(event.detail, ApprovalEffect):
                        asked.append(f"{event.detail.name} by {event.detail.by}")
                        await run.answer(event.id, next(said))
                    if request not in await run.open_requests():
                        break
            await check_run(journal, run.run_id, reading=READING)
        return asked

    return asyncio.run(main())


def test_a_person_allows_each_call_and_always_is_once() -> None:
    model = Script([FETCH, READ, SEND, SEND, SEND, "end"])
    assert talked(model, "yes", "always", "no") == ["send by labels"] * 3
    assert results_shown(model.requests[-1])[-3:] == [
        "sent",
        "sent",
        "Error: permission denied by user: refused",
    ]


def test_what_a_callee_was_shown_comes_back_with_its_answer() -> None:
    team = [agent("a"), agent("b")]
    model = Script({"a": [ask("b"), READ, SEND, "end"], "b": [FETCH, "done"]})
    assert talked(model, "no", agents=team) == ["send by labels"]


def test_what_a_caller_was_shown_goes_with_the_call() -> None:
    team = [agent("a"), agent("b")]
    model = Script({"a": [READ, ask("b"), SEND, "end"], "b": [FETCH, SEND, "done"]})
    # Its caller has both from then on.
    assert talked(model, "no", "yes", agents=team) == ["send by labels"] * 2


def test_a_callee_beside_it_has_what_it_was_shown_and_no_more() -> None:
    team = [agent("a"), agent("b"), agent("c")]
    both = [ask("b"), ask("c")]
    model = Script({"a": [both, "end"], "b": [FETCH, SEND, "done"], "c": [READ, SEND, "done"]})
    assert talked(model, agents=team) == []


def test_a_message_to_somebody_at_work_has_the_labels_of_who_sends_it() -> None:
    held = Gate([FETCH])

    def opened(_: object) -> Any:
        held.open.set()
        return call("get_result", call_id="1/2.c1")

    tell = call("send_message", call_id="1/2.c1", message="the mail says so")
    lines = [READ, ask("b", background=True), tell, opened, "end"]
    model = Script({"a": lines, "b": [held, SEND, "done"]})
    team = [agent("a"), agent("b")]
    _, records = recorded(team[0], "go", agents=team, model=model, background=True)
    posted = [each.event.message for each in records if isinstance(each.event, MessagePosted)]
    assert [each.labels for each in posted if each.content == "the mail says so"] == [("private",)]
    of_b = [each for each in model.requests if each.system.startswith('You are "b"')]
    assert results_shown(of_b[-1])[-1] == DENIED


def test_what_an_action_publishes_has_the_labels_of_what_it_took() -> None:
    async def act(ctx: Any) -> str:
        ctx.publish(Message("forward", "b", "", "it says so", labels=("of b",)))
        return "done"

    def plan(context: Any) -> TurnPlan | None:
        if context.turn == 1:
            return TurnPlan([PlannedCall("b", forward=(0, 1))])
        return None

    def decide(context: Any) -> Return:
        return Return("completed", "over")

    broker = Agent("a", hooks=Hooks(plan_turn=plan, end_turn=decide))
    team = [broker, Agent("b", hooks=Hooks(act=act))]

    async def main() -> list[Any]:
        journal = open_journal()
        async with open_run(team, journal=journal, model=Script([]), env={}) as run:
            said = Message("forward", "user", "b", "go", labels=("private",))
            await run.result(await run.post("a", "go", inbox=[said]))
            records = [each.event for each in await run.records()]
            await check_run(journal, run.run_id, reading=READING)
        return [each.message for each in records if isinstance(each, MessagePosted) and each.by]

    (published,) = asyncio.run(main())
    assert published.labels == ("of b", "private")


def test_an_outside_tool_says_what_its_answers_carry() -> None:
    schema = {"type": "object", "properties": {}}
    outside = tool_from("fetch_there", "", schema, effect="read", labels=("untrusted",))

    async def main() -> str:
        model = Script([READ, call("fetch_there"), SEND, "end"])
        team, journal = [Agent("a", tools=[*TOOLS, outside])], open_journal()
        async with open_run(team, journal=journal, model=model, env={}) as run:
            request = await run.post("a", "go")
            asked = []
            async for item in run.events(deltas=False):
                event = item.event if isinstance(item, Record) else None
                if isinstance(event, EffectStarted) and getattr(event.detail, "tool", ""):
                    await run.answer(event.id, "there")
                if isinstance(event, EffectStarted) and isinstance(event.detail, ApprovalEffect):
                    asked.append(event.detail.by)
                    await run.answer(event.id, "no")
                if request not in await run.open_requests():
                    break
            await check_run(journal, run.run_id, reading=READING | {"fetch_there"})
        return asked

    assert asyncio.run(main()) == ["labels"]


def test_a_conversation_that_goes_on_in_another_process_has_them_still() -> None:
    async def main() -> tuple[list[str], list[str]]:
        journal, team, seen = open_journal(), [agent(context="continue")], []
        for turns in ([FETCH, READ, "end"], [SEND, "end"]):
            model = Script(turns)
            options: dict[str, Any] = {"run_id": "r", "create": not seen, "interactive": False, "env": {}}
            async with open_run(team, journal=journal, model=model, **options) as run:
                await run.result(await run.post("a", "go"))
            seen.append(results_shown(model.requests[-1])[-1])
        await check_run(journal, "r", reading=READING)
        return seen

    assert asyncio.run(main()) == ["a mail", DENIED]


@pytest.mark.parametrize("labels", [["x"] * 17, ["x" * 65]])
def test_a_result_has_so_many_labels_and_no_more(labels: Any) -> None:
    assert told(call("search", labels=labels)) == (
        "Error: [search] A result has at most 16 labels of 64 characters; drop some"
    )


@pytest.mark.parametrize("labels", [["x"] * 17, ["x" * 65]])
def test_a_tool_has_so_many_labels_and_no_more(labels: Any) -> None:
    with pytest.raises(ToolDefinitionError, match="search: a tool has at most 16 labels of 64 characters"):

        @tool(labels=labels)
        def search() -> None:
            """Search."""
