"""Nothing is guessed on the way to an act: broken arguments reach only tools that read, and are shown so."""

import asyncio
from typing import Any

import pytest

from antiphon import Agent, Hooks, ModelOptions, open_run, tool
from antiphon.journal.memory import MemoryJournal
from antiphon.kernel.facts.events import EffectStarted, ToolEffect
from antiphon.models.script import Script
from antiphon.testing.invariants import check_journal
from antiphon.values.hooks import DirectResult, PlannedCall, Return
from antiphon.values.message import ToolCall
from antiphon.values.model import Reply
from tests.transcript import recorded, results_shown


def said(name: str, arguments: str) -> Reply:
    """A model's call with arguments as it wrote them."""
    return Reply("", (ToolCall("1", name, arguments),), "calls")


@pytest.mark.parametrize("raw", ["{bad", '{"pattern": "logs/2020-', '```json\n{"pattern": "x"}\n```', "{"])
@pytest.mark.parametrize("effect", ["once", "idempotent"])
def test_broken_arguments_never_act(raw: str, effect: Any) -> None:
    deleted = []

    @tool(effect=effect)
    def delete_all(pattern: str = "*") -> str:
        """Delete what matches."""
        deleted.append(pattern)
        return "deleted"

    model = Script([said("delete_all", raw), "sorry"])
    result, _ = recorded(Agent("a", tools=[delete_all], model=model), "go")
    assert result.output == "sorry"
    assert deleted == []
    (told,) = results_shown(model.requests[1])
    assert told.startswith("Error: Invalid arguments for tool 'delete_all': not JSON: ")
    assert told.endswith("give the whole object again, as JSON")


@pytest.mark.parametrize("effect", ["read", "once"])
@pytest.mark.parametrize("raw", ['{"text": "one, tw', ""], ids=["in the middle", "before the arguments"])
def test_a_call_that_the_output_limit_cut_is_not_made_and_the_model_is_told(raw: str, effect: Any) -> None:
    written: list[str] = []

    @tool(effect=effect)
    def write(text: str = "nothing") -> str:
        """Write a text."""
        written.append(text)
        return "written"

    calls = (ToolCall("1", "write", '{"text": "whole"}'), ToolCall("2", "write", raw))
    model = Script([Reply("", calls, "length"), said("write", '{"text": "two"}'), "done"])
    asking = ModelOptions(max_output_tokens=700)
    result, _ = recorded(Agent("a", tools=[write], model=model, asking=asking), "go")
    assert (result.output, written) == ("done", ["whole", "two"])
    first, second = results_shown(model.requests[1])
    assert first == "written"
    assert second == (
        "Error: write was not called: your reply reached its limit of 700 output tokens in the middle of the "
        "arguments. Call it again with shorter arguments, or in several parts"
    )


def test_calls_of_a_cut_reply_whose_arguments_are_whole_are_made() -> None:
    """Also one without arguments, if another call came after it; and the last one, if its JSON is whole."""
    written: list[str] = []

    @tool
    def write(text: str = "nothing") -> str:
        """Write a text."""
        written.append(text)
        return "written"

    calls = (ToolCall("1", "write", ""), ToolCall("2", "write", '{"text": "whole"}'))
    model = Script([Reply("", calls, "length"), "done"])
    recorded(Agent("a", tools=[write], model=model), "go")
    # They run in threads, side by side.
    assert sorted(written) == ["nothing", "whole"]


@pytest.mark.parametrize(("name", "raw"), [("finish", '{"message": "the beg'), ("call_agent", "{")])
def test_an_own_call_that_the_output_limit_cut_is_not_made_either(name: str, raw: str) -> None:
    model = Script([Reply("", (ToolCall("1", name, raw),), "length"), "whole"])
    result, _ = recorded(Agent("a", model=model), "go")
    assert result.output == "whole"
    assert results_shown(model.requests[1])[0].startswith(f"Error: {name} was not called: your reply reached")


@tool(effect="read")
def read_file(path: str = "README.md") -> str:
    """Read a file."""
    return f"text of {path}"


def test_a_reading_tool_says_how_its_broken_arguments_were_understood() -> None:
    model = Script([said("read_file", '{"path": "docs/in'), "done"])
    _, records = recorded(Agent("a", tools=[read_file], model=model), "go")
    first, rest = results_shown(model.requests[1])[0].split("\n")
    assert first == '[the arguments were not valid JSON; they were read as {"path":"docs/in"}]'
    assert rest == "text of docs/in"
    started = [each.event for each in records if isinstance(each.event, EffectStarted)]
    (detail,) = [each.detail for each in started if isinstance(each.detail, ToolEffect)]
    assert (detail.arguments, detail.repaired) == ('{"path":"docs/in"}', True)


