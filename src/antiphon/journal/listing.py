"""What lists say of a run beside its records: name, labels, what its owner wrote last; and filters."""

from __future__ import annotations

from hashlib import blake2b
from typing import Annotated, Literal

from msgspec import Meta, MsgspecError, Struct
from msgspec.json import Decoder

from antiphon.errors import UserError

MAX_NAME = 120
"""Characters of a run's name, and of each of its labels."""


class Labels(Struct, frozen=True):
    """What a run is sorted by; each one line of at most MAX_NAME visible characters, empty for none.

    They stand beside the records, so that they can be changed. They are a journal's, and say nothing of who
    may do what: whoever can write to the journal can set them.
    """

    project: str = ""
    owner: str = ""
    """Whose run it is; who drives it is `RunInfo.owner`."""
    team: str = ""


NO_LABELS = Labels()
RunStatus = Literal["open", "waiting", "idle", "closed"]
"""Of a run: a request is open; one is, and a person must answer first; none is; nothing can follow."""


class Listed(Struct, frozen=True):
    """What a store reads in a summary, so that runs can be found by it.

    A summary is a JSON object; its `state`, `title`, `outcome` and `command` are read where it has them. Of a
    run whose summary is anything else, or empty, nothing is known but that it was not left in order: it
    counts as `open`.
    """

    state: RunStatus = "idle"
    title: str = ""
    outcome: str = ""
    command: Annotated[int, Meta(ge=0, lt=1 << 62)] | None = None
    """The newest command that the run has taken in; None: all that there are."""


class RunFilter(Struct, frozen=True):
    """Which runs are listed: those to which all of this applies. None, or empty, asks for nothing."""

    project: str | None = None
    """The label; the empty text for runs without it. So too the next two."""
    owner: str | None = None
    team: str | None = None
    states: tuple[RunStatus, ...] = ()
    """One of these, as the newest summary has it."""
    outcomes: tuple[str, ...] = ()
    """One of these is how its last request ended, as the newest summary has it."""
    driven: bool | None = None
    """Whether somebody who lives holds it."""
    text: str = ""
    """Stands in its title or its name, in small letters or large ones."""
    since: float = 0.0
    """Made at this time or later, Unix seconds."""
    interrupted: bool | None = None
    """Whether whoever held it last has died without letting it go."""
    posted: bool | None = None
    """Whether a command waits in it that its newest summary does not know."""


EVERY_RUN = RunFilter()


class RunInfo(Struct, frozen=True):
    """One line of the list of runs. `summary` is what the owner last wrote there (JSON), or empty.

    owner: who holds the run now, as text; empty when nobody alive does. name: what people call it.
    origin: the run from whose id its chain starts, where that is not its own. imported: as in its lease.
    number: its place in the list; it grows with each run that is made or taken in, and is never used again.
    interrupted: whoever held it last has died without letting it go, so that the summary may be old.
    posted: a command waits in it that the summary does not know.
    """

    run_id: str
    created_at: float
    updated_at: float
    seq: int
    epoch: int
    owner: str
    summary: bytes
    name: str = ""
    origin: str = ""
    imported: bool = False
    labels: Labels = NO_LABELS
    number: int = 0
    interrupted: bool = False
    posted: bool = False


def name_digest(run_id: str, name: str) -> bytes:
    """What is stored beside a run's name so that damage shows."""
    return blake2b(f"{run_id}\n{name}".encode(), digest_size=16).digest()


def check_name(name: str, whose: str = "A run") -> None:
    """Raise UserError for a text that is no name: more than a line, or longer than MAX_NAME characters."""
    if len(name) > MAX_NAME or (name and not name.isprintable()):
        raise UserError(f"{whose}'s name is one line of at most {MAX_NAME} characters; give it a shorter one")


def labels_digest(run_id: str, labels: Labels) -> bytes:
    """What is stored beside a run's labels so that damage shows."""
    told = repr((run_id, labels.project, labels.owner, labels.team))
    return blake2b(told.encode(), digest_size=16, person=b"labels").digest()


def check_labels(labels: Labels) -> None:
    """Raise UserError for texts that are no labels."""
    given: object = labels
    if not isinstance(given, Labels):
        raise UserError(f"labels takes Labels(project, owner, team); got {type(given).__name__}")
    for what in Labels.__struct_fields__:
        text: object = getattr(labels, what)
        if not isinstance(text, str) or len(text) > MAX_NAME or (text and not text.isprintable()):
            raise UserError(
                f"The label {what} is {text!a:.60}; it is one line of at most {MAX_NAME} visible characters"
            )


def listed(summary: bytes) -> Listed:
    """What a store keeps of a summary beside it; of one that it cannot read, nothing."""
    try:
        return _read_listed(summary)
    except (MsgspecError, TypeError, ValueError, RecursionError):
        return Listed("open")


_read_listed = Decoder(Listed).decode


def is_listed(info: RunInfo, where: RunFilter) -> bool:
    """Whether a run is one that a filter asks for; the measure of every store's own way to find it."""
    told, labels, text = listed(info.summary), info.labels, where.text.casefold()
    return (
        all(getattr(where, what) in (None, getattr(labels, what)) for what in Labels.__struct_fields__)
        and (not where.states or told.state in where.states)
        and (not where.outcomes or told.outcome in where.outcomes)
        and where.driven in (None, bool(info.owner))
        and where.interrupted in (None, info.interrupted)
        and where.posted in (None, info.posted)
        and (text in told.title.casefold() or text in info.name.casefold())
        and info.created_at >= where.since
    )
