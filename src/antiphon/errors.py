"""Every error Antiphon raises: whose fault it is, and what to do.

AntiphonError
├── UserError             your code, configuration or input: change it, then try again
│   ├── ConfigError       a file or setting; carries path, line, column
│   ├── UnknownName       no agent, tool, model or run of that name; lists those that exist
│   ├── DuplicateName     two agents or tools of one name
│   ├── RunIsClosed       nothing can follow in this run
│   ├── AnsweredAlready   a question is answered once; carries effect_id
│   ├── AgentsMissing     a run's agents that the team lacks, where that is refused; carries their names
│   └── ToolDefinitionError   a function that cannot be offered as a tool
├── ExternalError         a model or a tool failed; inside a run it becomes an event
│   ├── ModelError        carries kind, retryable, retry_after
│   ├── ToolError         the text a model is shown; raise it from a tool
│   ├── ToolsetUnavailable   a required toolset cannot be reached, so the run does not start
│   └── EffectFailed      what an action asked for did not complete; carries outcome and reason
├── JournalError          the store; the run is suspended and nothing acknowledged is lost
│   ├── LeaseLost         another owner has taken the run over
│   ├── RunInUse          a living owner holds the run; wait, or post to it
│   ├── JournalCorrupt    a record does not match its digest; carries run_id and seq
│   ├── JournalDamaged    the file or its log was damaged, cut back or replaced; carries the path
│   ├── JournalFull       no space or no permission to write; carries the path
│   └── JournalTooNew     written by a newer Antiphon; upgrade this one
├── RunSuspended          the run stopped without an outcome and can be resumed
└── RunFailed             `run` only: the outcome was `failed`; carries the result
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any, Literal, get_args

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

ModelErrorKind = Literal[
    "rate_limit",
    "overloaded",
    "timeout",
    "network",
    "disconnected",
    "quota",
    "auth",
    "permission",
    "validation",
    "context_length",
    "refusal",
    "provider",
]
RETRYABLE: frozenset[str] = frozenset({"rate_limit", "overloaded", "timeout", "network", "disconnected"})
HINT: dict[str, str] = {
    "auth": "check the API key",
    "permission": "this key may not use this model, project or region",
    "quota": "the account has no credit or quota left; waiting does not help",
    "context_length": "the conversation is longer than the model takes",
    "rate_limit": "too many requests or tokens for now",
    "overloaded": "the provider cannot answer now",
    "refusal": "the provider declined the request",
}
"""What a kind of model error means for whoever reads it, where its name does not say it."""


def visible(text: str) -> str:
    """A name as an error quotes it: as it is, or with every character escaped that cannot be seen.

    A name may come from a file that somebody else wrote; what it is quoted in stays one line.
    """
    return text if text.isprintable() else ascii(text)


class AntiphonError(Exception):
    """The root; catch it to catch everything that is Antiphon's to say. It passes between processes."""

    def __reduce__(self) -> tuple[Any, ...]:
        # By default an error is made anew of its text, which is not what most of ours are made of.
        return _made_again, (type(self), self.args, dict(self.__dict__))


def _made_again(kind: type[AntiphonError], args: tuple[Any, ...], held: dict[str, Any]) -> AntiphonError:
    """An error as it was in the process that it comes from."""
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(held)
    return error


class UserError(AntiphonError):
    """The caller's code, configuration or input; nothing was started."""


class ConfigError(UserError):
    """A file or a setting is wrong; `path`, `line` and `column` (from 1) say where, `text` what."""

    def __init__(self, text: str, path: str = "", line: int = 0, column: int = 0) -> None:
        where = ":".join(str(part) for part in (path, line, column) if part)
        super().__init__(f"{where}: {text}" if where else text)
        self.text, self.path, self.line, self.column = text, path, line, column


class UnknownName(UserError):
    """`name` is not a known `what`; the text lists those that are."""

    def __init__(self, what: str, name: str, known: Iterable[str] = ()) -> None:
        listed = ", ".join(map(visible, sorted(known))) or "(none)"
        super().__init__(f"Unknown {what}: {visible(name)}. Known: {listed}")
        self.what, self.name = what, name


class DuplicateName(UserError):
    """Two things of one kind share a name; rename one of them."""

    def __init__(self, what: str, name: str) -> None:
        super().__init__(f"Two {what}s are named {name!r}; names must differ")
        self.what, self.name = what, name


class AgentsMissing(UserError):
    """A run is not opened: `names` are agents of it that the team lacks, and that was to be refused."""

    def __init__(self, run_id: str, names: Iterable[str]) -> None:
        self.run_id, self.names = run_id, tuple(names)
        super().__init__(
            f"Not opened: run {visible(run_id)} has agents that the team lacks:"
            f" {', '.join(map(visible, self.names))}. Map them with renamed={{old: new}}, leave them at rest"
            " (missing='rest') or forget them (missing='drop')"
        )