def test_sound_arguments_get_no_such_line() -> None:
    model = Script([said("read_file", '{ "path" : "a" }'), said("read_file", ""), "done"])
    recorded(Agent("a", tools=[read_file], model=model), "go")
    assert results_shown(model.requests[2]) == ["text of a", "text of README.md"]


def test_a_result_that_ends_the_task_is_not_guessed() -> None:
    @tool(effect="read", finishes=True)
    def answer(text: str) -> str:
        """Give the answer."""
        return text

    model = Script([said("answer", '{"text": "The sum is 12'), said("answer", '{"text": "The sum is 1200"}')])
    result, _ = recorded(Agent("a", tools=[answer], model=model), "go")
    assert result.output == "The sum is 1200"


@pytest.mark.parametrize(
    "instead", [PlannedCall("b", "do it"), DirectResult("done", run_data={"done": True})]
)
def test_a_hook_that_takes_a_reading_tools_place_is_given_no_guess(instead: Any) -> None:
    hooks = Hooks(intercept_call=lambda context, name, arguments: instead)
    model = Script([said("read_file", '{"path": "docs/in'), "done"])
    team = [Agent("a", tools=[read_file], hooks=hooks, model=model), Agent("b", model=Script([]))]
    result, _ = recorded(team[0], "go", agents=team)
    assert result.output == "done"
    assert results_shown(model.requests[1])[0].startswith(
        "Error: Invalid arguments for tool 'read_file': not"
    )


def test_of_long_arguments_it_is_said_how_they_began() -> None:
    model = Script([said("read_file", '{"path": "' + "x" * 5_000), "done"])
    recorded(Agent("a", tools=[read_file], model=model), "go")
    first, _ = results_shown(model.requests[1])[0].split("\n")
    assert first.endswith("xxx... (5,011 characters)]")
    assert len(first) < 1_200


def test_a_person_allows_what_was_understood_and_the_model_is_told() -> None:
    @tool(effect="read", requires_approval=True)
    def peek(path: str) -> str:
        """Look at a file."""
        return f"seen {path}"

    model = Script([said("peek", '{"path": "secret'), "done"])

    async def play() -> None:
        journal = MemoryJournal()
        async with open_run([Agent("a", tools=[peek], model=model)], journal=journal) as run:
            call_id = await run.post("a", "go")
            async for record in run.events(deltas=False):
                if record.asks is not None:
                    await run.answer("1/1.c1?", "yes")
                    break
            assert (await run.result(call_id)).output == "done"
        await check_journal(journal)

    asyncio.run(play())
    assert results_shown(model.requests[1]) == [
        '[the arguments were not valid JSON; they were read as {"path":"secret"}]\nseen secret'
    ]


def test_an_answer_under_a_wrong_name_is_asked_for_again() -> None:
    model = Script([said("finish", '{"result": "42"}'), said("finish", '{"message": "42"}')])
    result, _ = recorded(Agent("a", completion="finish", model=model), "go")
    assert result.output == "42"
    assert results_shown(model.requests[1]) == [
        "Error: Invalid arguments for tool 'finish': unknown argument 'result' (did you mean 'message'?); "
        "allowed: message"
    ]


def test_nothing_beside_the_answer_is_dropped() -> None:
    model = Script([said("finish", '{"message": "done", "data": [1]}'), said("finish", '{"message": "[1]"}')])
    result, _ = recorded(Agent("a", completion="finish", model=model), "go")
    assert result.output == "[1]"


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ('{"sum": 1.5, "parts": ["a"]}', '{"sum":1.5,"parts":["a"]}'),
        ("42", "42"),
        ("true", "true"),
        ("null", ""),
    ],
)
def test_an_answer_that_is_no_text_is_written_as_json(written: str, text: str) -> None:
    model = Script([said("finish", f'{{"message": {written}}}')])
    result, _ = recorded(Agent("a", completion="finish", model=model), "go")
    assert result.output == text


def test_a_message_that_is_no_text_reaches_the_callee_as_json() -> None:
    model = Script(
        {"a": [said("call_agent", '{"agent_name": "b", "message": {"city": "Bern"}}'), "ok"], "b": ["seen"]}
    )
    team = [Agent("a"), Agent("b")]
    result, _ = recorded(team[0], "go", agents=team, model=model)
    assert [each.content for each in result.messages if each.receiver == "b"] == ['{"city":"Bern"}']


