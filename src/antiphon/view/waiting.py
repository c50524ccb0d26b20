"""Which requests of the user wait for a person: somebody is asked, and nothing else under them goes on."""

from __future__ import annotations

from msgspec import Struct, field

from antiphon.kernel.facts import ids
from antiphon.view.nodes import EffectNode

PASSIVE = frozenset({"deadline", "result"})
"""A wait for a call goes on by what that call does; a deadline says how long something may take."""


class OpenCounts(Struct):
    """What is open under one request: people that are asked, effects that go on by themselves, and by action
    or tool what goes on inside it. cut_off: what tools wait for in vain once the run is let go."""

    asked: int = 0
    at_work: int = 0
    inside: dict[str, int] = field(default_factory=dict)
    cut_off: set[str] = field(default_factory=set)

    @property
    def wait(self) -> bool:
        """Whether a person is waited for, and nothing else."""
        return self.asked > 0 and not self.at_work


def count(
    counts: dict[str, OpenCounts], request: str, effect: EffectNode, change: int, cut_off: bool = False
) -> None:
    """Note that an effect under a request began (1) or ended (-1): O(1)."""
    found = counts.get(request)
    if found is None:
        found = counts[request] = OpenCounts()
    if effect.asks_person:
        found.asked += change
    elif effect.callee is None and effect.what not in PASSIVE:
        # A call goes on by what its activation does.
        found.at_work += change
    if ":" not in effect.id:
        return
    if cut_off:
        found.cut_off.add(effect.id)
    if effect.id in found.cut_off:
        found.at_work += change
    within = ids.parent_of(effect.id)
    # An action or a tool in which something goes on waits for that, and does nothing of its own.
    inside = found.inside[within] = found.inside.get(within, 0) + change
    if inside == (change > 0):
        found.at_work -= change
