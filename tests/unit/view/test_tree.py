"""RunTree: a script in, the tree out; and by hand, what a single record changes."""

import asyncio
from contextlib import aclosing
from typing import Any

import pytest
from msgspec.structs import replace

from antiphon import Agent, Limits, Message, Record, RunFailed, ToolCall, Usage, open_journal, open_run, tool
from antiphon.errors import JournalCorrupt
from antiphon.kernel.facts.agent_call import AgentCall
from antiphon.kernel.facts.events import (
    ApprovalEffect,
    CallEffect,
    CancelRequested,
    DrainStarted,
    EffectFinished,
    EffectStarted,
    Event,
    MessagePosted,
    ModelEffect,
    PermissionDecided,
    QuestionEffect,
    RunClosed,
    RunResumed,
    RunStarted,
    StateChanged,
    TimerEffect,
    ToolEffect,
    TranscriptCompacted,
    TurnFinished,
    TurnStarted,
)
from antiphon.kernel.facts.records import ActivationIndex
from antiphon.kernel.run.commands import AskAgent, encode
from antiphon.models.script import Script, call
from antiphon.testing.clock import VirtualClock
from antiphon.testing.world import World
from antiphon.values.codec import encode_value
from antiphon.values.model import Reply
from antiphon.values.result import Failure
from antiphon.view import RunTree
from antiphon.view.changes import (
    CancelRequest,
    DataChange,
    DecisionMade,
    EffectEnd,
    EffectStart,
    MessageArrival,
    RunClose,
    RunDrain,
    RunResume,
    RunStart,
    TranscriptChange,
    TurnEnd,
    TurnStart,
)
from antiphon.view.nodes import ActivationNode, Cost, DeadLetter, Decision, EffectNode
from tests.promises import crash_scenarios
from tests.transcript import recorded


def drawn(tree: RunTree) -> list[str]:
    """Every activation, turn and effect, one line each, indented by what it is part of."""
    found: list[str] = []
    waiting: list[tuple[int, ActivationNode]] = [(0, tree.user)]
    while waiting:
        level, node = waiting.pop()
        pad = "  " * level
        found.append(f"{pad}{node.agent} [{node.path}] {node.outcome}".rstrip())
        for turn in node.turns:
            found.append(f"{pad} turn {turn.number}, {turn.taken} taken")
            found.extend(f"{pad}  {each.id} {each.kind} {each.name} {each.outcome}" for each in turn.effects)
        callees = [each.callee for turn in node.turns for each in turn.effects if each.callee is not None]
        waiting.extend((level + 1, each) for each in reversed(callees))
    return found


def called(effect_id: str, agent: str, **fields: Any) -> EffectStarted:
    """The start of a call of an agent."""
    return EffectStarted(effect_id, CallEffect(agent, "", **fields))


def model_asked(effect_id: str, model: str = "m", tokens: int = 0, **fields: Any) -> EffectStarted:
    """The start of a model call."""
    return EffectStarted(effect_id, ModelEffect(model, "", tokens, **fields))


# -- a script in, the tree out ------------------------------------------------------------------


@tool(effect="read")
def look(what: str) -> str:
    "Look."
    return f"saw {what}"


def test_activations_turns_and_effects() -> None:
    lead, scout = Agent("lead"), Agent("scout", tools=[look])
    model = Script(
        {
            "lead": [call("call_agent", agent_name="scout", message="the sea"), "calm"],
            "scout": [[call("look", what="north"), call("look"), call("lok")], "calm"],
        }
    )
    _, records = recorded(lead, "go", agents=[lead, scout], model=model)
    tree = RunTree.of(records)
    assert drawn(tree) == [
        "user []",
        " turn 1, 1 taken",
        "  0/1.c1 call lead completed",
        "  lead [1.c1] completed",
        "   turn 1, 1 taken",
        "    1/1.m1 model script completed",
        "    1/1.c1 call scout completed",
        "   turn 2, 0 taken",
        "    1/2.m1 model script completed",
        "    scout [1.c1/1.c1] completed",
        "     turn 1, 1 taken",
        "      2/1.m1 model script completed",
        "      2/1.c1 tool look completed",
        "      2/1.c2 tool look invalid_arguments",
        "      2/1.c3 tool lok not_found",
        "     turn 2, 0 taken",
        "      2/2.m1 model script completed",
    ]
    scout_node = tree.activations[2]
    assert (scout_node.asked, scout_node.content, scout_node.request) == ("the sea", "calm", "0/1.c1")
    assert scout_node.turns[0].calls[0].name == "look"
    refused = tree.effects["2/1.c2"]
    assert refused.started_at is None
    assert refused.ended_at is not None
    assert refused.call is not None
    assert "what" in refused.reason
    assert tree.effects["2/1.c1"].content == "saw north"
    assert tree.effects["2/1.c1"].arguments == '{"what":"north"}'
    assert (tree.state, tree.outcome) == ("idle", "completed")


