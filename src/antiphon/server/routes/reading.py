"""Routes that read one run: its tree, records, activations, blobs, context, questions."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing
from sys import maxsize
from typing import Annotated, Any

import msgspec
from litestar import Response, get
from litestar.params import FromPath, FromQuery, QueryParameter

from antiphon.errors import JournalError, UserError
from antiphon.host import Host
from antiphon.kernel.facts.records import Record
from antiphon.kernel.run.rows import RecordPages
from antiphon.kernel.run.run import activation_info
from antiphon.models.model_string import parse
from antiphon.models.openai.wire import Dialect, encode_request, encode_tools
from antiphon.server.permissions import allowed
from antiphon.server.problems import Refusal
from antiphon.server.routes.bodies import (
    ActivationView,
    EffectView,
    FramePage,
    ModelView,
    RecordPage,
    RunView,
    TurnView,
)
from antiphon.server.routes.loading import FromHost, FromRun
from antiphon.server.streams.frames import frames_of
from antiphon.styles.profiles import ProfileTeam, RunContext
from antiphon.styles.profiles.run_context import context_of
from antiphon.values.result import ActivationInfo
from antiphon.view import OpenQuestion, RunConnection, RunTree, StoredRequest
from antiphon.view.connection import open_questions
from antiphon.view.frames import TEXT, VALUE, Frame, FrameReader
from antiphon.view.nodes import ActivationNode, EffectNode

MAX_RECORDS = 1_000
MAX_FRAMES = 5_000
AS_DATA = {"Content-Disposition": "attachment", "X-Content-Type-Options": "nosniff"}
"""Nothing that an agent wrote is ever taken for a page."""
At = Annotated[int | None, QueryParameter(ge=1)]


@get("/runs/{run_id:str}/tree", summary="Show a run", **allowed("read"))
async def tree(run: FromRun, at: At = None) -> RunView:
    """The run as of record `at`, or as it is: activations, turns, effects, messages, costs."""
    _check_cursor(at or 0, run.seq)
    folded = await run.folded()
    return run_view(folded.tree if at in (None, folded.seq) else await run.tree(at))


@get("/runs/{run_id:str}/records", summary="Read records", **allowed("read"))
async def records(
    run: FromRun,
    host: FromHost,
    after: Annotated[int, QueryParameter(ge=0)] = 0,
    limit: Annotated[int, QueryParameter(ge=1, le=MAX_RECORDS)] = 200,
) -> RecordPage:
    """The records numbered above `after`."""
    _check_cursor(after, run.seq)
    pages, found = RecordPages(host.journal, run.run_id, after), list[Record]()
    while len(found) <= limit and (more := await pages.read()):
        found += more
    page = found[:limit]
    return RecordPage(run.run_id, page, page[-1].seq if page else after, len(found) > limit)


@get("/runs/{run_id:str}/frames", summary="Read frames", **allowed("read"))
async def frames(
    run: FromRun,
    host: FromHost,
    after: Annotated[int, QueryParameter(ge=0)] = 0,
    limit: Annotated[int, QueryParameter(ge=1, le=MAX_FRAMES)] = 1_000,
    whole: FromQuery[bool] = False,
    files: FromQuery[bool] = False,
) -> FramePage:
    """What each record above `after` changed, as flat JSON for a program that draws the run.

    Long texts come cut, with their length, and files without what they hold. whole: texts as they are, files:
    what files hold too, as base64; each for one record: with `limit=1`.
    """
    _check_cursor(after, run.seq)
    if (whole or files) and limit != 1:
        raise Refusal(400, "refused", "Whole texts come with one frame at a time", "Ask with limit=1")
    if whole or files:
        reader = FrameReader(
            text=maxsize if whole else TEXT, value=maxsize if whole else VALUE, files=maxsize if files else 0
        )
        return FramePage(run.run_id, await _frame(run, after, reader), run.seq)
    found = await frames_of(host, run.run_id).between(after, min(after + limit, run.seq))
    # They are JSON already.
    made: list[Any] = [msgspec.Raw(each) for each in found]
    return FramePage(run.run_id, made, run.seq)


async def _frame(run: RunConnection, after: int, reader: FrameReader) -> list[Frame]:
    """The frame of the next record, as the reader makes it."""
    async with aclosing(run.events(0, deltas=False)) as events:
        async for item in events:
            if reader.seq >= run.seq:
                break
            if isinstance(item, Record):
                frame = reader.add(item)
                if frame.seq > after:
                    return [frame]
    return []


@get("/runs/{run_id:str}/requests/{effect_id:path}", summary="What a model was asked", **allowed("read"))
async def request(run: FromRun, host: FromHost, effect_id: FromPath[str]) -> StoredRequest:
    """Exactly what a model was asked in one call, such as `1/2.m1`, put together from the records."""
    # A run of this id that is made later has another number; what one was asked does not change.
    key = ("request", (await host.info(run.run_id)).number, effect_id)
    return await host.readings.of(key, KeptRequest, KeptRequest).of(run, effect_id.lstrip("/"))


class KeptRequest:
    """What a model was asked in one call, read once."""

    def __init__(self) -> None:
        self.size = 1_000
        self._known: StoredRequest | None = None

    async def of(self, run: RunConnection, effect_id: str) -> StoredRequest:
        """It. Raises UnknownName, JournalError."""
        if self._known is None:
            found = await run.request_of(effect_id)
            self.size += 2 * len(msgspec.json.encode(found))
            self._known = found
        return self._known


@get(
    "/runs/{run_id:str}/chat-completions/{effect_id:path}", summary="A model's request, to be sent again",
    media_type="application/json", **allowed("read"),
)  # fmt: skip
async def chat_completion(run: FromRun, effect_id: FromPath[str]) -> Response[bytes]:
    """The body by which an OpenAI-compatible endpoint is asked the same, not streamed. It holds no key."""
    asked = (await run.request_of(effect_id.lstrip("/"))).request
    body = encode_request(
        parse(asked.model).model, asked, Dialect(), stream=False, tools=encode_tools(asked.tools)
    )
    return Response(body, media_type="application/json", headers=AS_DATA)


@get("/runs/{run_id:str}/activations/{number:int}", summary="What an activation sees", **allowed("read"))
async def activation(run: FromRun, number: FromPath[int], at: At = None) -> ActivationInfo:
    """The transcript, inbox and open effects of one activation, as of record `at` or as they are."""
    _check_cursor(at or 0, run.seq)
    return await run.view(number, at)


@get("/runs/{run_id:str}/questions", summary="What a run asks", **allowed("read"))
async def questions(run: FromRun) -> list[OpenQuestion]:
    """What the run asks people now, oldest first."""
    return list(await run.open_questions())


@get(
    "/runs/{run_id:str}/blobs/{digest:str}", summary="A payload", media_type="application/json",
    **allowed("read"),
)  # fmt: skip
async def blob(run: FromRun, host: FromHost, digest: FromPath[str]) -> Response[bytes]:
    """A payload that a record names by its digest: a prompt prefix, a manifest. JSON."""
    try:
        held = await host.journal.blob(run.run_id, digest)
    except JournalError:
        raise Refusal(
            404, "unknown_blob", "The run names no such payload", "Take the digest from a record"
        ) from None
    return Response(held, media_type="application/json", headers=AS_DATA)


@get("/runs/{run_id:str}/context", summary="The RunContext of a team of profiles", **allowed("read"))
async def context(run: FromRun, host: FromHost) -> RunContext:
    """The run as RunContext: team state, partner, principal, associates. 404 for other teams."""
    return await run_context_of(run, host)


async def run_context_of(run: RunConnection, host: Host) -> RunContext:
    """A run's RunContext. Raises Refusal for a run that is of no team of profiles."""
    profiles = await profiles_of(run, host)
    if profiles is None:
        raise Refusal(
            404, "no_context", "Only a run of a team of profiles that is served here has a RunContext"
        )
    records = await run.records()
    state = (await run.folded()).state
    live = [activation_info(each) for _, each in sorted(state.activations.items())]
    return context_of(records, live, profiles)


