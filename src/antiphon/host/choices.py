"""What may be chosen for a new run: another model, a stricter policy, files of its project."""

from __future__ import annotations

import mimetypes
from collections.abc import Collection, Iterable
from typing import Any, get_args

from msgspec.structs import replace

from antiphon.errors import UnknownName, UserError
from antiphon.host.projects import Project
from antiphon.host.team import HostedTeam
from antiphon.values.message import Attachment
from antiphon.values.policy import Policy, Preset

STRICTER: tuple[Preset, ...] = ("open", "guarded", "strict")
"""Presets, each allowing less than the one before."""
MAX_ENCLOSED = 10
"""Files of a project that go with one request."""
MAX_ENCLOSED_BYTES = 8_000_000
"""Bytes of these together."""


def no_looser(team: HostedTeam, preset: Any) -> Policy | Preset:
    """A team's policy with another preset. Raises UserError for one that allows more than the team's."""
    if preset not in get_args(Preset):
        raise UserError(f"policy is one of {', '.join(STRICTER)}; got {preset!a:.40}")
    known = team.policy if team.policy is not None else "open"
    own = known.preset if isinstance(known, Policy) else known
    if STRICTER.index(preset) < STRICTER.index(own):
        raise UserError(
            f"policy {preset} allows more than {own}, which is the team's; give {own} or stricter"
        )
    return replace(known, preset=preset) if isinstance(known, Policy) else preset


def check_model(model: Any, offered: Collection[str]) -> str:
    """A model that a run may be started with. Raises UnknownName for one that is not offered."""
    if not isinstance(model, str) or model not in offered:
        raise UnknownName("model", str(model), offered)
    return model


def enclosed(project: Project, paths: Iterable[str]) -> tuple[Attachment, ...]:
    """Files of a project as they go with a request. Raises UnknownName, UserError for too much."""
    found: list[Attachment] = []
    left, named = MAX_ENCLOSED_BYTES, list(dict.fromkeys(paths))
    if len(named) > MAX_ENCLOSED:
        raise UserError(f"{len(named)} files are named; at most {MAX_ENCLOSED} go with a request")
    for path in named:
        try:
            data = project.files.read(path, left)
        except UnknownName:
            raise UnknownName(f"file of project {project.id}", path) from None
        left -= len(data)
        kind = mimetypes.guess_type(path)[0] or "application/octet-stream"
        found.append(Attachment(kind, data, name=path))  # type: ignore[arg-type]
    return tuple(found)