def test_a_path_is_the_same_however_the_activations_were_numbered() -> None:
    """Of two callees that call somebody themselves, the number says who was faster."""

    def paths(*order: str) -> dict[str, str]:
        to = ToolCall("c", "call_agent", '{"agent_name":"x"}')
        story = Story().add(
            *asked("lead"),
            replied("1/1.m1", to, to),
            called("1/1.c1", "a"),
            called("1/1.c2", "b"),
        )
        for number in order:
            story.add(model_asked(f"{number}/1.m1"), replied(f"{number}/1.m1", to))
            story.add(called(f"{number}/1.c1", f"below {number}"))
        return {node.agent: node.path for node in story.tree.activations.values()}

    assert paths("2", "3") == paths("3", "2")
    assert paths("2", "3")["below 3"] == "1.c1/1.c2/1.c1"
    tree = Story().add(*asked("lead")).tree
    assert tree.activations[1].path_of("1/1.m1") == "1.c1/1.m1"
    assert tree.user.path_of("0/1.c1") == "1.c1"


@pytest.mark.parametrize("scenario", crash_scenarios.ALL, ids=lambda scenario: scenario.name)
def test_in_every_style_the_tree_adds_up_to_what_the_run_says_of_itself(scenario: Any, tmp_path: Any) -> None:
    results, records, usage, spent = asyncio.run(_played(scenario, World(tmp_path)))
    tree = RunTree.of(records)
    assert tree.state == "idle"
    assert {name: each.usage for name, each in tree.models.items()} == usage
    assert tree.totals.cost.usd == spent
    assert tree.user.total.usage == tree.totals.usage
    for call_id, result in results.items():
        node = tree.effects[call_id].callee
        assert node is not None
        assert node.total.usage == result.usage
        assert (node.outcome, node.content, node.reason) == (result.outcome, result.output, result.reason)
        assert tuple(each.message for each in tree.log if each.request == call_id) == result.messages
    assert all(each.ended_at is not None for each in tree.effects.values())


class Billed:
    """A model that reports tokens for every reply, of each other ones."""

    def __init__(self, model: Any) -> None:
        self.name, self._model, self._asked = model.name, model, 0

    async def complete(self, request: Any, emit: Any) -> Reply:
        self._asked += 1
        reply = await self._model.complete(request, emit)
        return reply if reply.usage.total else replace(reply, usage=Usage(1_000 + self._asked, self._asked))


async def _played(scenario: Any, world: World) -> Any:
    """A scenario without a crash: the results by call, every record, tokens by model, USD."""
    journal = open_journal("memory")
    options = {"clock": VirtualClock(), "env": {}, **scenario.options}
    async with open_run(
        scenario.agents(world), journal=journal, model=Billed(scenario.model()), **options
    ) as run:
        for number, each in enumerate(scenario.requests):
            ask = each if isinstance(each, AskAgent) else AskAgent(*each)
            await journal.post(run.run_id, f"request {number}", encode(ask))
        tree = RunTree()
        ended: list[EffectNode] = []
        async with aclosing(run.events(deltas=False)) as events:
            async for record in events:
                assert isinstance(record, Record)
                for key, command in scenario.outside(record):
                    await journal.post(run.run_id, key, encode(command))
                tree.add(record)
                ended = [each for turn in tree.user.turns for each in turn.effects if each.outcome]
                if len(ended) == len(scenario.requests):
                    break
        results = {}
        for each in ended:
            try:
                results[each.id] = await run.result(each.id)
            except RunFailed as failed:
                results[each.id] = failed.result
        return results, await run.records(), dict(run.usage), run.cost_usd


def test_an_activation_that_is_reactivated_has_a_node_for_each_call() -> None:
    lead, scout = Agent("lead"), Agent("scout", context="continue")
    to = call("call_agent", agent_name="scout", message="look")
    model = Script({"lead": [to, to, "end"], "scout": ["one", "two"]})
    _, records = recorded(lead, "go", agents=[lead, scout], model=model)
    tree = RunTree.of(records)
    first, second = tree.effects["1/1.c1"].callee, tree.effects["1/2.c1"].callee
    assert first is not None
    assert second is not None
    assert second is tree.activations[2]
    assert (first.id, second.id) == (2, 2)
    assert (first.content, second.content) == ("one", "two")
    assert [turn.number for turn in (*first.turns, *second.turns)] == [1, 2]
    assert (first.reactivated, second.reactivated) == (False, True)
    assert (first.path, second.path) == ("1.c1/1.c1", "1.c1/2.c1")


