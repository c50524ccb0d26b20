"""The world of one agent in its documented shape, built here and nowhere else.

state    the agent's own, private data (SubContext.state), with `messages`, `inbox`, `flags`, `deliverables`
meta     who it is
team     what all agents of the run share (TeamState)
run      what is known of the run, such as `run.run_id`
config   the profiles of the team
principal, partner    the state of these two, as far as it is known; not there before they have begun
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from antiphon.styles.profiles.files.profile import Profile

ARCHIVE = "context_archive."
"""What the keys of the team's data begin with under which the archives of modules stand."""
ROLES = ("partner", "principal")
_OWN = ("inbox", "initial_parameters")
"""What of an agent's state stays with it."""


def world_of(
    state: Mapping[str, Any], meta: Mapping[str, Any], team: Mapping[str, Any], run: Mapping[str, Any],
    config: Mapping[str, Any], leading: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:  # fmt: skip
    """A world. run: the meta of the run. leading: the states of partner and principal, if they are known."""
    found: dict[str, Any] = {
        "state": state, "meta": meta, "team": team, "run": {**run, "meta": run}, "config": config,
    }  # fmt: skip
    return found | {role: {**each, "state": each} for role, each in leading.items()}


def state_of(own: Mapping[str, Any], staff: Sequence[str], action: Any = None) -> dict[str, Any]:
    """The state that an agent's data mean. staff: ids of whom it may give work to; action: its call."""
    state: dict[str, Any] = {"flags": {}, "initial_parameters": {}, "inbox": [], "deliverables": {}}
    state |= {key: value for key, value in own.items() if not key.startswith("_")}
    return state | {"current_action": action, "profiles_list_instance_ids": list(staff)}


def meta_of(profile: Profile, run_id: str, own: Mapping[str, Any], team: Mapping[str, Any]) -> dict[str, Any]:
    """Who an agent is. own: its data. team: the TeamState."""
    module_id = own.get("module_id", "")
    return {
        "run_id": run_id,
        "agent_id": profile.name,
        "profile_logical_name": profile.name,
        "profile_instance_id": profile.profile_id,
        "assigned_role_name": own.get("assigned_role_name", ""),
        "module_id": module_id,
        "module_description": team["work_modules"].get(module_id, {}).get("description", ""),
    }


def config_of(profiles: Iterable[Profile]) -> dict[str, Any]:
    """What agents may know of profiles, by name and by the id of the revision."""
    known = {each.name: described(each) for each in profiles}
    store = {each["profile_id"]: each for each in known.values()}
    return {"agent_profiles": known, "agent_profiles_store": store}


def described(profile: Profile) -> dict[str, Any]:
    """What others may know of a profile."""
    return {
        "name": profile.name,
        "profile_id": profile.profile_id,
        "description_for_human": profile.description_for_human,
        "available_for_staffing": profile.available_for_staffing,
    }


def team_state(shared: Mapping[str, Any]) -> dict[str, Any]:
    """The TeamState that the team's data mean: each work module with its archive."""
    state = {key: value for key, value in shared.items() if not key.startswith((ARCHIVE, "_"))}
    modules = shared.get("work_modules", {})
    state["work_modules"] = {
        name: {**module, "context_archive": shared.get(ARCHIVE + name, [])}
        for name, module in modules.items()
    }
    return state


def shown_state(own: Mapping[str, Any]) -> dict[str, Any]:
    """What of an agent's data the others may see, beside its last messages."""
    return {key: value for key, value in own.items() if not key.startswith("_") and key not in _OWN}


def leading_states(shared: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The states of partner and principal as they have shown them to the team; only those that have begun."""
    return {
        role: {"flags": {}, "deliverables": {}, **shared.get(f"{role}_state", {}), "messages": messages}
        for role in ROLES
        if (messages := shared.get(f"{role}_activity")) is not None
    }
