"""Whether what is on record of changed files can be so."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from antiphon.kernel.facts.events import EffectStarted, FilesChanged, ToolEffect


def check_changes(
    opened: Mapping[str, EffectStarted], event: FilesChanged, broken: Callable[[str, str], object]
) -> None:
    """A call of a tool that is open has changed files, each of them once."""
    started = opened.get(event.id)
    if started is None or type(started.detail) is not ToolEffect:
        broken("changes", f"{event.id} changed files, and is no call of a tool that is open")
    for each in event.changes:
        if each.before == each.after:
            broken("changes", f"{event.id} left {each.path} as it was")
    if len({(each.folder, each.path) for each in event.changes}) != len(event.changes):
        broken("changes", f"{event.id} names a file twice")