def test_what_only_goes_on_is_kept_of_a_long_run() -> None:
    scout = Agent("scout", tools=[look])
    model = Script([*[call("look", what="x")] * 50, "end"])
    _, records = recorded(scout, "go", model=model, limits=Limits(turns=None))
    tree, most, ended = RunTree(recent=True), 0, 0
    for record in records:
        ended += sum(isinstance(each, EffectEnd) for each in tree.add(record))
        turns = [turn for node in tree.activations.values() for turn in node.turns]
        most = max(most, len(tree.effects) + len(turns) + len(tree.log))
    whole = RunTree.of(records)
    assert ended == len(whole.effects) == 102
    assert most <= 4
    assert list(tree.activations) == [0]
    assert tree.totals.usage == whole.totals.usage


# -- record by record ----------------------------------------------------------------------------


class Story:
    """Events one by one, a second apart; `changes`: what the last one changed."""

    def __init__(self) -> None:
        self.tree, self.index, self.seq = RunTree(), ActivationIndex(), 0
        self.changes: tuple[Any, ...] = ()

    def add(self, *events: Event) -> "Story":
        for event in events:
            self.seq += 1
            self.index.learn(event, self.seq)
            self.changes = self.tree.add(self.index.records(self.seq, float(self.seq), "r", [event])[0])
        return self

    def change(self, event: Event) -> Any:
        """The one thing that an event changes."""
        (found,) = self.add(event).changes
        return found


def asked(agent: str = "lead", text: str = "go") -> tuple[Event, ...]:
    given = ToolCall("request", "call_agent", f'{{"agent_name":"{agent}","message":"{text}"}}')
    return (
        RunStarted("r"),
        MessagePosted(Message("forward", "user", "user", "", calls=(given,))),
        TurnStarted(0, 1),
        called("0/1.c1", agent, background=True),
        TurnFinished(0),
        TurnStarted(1, 1),
        model_asked("1/1.m1"),
    )


def replied(effect_id: str, *calls: ToolCall, text: str = "", cost: int | None = None) -> EffectFinished:
    return EffectFinished(effect_id, reply=Reply(text, tuple(calls), usage=Usage(10, 2)), cost_nano_usd=cost)


def test_every_record_says_what_it_changed() -> None:
    story = Story()
    assert story.change(RunStarted("r")) == RunStart("r")
    posted = story.change(MessagePosted(Message("forward", "user", "user", "hi")))
    assert isinstance(posted, MessageArrival)
    assert story.tree.user.inbox == [posted.message]
    began = story.change(TurnStarted(0, 1))
    assert isinstance(began, TurnStart)
    assert began.turn.messages == (posted.message,)
    assert isinstance(story.change(called("0/1.c1", "lead")), EffectStart)
    ended = story.change(TurnFinished(0, another_turn=True, reminder="go on"))
    assert isinstance(ended, TurnEnd)
    assert (ended.turn.another_turn, ended.turn.reminder, ended.turn.ended_at) == (True, "go on", 5.0)
    changed = story.change(StateChanged(1, {"a": 1}, {"b": [2]}))
    assert isinstance(changed, DataChange)
    assert changed.activation.data == {"a": 1, "b": [2]}
    assert story.change(TranscriptCompacted(1, trimmed=3)).trimmed == 3
    compaction = story.change(TranscriptCompacted(1, summary="all"))
    assert isinstance(compaction, TranscriptChange)
    assert compaction.compacted
    dead = story.change(MessagePosted(Message("forward", "x", "y", "lost"), 1, dead_letter="gone"))
    assert dead == DeadLetter(1, dead.message, "gone")
    assert story.tree.dead_letters == [dead]
    assert story.change(CancelRequested("0/1.c1", "enough")) == CancelRequest("0/1.c1", "enough")
    assert story.change(DrainStarted(("1/1.c1",))) == RunDrain(("1/1.c1",))
    assert story.change(RunResumed()) == RunResume()
    assert isinstance(story.change(EffectFinished("0/1.c1", "cancelled", reason="enough")), EffectEnd)
    assert story.change(RunClosed("done")) == RunClose("done")
    assert (story.tree.reason, story.tree.state, story.tree.outcome) == ("done", "closed", "cancelled")


