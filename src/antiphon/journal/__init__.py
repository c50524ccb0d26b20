"""Where runs are kept: the port, and how a journal is named in one string."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote, urlsplit

from antiphon.errors import ConfigError
from antiphon.journal.files.seal import journal_key
from antiphon.journal.listing import Labels, RunFilter
from antiphon.journal.memory import MemoryJournal
from antiphon.journal.port import Journal

if TYPE_CHECKING:
    from antiphon.journal.sqlite import SqliteJournal

__all__ = ["Journal", "Labels", "MemoryJournal", "RunFilter", "open_journal"]

ONE_SHOT = "memory?rows=none"
"""A journal for one run that nobody reads: it checks what is appended, and keeps nothing of it."""
_KNOWN = (
    "'memory', 'sqlite:///relative.db', 'sqlite:////absolute.db' (both take ?durability=power or process),"
    " or a Journal"
)


def open_journal(target: str | Journal | None = None) -> Journal:
    """The journal that `target` names; None is a new one in memory, a Journal is itself.

    A file is sealed with the key that ANTIPHON_JOURNAL_KEY holds in the process's environment, if any.
    Raises ConfigError for any other text, and what opening the file raises.
    """
    if target in (None, "memory", ONE_SHOT):
        return MemoryJournal(keeps_rows=target != ONE_SHOT)
    if not isinstance(target, str):
        return target
    parts = urlsplit(target)
    if parts.scheme != "sqlite":
        raise ConfigError(f"journal is {target!r}; it is one of: {_KNOWN}")
    return _sqlite(target, parts.netloc, unquote(parts.path[1:]), parts.query, parts.fragment)


def _sqlite(target: str, host: str, path: str, query: str, fragment: str) -> SqliteJournal:
    if host or fragment or not path:
        raise ConfigError(f"journal is {target!r}; a file is named by three slashes and a path: {_KNOWN}")
    options = dict(parse_qsl(query, keep_blank_values=True))
    unknown = sorted(set(options) - {"durability"})
    if unknown:
        raise ConfigError(f"journal is {target!r}; it has no option {unknown[0]!r}, only 'durability'")
    # Who keeps runs in memory does not load SQLite.
    from antiphon.journal.sqlite import SqliteJournal

    return SqliteJournal(path, options.get("durability", "power"), key=journal_key())
