"""What differs between the team that a run was last opened with and another one, and what that means.

Pure: two manifests and the folded run in, findings out. Nothing is opened or changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from antiphon.kernel.facts.activation import Activation, OpenEffect
from antiphon.kernel.facts.events import ActionEffect, ApprovalEffect, ToolEffect
from antiphon.kernel.facts.state import RunState
from antiphon.values.result import Difference

_SAID_APART = frozenset({"name", "tools", "hooks", "prefix", "entry_prefix"})


def differences(run: RunState, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Difference]:
    """What differs from one manifest to the other, as JSON objects; what stands in the way comes first."""
    found = [*_rules(before, after)]
    known, given = before["agents"], after["agents"]
    for name in dict.fromkeys([*known, *_in_run(run)]):
        if name not in given:
            found.append(_agent_gone(run, name))
        elif name not in known:
            found.append(Difference(name, "agent", name, "new", "it is known again, and so is what it said"))
        else:
            found += _tools(run, name, known[name]["tools"], given[name]["tools"])
            found += _hooks(run, name, known[name]["hooks"], given[name]["hooks"])
            found += _models(run, name, before["models"].get(name, []), after["models"].get(name, []))
            found += _declared(name, known[name], given[name])
    for name in given.keys() - known.keys() - set(_in_run(run)):
        found.append(Difference(name, "agent", name, "new", "it can be asked and called"))
    return sorted(found, key=lambda each: (not each.blocks, each.agent))


def _in_run(run: RunState) -> list[str]:
    """Names of agents that are at work or at rest, whichever team they came from."""
    return [each.agent for each in run.activations.values() if each.id]


def _rules(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Difference]:
    for name in ("format", "rules"):
        if before[name] != after[name]:
            means = f"{before[name]} became {after[name]}: the same facts may be answered by other events"
            yield Difference("", "rules", name, "changed", means)


def _agent_gone(run: RunState, name: str) -> Difference:
    """An agent that the run knows and the team does not."""
    at_work = [each.call for each in _activations(run, name) if each.call]
    if at_work:
        means = f"what it does ends failed with its name: {', '.join(at_work)}"
        return Difference(name, "agent", name, "gone", means, blocks=True)
    if any(name == resting for _, resting in run.dormant):
        means = "its conversation stays at rest, and whoever calls it is told that it is gone"
        return Difference(name, "agent", name, "gone", means, blocks=True)
    return Difference(name, "agent", name, "gone", "nothing of it is in flight or at rest")


def _tools(
    run: RunState, agent: str, before: Mapping[str, Any], after: Mapping[str, Any]
) -> Iterator[Difference]:
    for name, known in before.items():
        given = after.get(name)
        if given == known:
            continue
        means, blocks = _tool_changed(run, agent, name, known, given)
        yield Difference(agent, "tool", name, "gone" if given is None else "changed", means, blocks)
    for name in after:
        if name not in before:
            yield Difference(agent, "tool", name, "new", "it is offered from the next request on")


def _tool_changed(run: RunState, agent: str, name: str, known: Any, given: Any) -> tuple[str, bool]:
    """What a tool's change means, and whether it stands in the way."""
    opened = [each for each in _open(run, agent) if getattr(each.detail, "name", "") == name]
    asked = ", ".join(each.id for each in opened if type(each.detail) is ApprovalEffect)
    at_work = ", ".join(each.id for each in opened if type(each.detail) is ToolEffect)
    if asked:
        return f"the permission that is waited for was asked for the tool as it was: {asked}", True
    if at_work:
        become = "fail" if given is None else "may be run again, by other code"
        return f"its calls in flight {become}: {at_work}", True
    if given is None:
        return "calls of it are told that there is no such tool", False
    if given["digest"] == known["digest"]:
        return "other code keeps the same contract", False
    if known["digest"] in run.grants:
        return "it was allowed for good as it was; now it is asked again", True
    return "models see another schema or contract from the next request on", False


def _hooks(
    run: RunState, agent: str, before: Mapping[str, Any], after: Mapping[str, Any]
) -> Iterator[Difference]:
    for name in sorted({*before, *after}):
        if before.get(name) == after.get(name):
            continue
        change: Literal["gone", "new", "changed"] = (
            "gone" if name not in after else "new" if name not in before else "changed"
        )
        acting = [each.id for each in _open(run, agent) if type(each.detail) is ActionEffect]
        if name == "act" and acting:
            become = "fails" if change == "gone" else "is run again by other code"
            means = f"the action in flight {become}: {', '.join(acting)}"
            yield Difference(agent, "hook", name, change, means, blocks=True)
        else:
            yield Difference(agent, "hook", name, change, "it decides from the next turn on")


def _models(run: RunState, agent: str, before: list[Any], after: list[Any]) -> Iterator[Difference]:
    for place in range(max(len(before), len(after))):
        known: Any = before[place] if place < len(before) else None
        given: Any = after[place] if place < len(after) else None
        if known == given:
            continue
        if known is None:
            yield Difference(agent, "model", given[0], "new", "it is asked when those before it fail")
        elif given is None:
            yield Difference(agent, "model", known[0], "gone", _model_gone(after))
        elif known[0] != given[0]:
            yield Difference(agent, "model", known[0], "changed", f"{given[0]} is asked in its place")
        else:
            yield Difference(agent, "model", known[0], "changed", _known_of(run, agent, known, given))


def _model_gone(after: list[Any]) -> str:
    return f"{after[-1][0]} is asked in its place" if after else "the agent has no model to ask and fails"


def _known_of(run: RunState, agent: str, known: list[Any], given: list[Any]) -> str:
    """What is known of a model of the same name: its window and prices."""
    if known[2] != given[2]:
        longest = max((each.conversation.window_tokens for each in _activations(run, agent)), default=0)
        means = f"its window was {known[2] or 'unknown'} and is {given[2] or 'unknown'} tokens"
        if given[2] is not None and longest > given[2]:
            means += f"; a conversation of {longest:,} tokens is compacted first"
        return means
    if known[3:5] != given[3:5]:
        return "its price is another, and so is what its calls hold"
    return "another adapter" if known[1] != given[1] else "its endpoint is retried in another way"


def _declared(agent: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Difference]:
    for name in sorted({*before, *after} - _SAID_APART):
        if before.get(name) != after.get(name) and name != "instructions":
            yield Difference(agent, "option", name, "changed", "it holds from the next turn on")
    if (before["prefix"], before["entry_prefix"]) != (after["prefix"], after["entry_prefix"]):
        own = before.get("instructions") != after.get("instructions")
        cause = "its instructions" if own else "its colleagues, tools or settings"
        means = f"{cause} changed: its next request has another prefix, which no provider has cached"
        yield Difference(agent, "prompt", agent, "changed", means)


def _activations(run: RunState, agent: str) -> list[Activation]:
    return [each for each in run.activations.values() if each.id and each.agent == agent]


def _open(run: RunState, agent: str) -> list[OpenEffect]:
    """The effects in flight of an agent's own tools, permissions and action."""
    kinds = (ToolEffect, ApprovalEffect, ActionEffect)
    return [
        opened
        for each in _activations(run, agent)
        for opened in each.open.values()
        if isinstance(opened.detail, kinds)
    ]