def test_a_turn_also_begins_with_the_first_effect_that_names_it() -> None:
    story = Story().add(
        *asked(), replied("1/1.m1", ToolCall("a", "look")), EffectStarted("1/1.c1", ToolEffect("look", ""))
    )
    story.add(EffectFinished("1/1.c1"), model_asked("1/2.m1"))
    ended, began, started = story.changes
    assert isinstance(ended, TurnEnd)
    assert isinstance(began, TurnStart)
    assert isinstance(started, EffectStart)
    node = story.tree.activations[1]
    assert [(turn.number, turn.another_turn) for turn in node.turns] == [(1, True), (2, False)]
    assert ended.turn.ended_at == began.turn.started_at == 11.0
    story.add(replied("1/2.m1"), TurnFinished(1), EffectFinished("0/1.c1"))
    assert len(node.turns) == 2


def test_costs() -> None:
    story = Story().add(*asked(), replied("1/1.m1", cost=5))
    story.add(model_asked("1/2.m1", tokens=90, held_nano_usd=70))
    story.add(EffectFinished("1/2.m1", "interrupted", reason="the process stopped during the call"))
    story.add(model_asked("1/2.m2", "other"), replied("1/2.m2"))
    down = Failure("network", "down")
    story.add(model_asked("1/2.m3"), EffectFinished("1/2.m3", "failed", failure=down))
    tree = story.tree
    # A bill that never came counts at its worst case; a call that reached nobody costs nothing.
    assert tree.activations[1].own.cost == Cost(75, 1)
    assert {name: each.cost for name, each in tree.models.items()} == {"m": Cost(75), "other": Cost(0, 1)}
    assert (tree.totals.calls, tree.totals.reported) == (4, 2)
    assert (tree.effects["1/2.m3"].failure, tree.effects["1/2.m3"].reason) == (down, "network: down")
    assert [tree.effects[f"1/2.m{number}"].attempt for number in (1, 2, 3)] == [1, 2, 3]
    assert tree.user.total.cost == Cost()
    assert story.add(EffectFinished("0/1.c1")).tree.user.total.cost == Cost(75, 1)


def test_human_input() -> None:
    story = Story()
    assert story.tree.state == "idle"
    story.add(*asked())
    assert story.tree.state == "open"
    story.add(replied("1/1.m1", ToolCall("a", "pay", "{}"), ToolCall("b", "call_agent", "{}")))
    story.add(EffectStarted("1/1.c1?", ApprovalEffect("pay", '{"sum":1}', "", "pay acts")))
    story.add(EffectStarted("1/1.c2", QuestionEffect("Which?")))
    assert story.tree.state == "waiting"
    assert [each.text for each in story.tree.human_inputs.values()] == ["pay acts", "Which?"]
    story.add(EffectFinished("1/1.c2", content="blue", decided_by="ann", command=7))
    story.add(EffectFinished("1/1.c1?", content="always", decided_by="eve"))
    assert story.tree.state == "open"
    made = story.change(PermissionDecided("1/1.c1", True, "eve", remember="digest"))
    assert isinstance(made, DecisionMade)
    assert (made.effect_id, made.decision.by, made.decision.remembered) == ("1/1.c1", "eve", True)
    story.add(EffectStarted("1/1.c1", ToolEffect("pay", "")))
    tree = story.tree
    assert tree.effects["1/1.c1"].decision == tree.effects["1/1.c1?"].decision == made.decision
    answered = tree.effects["1/1.c2"].wait
    assert answered is not None
    assert (answered.by, answered.command) == ("ann", 7)
    assert [each.message.content for each in tree.log] == ["go", "Which?", "blue"]