class RunIsClosed(UserError):
    """The run is closed: nothing can follow in it."""

    def __init__(self, run_id: str) -> None:
        super().__init__(f"Run {visible(run_id)} is closed; nothing can follow. Start a new one")
        self.run_id = run_id


class AnsweredAlready(UserError):
    """The question `effect_id` has an answer; a question is answered once, whoever does it first."""

    def __init__(
        self, effect_id: str, text: str = "has an answer already, which waits to be taken in"
    ) -> None:
        super().__init__(f"{visible(effect_id)} {text}")
        self.effect_id = effect_id


class ToolDefinitionError(UserError):
    """A function cannot be offered as a tool; the text says which parameter and why."""


class ExternalError(AntiphonError):
    """The world failed, not the program: inside a run this becomes an event."""


def _number(given: Any) -> float | None:
    """A finite number, or None for what is none."""
    try:
        found = float(given)
    except (TypeError, ValueError, OverflowError):
        return None
    return found if isfinite(found) else None


class ModelError(ExternalError):
    """A model call failed. `text` is safe to show: it never holds a key or a raw response.

    retry_after: seconds the provider asked us to wait, if it said so; None for what is no finite number.
    status: the HTTP status, 0 when there was none, or what is given is none. Raises UserError for an
    unknown kind.
    """

    def __init__(
        self, kind: ModelErrorKind, text: str, *, retry_after: float | None = None, status: int = 0
    ) -> None:
        if kind not in get_args(ModelErrorKind):
            raise UserError(
                f"ModelError(kind=...) takes one of {', '.join(get_args(ModelErrorKind))}; got {kind!r}"
            )
        super().__init__(str(text))
        # What went wrong must not be lost because of how it is told.
        self.kind, self.text = kind, str(text)
        told = _number(status)
        self.status = int(told) if told is not None and 0 <= told < 1_000 else 0
        self.retry_after = None if retry_after is None else _number(retry_after)

    @property
    def retryable(self) -> bool:
        """Whether the same request may succeed later."""
        return self.kind in RETRYABLE


class ToolError(ExternalError):
    """Raise it from a tool: the model is shown the text and may try something else."""


class ToolsetUnavailable(ExternalError):
    """A run is not started: the provider of toolset `name`, which is required, cannot be reached."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(
            f"Not started: the toolset {name!r} is required and cannot be used: {reason}. See to its "
            "provider, or start without it (required=False)"
        )
        self.name, self.reason = name, reason


class EffectFailed(ExternalError):
    """A step, call, question or model call of an action ended with another outcome than `completed`.

    partial: the best output there is.
    """

    def __init__(self, outcome: str, reason: str, partial: str = "") -> None:
        super().__init__(reason or outcome)
        self.outcome, self.reason, self.partial = outcome, reason, partial


class JournalError(AntiphonError):
    """The store could not read or write; the run is suspended."""


class LeaseLost(JournalError):
    """Another owner took the run over; this one's writes are refused."""


class RunInUse(JournalError):
    """A living owner holds the run; `owner` says which process on which host."""

    def __init__(self, run_id: str, owner: str) -> None:
        super().__init__(f"Run {visible(run_id)} is owned by {owner}; post to it, or wait until it ends")
        self.run_id, self.owner = run_id, owner


class JournalCorrupt(JournalError):
    """A record does not match its digest. Nothing is repaired; restore a copy of the file."""

    def __init__(self, run_id: str, seq: int, text: str) -> None:
        super().__init__(
            f"Run {visible(run_id)} is damaged at record {seq}: {text}. Restore the journal from a copy"
        )
        self.run_id, self.seq = run_id, seq


class JournalDamaged(JournalError):
    """The file of a journal, not one run of it: rot in its log, lost commits, a file that was replaced."""

    def __init__(self, path: Path | str, text: str) -> None:
        super().__init__(f"Journal {path}: {text}")
        self.path = str(path)


class JournalFull(JournalError):
    """The journal cannot be written: no space, or no permission. Free space and resume."""


class JournalTooNew(JournalError):
    """The journal was written by a newer Antiphon; upgrade this installation."""


class RunSuspended(AntiphonError):
    """The run stopped without an outcome; `run_id` resumes it. The cause is `__cause__`."""

    def __init__(self, run_id: str, text: str) -> None:
        super().__init__(f"Run {visible(run_id)} is suspended: {text}")
        self.run_id = run_id


class RunFailed(AntiphonError):
    """The request's outcome was `failed`; `result` holds the reason and the partial output."""

    def __init__(self, result: Any) -> None:
        super().__init__(getattr(result, "reason", "") or "the run failed")
        self.result = result
