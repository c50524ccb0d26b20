"""A run on a server, with the face of `antiphon.view.connect`'s: what is done over HTTP, is folded here."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import aclosing, asynccontextmanager
from typing import Any
from urllib.parse import quote

import msgspec

from antiphon.cli.remote.client import ServerClient
from antiphon.cli.remote.events import ServerEvents, check_next
from antiphon.errors import UserError
from antiphon.kernel.facts.records import Record
from antiphon.server.routes.bodies import (
    AnswerBody,
    AskBody,
    CancelBody,
    CommandReceipt,
    OptionsBody,
    RecordPage,
    RunLine,
    TellBody,
)
from antiphon.server.routes.bodies.asked import GivenGrant
from antiphon.values.agent import AnyAgent, RequestOptions, agents_of
from antiphon.values.limits import Limits
from antiphon.values.message import USER, Attachment
from antiphon.values.model import ChatMessage
from antiphon.values.policy import Grant
from antiphon.values.result import ActivationInfo
from antiphon.view import OpenQuestion, RunTree, StoredRequest
from antiphon.view.reading.commands_taken import CommandsTaken

PAGE = 1_000
"""Records of a request."""


class ServerRun:
    """One run on a server; made by `connect_server`. The methods are those of `RunConnection`.

    Everything raises ServerFault, ServerRefused and NotFound. tell: see ServerEvents.
    """

    def __init__(self, client: ServerClient, run_id: str, seq: int, tell: Callable[[str], object]) -> None:
        self._client, self._run_id, self._tell = client, run_id, tell
        self._known = seq
        self._receipts: dict[int, CommandReceipt] = {}

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self._run_id

    @property
    def seq(self) -> int:
        """The number of the last record that is known here."""
        return self._known

    def events(self, after: int = 0, *, deltas: bool = True) -> ServerEvents:
        """See `RunConnection.events`."""
        return ServerEvents(self._client, self._run_id, after, deltas, self._tell)

    async def records(self, after: int = 0) -> list[Record]:
        """See `RunConnection.records`."""
        found: list[Record] = []
        more = True
        while more:
            query = {"after": after, "limit": PAGE}
            page = await self._client.ask("GET", self._path("/records"), RecordPage, query=query)
            for record in page.records:
                check_next(self._client, record, self._run_id, after)
                after = record.seq
            found += page.records
            more = page.more and bool(page.records)
        self._known = max(self._known, after)
        return found

    async def tree(self, at: int | None = None) -> RunTree:
        """See `RunConnection.tree`."""
        return RunTree.of(each for each in await self.records() if at is None or each.seq <= at)

    async def view(self, activation: int, at: int | None = None) -> ActivationInfo:
        """See `RunConnection.view`."""
        path = self._path(f"/activations/{activation}")
        return await self._client.ask("GET", path, ActivationInfo, query={"at": at})

    async def request_of(self, effect_id: str) -> StoredRequest:
        """See `RunConnection.request_of`."""
        path = self._path(f"/requests/{quote(effect_id)}")
        return await self._client.ask("GET", path, StoredRequest)

    async def blob(self, digest: str) -> bytes:
        """See `RunConnection.blob`."""
        return (await self._client.fetch("GET", self._path(f"/blobs/{quote(digest, safe='')}")))[1]

    async def open_questions(self) -> tuple[OpenQuestion, ...]:
        """See `RunConnection.open_questions`."""
        return tuple(await self._client.ask("GET", self._path("/questions"), list[OpenQuestion]))

    # -- asking -------------------------------------------------------------------------------

    async def ask(
        self, agent: str | AnyAgent, text: str, *, attachments: Iterable[Attachment] = (), intent: str = "",
        task_id: str = "", data: Any = None, limits: Limits | None = None, key: str = "",
        history: Iterable[ChatMessage] = (), options: RequestOptions | None = None,
    ) -> int:  # fmt: skip
        """See `RunConnection.ask`. Raises UserError for a thread, which a server does not take."""
        if task_id:
            raise UserError("A request over HTTP has no task_id")
        name = agent if isinstance(agent, str) else agents_of(agent)[0].name
        own = None if options is None else OptionsBody(**msgspec.structs.asdict(options))
        body = AskBody(name, text, tuple(attachments), data, limits, tuple(history), intent, own)
        return await self._post("/requests", body, key)

    async def post(
        self, call_id: str, text: str, *, attachments: Iterable[Attachment] = (), key: str = ""
    ) -> int:
        """See `RunConnection.post`."""
        return await self._post("/messages", TellBody(call_id, text, tuple(attachments)), key)

    async def answer(
        self, effect_id: str, content: str, *, arguments: str = "", by: str = USER,
        grant: Grant | None = None, reason: str = "", ends_turn: bool = False,
    ) -> int:  # fmt: skip
        """See `RunConnection.answer`; who answers is the token's subject, whatever `by` says."""
        given = None if grant is None else GivenGrant(*msgspec.structs.astuple(grant))
        body = AnswerBody(effect_id, content, arguments, given, reason=reason, ends_turn=ends_turn)
        return await self._post("/answers", body, "")

    async def cancel(self, target: str = "", reason: str = "") -> int:
        """See `RunConnection.cancel`."""
        return await self._post("/cancel", CancelBody(target, reason), "")

    async def _post(self, path: str, body: Any, key: str) -> int:
        headers = {"idempotency-key": key} if key else {}
        found = await self._client.ask("POST", self._path(path), CommandReceipt, body=body, headers=headers)
        self._receipts[found.command] = found
        return found.command

    async def taken(self, command: int) -> str:
        """See `RunConnection.taken`."""
        known = self._receipts.get(command)
        if known is not None and known.taken:
            return known.id
        taken, tree = CommandsTaken(), RunTree(recent=True)
        async with aclosing(self.events(deltas=False)) as events:
            async for item in events:
                if isinstance(item, Record):
                    taken.note(item, tree.add(item))
                if (became := taken.of(command)) is not None:
                    return became
        raise UserError(f"Command {command} was not taken in: run {self._run_id} is closed")

    def _path(self, rest: str = "") -> str:
        return f"/runs/{quote(self._run_id, safe='')}{rest}"


@asynccontextmanager
async def connect_server(
    client: ServerClient, run_id: str, tell: Callable[[str], object]
) -> AsyncIterator[ServerRun]:
    """A connection to a run of a server. Raises NotFound for one that it does not show."""
    line = await client.ask("GET", f"/runs/{quote(run_id, safe='')}", RunLine)
    yield ServerRun(client, line.run_id, line.records, tell)