def test_who_decided_is_told() -> None:
    story = Story()
    story.add(*asked()[:-1], TurnStarted(1, 1, by="prepare_input", rules=("first (a.yaml:3)",)))
    story.add(EffectStarted("1/1.m1", ModelEffect("m", "d", 1)))
    calls = [ToolCall(name, name, "{}") for name in ("pay", "send", "look")]
    story.add(replied("1/1.m1", *calls))
    story.add(EffectStarted("1/1.c1?", ApprovalEffect("pay", "{}", "", "pay acts", by="policy of a")))
    story.add(EffectFinished("1/1.c2", "denied", reason="not now", decided_by="authorize"))
    story.add(
        EffectStarted("1/1.c3", CallEffect("b", "p", '{"agent_name":"b","message":"x"}', by="intercept_call"))
    )
    effects = story.tree.effects
    waits = effects["1/1.c1?"].wait
    assert waits is not None
    assert waits.rule == "policy of a"
    assert effects["1/1.c2"].decision == Decision(False, reason="not now", rule="authorize")
    assert effects["1/1.c3"].decision == Decision(True, rule="intercept_call")
    changed = story.change(StateChanged(1, {"a": 1}, by="end_turn"))
    assert isinstance(changed, DataChange)
    assert changed.by == "end_turn"
    mail = Message("forward", "a", "a", "note to self")
    arrived = story.change(MessagePosted(mail, 1, hook="end_turn"))
    assert isinstance(arrived, MessageArrival)
    assert arrived.by == "end_turn"
    ended = story.change(TurnFinished(1, by="end_turn", rules=("second (a.yaml:9)",)))
    assert isinstance(ended, TurnEnd)
    assert (ended.turn.begun_by, ended.turn.ended_by) == ("prepare_input", "end_turn")
    assert ended.turn.rules == ("first (a.yaml:3)", "second (a.yaml:9)")


def test_a_handoff_at_a_limit_asks_nobody() -> None:
    story = Story().add(*asked(), EffectFinished("1/1.m1", "failed", failure=Failure("quota", "used up")))
    story.add(TurnFinished(1, another_turn=True), TurnStarted(1, 0, (ToolCall("h", "call_agent", "{}"),)))
    story.add(called("1/2.c1", "other", breach="used up", arguments='{"agent_name":"other"}', finishes=True))
    assert story.tree.state == "open"
    assert story.tree.effects["1/2.c1"].finishes


@pytest.mark.parametrize("arguments", ["[1]", '{"message": 5}', "no json"])
def test_a_call_whose_arguments_nobody_can_read_asks_for_nothing(arguments: str) -> None:
    story = Story().add(RunStarted("r"), called("0/1.c1", "lead", arguments=arguments))
    assert story.tree.activations[1].asked == ""


def test_records_that_cannot_follow_are_said_to_be_corrupt() -> None:
    started = EffectStarted("0/x.c1", ToolEffect("t", ""))
    (record,) = ActivationIndex().records(1, 1.0, "r", [started])
    with pytest.raises(JournalCorrupt, match="EffectStarted does not follow"):
        RunTree.of([record])


def test_a_retry_says_what_it_is_for() -> None:
    busy = Failure("rate_limit", "slow down", 429, 2.0)
    failed = EffectFinished("1/1.m1", "failed", failure=busy)
    story = Story().add(*asked(), failed, EffectStarted("1/1.w1", TimerEffect("retry", 50.0)))
    retry = story.tree.effects["1/1.w1"]
    assert retry.failure == busy
    assert retry.wait is not None
    assert retry.wait.due_at == 50.0


def test_an_inbox_holds_what_was_not_taken_in_the_order_it_will_be() -> None:
    def message(name: str, priority: int = 0) -> Message:
        return Message("forward", "x", "lead", name, id=name, priority=priority)

    carried = AgentCall("lead", "go", inbox=(message("mail"),))
    story = Story().add(RunStarted("r"), called("0/1.c1", "lead", arguments=encode_value(carried).decode()))
    story.add(MessagePosted(message("late"), 1), MessagePosted(message("urgent", -1), 1))
    inbox = story.tree.activations[1].inbox
    assert [each.content for each in inbox] == ["urgent", "go", "mail", "late"]
    story.add(
        TurnStarted(1, 2), MessagePosted(message("mail"), 1, dead_letter="lead ended before it read this")
    )
    assert [each.content for each in story.tree.activations[1].turns[0].messages] == ["urgent", "go"]
    assert [each.content for each in inbox] == ["late"]


def test_of_dormant_activations_those_are_kept_that_can_be_called_again() -> None:
    story = Story()
    story.tree = RunTree(recent=True)
    story.add(*asked())
    for number, call_id in ((2, "1/1.c1"), (4, "1/1.c2")):
        story.add(called(call_id, "scout", stays_dormant=True))
        story.add(called(f"{number}/1.c1", "below", stays_dormant=True))
        story.add(EffectFinished(f"{number}/1.c1"), EffectFinished(call_id))
    # The second scout took the place of the first, whose own callee nobody can reach any more.
    assert list(story.tree.activations) == [0, 1, 4, 5]
    assert list(story.add(EffectFinished("0/1.c1")).tree.activations) == [0]
