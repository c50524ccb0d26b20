"""The digest of a model call covers exactly what is asked: equal questions have equal digests, others not."""

import itertools

from antiphon import Agent, Hooks, LoopOptions, tool
from antiphon.kernel.facts.events import EffectStarted, ModelEffect
from antiphon.kernel.rules.models import _digest
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
    found = [_digest(*parts) for parts in itertools.product(*PARTS)]
    assert len(set(found)) == len(found) == 144
    assert {len(each) for each in found} == {22}


def test_it_is_part_of_the_format():
    """Written down: a journal of an earlier release is compared with what is asked today."""
    assert _digest(b"m" * 16, b"p" * 16, b"c" * 16, "reply", "", None) == "B0d4Ej3BN17v5GZfvzaSjQ"
    assert (
        _digest(b"m" * 16, b"p" * 16, b"c" * 16, "final", "Sum it up.", ("look",)) == "2f3+H0ETHCrfoPR1JjfsIA"
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
    first, second = digests(agent, ["almost", call("finish", result="done")])
    assert first != second
