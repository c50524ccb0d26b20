"""The fold of another team: agents of a run that go on under other names, or are forgotten."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from antiphon.kernel.facts.activation import Activation
from antiphon.kernel.facts.events import ActionEffect, CallEffect
from antiphon.kernel.facts.fold.calls import forget
from antiphon.kernel.facts.state import RunState


def rename(run: RunState, renamed: Mapping[str, str]) -> None:
    """Whatever is at work, at rest or allowed under an old name is so under the new one."""
    for activation in run.activations.values():
        _rename(activation, renamed)
    run.dormant = {
        (caller, renamed.get(name, name)): number for (caller, name), number in run.dormant.items()
    }
    run.grants = {
        digest: tuple(
            [msgspec.structs.replace(each, agent=renamed.get(each.agent, each.agent)) for each in grants]
        )
        for digest, grants in run.grants.items()
    }


def _rename(activation: Activation, renamed: Mapping[str, str]) -> None:
    activation.agent = renamed.get(activation.agent, activation.agent)
    activation.turn.handoff = renamed.get(activation.turn.handoff, activation.turn.handoff)
    mailbox = activation.mailbox
    if mailbox.unread:
        mailbox.unread = {renamed.get(name, name): count for name, count in mailbox.unread.items()}
    if mailbox.requests:
        mailbox.requests = {renamed.get(name, name): line for name, line in mailbox.requests.items()}
    if mailbox.hops:
        mailbox.hops = {
            message: {renamed.get(name, name): count for name, count in counts.items()}
            for message, counts in mailbox.hops.items()
        }
    for opened in activation.open.values():
        detail = opened.detail
        if isinstance(detail, CallEffect | ActionEffect):
            opened.detail = msgspec.structs.replace(detail, agent=renamed.get(detail.agent, detail.agent))


def drop(run: RunState, names: Collection[str]) -> None:
    """What is at rest under these names is forgotten, with all that rests for it."""
    for caller, name in [key for key in run.dormant if key[1] in names]:
        number = run.dormant.pop((caller, name), None)
        if number is None:
            continue
        forget(run, run.activations[number])
        waiting = run.activations.get(caller)
        if waiting is not None and waiting.mailbox.unread:
            waiting.mailbox.unread.pop(name, None)
