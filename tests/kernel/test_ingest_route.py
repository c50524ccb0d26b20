"""An agent with a model and rules of its own: what it is shown, what its calls become, what follows."""

import asyncio

import pytest

from antiphon import Agent, Message, open_run, tool
from antiphon.models.script import Script, call
from antiphon.values.hooks import Answer, Call, Continue, Return, Shown
from antiphon.values.message import USER
from antiphon.values.model import ChatMessage
from tests.transcript import lines, recorded, shown


@tool(effect="read")
async def look(page: int) -> str:
    """Look at a page."""
    return f"page {page}"


@tool
async def note(text: str) -> str:
    """Note something."""
    raise RuntimeError("never run: the agent's own rule answers it")


def says(*texts):
    return Shown([ChatMessage("user", text) for text in texts])


def test_the_model_is_shown_what_ingest_makes_of_the_messages():
    def ingest(moment):
        taken = [f"{each.sender}: {each.content}" for each in moment.taken]
        return Shown([ChatMessage("user", text) for text in taken], tail=f"turn {moment.turn}")

    model = Script([call("look", page=1), "done"])
    agent = Agent("a", tools=[look], ingest=ingest, model=model)
    result, records = recorded(agent, "go")
    assert result.output == "done"
    assert shown(model.requests[0]) == ["user: user: go", "user: turn 1"]
    assert shown(model.requests[1])[0] == "user: user: go"
    assert shown(model.requests[1])[-1] == "user: turn 2"
    assert "user: turn 1" not in shown(model.requests[1])
    started = [record.event for record in records if record.type == "TurnStarted" and record.activation]
    assert [(each.tail, [text.content for text in each.shown]) for each in started] == [
        ("turn 1", ["user: go"]), ("turn 2", []),
    ]  # fmt: skip


def test_none_shows_the_messages_as_they_are():
    model = Script(["done"])
    recorded(Agent("a", ingest=lambda moment: None, model=model), "go")
    assert shown(model.requests[0]) == ["user: go"]


def test_a_rule_that_raises_fails_the_agent_and_is_named():
    def broken(moment, *rest):
        raise KeyError("x")

    for name, why in (("ingest", "the hook ingest of a failed"), ("decide", "the hook decide of a failed")):
        result, _ = recorded(Agent("a", model=Script(["done"]), **{name: broken}), "go")
        assert (result.outcome, result.why.startswith(why)) == ("failed", True)
    model = Script([call("look", page=1), "done"])
    result, _ = recorded(Agent("a", tools=[look], route=broken, model=model), "go")
    assert result.output == "done"
    assert "Error: the hook route of a failed: KeyError: 'x'" in shown(model.requests[1])[-1]


def test_tools_are_offered_turn_by_turn():
    model = Script([call("note", text="x"), [call("note", text="x"), call("look", page=1)], "done"])

    def ingest(moment):
        return Shown(only=("look",) if moment.turn < 3 else None)

    recorded(Agent("a", tools=[look, note], ingest=ingest, model=model), "go")
    offered = [[spec.name for spec in request.tools] for request in model.requests]
    assert [("note" in names) for names in offered] == [False, False, True]
    assert "note is not offered in this turn. Offered: look" in shown(model.requests[1])[-1]
    assert shown(model.requests[2])[-1].endswith("page 1")


def test_a_call_may_be_answered_by_rule_and_change_what_is_recorded():
    def route(moment, name, arguments):
        if name != "note":
            return None
        notes = [*moment.team.get("notes", []), arguments]
        return Answer(f"{len(notes)} noted", set={"last": arguments}, team={"notes": notes})

    seen = []

    def decide(moment):
        seen.append((dict(moment.team), dict(moment.data), moment.said, list(moment.called)))
        return None

    model = Script([call("note", text="x"), call("look", page=1), "done"])
    agent = Agent("a", tools=[look, note], route=route, decide=decide, model=model)
    _, records = recorded(agent, "go")
    assert shown(model.requests[1])[-1].endswith("1 noted")
    assert seen == [
        ({"notes": ['{"text":"x"}']}, {"last": '{"text":"x"}'}, "", ["note"]),
        ({"notes": ['{"text":"x"}']}, {"last": '{"text":"x"}'}, "", ["look"]),
        ({"notes": ['{"text":"x"}']}, {"last": '{"text":"x"}'}, "done", []),
    ]
    started = [each.event for each in records if each.type == "EffectStarted" and each.event.name == "note"]
    assert [(each.kind, each.allowed) for each in started] == [("tool", True)]


