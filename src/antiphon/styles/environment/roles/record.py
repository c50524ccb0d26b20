"""record: what of a role is kept over a crash, written as the difference at the end of each reaction.

What a role observed and published is in the journal already, so its memory is a list of places in
the history of its activation; only what it put there by itself is written out.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from antiphon.styles.environment.message import Message, from_kernel
from antiphon.styles.environment.roles.rc import RoleReactMode
from antiphon.styles.environment.roles.setup import RoleSetup
from antiphon.values.actions import ActionContext
from antiphon.values.message import Message as KernelMessage
from antiphon.values.schema.fitted import fitted
from antiphon.values.schema.standins import convert

MEMORY = "memory"
_NOT_JSON = object()
_encode = msgspec.json.Encoder(order="deterministic").encode


class RoleSnapshot:
    """What is on record of one role. `begin` before a reaction, `end` after it."""

    def __init__(self, role: RoleSetup) -> None:
        self._role = role
        self._own = _own_fields(type(role))
        self._known: dict[str, bytes] = {}
        self._seen: tuple[Any, ...] = ()
        self._mark = 0
        self._places: dict[str, int] = {}
        self._whose = ""
        self._initial = self.dump()

    @property
    def begun(self) -> bool:
        """Whether there was a reaction, or one was restored."""
        return bool(self._whose)

    def begin(self, ctx: ActionContext) -> None:
        """Make the role what the record of this activation says, unless it is that already."""
        whose = f"{ctx.run_id}:{ctx.effect_id.partition('/')[0]}"
        if whose != self._whose and (self._whose or ctx.data):
            self.restore(ctx.data, ctx.all_messages)
        self._whose = whose
        first = len(ctx.all_messages) - len(ctx.new_messages)
        self._places = {message.id: first + place for place, message in enumerate(ctx.new_messages)}

    def lost(self) -> None:
        """A reaction was cut off in the middle: the next one begins with what is on record."""
        self._whose = "nobody"

    def restore(self, data: Mapping[str, Any], history: Sequence[KernelMessage]) -> None:
        """Make the role what the record says."""
        role, rc = self._role, self._role.rc
        data = {**self._initial, **data}
        rc.memory.clear()
        rc.memory.add_batch(self._message(each, history) for each in data[MEMORY])
        self._mark = rc.memory.mark()
        rc.working_memory.clear()
        rc.working_memory.add_batch(self._message(each, history) for each in data["working"])
        rc.watch = set(data["watch"])
        rc.react_mode, rc.max_react_loop = RoleReactMode(data["react"][0]), data["react"][1]
        role.planner.load(data["plan"])
        role._addresses = set(data["addresses"]) if data["addresses"] is not None else None
        role._set_state(data["state"])
        # Only a reaction that failed leaves a state.
        role.recovered = role.rc.state >= 0
        for name, kind in self._own.items():
            if name in data:
                setattr(role, name, _typed(data[name], kind))
        self._known = {key: _encode(value) for key, value in self._now().items()}

    def dump(self) -> dict[str, Any]:
        """All that `restore` makes of the role, with its messages written out."""
        memory = [msgspec.json.decode(each.dump()) for each in self._role.rc.memory.storage]
        return {**self._now(), MEMORY: memory}

    def end(self, ctx: ActionContext) -> None:
        """Record what has changed since the last reaction."""
        for place, message in enumerate(ctx.published, len(ctx.all_messages)):
            self._places[message.id] = place
        memory = self._role.rc.memory
        if memory.holds(self._mark):
            places = self._places
            added = [
                places[each.id] if each.id in places else self._written(each)
                for each in memory.since(self._mark)
            ]
            if added:
                ctx.append(MEMORY, added)
        else:
            # Something was forgotten: the places of older messages are found by their ids.
            self._places = {each.id: place for place, each in enumerate((*ctx.all_messages, *ctx.published))}
            ctx.set(MEMORY, [self._written(each) for each in memory.storage])
        self._mark = memory.mark()
        if self._seen != (now := self._glance()):
            self._seen = now
            for key, value in self._now().items():
                if self._known.get(key) != (data := _encode(value)):
                    self._known[key] = data
                    ctx.set(key, value)

    def _glance(self) -> tuple[Any, ...]:
        """What tells cheaply whether anything but the memory may have changed."""
        role, rc = self._role, self._role.rc
        own = tuple([_plain(getattr(role, name, None)) for name in self._own]) if self._own else ()
        return (
            rc.state,
            frozenset(rc.watch),
            rc.react_mode,
            rc.max_react_loop,
            rc.working_memory.mark(),
            role.planner.plan.tasks and role.planner.dump(),
            role._addresses and frozenset(role._addresses),
            own,
        )

    def _now(self) -> dict[str, Any]:
        role, rc = self._role, self._role.rc
        found: dict[str, Any] = {
            "state": rc.state,
            "watch": sorted(rc.watch),
            "react": [rc.react_mode.value, rc.max_react_loop],
            "working": [msgspec.json.decode(each.dump()) for each in rc.working_memory.storage],
            "plan": role.planner.dump(),
            "addresses": sorted(role._addresses) if role._addresses is not None else None,
        }
        for name in self._own:
            value = _plain(getattr(role, name, None))
            if value is not _NOT_JSON:
                found[name] = value
        return found

    def _message(self, written: Any, history: Sequence[KernelMessage]) -> Message:
        return _message(written, history).read_as(self._role.instruct_types)

    def _written(self, message: Message) -> int | Any:
        place = self._places.get(message.id)
        return place if place is not None else msgspec.json.decode(message.dump())


def _plain(value: Any) -> Any:
    """A value as JSON has it; lists and dictionaries are copies."""
    if value is None or isinstance(value, str | int | float):
        return value
    try:
        return msgspec.to_builtins(value)
    except (TypeError, ValueError):
        return _NOT_JSON


def _own_fields(kind: type[RoleSetup]) -> dict[str, Any]:
    """The annotated fields that subclasses of Role added, and their types; Any for one that is not known."""
    found: dict[str, Any] = {}
    for owner in reversed(kind.__mro__):
        if issubclass(owner, RoleSetup) and owner is not RoleSetup:
            try:
                found.update(inspect.get_annotations(owner, eval_str=True))
            except NameError:
                # Imported for the type checker only.
                found.update(dict.fromkeys(inspect.get_annotations(owner), Any))
    return {name: each for name, each in found.items() if name not in RoleSetup.__annotations__}


def _typed(value: Any, kind: Any) -> Any:
    """What JSON made of a value as the field's type again, where it can be."""
    try:
        return convert(value, fitted(kind))
    except (msgspec.ValidationError, ValueError, TypeError):
        return value


def _message(written: Any, history: Sequence[KernelMessage]) -> Message:
    if isinstance(written, int):
        return from_kernel(history[written])
    message = Message.load(msgspec.json.encode(written).decode())
    if message is None:
        raise ValueError("a message on record is none")
    return message
