"""An agent with a model and rules of its own: what it is shown, what its calls become, what follows."""

import asyncio

import pytest

from antiphon import Agent, Hooks, Message, open_run, tool
from antiphon.kernel.facts.events import EffectStarted, ToolEffect, TurnFinished, TurnStarted
from antiphon.models.script import Script, call
from antiphon.values.hooks import Continue, DirectResult, ModelInput, PlannedCall, Return, TurnPlan
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
    return ModelInput([ChatMessage("user", text) for text in texts])


def test_the_model_is_shown_what_ingest_makes_of_the_messages():
    def ingest(context):
        taken = [f"{each.sender}: {each.content}" for each in context.new_messages]
        return ModelInput([ChatMessage("user", text) for text in taken], suffix=f"turn {context.turn}")

    model = Script([call("look", page=1), "done"])
    agent = Agent("a", tools=[look], hooks=Hooks(prepare_input=ingest), model=model)
    result, records = recorded(agent, "go")
    assert result.output == "done"
    assert shown(model.requests[0]) == ["user: user: go", "tail: turn 1"]
    assert shown(model.requests[1])[0] == "user: user: go"
    assert shown(model.requests[1])[-1] == "tail: turn 2"
    assert "tail: turn 1" not in shown(model.requests[1])
    started = [record.event for record in records if record.type == "TurnStarted" and record.activation]
    assert [(each.suffix, [text.content for text in each.input]) for each in started] == [
        ("turn 1", ["user: go"]), ("turn 2", []),
    ]  # fmt: skip


def test_none_shows_the_messages_as_they_are():
    model = Script(["done"])
    recorded(Agent("a", hooks=Hooks(prepare_input=lambda context: None), model=model), "go")
    assert shown(model.requests[0]) == ["user: go"]


def test_a_rule_that_raises_fails_the_agent_and_is_named():
    def broken(context, *rest):
        raise KeyError("x")

    for name, why in (
        ("prepare_input", "the hook prepare_input of a failed"),
        ("end_turn", "the hook end_turn of a failed"),
    ):
        result, _ = recorded(Agent("a", model=Script(["done"]), hooks=Hooks(**{name: broken})), "go")
        assert (result.outcome, result.reason.startswith(why)) == ("failed", True)
    model = Script([call("look", page=1), "done"])
    result, _ = recorded(Agent("a", tools=[look], hooks=Hooks(intercept_call=broken), model=model), "go")
    assert result.output == "done"
    assert "Error: the hook intercept_call of a failed: KeyError: 'x'" in shown(model.requests[1])[-1]


def test_tools_are_offered_turn_by_turn():
    model = Script([call("note", text="x"), [call("note", text="x"), call("look", page=1)], "done"])

    def ingest(context):
        return ModelInput(offered_tools=("look",) if context.turn < 3 else None)

    recorded(Agent("a", tools=[look, note], hooks=Hooks(prepare_input=ingest), model=model), "go")
    offered = [[spec.name for spec in request.tools] for request in model.requests]
    assert [("note" in names) for names in offered] == [False, False, True]
    assert "note is not offered in this turn. Offered: look" in shown(model.requests[1])[-1]
    assert shown(model.requests[2])[-1].endswith("page 1")


def test_a_call_may_be_answered_by_rule_and_change_what_is_recorded():
    def route(context, name, arguments):
        if name != "note":
            return None
        notes = [*context.run_data.get("notes", []), arguments]
        return DirectResult(
            f"{len(notes)} noted", activation_data={"last": arguments}, run_data={"notes": notes}
        )

    seen, results = [], []

    def decide(context):
        seen.append((dict(context.run_data), dict(context.data), context.reply, list(context.called_tools)))
        results.append([(each.agent, each.outcome, each.content, each.reason) for each in context.results])
        return None

    model = Script([call("note", text="x"), call("look", page=1), "done"])
    agent = Agent("a", tools=[look, note], hooks=Hooks(intercept_call=route, end_turn=decide), model=model)
    _, records = recorded(agent, "go")
    assert shown(model.requests[1])[-1].endswith("1 noted")
    assert seen == [
        ({"notes": ['{"text":"x"}']}, {"last": '{"text":"x"}'}, "", ["note"]),
        ({"notes": ['{"text":"x"}']}, {"last": '{"text":"x"}'}, "", ["look"]),
        ({"notes": ['{"text":"x"}']}, {"last": '{"text":"x"}'}, "done", []),
    ]
    assert results == [[("note", "completed", "1 noted", "")], [("look", "completed", "page 1", "")], []]
    started = [each.event.detail for each in records if type(each.event) is EffectStarted]
    tools = [each for each in started if type(each) is ToolEffect]
    assert [(each.name, each.allowed) for each in tools] == [("note", True), ("look", False)]


def test_an_answer_may_fail_or_end_the_task():
    def route(context, name, arguments):
        bad = arguments == '{"text":"bad"}'
        return DirectResult("no such module", "failed") if bad else DirectResult("all done", finishes=True)

    model = Script([call("note", text="bad"), call("note", text="good")])
    result, _ = recorded(Agent("a", tools=[note], hooks=Hooks(intercept_call=route), model=model), "go")
    assert (result.output, result.outcome) == ("all done", "completed")
    assert shown(model.requests[1])[-1].endswith("Error: no such module")


