"""The digest of a model call covers exactly what is asked: equal questions have equal digests, others not."""

import asyncio
import itertools

from antiphon import Agent, Hooks, LoopOptions, open_journal, open_run, tool
from antiphon.kernel.context.request import request_digest
from antiphon.kernel.facts.events import CallEffect, EffectStarted, ModelEffect
from antiphon.models.script import Script, call
from antiphon.values.hooks import ModelInput
from antiphon.values.model import ChatMessage
from tests.transcript import recorded

PARTS = (
    (b"m" * 16, b"n" * 16),
    (b"p" * 16, b"q" * 16),
    (b"c" * 16, b"d" * 16),
    ("reply", "compact", "final"),
    ("", "Sum it up."),
    (None, (), ("look",)),
)


def test_any_part_that_differs_makes_another_digest():
    found = [request_digest(*parts) for parts in itertools.product(*PARTS)]
    assert len(set(found)) == len(found) == 144
    assert {len(each) for each in found} == {22}


def test_it_is_part_of_the_format():
    """Written down: a journal of an earlier release is compared with what is asked today."""
    assert request_digest(b"m" * 16, b"p" * 16, b"c" * 16, "reply", "", None) == "B0d4Ej3BN17v5GZfvzaSjQ"
    assert (
        request_digest(b"m" * 16, b"p" * 16, b"c" * 16, "final", "Sum it up.", ("look",))
        == "2f3+H0ETHCrfoPR1JjfsIA"
    )


@tool(effect="read")
def look(page: int) -> str:
    """Look at a page."""
    return "nothing new"


def digests(agent, script, message="go"):
    _, records = recorded(agent, message, model=Script(list(script)))
    details = [each.event.detail for each in records if isinstance(each.event, EffectStarted)]
    return [each.digest for each in details if isinstance(each, ModelEffect)]


def shows(text="", offered=None):
    def prepare_input(context):
        return ModelInput([ChatMessage("user", "go")], suffix=text, offered_tools=offered)

    return Hooks(prepare_input=prepare_input)


def test_the_same_run_asks_the_same_again():
    agent = Agent("a", "Be brief.", tools=[look])
    script = [call("look", page=1), "done"]
    assert digests(agent, script) == digests(agent, script)
    assert len(set(digests(agent, script))) == 2


def test_what_only_one_turn_is_shown_counts():
    plain, suffixed, without = (
        digests(Agent("a", tools=[look], hooks=hooks), ["done"])
        for hooks in (shows(), shows("Hurry."), shows(offered=()))
    )
    assert len({*plain, *suffixed, *without}) == 3


def test_prompt_tools_settings_model_and_message_count():
    plain = digests(Agent("a", "Be brief."), ["done"])
    assert plain != digests(Agent("a", "Be long."), ["done"])
    assert plain != digests(Agent("a", "Be brief.", tools=[look]), ["done"])
    assert plain != digests(Agent("a", "Be brief."), ["done"], message="stop")


def test_a_reminder_counts():
    agent = Agent("a", loop=LoopOptions(max_reminders=1), completion="finish")
    first, second = digests(agent, ["almost", call("finish", message="done")])
    assert first != second


def test_the_journal_names_the_prompt_that_each_agent_was_given():
    """Extra instructions are for whom the user asks; a callee's prompt is stored without them."""

    async def main():
        model = Script({"a": [call("call_agent", agent_name="b", message="go"), "done"], "b": ["here"]})
        journal = open_journal()
        team = [Agent("a"), Agent("b")]
        async with open_run(team, model=model, journal=journal, extra_instructions="Be brief.") as run:
            await run.result(await run.post("a", "go"))
            started = [each.event for each in await run.records() if isinstance(each.event, EffectStarted)]
            calls = {
                each.detail.agent: each.detail for each in started if isinstance(each.detail, CallEffect)
            }
            asked = [each.detail for each in started if isinstance(each.detail, ModelEffect)]
            prompts = {name: await journal.blob(run.run_id, each.digest) for name, each in calls.items()}
        return prompts, asked, model.requests

    prompts, asked, requests = asyncio.run(main())
    assert [b"Be brief." in prompts[name] for name in "ab"] == [True, False]
    assert ["Be brief." in each.system for each in requests] == [True, False, True]
    assert [each.prefix for each in asked] == ["", "", ""], "each was asked with the prompt of its call"
