"""view: the world of one agent while one of its rules is asked: RunContext, TeamState, SubContext.

state    the agent's own, private data (SubContext.state)
meta     who it is
team     what all agents of the run share (TeamState)
run      the run (RunContext)
config   the profiles of the team
principal, partner    what the others may see of these two
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from antiphon.styles.profiles.conditions.path import lookup
from antiphon.styles.profiles.files.template import Template, render
from antiphon.styles.profiles.world.binding import ProfileBinding
from antiphon.styles.profiles.world.data_edits import EditableData
from antiphon.values.hooks import TurnContext
from antiphon.values.model import ChatMessage

ARCHIVE = "context_archive."
"""What the keys of the team's data begin with under which the archives of modules stand."""
RECALLED = 200
"""Messages of the conversation that rules and protocols can look at, the last ones."""
_ROLES = ("partner", "principal")


class RuleContext:
    """What one rule sees and changes.

    private: its own data. team: the team's. action: the call that the model made, None without one.
    """

    def __init__(
        self, seat: ProfileBinding, context: TurnContext, action: Mapping[str, Any] | None = None
    ) -> None:
        self.seat, self.context, self.action = seat, context, action
        self.private = EditableData(context.data)
        self.team = EditableData(context.run_data)
        self._messages = seat.recalled.of(context.messages, RECALLED) if seat.reads_messages else []
        self._world: dict[str, Any] | None = None
        self._changes = 0

    @property
    def world(self) -> dict[str, Any]:
        """The world as it is now, as paths and conditions read it; not to be changed."""
        changes = self.private.changes + self.team.changes
        if self._world is None or changes != self._changes:
            self._world, self._changes = self._made(), changes
        return self._world

    def _made(self) -> dict[str, Any]:
        profile, context, team = self.seat.profile, self.context, team_state(self.team.values)
        module_id = context.data.get("module_id", "")
        found: dict[str, Any] = {
            "state": self._state(),
            "meta": {
                "run_id": context.run_id,
                "agent_id": context.agent,
                "profile_logical_name": profile.name,
                "profile_instance_id": profile.profile_id,
                "assigned_role_name": context.data.get("assigned_role_name", ""),
                "module_id": module_id,
                "module_description": team["work_modules"].get(module_id, {}).get("description", ""),
            },
            "team": {"profiles_list_instance_ids": self._staff, **team},
            "run": {"meta": {"run_id": context.run_id, "status": "RUNNING"}},
            "config": {
                "agent_profiles": {name: described(each) for name, each in self.seat.associates.items()}
            },
        }
        for role in _ROLES:
            seen = self.team.values.get(f"{role}_activity", [])
            found[role] = found if role == profile.type else {"state": {"messages": seen}}
        return found

    def acting(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """The world in which the call that is made has these parameters, as handover protocols read it."""
        found = dict(self.world)
        action = {**(self.action or {}), "parameters": parameters}
        found["state"] = {**found["state"], "current_action": action}
        return found

    def _state(self) -> dict[str, Any]:
        state: dict[str, Any] = {"flags": {}, "initial_parameters": {}, "inbox": [], "deliverables": {}}
        state |= {
            **self.private.values,
            "current_action": self.action,
            "profiles_list_instance_ids": self._staff,
        }
        if self.seat.reads_messages:
            state["messages"] = self._messages
        return state

    @property
    def _staff(self) -> list[str]:
        return [each.profile_id for each in self.seat.associates.values()]

    def at(self, path: str) -> Any:
        """The value at a path, None when there is none."""
        return lookup(self.world, path)

    def text(self, key: str) -> str:
        """A text definition, filled in. Raises KeyError that lists the known."""
        texts = self.seat.profile.text_definitions
        if key not in texts:
            known = ", ".join(texts) or "(none)"
            raise KeyError(f"{self.seat.profile.name} has no text definition {key!r}. Known: {known}")
        return self.filled(texts[key])

    def filled(self, template: Template) -> str:
        """A text with its places filled in."""
        world = self.world
        return render(template, lambda path: lookup(world, path))


def described(profile: Any) -> dict[str, Any]:
    """What others may know of a profile."""
    return {
        "name": profile.name,
        "profile_id": profile.profile_id,
        "description_for_human": profile.description_for_human,
        "available_for_staffing": profile.available_for_staffing,
    }


def team_state(shared: Mapping[str, Any]) -> dict[str, Any]:
    """The TeamState that the team's data mean: each work module with its archive."""
    state = {key: value for key, value in shared.items() if not key.startswith(ARCHIVE)}
    modules = shared.get("work_modules", {})
    state["work_modules"] = {
        name: {**module, "context_archive": shared.get(ARCHIVE + name, [])}
        for name, module in modules.items()
    }
    return state


INSTRUCTING: Mapping[str, str] = {
    "generate_markdown_report": "principal_final_synthesis",
    "generate_message_summary": "current_associate_findings",
}
"""Tools whose results tell an agent what to write, and the argument in which it has said the gist of it."""


def delivered(conversation: Sequence[ChatMessage]) -> str:
    """What an agent hands back that ends without saying so.

    The report or summary that it was told to write: its last reply since then that called nothing, else its
    last text, else the gist of it. Without such instructions, its last text.
    """
    plain = latest = ""
    for message in reversed(conversation):
        if message.role != "assistant":
            continue
        if not message.calls:
            plain = plain or message.content
        for each in message.calls:
            if each.name in INSTRUCTING:
                return plain or latest or _argument(each.arguments, INSTRUCTING[each.name])
        latest = latest or message.content
    return last_said(conversation)


def _argument(arguments: str, name: str) -> str:
    try:
        given = msgspec.json.decode(arguments)
    except msgspec.DecodeError:
        return ""
    return str(given.get(name) or "") if isinstance(given, dict) else ""


def last_said(conversation: Sequence[ChatMessage]) -> str:
    """The last text that the agent itself said; empty when it has said nothing."""
    spoken = (each.content for each in reversed(conversation) if each.role == "assistant" and each.content)
    return next(spoken, "")
