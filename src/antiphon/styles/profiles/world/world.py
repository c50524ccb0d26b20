"""The world of one agent while one of its rules is asked, and what it may change of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from antiphon.styles.profiles.conditions.path import lookup
from antiphon.styles.profiles.files.template import MISSING, Template, render
from antiphon.styles.profiles.world.binding import ProfileBinding
from antiphon.styles.profiles.world.data_edits import EditableData
from antiphon.styles.profiles.world.shape import (
    ROLES,
    leading_states,
    meta_of,
    state_of,
    team_state,
    world_of,
)
from antiphon.values.hooks import TurnContext
from antiphon.values.model import ChatMessage

RECALLED = 200
"""Messages of the conversation that rules and protocols can look at, the last ones."""


class RuleContext:
    """What one rule sees and changes.

    private: its own data. team: the team's. action: the call that the model made, None without one.
    fired: the observers and rules that held, in order, each with its place.
    """

    def __init__(
        self, seat: ProfileBinding, context: TurnContext, action: Mapping[str, Any] | None = None
    ) -> None:
        self.seat, self.context, self.action = seat, context, action
        self.fired: list[str] = []
        self.private = EditableData(context.data)
        self.team = EditableData(context.run_data)
        self._messages = seat.recalled.of(context.messages, RECALLED) if seat.reads_messages else []
        self._arrived: list[Any] = []
        self._world: dict[str, Any] | None = None
        self._changes = 0

    def receive(self, items: list[Any]) -> None:
        """Show rules these items in the inbox, before what is kept there; none of them is kept."""
        if items or self._arrived:
            self._arrived, self._world = items, None

    @property
    def world(self) -> dict[str, Any]:
        """The world as it is now, as paths and conditions read it; not to be changed."""
        changes = self.private.changes + self.team.changes
        if self._world is None or changes != self._changes:
            self._world, self._changes = self._made(), changes
        return self._world

    def _made(self) -> dict[str, Any]:
        profile, context, team = self.seat.profile, self.context, team_state(self.team.values)
        state = state_of(self.private.values, self._staff, self.action)
        if self._arrived:
            state["inbox"] = [*self._arrived, *state["inbox"]]
        if self.seat.reads_messages:
            state["messages"] = self._messages
        return world_of(
            state,
            meta_of(profile, context.run_id, context.data, team),
            {"profiles_list_instance_ids": self._staff, **team},
            {"run_id": context.run_id, "status": "RUNNING"},
            self.seat.config,
            leading_states(self.team.values) | ({profile.type: state} if profile.type in ROLES else {}),
        )

    def acting(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """The world in which the call that is made has these parameters, as handover protocols read it."""
        found = dict(self.world)
        action = {**(self.action or {}), "parameters": parameters}
        found["state"] = {**found["state"], "current_action": action}
        return found

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
        return render(template, lambda path: lookup(world, path, MISSING))


INSTRUCTING: Mapping[str, str] = {
    "generate_markdown_report": "principal_final_synthesis",
    "generate_message_summary": "current_associate_findings",
}
"""Tools whose results tell an agent what to write, and the argument in which it has said the gist of it."""


def delivered(conversation: Sequence[ChatMessage]) -> str:
    """What an agent hands back that ends without saying so.

    The report or summary that it was told to write: its last reply since then that called nothing, else its
    last text, else the gist of it; of a JSON object with `primary_summary`, that. Without such instructions,
    its last text.
    """
    plain = latest = ""
    for message in reversed(conversation):
        if message.role != "assistant":
            continue
        if not message.calls:
            plain = plain or message.content
        for each in message.calls:
            if each.name in INSTRUCTING:
                found = _member(plain or latest, "primary_summary") or plain or latest
                return found or _member(each.arguments, INSTRUCTING[each.name])
        latest = latest or message.content
    return last_said(conversation)


def _member(text: str, name: str) -> str:
    """The text under a key, where a text is a JSON object that has it; else empty."""
    try:
        given = msgspec.json.decode(text) if text.lstrip().startswith("{") else None
    except msgspec.DecodeError:
        return ""
    return str(given.get(name) or "") if isinstance(given, dict) else ""


def last_said(conversation: Sequence[ChatMessage]) -> str:
    """The last text that the agent itself said; empty when it has said nothing."""
    spoken = (each.content for each in reversed(conversation) if each.role == "assistant" and each.content)
    return next(spoken, "")
