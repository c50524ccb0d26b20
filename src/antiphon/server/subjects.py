"""Who asks: subjects by their tokens, and tickets that stand for a subject once."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from typing import Literal

from msgspec import Struct

from antiphon.errors import UserError
from antiphon.host.team import check_label

Scope = Literal["read", "write"]
SCOPES = frozenset({"read", "write"})
TICKET_SECONDS = 30.0
"""How long a ticket is good for."""
OPENING_SECONDS = 120.0
"""How long a browser that was opened has until its page asks for the token."""
MAX_TICKETS = 1_000
"""Tickets that nobody has used yet; of more, the oldest are forgotten."""
SHORTEST = 16
"""Characters of a token, at least."""


class Subject(Struct, frozen=True):
    """Somebody who may ask for something."""

    name: str
    """Whose runs, and who has answered."""
    scopes: frozenset[str] = SCOPES
    """What may be done."""
    sees_all: bool = False
    """Every run, also those of others and those that no server has started."""


class AccessToken(Struct, frozen=True):
    """A token as it is kept: a digest, so that who reads the configuration cannot use it."""

    subject: Subject
    digest: str
    """SHA-256 of the token, 64 hex characters."""
    expires_at: float | None = None
    """Unix seconds; None: never."""


def digest_of(token: str) -> str:
    """How a token is kept."""
    return sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


class Subjects:
    """Who may come in: tokens by digest, and open tickets. now: Unix seconds.

    look: called before anybody is let in or goes on; it may `replace` the tokens by those of today.
    on_revoked: called when somebody's tokens were taken away.
    """

    def __init__(self, tokens: Iterable[AccessToken], now: Callable[[], float]) -> None:
        self._now = now
        self.look: Callable[[], object] = lambda: None
        self.on_revoked: Callable[[], None] = lambda: None
        self._tokens: dict[str, AccessToken] = {}
        self._tickets: dict[str, tuple[Subject, float]] = {}
        self._openings: dict[str, tuple[str, float]] = {}
        self.replace(tokens)

    def replace(self, tokens: Iterable[AccessToken]) -> None:
        """Let in whoever has one of these, and nobody else: what others have open ends."""
        found: dict[str, AccessToken] = {}
        for each in tokens:
            check_label("subject", each.subject.name)
            if len(each.digest) != 64:
                raise UserError(f"The token of {each.subject.name} is kept as SHA-256, 64 hex characters")
            found[each.digest] = each
        self._tokens = found
        left = {each.subject for each in found.values()}
        self._tickets = {key: each for key, each in self._tickets.items() if each[0] in left}
        self.on_revoked()

    def by_token(self, token: str) -> Subject | None:
        """Whose a token is; None for one that is unknown, expired or revoked.

        Looked up by digest, so that time says nothing of how much of a guess was right.
        """
        self.look()
        found = self._tokens.get(digest_of(token))
        if found is None or (found.expires_at is not None and found.expires_at <= self._now()):
            return None
        return found.subject

    def is_known(self, subject: Subject) -> bool:
        """Whether a subject has a token still: what was opened with one ends with it."""
        self.look()
        now = self._now()
        return any(
            each.subject == subject and (each.expires_at is None or each.expires_at > now)
            for each in self._tokens.values()
        )

    def revoke(self, name: str) -> int:
        """Take away every token and ticket of a subject; how many tokens that were."""
        gone = [digest for digest, each in self._tokens.items() if each.subject.name == name]
        for digest in gone:
            del self._tokens[digest]
        self._tickets = {key: each for key, each in self._tickets.items() if each[0].name != name}
        self.on_revoked()
        return len(gone)

    def ticket(self, subject: Subject) -> str:
        """A text that stands for the subject once, for TICKET_SECONDS: a page then keeps no token."""
        made = secrets.token_urlsafe(24)
        self._tickets[digest_of(made)] = (subject, self._now() + TICKET_SECONDS)
        if len(self._tickets) > MAX_TICKETS:
            del self._tickets[next(iter(self._tickets))]
        return made

    def by_ticket(self, ticket: str) -> Subject | None:
        """Whose a ticket is, which is used up by this; None for one that is unknown, used or too old."""
        self.look()
        found = self._tickets.pop(digest_of(ticket), None)
        if found is None or found[1] <= self._now():
            return None
        return found[0]

    def opening(self, token: str) -> str:
        """A text for which a page is given the token once, within OPENING_SECONDS.

        It stands in the address that a browser is opened with: whoever else is on this machine can read the
        browser's command line, later.
        """
        made = secrets.token_urlsafe(24)
        self._openings[digest_of(made)] = (token, self._now() + OPENING_SECONDS)
        return made

    def by_opening(self, opening: str) -> str | None:
        """The token, and never again; None for a text that is unknown, used or too old."""
        found = self._openings.pop(digest_of(opening), None)
        if found is None or found[1] <= self._now() or self.by_token(found[0]) is None:
            return None
        return found[0]


def one_token(token: str, scopes: frozenset[str] = SCOPES) -> AccessToken:
    """The token of a server with one user, who sees everything. Raises UserError for a short one.

    scopes: what may be done.
    """
    if len(token) < SHORTEST:
        raise UserError(f"A token has at least {SHORTEST} characters")
    return AccessToken(Subject("local", scopes, sees_all=True), digest_of(token))


def bearer(headers: Mapping[bytes, bytes]) -> str:
    """The token of a request's header; empty without one."""
    kind, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
    return token.strip() if kind.lower() == "bearer" else ""