def test_a_call_may_become_a_call_of_an_agent():
    def route(context, name, arguments):
        return PlannedCall(
            "helper" if '"x"' in arguments else "nobody", "help with it", data={"asked": arguments}
        )

    heard = []
    helper = Agent(
        "helper",
        hooks=Hooks(plan_turn=lambda context: heard.append(context.new_messages[0].data)),
        model=Script(["helped"]),
    )
    model = Script([call("note", text="x"), call("note", text="y"), "done"])
    agent = Agent("a", tools=[note], hooks=Hooks(intercept_call=route), model=model)
    result, _ = recorded(agent, "go", agents=[agent, helper])
    assert result.output == "done"
    assert heard == [{"asked": '{"text":"x"}'}]
    assert shown(model.requests[1])[-1].endswith("helped")
    assert "Unknown agent: nobody" in shown(model.requests[2])[-1]


def test_the_rule_for_what_follows_comes_before_the_kernels():
    answers = [
        Continue("again"),
        Continue(activation_data={"n": 1}),
        Return("completed", "by rule", "because"),
    ]
    model = Script(["one", "two", "three"])
    agent = Agent("a", hooks=Hooks(end_turn=lambda context: answers[context.turn - 1]), model=model)
    result, _ = recorded(agent, "go")
    assert (result.output, result.reason) == ("by rule", "because")
    assert shown(model.requests[1])[-1] == "user: again"


def test_reminders_by_rule_are_bounded():
    model = Script(["no"] * 10)
    result, _ = recorded(
        Agent("a", hooks=Hooks(end_turn=lambda context: Continue("go on")), model=model), "go"
    )
    assert (result.outcome, model.asked) == ("no_progress", 4)
    assert result.reason == "3 reminders were not followed"


@pytest.mark.impure("a message draws its id when it is made")
def test_what_is_posted_to_oneself_is_read_by_priority():
    def message(text, priority):
        return Message("forward", "a", "a", text, priority=priority)

    def decide(context):
        posted = [message("late", 90), message("early", 5), message("also late", 90), message("first", 0)]
        return Continue(post=posted) if context.turn == 1 else None

    model = Script(["one", "two"])
    recorded(Agent("a", hooks=Hooks(end_turn=decide), model=model), "go")
    told = shown(model.requests[1])[2:]
    assert told == ["user: first", "user: early", "user: late", "user: also late"]


@pytest.mark.impure("a message draws its id when it is made")
def test_ingest_may_post_what_is_to_be_read_again():
    def ingest(context):
        kept = [each for each in context.new_messages if each.source == "poster"]
        again = [Message("forward", USER, "a", "look at me", source="poster")] if context.turn == 1 else []
        return ModelInput([ChatMessage("user", f"{len(kept)} kept")], post=again)

    model = Script([call("look", page=1), "done"])
    recorded(Agent("a", tools=[look], hooks=Hooks(prepare_input=ingest), model=model), "go")
    assert [shown(each)[-1] for each in model.requests] == ["user: 0 kept", "user: 1 kept"]


def test_all_of_it_is_there_after_a_restart(tmp_path):
    journal = f"sqlite:///{tmp_path}/runs.db"
    seen = []

    def ingest(context):
        seen.append(dict(context.run_data))
        return says(*[each.content for each in context.new_messages])

    def route(context, name, arguments):
        return DirectResult("noted", run_data={"notes": arguments})

    async def main():
        agent = Agent(
            "a", tools=[note], hooks=Hooks(prepare_input=ingest, intercept_call=route), context="continue"
        )
        model = Script([call("note", text="x"), "one", "two"])
        async with open_run([agent], journal=journal, model=model) as run:
            await run.result(await run.post("a", "go"))
            run_id = run.run_id
        async with open_run([agent], journal=journal, model=model, run_id=run_id) as run:
            result = await run.result(await run.post("a", "again"))
            assert result.output == "two"

    asyncio.run(main())
    assert seen == [{}, {"notes": '{"text":"x"}'}, {"notes": '{"text":"x"}'}]


def test_the_transcript_reads_as_ever():
    def route(context, name, arguments):
        return DirectResult("noted")

    model = Script([call("note", text="x"), "done"])
    _, records = recorded(Agent("a", tools=[note], hooks=Hooks(intercept_call=route), model=model), "go")
    assert [line for line in lines(records) if "note" in line]


@pytest.mark.parametrize(
    ("hooks", "begun", "over"),
    [
        (Hooks(), [""], []),
        (Hooks(plan_turn=lambda context: None), ["plan_turn"], []),
        (Hooks(plan_turn=lambda context: TurnPlan()), ["plan_turn"], []),
        (Hooks(prepare_input=lambda context: ModelInput([ChatMessage("user", "x")])), ["prepare_input"], []),
        (
            Hooks(end_turn=lambda context: None if context.turn == 2 else Continue("again")),
            ["", ""],
            ["end_turn"],
        ),
    ],
    ids=["none", "plan left to the model", "plan", "prepare", "end"],
)
def test_a_turn_says_which_hook_decided(hooks, begun, over):
    _, records = recorded(Agent("a", hooks=hooks), "go", model=Script(["one", "two"]))
    events = [each.event for each in records if each.activation == 1]
    assert [each.by for each in events if isinstance(each, TurnStarted)] == begun
    assert [each.by for each in events if isinstance(each, TurnFinished) and each.by] == over


def test_a_plan_may_leave_a_turn_to_the_agents_own_action():
    async def act(context):
        return "acted"

    agent = Agent("a", hooks=Hooks(plan_turn=lambda context: None, act=act))
    result, records = recorded(agent, "go", env={})
    assert result.output == "acted"
    (begun,) = [each.event for each in records if isinstance(each.event, TurnStarted) and each.activation]
    assert begun == TurnStarted(1, 1, act=True, by="plan_turn")
