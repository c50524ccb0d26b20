"""How a command ends: its exit codes, and one clear message for every error.

0   completed                     5   the journal cannot be read or written, or is damaged
1   failed                        6   limit or budget reached, no progress, or not the whole answer
2   wrong usage                   7   cancelled
3   invalid configuration, target 8   suspended; resume it
4   no such run or file           9   owned by another process
10  already answered              70  internal error

SIGTERM that suspends a run in a journal on disk, cleanly, is 0 too: it did what was asked.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping

import click

from antiphon.cli.display import output
from antiphon.errors import (
    AntiphonError,
    JournalError,
    LeaseLost,
    RunInUse,
    RunSuspended,
    UnknownName,
    UserError,
)

COMPLETED, FAILED, USAGE, CONFIG, NOT_FOUND, JOURNAL, LIMIT, CANCELLED, SUSPENDED, TAKEN, SETTLED = range(11)
FAULT = 70
INTERRUPTED = 130
"""Ctrl-C in a command that drives no run, as shells expect it."""

OUTCOMES: Mapping[str, int] = {
    "completed": COMPLETED,
    "failed": FAILED,
    "limit": LIMIT,
    "budget": LIMIT,
    "no_progress": LIMIT,
    "cancelled": CANCELLED,
    "interrupted": CANCELLED,
}


class NotFound(UserError):
    """No such run, or more than one that a prefix could mean, or no such file."""


class Settled(UserError):
    """A question that somebody or something has answered already."""


class Refused(UserError):
    """A server has refused what was asked of it; exit_code: as for the same of a journal."""

    exit_code = CONFIG


def code_of(error: BaseException) -> int:
    """The exit code that an error ends the command with."""
    if isinstance(error, RunSuspended):
        cause = error.__cause__
        return code_of(cause) if isinstance(cause, JournalError) else SUSPENDED
    if isinstance(error, RunInUse | LeaseLost):
        return TAKEN
    if isinstance(error, JournalError):
        return JOURNAL
    if isinstance(error, NotFound) or (isinstance(error, UnknownName) and error.what == "run"):
        return NOT_FOUND
    if isinstance(error, Settled):
        return SETTLED
    if isinstance(error, Refused):
        return error.exit_code
    return CONFIG if isinstance(error, UserError) else FAILED


def complain(text: str) -> None:
    """Say on the error output what is wrong."""
    output.tell(f"error: {text}")


def remark(text: str) -> None:
    """Say on the error output what is worth knowing though nothing is wrong."""
    output.tell(f"note: {text}")


def failed(error: BaseException) -> int:
    """Tell the person what happened and what to do; the exit code."""
    if isinstance(error, click.exceptions.Exit):
        return error.exit_code
    if isinstance(error, click.ClickException):
        output.usage_error(error)
        return error.exit_code
    if isinstance(error, click.Abort | KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, AntiphonError):
        complain(str(error))
        return code_of(error)
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES):
        complain(f"{error.filename or 'a file'} cannot be written: {error.strerror}")
        return JOURNAL
    complain(f"{type(error).__name__}: {error}")
    if os.environ.get("ANTIPHON_DEBUG"):
        output.fault(error)
    else:
        output.tell("This is a fault of Antiphon; what was recorded is safe. ANTIPHON_DEBUG=1 shows where.")
    return FAULT
