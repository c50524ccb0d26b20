"""Hop counts: how often each agent handled the chain of messages that led to one of them."""

from antiphon.kernel.facts.activation import Activation
from antiphon.kernel.facts.fold import hops
from antiphon.values.message import Message


def message(name):
    return Message("forward", "x", "", name, id=name)


def agent(number, name, *taken, **counts):
    """An activation whose turn took these messages, with what is known of their chains."""
    found = Activation(number, name)
    found.turn.messages = tuple(map(message, taken))
    found.mailbox.hops = dict(counts) or None
    return found


def noted(receiver):
    return receiver.mailbox.hops


def test_a_first_message_begins_a_chain():
    a, b = agent(1, "a"), agent(2, "b")
    hops.published(a, b, message("news"))
    assert noted(b) == {"news": {"a": 1}}


def test_each_agent_of_a_chain_is_counted_each_time():
    a, b = agent(1, "a", "go", go={"a": 2, "b": 1}), agent(2, "b")
    hops.published(a, b, message("news"))
    assert noted(b) == {"news": {"a": 3, "b": 1}}
    assert noted(a) == {"go": {"a": 2, "b": 1}}, "what was known stays as it was"


def test_of_several_causes_the_longest_counts_for_each_agent():
    a = agent(1, "a", "one", "two", "three", one={"a": 1, "b": 5}, two={"b": 2, "c": 4}, three={"a": 3})
    b = agent(2, "b")
    hops.published(a, b, message("news"))
    assert noted(b) == {"news": {"a": 4, "b": 5, "c": 4}}


def test_an_agent_that_one_cause_has_met_once_counts():
    a, b = agent(1, "a", "one", "two", one={"a": 1}, two={"b": 1}), agent(2, "b")
    hops.published(a, b, message("news"))
    assert noted(b) == {"news": {"a": 2, "b": 1}}


def test_a_message_that_is_handed_on_keeps_its_chain():
    a, b, c = agent(1, "a", "go", go={"x": 7}), agent(2, "b"), agent(3, "c")
    hops.published(a, b, message("go"))
    assert noted(b) == {"go": {"x": 7}}
    hops.hand_on(a, c, 0)
    assert noted(c) == {"go": {"x": 7}}
    assert [each.id for each in c.mailbox.inbox] == ["go"]


def test_what_has_no_chain_is_not_noted():
    a, b = agent(1, "a", "go"), agent(2, "b")
    hops.hand_on(a, b, 0)
    assert noted(b) is None
    assert hops.of(b, message("go")) == {}


def test_what_was_taken_is_forgotten_with_its_turn():
    a = agent(1, "a", "go", go={"x": 7}, later={"y": 1})
    hops.forget(a)
    assert noted(a) == {"later": {"y": 1}}
    hops.forget(agent(2, "b", "go"))
