"""run_context: a run as its design document names it: RunContext, TeamState, and a SubContext for each agent.

    async with open_run(team.agents(), journal=..., run_id=...) as conversation:
        found = await run_context(conversation, team)
        print(found.meta.status, found.partner.at("state.flags"), found.team_state["work_modules"])

Nothing of it is stored: it is what the run's state and records say at this context.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from antiphon import Run
from antiphon.styles.profiles.conditions.path import lookup
from antiphon.styles.profiles.team import ProfileTeam
from antiphon.styles.profiles.turns.item import from_mail, recorded
from antiphon.styles.profiles.world.transcript_data import messages
from antiphon.styles.profiles.world.world import described, team_state
from antiphon.values.result import ActivationInfo
from antiphon.view import RunTree

RunStatus = Literal["CREATED", "RUNNING", "AWAITING_INPUT", "COMPLETED", "FAILED", "CANCELLED"]
_ENDED: Mapping[str, RunStatus] = {"completed": "COMPLETED", "cancelled": "CANCELLED"}


class RunMeta(Struct, frozen=True):
    """Which run, since when (Unix seconds), and how it is.

    status: AWAITING_INPUT while nothing is open, or a person must answer before it goes on; once the run
    is closed, how its last request ended.
    """

    run_id: str
    creation_timestamp: float
    status: RunStatus


class SubContext(Struct, frozen=True):
    """One agent as it is now. meta: who it is. state: its own data, with `messages` and `inbox`.

    world: what paths of its profile lead into, from its point of view.
    """

    meta: Mapping[str, Any]
    state: Mapping[str, Any]
    world: Mapping[str, Any]

    def at(self, path: str, default: Any = None) -> Any:
        """The value at a path, in the language of profiles."""
        return lookup(self.world, path, default)


class RunContext(Struct, frozen=True):
    """A run: what all agents share, and each of them, as far as they live; at rest too.

    config: the profiles of the team. associates: those at work, in the order they were started.
    """

    meta: RunMeta
    config: Mapping[str, Any]
    team_state: Mapping[str, Any]
    partner: SubContext | None = None
    principal: SubContext | None = None
    associates: tuple[SubContext, ...] = ()


async def run_context(run: Run, team: ProfileTeam) -> RunContext:
    """What an open run of this team is like now."""
    profiles = team.library.profiles
    shared = team_state(run.activation(0).data)
    meta = _meta(RunTree.of(await run.records()))
    config = {"agent_profiles": {name: described(each) for name, each in profiles.items()}}
    common = {
        "team": shared,
        "run": {"meta": {"run_id": meta.run_id, "status": meta.status}},
        "config": config,
    }
    found: dict[str, list[SubContext]] = {"partner": [], "principal": [], "associate": []}
    for view in run.activations():
        profile = profiles.get(view.agent)
        if profile is not None and profile.type in found:
            named = {"profile_logical_name": profile.name, "profile_instance_id": profile.profile_id}
            found[profile.type].append(_sub_context(view, named, meta.run_id, common))
    # Of several the last one is the one that works, or worked last.
    partner, principal = (found[role][-1] if found[role] else None for role in ("partner", "principal"))
    return RunContext(meta, config, shared, partner, principal, tuple(found["associate"]))


def _sub_context(
    view: ActivationInfo, named: Mapping[str, str], run_id: str, common: Mapping[str, Any]
) -> SubContext:
    empty: dict[str, Any] = {"flags": {}, "initial_parameters": {}, "inbox": [], "deliverables": {}}
    own = {key: value for key, value in view.data.items() if not key.startswith("_")}
    turn = f"{view.activation}/{view.turn}" if view.turn else ""
    resting = view.phase == "rest"
    turns = {"current_turn_id": "" if resting else turn, "last_turn_id": turn if resting else ""}
    unread = [item for item in map(from_mail, view.inbox) if item is not None]
    inbox = [*own.pop("inbox", []), *recorded(unread)]
    state = {**empty, **own, **turns, "inbox": inbox, "messages": messages(view.messages)}
    meta = {
        "agent_id": view.agent, "run_id": run_id, "activation": view.activation, **named,
        "assigned_role_name": own.get("assigned_role_name", ""), "module_id": own.get("module_id", ""),
    }  # fmt: skip
    return SubContext(meta, state, {**common, "meta": meta, "state": state})


def _meta(tree: RunTree) -> RunMeta:
    created, ended = tree.started_at, tree.outcome
    match tree.state:
        case "closed":
            return RunMeta(tree.run_id, created, _ENDED.get(ended, "FAILED") if ended else "COMPLETED")
        case "open":
            return RunMeta(tree.run_id, created, "RUNNING")
        case "waiting":
            return RunMeta(tree.run_id, created, "AWAITING_INPUT")
        case "idle":
            return RunMeta(tree.run_id, created, "AWAITING_INPUT" if ended else "CREATED")
