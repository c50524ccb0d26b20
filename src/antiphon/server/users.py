"""The file of a server with several users: who they are, and by which names the server is called.

hosts: [agents.example.org]
origins: [https://ui.example.org]
users:
- name: ada
  token_sha256: 2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b
  scopes: [read, write]
  expires: 2027-01-01
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import yaml
from msgspec import Struct

from antiphon.config.yaml import YamlReader, compose_file, meant
from antiphon.errors import ConfigError
from antiphon.host.team import NAME
from antiphon.server.log import LOG
from antiphon.server.subjects import AccessToken, Subject

LOOK_SECONDS = 1.0
"""How often it is looked at whether the file has changed, at most."""
_FILE = ("hosts", "origins", "users")
_USER = ("name", "token_sha256", "scopes", "sees_all", "expires")
_SCOPES = ("read", "write")
_PATTERNS: Mapping[str, tuple[re.Pattern[str], str]] = {
    "hosts": (
        re.compile(r"[A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\]"),
        "a name or address, without port",
    ),
    "origins": (re.compile(r"https?://[^/\s]{1,253}"), "such as https://ui.example.org, without a path"),
    "token_sha256": (re.compile(r"[0-9a-f]{64}"), "the SHA-256 of a token: 64 hex characters"),
    "name": (NAME, "1 to 40 letters, digits, dots, dashes and underscores"),
}


class UsersFile(Struct, frozen=True):
    """What a users file says."""

    tokens: tuple[AccessToken, ...]
    """One for each user."""
    hosts: frozenset[str] = frozenset()
    """Names by which the server is called, beside those of this machine."""
    origins: frozenset[str] = frozenset()
    """Pages of other sites that may ask."""


def read_users(path: str) -> UsersFile:
    """Read it. Raises ConfigError with file, line and column."""
    root = compose_file(path)
    if root is None:
        raise ConfigError("is empty; expected `users`, each with name and token_sha256", path, 1, 1)
    return _UsersParser(path).file(root)


class FollowedUsers:
    """A users file that is read again when it changes. What is broken changes nothing, and the log says so.

    first: what it said first. steady: seconds of a clock that nobody sets. Raises ConfigError when it cannot
    be read at all.
    """

    def __init__(self, path: str, steady: Callable[[], float] = time.monotonic) -> None:
        self._path, self._steady = path, steady
        # Before the reading: what changes meanwhile is a change.
        self._known, self._looked = _version(path), steady()
        self.first = read_users(path)

    def changed(self) -> UsersFile | None:
        """What it says now, once it says something else. It looks once a second at most."""
        now = self._steady()
        if now - self._looked < LOOK_SECONDS:
            return None
        self._looked = now
        version = _version(self._path)
        if version == self._known:
            return None
        self._known = version
        try:
            found = read_users(self._path)
        except ConfigError as error:
            LOG.error("the users file was changed and is not used, who may come in stays: %s", error)
            return None
        LOG.info("the users file was read again: %d users", len(found.tokens))
        return found


def _version(path: str) -> tuple[int, ...]:
    """What tells one content of a file from another, without reading it; empty without a file."""
    try:
        found = os.stat(path)
    except OSError:
        return ()
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


class _UsersParser(YamlReader):
    def file(self, root: yaml.Node) -> UsersFile:
        pairs = self.values(root, "a users file", _FILE)
        if "users" not in pairs:
            raise self.wrong(root, "`users` is missing: a list of users, each with name and token_sha256")
        tokens: dict[str, AccessToken] = {}
        for node in self.items(pairs["users"], "users"):
            token = self._user(node)
            if token.subject.name in tokens:
                raise self.wrong(node, f"two users are named {token.subject.name}; names must differ")
            if any(each.digest == token.digest for each in tokens.values()):
                raise self.wrong(node, "two users have one token; make each their own")
            tokens[token.subject.name] = token
        lists = {
            what: frozenset(
                self._checked(each, what).lower() for each in self.items(pairs[what], what)
            ) if what in pairs else frozenset()
            for what in ("hosts", "origins")
        }  # fmt: skip
        return UsersFile(tuple(tokens.values()), lists["hosts"], lists["origins"])

    def _user(self, node: yaml.Node) -> AccessToken:
        pairs = self.values(node, "a user", _USER)
        for needed in _USER[:2]:
            if needed not in pairs:
                raise self.wrong(node, f"`{needed}` is missing")
        scopes = frozenset(_SCOPES)
        if "scopes" in pairs:
            scopes = frozenset(self._scope(each) for each in self.items(pairs["scopes"], "scopes"))
        sees_all = self.data(pairs["sees_all"]) if "sees_all" in pairs else False
        if not isinstance(sees_all, bool):
            raise self.wrong(pairs["sees_all"], "sees_all is true or false")
        subject = Subject(self._checked(pairs["name"], "name"), scopes, sees_all)
        digest = self._checked(pairs["token_sha256"], "token_sha256")
        return AccessToken(subject, digest, self._instant(pairs["expires"]) if "expires" in pairs else None)

    def _checked(self, node: yaml.Node, what: str) -> str:
        text = self.text(node, what)
        pattern, words = _PATTERNS[what]
        if pattern.fullmatch(text) is None:
            raise self.wrong(node, f"{what}: expected {words}")
        return text

    def _scope(self, node: yaml.Node) -> str:
        text = self.text(node, "a scope")
        if text not in _SCOPES:
            raise self.wrong(node, f"a scope is read or write{meant(text, _SCOPES)}")
        return text

    def _instant(self, node: yaml.Node) -> float:
        text: Any = self.text(node, "expires")
        try:
            found = datetime.fromisoformat(text)
        except ValueError:
            raise self.wrong(node, "expires is a date, or a date and time, such as 2027-01-01") from None
        return (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).timestamp()