@pytest.mark.parametrize(
    ("name", "arguments", "hint"),
    [
        (
            "call_agent",
            '{"agent": "b", "message": "x"}',
            "unknown argument 'agent' (did you mean 'agent_name'?)",
        ),
        ("call_agent", '{"agent_name": "b", "prompt": "x"}', "'prompt' (did you mean 'message'?)"),
        ("get_result", '{"id": "1/1.c1"}', "unknown argument 'id' (did you mean 'call_id'?)"),
        ("send_message", '{"call_id": "1/1.c1", "text": "x"}', "'text' (did you mean 'message'?)"),
    ],
)
def test_the_kernels_own_calls_refuse_names_they_do_not_know(name: str, arguments: str, hint: str) -> None:
    model = Script({"a": [said(name, arguments), "ok"], "b": []})
    team = [Agent("a"), Agent("b")]
    result, _ = recorded(team[0], "go", agents=team, model=model, background=True)
    assert result.output == "ok"
    assert hint in results_shown(model.requests[-1])[0]


CUT = "[not the whole answer: the text was cut at the agent's max_output_tokens]"


@pytest.mark.parametrize(
    ("stop", "line"), [("length", CUT), ("refusal", "[not the whole answer: the model refused]")]
)
def test_a_callees_answer_that_is_not_whole_says_so_to_its_caller(stop: Any, line: str) -> None:
    asks = said("call_agent", '{"agent_name": "b", "message": "List ten"}')
    model = Script({"a": [asks, "thanks"], "b": [Reply("one, two", stop=stop)]})
    team = [Agent("a"), Agent("b")]
    result, _ = recorded(team[0], "go", agents=team, model=model)
    assert results_shown(model.requests[-1]) == [f"{line}\none, two"]
    assert (result.output, result.incomplete, result.reason) == ("thanks", "", "")


@pytest.mark.parametrize("stop", ["length", "refusal"])
def test_the_users_result_says_that_it_is_not_whole(stop: Any) -> None:
    result, _ = recorded(Agent("a"), "go", model=Script([Reply("one, two", stop=stop)]))
    assert (result.output, result.outcome, result.incomplete) == ("one, two", "completed", stop)
    assert result.reason


def test_a_mark_goes_through_a_handoff_and_a_background_call() -> None:
    cut = Reply("one, two", stop="length")
    team = [Agent("a"), Agent("b")]
    asks = said("call_agent", '{"agent_name": "b", "message": "List ten", "handoff": true}')
    result, _ = recorded(team[0], "go", agents=team, model=Script({"a": [asks], "b": [cut]}))
    assert (result.output, result.incomplete) == ("one, two", "length")
    assert result.reason == "handed over to b; the text was cut at the agent's max_output_tokens"
    asks = said("call_agent", '{"agent_name": "b", "message": "List ten", "background": true}')
    fetch = said("get_result", '{"call_id": "1/1.c1"}')
    model = Script({"a": [asks, fetch, "ok"], "b": [cut]})
    recorded(team[0], "go", agents=team, model=model, background=True)
    assert results_shown(model.requests[-1])[-1] == f"{CUT}\none, two"


def test_an_action_is_shown_the_mark_of_an_agent_that_it_called() -> None:
    async def act(context: Any) -> str:
        return f"it said: {await context.call('b', 'List ten')}"

    team = [Agent("a", hooks=Hooks(act=act)), Agent("b")]
    model = Script({"b": [Reply("one, two", stop="length")]})
    result, _ = recorded(team[0], "go", agents=team, model=model)
    assert result.output == f"it said: {CUT}\none, two"


@pytest.mark.parametrize(
    ("stop", "line"), [("length", CUT), ("refusal", "[not the whole answer: the model refused]")]
)
def test_an_action_is_shown_the_mark_of_its_own_model(stop: Any, line: str) -> None:
    async def act(context: Any) -> str:
        return f"it said: {await context.ask_model('List ten')}"

    model = Script([Reply("one, two", stop=stop)])
    result, _ = recorded(Agent("a", hooks=Hooks(act=act)), "go", model=model)
    assert result.output == f"it said: {line}\none, two"


def test_an_answer_that_a_hook_passes_on_is_marked_too() -> None:
    hooks = Hooks(end_turn=lambda context: Return(output=context.reply, reason="by rule"))
    result, _ = recorded(Agent("a", hooks=hooks), "go", model=Script([Reply("one", stop="length")]))
    assert result.incomplete == "length"
    assert result.reason.startswith("by rule; ")
    hooks = Hooks(end_turn=lambda context: Return(output="something else"))
    result, _ = recorded(Agent("a", hooks=hooks), "go", model=Script([Reply("one", stop="length")]))
    assert result.incomplete == ""
