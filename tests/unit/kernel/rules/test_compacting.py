"""When a conversation is worth a summary, and what the answer becomes."""

import pytest

from antiphon import Agent, ModelOptions
from antiphon.kernel.context.compaction import SUMMARY
from antiphon.kernel.context.transcript import Transcript
from antiphon.kernel.facts.activation import Activation
from antiphon.kernel.facts.events import TranscriptCompacted
from antiphon.kernel.rules.compacting import _compacted, can_compact
from antiphon.values.agent import Compaction
from antiphon.values.model import ChatMessage

AGENT = Agent("a")
WRITTEN = "<retain>keep</retain><summary>said</summary><next_steps>do</next_steps>"


def talk(count):
    """An activation that has said and heard so many messages."""
    found = Activation(1, "a")
    for number in range(count):
        found.conversation.transcript.append(
            ChatMessage("assistant" if number % 2 else "user", f"message {number}")
        )
    return found


@pytest.mark.parametrize(("count", "worth"), [(0, False), (1, False), (2, False), (3, True), (9, True)])
def test_a_conversation_that_has_only_begun_has_nothing_to_sum_up(count, worth):
    assert can_compact(AGENT, talk(count)) is worth


def test_it_is_summed_up_all_the_same_when_somebody_asks():
    activation = talk(2)
    activation.conversation.compaction = "asked"
    assert can_compact(AGENT, activation) is True


def test_as_long_as_there_is_something_to_sum_up_and_only_where_it_is_wanted():
    activation = talk(3)
    assert can_compact(Agent("a", asking=ModelOptions(compaction=None)), activation) is False
    activation.turn.compactions = 1
    activation.conversation.transcript = Transcript(
        [ChatMessage("user", f"{SUMMARY}\nx"), ChatMessage("user", "go")]
    )
    assert can_compact(AGENT, activation) is False


def compacted(text, **options):
    activation = talk(3)
    activation.conversation.summary_effect = "1/2.m1"
    agent = Agent("a", asking=ModelOptions(compaction=Compaction(**options)))
    return _compacted(agent, activation, text)


def test_a_summary_names_its_model_call_and_keeps_the_last_turns():
    assert compacted(WRITTEN, last_turns=2) == TranscriptCompacted(
        1, "keep", "said", "do", last_turns=2, effect="1/2.m1"
    )


def test_a_listener_may_write_it_anew():
    assert compacted(WRITTEN, revise=str.upper).summary == "SAID"
    assert compacted(WRITTEN, revise=lambda text: None).summary == "said"
    assert compacted(WRITTEN, revise=lambda text: text[99]).summary == "said"


def test_what_is_no_summary_leaves_nothing():
    found = compacted(" ", revise=str.upper)
    assert (found.retain, found.summary, found.next) == ("", "", "")
