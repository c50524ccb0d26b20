"""Effect ids: the one place where they are formatted and parsed.

An id is the effect's place, so a recovery cannot invent a second one: `activation/turn.place`. The places
of a turn are

    c1 c2 …   its calls, in order        c1?   the approval of the first
    c1:…      an operation inside the first, of a tool
    m1 m2 …   model attempts             w1    the backoff after the first
    l1        a question about a limit   d1    a deadline
    r1        a wait for room in a budget
    x         the agent's action         x:…   an operation inside it
    i         its instructions, where a function writes them

Every function is O(1) in the number of effects, and none uses a regular expression.
"""

from __future__ import annotations

from msgspec import Struct


class EffectId(Struct, frozen=True, gc=False):
    """An effect id, taken apart. `str` puts it together again."""

    activation: int
    """Whose effect it is; 0 for the user."""
    turn: int
    """The turn of that activation, from 1."""
    place: str
    """Where in the turn: `c1`, `m2`, `x:name:…`."""

    def __str__(self) -> str:
        return f"{self.activation}/{self.turn}.{self.place}"


def parse(effect_id: str) -> EffectId:
    """The parts of an id. Raises ValueError for a text that is none."""
    slash = effect_id.index("/")
    dot = effect_id.index(".", slash)
    return EffectId(int(effect_id[:slash]), int(effect_id[slash + 1 : dot]), effect_id[dot + 1 :])


# -- formatting -------------------------------------------------------------------------------


def turn_id(activation: int, turn: int) -> str:
    """The name of a turn: `3/2` is the second of activation 3."""
    return f"{activation}/{turn}"


def call_id(activation: int, turn: int, index: int) -> str:
    """The call number `index`, from 0, of a turn."""
    return f"{activation}/{turn}.c{index + 1}"


def model_id(activation: int, turn: int, attempt: int) -> str:
    """A model attempt of a turn, from 1."""
    return f"{activation}/{turn}.m{attempt}"


def backoff_id(activation: int, turn: int, attempt: int) -> str:
    """The wait after a model attempt."""
    return f"{activation}/{turn}.w{attempt}"


def limit_id(activation: int, turn: int, number: int) -> str:
    """A question of a turn about a limit, from 1."""
    return f"{activation}/{turn}.l{number}"


def deadline_id(activation: int, turn: int, number: int) -> str:
    """A deadline of an activation, from 1, set in a turn."""
    return f"{activation}/{turn}.d{number}"


def action_id(activation: int, turn: int) -> str:
    """The action that does a turn."""
    return f"{activation}/{turn}.x"


def instructions_id(activation: int, turn: int) -> str:
    """The instructions that are written before a turn asks the model."""
    return f"{activation}/{turn}.i"


def approval_id(call: str) -> str:
    """The approval that a call waits for."""
    return call + "?"


# -- parsing ----------------------------------------------------------------------------------


def activation_of(effect_id: str) -> int:
    """The activation that an effect belongs to; 0 for the user. Raises ValueError for what is no id."""
    return int(effect_id[: effect_id.index("/")])


def turn_of(effect_id: str) -> int:
    """The number of the turn that an effect belongs to."""
    slash = effect_id.index("/")
    return int(effect_id[slash + 1 : effect_id.index(".", slash)])


def located(effect_id: str) -> tuple[int, int, int]:
    """Activation, turn and index (see `index_of`) at once."""
    slash = effect_id.index("/")
    dot = effect_id.index(".", slash)
    index = -1
    if effect_id[dot + 1] == "c" and ":" not in effect_id:
        index = int(effect_id[dot + 2 : -1] if effect_id[-1] == "?" else effect_id[dot + 2 :]) - 1
    return int(effect_id[:slash]), int(effect_id[slash + 1 : dot]), index


def turn_id_of(effect_id: str) -> str:
    """The name of the turn that an effect belongs to: `3/2` of `3/2.c1`."""
    return effect_id[: effect_id.index(".")]


def place_of(effect_id: str) -> str:
    """Where in its turn an effect stands: `c1` of `3/2.c1`."""
    return effect_id[effect_id.index(".") + 1 :]


def mark_of(effect_id: str) -> str:
    """What stands at an effect's place, as one letter: `c`, `m`, `w` and so on, as listed above."""
    return effect_id[effect_id.index(".") + 1]


def is_call(effect_id: str) -> bool:
    """Whether it is a call of its turn, and neither the approval of one nor an operation inside one."""
    return mark_of(effect_id) == "c" and effect_id[-1] != "?" and ":" not in effect_id


def is_approval(effect_id: str) -> bool:
    """Whether it is the approval of a call."""
    return mark_of(effect_id) == "c" and effect_id[-1] == "?"


def index_of(effect_id: str) -> int:
    """Which call of its turn an effect is, or is the approval of, from 0; -1 for what is no call."""
    mark = effect_id.index(".") + 1
    if effect_id[mark] != "c" or ":" in effect_id:
        return -1
    return int(effect_id[mark + 1 : -1] if effect_id[-1] == "?" else effect_id[mark + 1 :]) - 1


def parent_of(effect_id: str) -> str:
    """The effect of the same turn that this one is part of: of an approval its call, of an operation its
    action or tool; empty for any other."""
    if is_approval(effect_id):
        return effect_id[:-1]
    before, colon, _ = effect_id.partition(":")
    return before if colon else ""


def room_id(activation: int, turn: int, number: int) -> str:
    """A wait of a turn for room in a budget, from 1."""
    return f"{activation}/{turn}.r{number}"


def opening_id(call: str) -> str:
    """The message that a call carries to its callee."""
    return call + ">"


def return_id(call: str) -> str:
    """The message that the end of a call is."""
    return call + "<"