def test_an_answer_may_fail_or_end_the_task():
    def route(moment, name, arguments):
        bad = arguments == '{"text":"bad"}'
        return Answer("no such module", "failed") if bad else Answer("all done", ends=True)

    model = Script([call("note", text="bad"), call("note", text="good")])
    result, _ = recorded(Agent("a", tools=[note], route=route, model=model), "go")
    assert (result.output, result.outcome) == ("all done", "completed")
    assert shown(model.requests[1])[-1].endswith("Error: no such module")


def test_a_call_may_become_a_call_of_an_agent():
    def route(moment, name, arguments):
        return Call("helper" if '"x"' in arguments else "nobody", "help with it", data={"asked": arguments})

    heard = []
    helper = Agent("helper", plan=lambda moment: heard.append(moment.taken[0].data), model=Script(["helped"]))
    model = Script([call("note", text="x"), call("note", text="y"), "done"])
    agent = Agent("a", tools=[note], route=route, model=model)
    result, _ = recorded(agent, "go", agents=[agent, helper])
    assert result.output == "done"
    assert heard == [{"asked": '{"text":"x"}'}]
    assert shown(model.requests[1])[-1].endswith("helped")
    assert "Unknown agent: nobody" in shown(model.requests[2])[-1]


def test_the_rule_for_what_follows_comes_before_the_kernels():
    answers = [Continue("again"), Continue(set={"n": 1}), Return("completed", "by rule", "because")]
    model = Script(["one", "two", "three"])
    agent = Agent("a", decide=lambda moment: answers[moment.turn - 1], model=model)
    result, _ = recorded(agent, "go")
    assert (result.output, result.why) == ("by rule", "because")
    assert shown(model.requests[1])[-1] == "user: again"


def test_nudges_by_rule_are_bounded():
    model = Script(["no"] * 10)
    result, _ = recorded(Agent("a", decide=lambda moment: Continue("go on"), model=model), "go")
    assert (result.outcome, model.asked) == ("no_progress", 4)
    assert result.why == "3 nudges were not followed"


@pytest.mark.impure("a message draws its id when it is made")
def test_what_is_posted_to_oneself_is_read_by_priority():
    def message(text, priority):
        return Message("forward", "a", "a", text, priority=priority)

    def decide(moment):
        posted = [message("late", 90), message("early", 5), message("also late", 90), message("first", 0)]
        return Continue(post=posted) if moment.turn == 1 else None

    model = Script(["one", "two"])
    recorded(Agent("a", decide=decide, model=model), "go")
    told = shown(model.requests[1])[2:]
    assert told == ["user: first", "user: early", "user: late", "user: also late"]


@pytest.mark.impure("a message draws its id when it is made")
def test_ingest_may_post_what_is_to_be_read_again():
    def ingest(moment):
        kept = [each for each in moment.taken if each.source == "poster"]
        again = [Message("forward", USER, "a", "look at me", source="poster")] if moment.turn == 1 else []
        return Shown([ChatMessage("user", f"{len(kept)} kept")], post=again)

    model = Script([call("look", page=1), "done"])
    recorded(Agent("a", tools=[look], ingest=ingest, model=model), "go")
    assert [shown(each)[-1] for each in model.requests] == ["user: 0 kept", "user: 1 kept"]


def test_all_of_it_is_there_after_a_restart(tmp_path):
    journal = f"sqlite:///{tmp_path}/runs.db"
    seen = []

    def ingest(moment):
        seen.append(dict(moment.team))
        return says(*[each.content for each in moment.taken])

    def route(moment, name, arguments):
        return Answer("noted", team={"notes": arguments})

    async def main():
        agent = Agent("a", tools=[note], ingest=ingest, route=route, context="continue")
        model = Script([call("note", text="x"), "one", "two"])
        async with open_run([agent], journal=journal, model=model) as conversation:
            await conversation.result(await conversation.post("a", "go"))
            run_id = conversation.run_id
        async with open_run([agent], journal=journal, model=model, run_id=run_id) as conversation:
            result = await conversation.result(await conversation.post("a", "again"))
            assert result.output == "two"

    asyncio.run(main())
    assert seen == [{}, {"notes": '{"text":"x"}'}, {"notes": '{"text":"x"}'}]


def test_the_transcript_reads_as_ever():
    def route(moment, name, arguments):
        return Answer("noted")

    model = Script([call("note", text="x"), "done"])
    _, records = recorded(Agent("a", tools=[note], route=route, model=model), "go")
    assert [line for line in lines(records) if "note" in line]
