"""Plain commands: what a line for bash starts, known from its text alone.

A line of quoted words, joined by `&&`, `||`, `;`, `|` and newlines, starts the programs that it names and no
others. Of any other line nobody can say that without running it: what is substituted, expanded, assigned or
redirected is known to the shell alone. Such a line stands for itself and for nothing else.

A subject is what rules and approvals are compared with: `git diff --stat`, one for each command of a line.
One that is verbatim is covered by itself only: a line that is not plain, and a command that starts what its
arguments say (`hazards.py`), so that no approval of some beginning covers it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from antiphon.tools.shell.hazards import changes_shell, starts_others
from antiphon.values.policy import Verbatim

MAX_COMMANDS = 100
"""Plain commands of one line."""

_RESERVED_TEXT = """
! [[ ]] { } case coproc do done elif else esac fi for function if in select then time until while
"""
_RESERVED = frozenset(_RESERVED_TEXT.split())
_UNQUOTED = re.compile(r"[\w@%+=:,./^~-]")
"""What stands in a word without quotes and is nothing but itself; `=`, `%` and `~` not everywhere."""
_PLAIN = re.compile(r"[\w@%+=:,./^~-]+", re.ASCII)
_ESCAPED = frozenset('"\\$`')
"""What a backslash between double quotes makes plain."""


class NotPlain(Exception):
    """A line that only the shell can read."""


def subjects_of(line: str) -> tuple[str | Verbatim, ...]:
    """What the commands of a line for bash are compared with; of a line that is not plain the line itself."""
    commands = plain_commands(line)
    if not commands or any(changes_shell(each) for each in commands) or _leads_away(commands):
        return (Verbatim(line),)
    return tuple(dict.fromkeys(subject_of(each) for each in commands))


def subject_of(words: Sequence[str]) -> str | Verbatim:
    """What one command is compared with: its words, quoted where they need it."""
    text = " ".join(each if _PLAIN.fullmatch(each) else shlex.quote(each) for each in words)
    return Verbatim(text) if starts_others(words) or not _told(text) else text


def covered(subject: str | Verbatim, patterns: Iterable[str]) -> bool:
    """Whether a pattern covers a subject, as in file names; one that is verbatim only if it is the same."""
    if isinstance(subject, Verbatim):
        return subject.text in patterns
    return any(fnmatchcase(subject, each) for each in patterns)


def plain_commands(line: str) -> list[list[str]]:
    """The words of each command of a line, in order; empty for a line that is not plain."""
    try:
        return _LineReader(line).commands()
    except NotPlain:
        return []


def _leads_away(commands: Sequence[Sequence[str]]) -> bool:
    """Whether a program is named by its path in a folder that the line goes to before."""
    names = [each[0] for each in commands]
    behind = names[names.index("cd") :] if "cd" in names else []
    return any("/" in each and not each.startswith("/") for each in behind)


def _told(text: str) -> bool:
    """Whether a reader sees what stands there: no control characters, nothing that turns letters round, no
    blank that is none to the shell."""
    return text.isprintable() or all(each in "\n\t" or each.isprintable() for each in text)


class _LineReader:
    """One line, read once from left to right."""

    def __init__(self, line: str) -> None:
        self._line, self._at = line, 0
        self._words: list[str] = []
        self._word: str | None = None
        self._commands: list[list[str]] = []
        self._waits = False
        """A command must follow: what stood last is `&&`, `||` or `|`."""

    def commands(self) -> list[list[str]]:
        """Raises NotPlain."""
        line = self._line
        if not _told(line):
            raise NotPlain
        while self._at < len(line):
            each = line[self._at]
            if each in " \t":
                self._end_word()
                self._at += 1
            elif each in ";|&\n":
                self._operator(each)
            elif each == "'":
                self._single()
            elif each == '"':
                self._double()
            elif each == "\\":
                self._escaped()
            else:
                self._plain(each)
        self._end_command()
        if self._waits:
            raise NotPlain
        return self._commands

    def _operator(self, each: str) -> None:
        double = self._line[self._at : self._at + 2]
        self._end_word()
        if each == "\n":
            # Behind an operator bash goes on in the next line.
            self._at += 1
            self._end_command()
            return
        if not self._words:
            raise NotPlain
        if double in ("&&", "||"):
            self._at += 2
        elif each == "&" or double[1:] in (";", "&", "|"):
            raise NotPlain
        else:
            self._at += 1
        self._end_command()
        self._waits = each != ";"

    def _single(self) -> None:
        end = self._line.find("'", self._at + 1)
        if end < 0:
            raise NotPlain
        self._add(self._line[self._at + 1 : end])
        self._at = end + 1

    def _double(self) -> None:
        line, at, found = self._line, self._at + 1, ""
        while at < len(line) and line[at] != '"':
            each = line[at]
            if each in "$`":
                raise NotPlain
            if each == "\\":
                following = line[at + 1 : at + 2]
                if following in ("\n", ""):
                    raise NotPlain
                if following in _ESCAPED:
                    at += 1
                    each = following
            found += each
            at += 1
        if at >= len(line):
            raise NotPlain
        self._add(found)
        self._at = at + 1

    def _escaped(self) -> None:
        following = self._line[self._at + 1 : self._at + 2]
        if not following:
            raise NotPlain
        if following != "\n":
            self._add(following)
        self._at += 2

    def _plain(self, each: str) -> None:
        if not _UNQUOTED.match(each):
            raise NotPlain
        begins = self._word is None
        if each == "~" and (self._word is None or self._word[-1:] in (":", "=")):
            raise NotPlain
        if not self._words and (each == "=" or (begins and each == "%")):
            raise NotPlain
        self._add(each)
        self._at += 1

    def _add(self, text: str) -> None:
        self._word = (self._word or "") + text

    def _end_word(self) -> None:
        if self._word is not None:
            self._words.append(self._word)
        self._word = None

    def _end_command(self) -> None:
        self._end_word()
        if not self._words:
            return
        name = self._words[0]
        if not name or name in _RESERVED or "=" in name or len(self._commands) == MAX_COMMANDS:
            raise NotPlain
        self._commands.append(self._words)
        self._words, self._waits = [], False
