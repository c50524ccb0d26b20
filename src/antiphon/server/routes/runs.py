"""Routes on runs: start, list, ask, tell, answer, stop, resume, rename, delete."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from functools import partial
from hashlib import blake2b
from typing import Annotated, Any

import msgspec
from litestar import delete, get, patch, post
from litestar.params import FromPath, FromQuery, HeaderParameter, JSONBody, QueryParameter

from antiphon.errors import AnsweredAlready, JournalError, UnknownName, UserError
from antiphon.host import Host
from antiphon.host.host import KEY_LENGTH, KeyUsed, is_closed
from antiphon.host.summaries import state_word
from antiphon.journal.listing import Labels, RunFilter, RunInfo, RunStatus, check_name
from antiphon.kernel.facts.summary import RunSummary
from antiphon.server.permissions import allowed
from antiphon.server.problems import Refusal
from antiphon.server.routes.bodies import (
    AnswerBody,
    AskBody,
    CancelBody,
    ChangeRun,
    CommandReceipt,
    CreateRun,
    Inbox,
    InboxItemView,
    ResumeBody,
    RunCreated,
    RunLine,
    RunPage,
    TellBody,
)
from antiphon.server.routes.loading import (
    TAKEN_SECONDS,
    FromHost,
    FromRun,
    FromSubject,
    check_owner,
    may_see,
)
from antiphon.server.subjects import Subject
from antiphon.view import OpenQuestion, RunConnection
from antiphon.view.nodes import Cost

Key = Annotated[str, HeaderParameter(name="Idempotency-Key", max_length=KEY_LENGTH)]
MAX_PAGE = 200


@post("/runs", status_code=201, summary="Start a run", **allowed("write"))
async def create_run(
    data: JSONBody[CreateRun], host: FromHost, subject: FromSubject, key: Key = ""
) -> RunCreated:
    """Start a run with a request. With an Idempotency-Key it is started once, however often it is sent."""
    check_name(data.name)
    started = await host.start(
        data.team, data.message, entry=data.entry, attachments=data.attachments, data=data.data,
        limits=data.limits, key=key, labels=Labels(data.project, subject.name),
    )  # fmt: skip
    if data.name and started.created:
        await host.journal.rename(started.run_id, data.name)
    return RunCreated(started.run_id, started.created)


@get("/runs", summary="List runs", **allowed("read"))
async def list_runs(
    host: FromHost, subject: FromSubject, team: FromQuery[str] = "", project: FromQuery[str] = "",
    text: FromQuery[str] = "", before: Annotated[int, QueryParameter(ge=0)] = 0,
    in_state: Annotated[str, QueryParameter(name="state")] = "",
    limit: Annotated[int, QueryParameter(ge=1, le=MAX_PAGE)] = 50,
) -> RunPage:  # fmt: skip
    """The runs that the subject may see, newest first. before: what the page before gave as `next`;
    text: in its title or name."""
    states, driven = STATES.get(in_state, ((), None))
    owner = None if subject.sees_all else subject.name
    where = RunFilter(project or None, owner, team or None, states, driven, text)
    found: list[RunLine] = []
    number = before
    while True:
        page = await host.journal.runs(where, number, limit)
        for info in page:
            line = await run_line(host, info)
            if not in_state or line.state == in_state:
                if len(found) == limit:
                    return RunPage(found, number)
                found.append(line)
            number = info.number
        if len(page) < limit:
            return RunPage(found, 0)


STATES: Mapping[str, tuple[tuple[RunStatus, ...], bool | None]] = {
    "running": (("open",), True),
    "suspended": (("open",), False),
    "waiting": (("waiting", "open"), None),
    "idle": (("idle",), None),
    "closed": (("closed",), None),
}
"""How the store finds runs of a state; any other, which tells how a run ended, is looked for among all."""


async def run_line(host: Host, info: RunInfo) -> RunLine:
    """A run in a list."""
    hosted = host.runs.get(info.run_id)
    try:
        known = await host.summary(info)
        state = state_word(info, known)
    except JournalError as error:
        known, state = RunSummary(info.seq, title=str(error)), "damaged"
    if hosted is not None and hosted.state == "queued":
        state = "queued"
    if state == "suspended" and known.state == "waiting":
        # Nobody drives it, and nobody has to: it goes on when it is answered.
        state = "waiting"
    return RunLine(
        info.run_id, state, info.name, info.labels.team, info.labels.owner, info.labels.project,
        known.entry, known.title, known.outcome, hosted.reason if hosted is not None else "",
        info.seq, known.tokens, Cost(known.nano_usd).usd, known.unpriced, info.owner, info.created_at,
        info.updated_at,
    )  # fmt: skip


@get("/runs/{run_id:str}", summary="Show a run in a line", **allowed("read"))
async def show_run(run: FromRun, host: FromHost) -> RunLine:
    """One line of the list of runs."""
    return await run_line(host, await host.info(run.run_id))


@patch("/runs/{run_id:str}", summary="Rename a run", **allowed("write"))
async def change_run(data: JSONBody[ChangeRun], run: FromRun, host: FromHost) -> RunLine:
    """Give a run a name, or take it away; a closed one too."""
    await host.journal.rename(run.run_id, data.name.strip())
    return await run_line(host, await host.info(run.run_id))


@delete("/runs/{run_id:str}", summary="Delete a run", **allowed("write"))
async def delete_run(run_id: FromPath[str], host: FromHost, subject: FromSubject) -> None:
    """Remove a run for good; one that is at work is refused."""
    await check_owner(host, subject, run_id)
    await host.delete(run_id)


@post("/runs/{run_id:str}/requests", status_code=202, summary="Ask an agent", **allowed("write"))
async def ask(data: JSONBody[AskBody], run: FromRun, host: FromHost, key: Key = "") -> CommandReceipt:
    """Another request in the run. With an Idempotency-Key it is made once."""
    posted_as = await once(host, run.run_id, key, data) if key else ""
    number = await run.ask(
        data.agent, data.message, attachments=data.attachments, data=data.data, limits=data.limits,
        key=posted_as,
    )  # fmt: skip
    return await receipt(run, number)


async def once(host: Host, run_id: str, key: str, body: Any) -> str:
    """The key under which a request is posted: it says what was asked, so that another is refused."""
    first = f"ask:{blake2b(key.encode(), digest_size=12).hexdigest()}:"
    wanted = first + blake2b(msgspec.json.encode(body), digest_size=12).hexdigest()
    for stored in await host.journal.commands(run_id):
        if stored.key.startswith(first) and stored.key != wanted:
            raise KeyUsed("The Idempotency-Key came with another request before; use a new one")
    return wanted


@post("/runs/{run_id:str}/messages", status_code=202, summary="Tell an agent more", **allowed("write"))
async def tell(data: JSONBody[TellBody], run: FromRun) -> CommandReceipt:
    """Something more for the agent that works on an open call."""
    return await receipt(run, await run.post(data.call_id, data.message, attachments=data.attachments))


@post("/runs/{run_id:str}/answers", status_code=202, summary="Answer a question", **allowed("write"))
async def answer(data: JSONBody[AnswerBody], run: FromRun, subject: FromSubject) -> CommandReceipt:
    """Answer an open question, or decide on an approval. The second answer is refused, and told the first."""
    return await answered(run, data, subject.name)


async def answered(run: RunConnection, given: AnswerBody, by: str) -> CommandReceipt:
    """Post an answer. Raises Refusal when there is one already."""
    try:
        number = await run.answer(
            given.question, given.content, arguments=given.arguments, by=by, grant=given.grant,
            reason=given.reason, ends_turn=given.ends_turn,
        )  # fmt: skip
    except AnsweredAlready:
        raise
    except UserError:
        effect = (await run.tree()).effects.get(given.question)
        if effect is not None and effect.asks_person and effect.ended_at is not None:
            by_whom = effect.wait.by if effect.wait is not None and effect.wait.by else "nobody"
            said = f"{given.question} was answered {effect.content!r} by {by_whom}"
            raise Refusal(409, "answered", said, "It is settled; look at the run") from None
        raise
    return await receipt(run, number)


@post("/runs/{run_id:str}/cancel", status_code=202, summary="Stop a run or a call", **allowed("write"))
async def cancel(data: JSONBody[CancelBody], run: FromRun) -> CommandReceipt:
    """Stop every request, or one call or tool and all under it. The run stays open for others."""
    return await receipt(run, await run.cancel(data.target, data.reason))


@post("/runs/{run_id:str}/resume", status_code=202, summary="Take a run up", **allowed("write"))
async def resume(data: JSONBody[ResumeBody], run: FromRun, host: FromHost) -> RunLine:
    """Drive a run that nobody drives."""
    await host.resume(run.run_id, data.team)
    return await run_line(host, await host.info(run.run_id))


@post("/runs/{run_id:str}/close", status_code=200, summary="End a run for good", **allowed("write"))
async def close(data: JSONBody[CancelBody], run: FromRun, host: FromHost) -> RunLine:
    """Cancel what is open and close the run: nothing can follow in it. `target` must be empty."""
    if data.target:
        raise Refusal(400, "refused", "A run is closed as a whole", "Leave target out, or cancel the call")
    await host.close(run.run_id, data.reason)
    return await run_line(host, await host.info(run.run_id))


async def receipt(run: RunConnection, number: int) -> CommandReceipt:
    """What became of a command, as far as that shows soon. Raises Refusal when it came too late."""
    try:
        async with asyncio.timeout(TAKEN_SECONDS):
            return CommandReceipt(number, True, await run.taken(number))
    except TimeoutError:
        return CommandReceipt(number, False)
    except UserError as error:
        raise Refusal(409, "too_late", str(error), "Look at the run: it went on meanwhile") from None


@get("/inbox", summary="What all runs ask", **allowed("read"))
async def inbox(host: FromHost, subject: FromSubject) -> Inbox:
    """Questions, approvals and limits of every run that the subject may see, oldest first."""
    items: list[InboxItemView] = []
    async for info in _asking(host, subject):
        # What another run would be that had this id, and a later record, has another place or number.
        make = partial(AskedOf, host, info.run_id)
        asked = host.readings.of(("asked", info.number, info.seq), AskedOf, make)
        # A run that cannot be read asks nothing.
        with suppress(JournalError, UnknownName):
            items += [
                InboxItemView(info.run_id, info.name, info.labels.team, each)
                for each in await asked.questions()
            ]
    return Inbox(sorted(items, key=lambda each: each.question.since))


async def _asking(host: Host, subject: Subject) -> AsyncIterator[RunInfo]:
    """The runs that may ask something, found by index: those that say so; those whose owner has died, of
    which nobody has said it; and those that are driven here, which say it a moment later."""
    owner, found = None if subject.sees_all else subject.name, set[str]()
    for where in (RunFilter(owner=owner, states=("waiting",)), RunFilter(owner=owner, interrupted=True)):
        for info in await host.journal.runs(where):
            if info.run_id not in found and not is_closed(info):
                found.add(info.run_id)
                yield info
    for hosted in tuple(host.runs.values()):
        if hosted.run is not None and hosted.run.asks and hosted.run_id not in found:
            with suppress(JournalError, UnknownName):
                info = await host.info(hosted.run_id)
                if may_see(subject, info.labels):
                    yield info


class AskedOf:
    """What a run asks as of one record, read once."""

    def __init__(self, host: Host, run_id: str) -> None:
        self._host, self._run_id, self.size = host, run_id, 1_000
        self._known: tuple[OpenQuestion, ...] | None = None

    async def questions(self) -> tuple[OpenQuestion, ...]:
        """Oldest first; nothing while it does not wait for them. Raises JournalError, UnknownName."""
        if self._known is None:
            async with self._host.connect(self._run_id) as run:
                waits = (await run.folded()).tree.state == "waiting"
                found = await run.open_questions() if waits else ()
            self.size += len(msgspec.json.encode(found))
            self._known = found
        return self._known
