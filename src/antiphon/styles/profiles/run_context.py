"""run_context: a run as its design document names it: RunContext, TeamState, and a SubContext for each agent.

    async with open_run(team.agents(), journal=..., run_id=...) as conversation:
        found = await run_context(conversation, team)
        print(found.meta.status, found.partner.at("state.flags"), found.team_state["work_modules"])

Nothing of it is stored: it is what the run's state and records say at this context.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from antiphon import Record, Run
from antiphon.styles.profiles.conditions.path import lookup
from antiphon.styles.profiles.files.profile import Profile
from antiphon.styles.profiles.team import ProfileTeam
from antiphon.styles.profiles.turns.item import from_mail, recorded
from antiphon.styles.profiles.world.shape import (
    ROLES,
    config_of,
    leading_states,
    meta_of,
    state_of,
    team_state,
    world_of,
)
from antiphon.styles.profiles.world.transcript_data import messages
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
    return context_of(await run.records(), (run.activation(0), *run.activations()), team)


def context_of(records: Iterable[Record], live: Sequence[ActivationInfo], team: ProfileTeam) -> RunContext:
    """The same of a run that others drive: its records, and its live activations, the user's first."""
    profiles, data = team.library.profiles, live[0].data
    shared, meta = team_state(data), _meta(RunTree.of(records))
    known, leading = config_of(profiles.values()), leading_states(data)
    found: dict[str, list[tuple[ActivationInfo, Profile, dict[str, Any]]]] = {
        "partner": [], "principal": [], "associate": [],
    }  # fmt: skip
    for view in live[1:]:
        profile = profiles.get(view.agent)
        if profile is not None and profile.type in found:
            state = _state(view, team.staff_of(profile.name))
            found[profile.type].append((view, profile, state))
    # Of several the last one is the one that works, or worked last.
    leading |= {role: found[role][-1][2] for role in ROLES if found[role]}

    def context(view: ActivationInfo, profile: Profile, state: dict[str, Any]) -> SubContext:
        named = {**meta_of(profile, meta.run_id, view.data, shared), "activation": view.activation}
        staff = {"profiles_list_instance_ids": state["profiles_list_instance_ids"]}
        own = leading | ({profile.type: state} if profile.type in ROLES else {})
        about = {key: getattr(meta, key) for key in ("run_id", "status", "creation_timestamp")}
        return SubContext(named, state, world_of(state, named, staff | shared, about, known, own))

    partner, principal = (context(*found[role][-1]) if found[role] else None for role in ROLES)
    associates = tuple(context(*each) for each in found["associate"])
    return RunContext(meta, known, shared, partner, principal, associates)


def _state(view: ActivationInfo, staff: Sequence[str]) -> dict[str, Any]:
    """An agent's own state, with its conversation, what it has not read yet, and its turns."""
    turn = f"{view.activation}/{view.turn}" if view.turn else ""
    resting = view.phase == "rest"
    turns = {"current_turn_id": "" if resting else turn, "last_turn_id": turn if resting else ""}
    unread = [item for item in map(from_mail, view.inbox) if item is not None]
    state = state_of(view.data, staff)
    inbox = [*state["inbox"], *recorded(unread)]
    return {**state, **turns, "inbox": inbox, "messages": messages(view.messages)}


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