async def profiles_of(run: RunConnection, host: Host) -> ProfileTeam | None:
    """The profiles that a run's agents are of, where its team is known here and is one of profiles."""
    try:
        known = await host.known.of((await host.info(run.run_id)).labels)
    except UserError:
        return None
    return known.source if isinstance(known.source, ProfileTeam) else None


def _check_cursor(at: int, seq: int) -> None:
    if at > seq:
        raise Refusal(
            400,
            "cursor",
            f"The cursor {at} is of the future: the last record is {seq}",
            "Begin with an earlier one",
        )


def run_view(found: RunTree) -> RunView:
    """A tree as it is sent: flat, callees by their numbers."""
    return RunView(
        found.run_id, found.seq, found.at, found.started_at, found.closed, found.outcome, found.reason,
        list(found.requests), [_activation(each, found.labels) for each in found.activations.values()],
        [
            ModelView(name, each.calls, each.usage, each.cost.usd, each.cost.unpriced)
            for name, each in found.models.items()
        ],
        open_questions(found), [each.message for each in found.log],
    )  # fmt: skip


def _activation(node: ActivationNode, labels: Mapping[str, tuple[str, ...]]) -> ActivationView:
    turns = [
        TurnView(
            each.number, each.started_at, each.ended_at,
            [_effect(one, labels.get(one.id, ())) for one in each.effects],
        )
        for each in node.turns
    ]  # fmt: skip
    return ActivationView(
        node.id, node.agent, node.caller, node.call, node.asked, node.started_at, node.ended_at, node.outcome,
        node.reason, node.content, turns, node.own.calls, node.own.usage, node.own.cost.usd,
    )  # fmt: skip


def _effect(node: EffectNode, labels: tuple[str, ...]) -> EffectView:
    decided: Any = node.wait.by if node.wait is not None else ""
    if not decided and node.decision is not None:
        decided = node.decision.by
    content = node.content
    if node.model is not None and node.model.reply is not None:
        content = node.model.reply.content
    return EffectView(
        node.id, node.kind, node.name, node.purpose, node.arguments, node.text, node.started_at,
        node.ended_at, node.outcome, node.reason, content, decided,
        node.callee.id if node.callee is not None else None,
        node.model.usage if node.model is not None else None,
        node.model.cost.usd if node.model is not None else 0.0, list(labels),
    )  # fmt: skip
