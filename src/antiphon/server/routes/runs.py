"""Routes on runs: start, list, ask, tell, answer, stop, resume, rename, delete."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from hashlib import blake2b
from typing import Annotated, Any

import msgspec
from litestar import delete, get, patch, post
from litestar.params import FromPath, FromQuery, HeaderParameter, JSONBody, QueryParameter
from msgspec.structs import replace

from antiphon.errors import JournalError, UnknownName
from antiphon.host import Host
from antiphon.host.starting import KEY_LENGTH, KeyUsed
from antiphon.host.summaries import STATES, in_state, is_closed, state_word
from antiphon.journal.listing import Labels, RunFilter, RunInfo, check_name
from antiphon.kernel.facts.summary import RunSummary
from antiphon.kernel.run.forks.fork import ForkedRun
from antiphon.server.permissions import allowed
from antiphon.server.problems import Refusal
from antiphon.server.routes.answers import answered, receipt
from antiphon.server.routes.bodies import (
    AnswerBody,
    AskBody,
    CancelBody,
    ChangeRun,
    CommandReceipt,
    CreateRun,
    ForkBody,
    Inbox,
    InboxItemView,
    ResumeBody,
    RunCreated,
    RunLine,
    RunPage,
    TeamCheck,
    TellBody,
)
from antiphon.server.routes.loading import (
    FromHost,
    FromRun,
    FromServed,
    FromSubject,
    check_owner,
    check_room,
    may_see,
    visible,
)
from antiphon.server.routes.projects.projects import check_project
from antiphon.server.subjects import Subject
from antiphon.view import OpenQuestion
from antiphon.view.nodes import Cost
from antiphon.view.traces.span import remote

Key = Annotated[str, HeaderParameter(name="Idempotency-Key", max_length=KEY_LENGTH)]
TraceParent = Annotated[str, HeaderParameter(name="traceparent")]
"""The span of whoever asks (W3C Trace Context); what is none counts for nothing."""
MAX_PAGE = 200


@post("/runs", status_code=201, summary="Start a run", **allowed("write"))
async def create_run(
    data: JSONBody[CreateRun], host: FromHost, subject: FromSubject, served: FromServed, key: Key = "",
    traceparent: TraceParent = "",
) -> RunCreated:  # fmt: skip
    """Start a run with a request. With an Idempotency-Key it is started once, however often it is sent."""
    check_name(data.name)
    await check_project(host, subject, data.project)
    await check_room(served, subject)
    started = await host.start(
        data.team, data.message, entry=data.entry, attachments=data.attachments, data=data.data,
        limits=data.limits, key=key, labels=Labels(data.project, subject.name), files=data.files,
        model=data.model, policy=data.policy, traceparent=known(traceparent), history=data.history,
        conversation=data.conversation, options=data.options,
    )  # fmt: skip
    if data.name and started.created:
        await host.journal.rename(started.run_id, data.name)
    return RunCreated(started.run_id, started.created)


@get("/runs", summary="List runs", **allowed("read"))
async def list_runs(
    host: FromHost, subject: FromSubject, team: FromQuery[str | None] = None,
    project: FromQuery[str | None] = None, owner: FromQuery[str | None] = None, text: FromQuery[str] = "",
    named: FromQuery[str] = "", before: Annotated[int, QueryParameter(ge=0)] = 0,
    word: Annotated[str, QueryParameter(name="state")] = "",
    limit: Annotated[int, QueryParameter(ge=1, le=MAX_PAGE)] = 50,
) -> RunPage:  # fmt: skip
    """The runs that the subject may see, newest first. before: what the page before gave as `next`;
    text: in its title or name; named: its id begins so, or it is called so. An empty project, owner or team
    lists the runs without one."""
    where = visible(subject, _where(RunFilter(project, owner, team, text=text), word))
    if where is None:
        return RunPage([], 0)
    found: list[RunLine] = []
    number = before
    while True:
        page = await host.journal.runs(where, number, limit)
        for info in page:
            line = await run_line(host, info) if _is_named(info, named) else None
            if line is not None and (not word or word in (line.state, _rests(line))):
                if len(found) == limit:
                    return RunPage(found, number)
                found.append(line)
            number = info.number
        if len(page) < limit:
            return RunPage(found, 0)


def _where(where: RunFilter, word: str) -> RunFilter:
    """How the store finds runs of a state. Of a run that was killed the store may not know that it waits;
    what it does not know at all, such as `damaged`, is looked for among all."""
    if word == "waiting":
        return replace(where, states=("waiting", "open"))
    return in_state(where, word) if word in STATES else where


def _is_named(info: RunInfo, named: str) -> bool:
    return not named or info.name == named or info.run_id.startswith(named)


def _rests(line: RunLine) -> str:
    """`idle` or `closed` of a run whose state in a word is how its last request ended."""
    return line.summary.state if line.summary.state in ("idle", "closed") else ""


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
        info.updated_at, info.number, known,
    )  # fmt: skip


@get("/runs/{run_id:str}", summary="Show a run in a line", **allowed("read"))
async def show_run(run: FromRun, host: FromHost) -> RunLine:
    """One line of the list of runs."""
    return await run_line(host, await host.info(run.run_id))


@patch("/runs/{run_id:str}", summary="Rename or move a run", **allowed("write"))
async def change_run(
    data: JSONBody[ChangeRun], run: FromRun, host: FromHost, subject: FromSubject
) -> RunLine:
    """Give a run a name, or another project; a closed one too. A run of a project's own team stays where that
    team is."""
    return await changed(host, subject, run.run_id, data)


async def changed(host: Host, subject: Subject, run_id: str, data: ChangeRun) -> RunLine:
    """Rename a run, move it, or both. Raises UnknownName, UserError, RunInUse."""
    if data.name is not None:
        check_name(data.name.strip())
    if data.project is not None and data.project != (await host.info(run_id)).labels.project:
        await check_project(host, subject, data.project)
        await host.move(run_id, data.project)
    if data.name is not None:
        await host.journal.rename(run_id, data.name.strip())
    return await run_line(host, await host.info(run_id))


@delete("/runs/{run_id:str}", summary="Delete a run", **allowed("write"))
async def delete_run(run_id: FromPath[str], host: FromHost, subject: FromSubject) -> None:
    """Remove a run for good; one that is at work is refused."""
    await check_owner(host, subject, run_id)
    await host.delete(run_id)


@post("/runs/{run_id:str}/requests", status_code=202, summary="Ask an agent", **allowed("write"))
async def ask(
    data: JSONBody[AskBody], run: FromRun, host: FromHost, key: Key = "", traceparent: TraceParent = ""
) -> CommandReceipt:
    """Another request in the run. With an Idempotency-Key it is made once."""
    posted_as = await once(host, run.run_id, key, data) if key else ""
    number = await run.ask(
        data.agent, data.message, attachments=data.attachments, intent=data.intent, data=data.data,
        limits=data.limits, key=posted_as, traceparent=known(traceparent), history=data.history,
        options=data.options,
    )  # fmt: skip
    return await receipt(run, number)


def known(traceparent: str) -> str:
    """The header as it is kept; empty for one that names no span."""
    return traceparent if remote(traceparent) is not None else ""


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
async def answer(
    data: JSONBody[AnswerBody], run: FromRun, host: FromHost, subject: FromSubject
) -> CommandReceipt:
    """Answer an open question, or decide on an approval. The second answer is refused, and told the first."""
    return await answered(host, subject, run, data)


@post("/runs/{run_id:str}/cancel", status_code=202, summary="Stop a run or a call", **allowed("write"))
async def cancel(data: JSONBody[CancelBody], run: FromRun) -> CommandReceipt:
    """Stop every request, or one call or tool and all under it. The run stays open for others."""
    return await receipt(run, await run.cancel(data.target, data.reason))


@post("/runs/{run_id:str}/resume", status_code=202, summary="Take a run up", **allowed("write"))
async def resume(data: JSONBody[ResumeBody], run: FromRun, host: FromHost) -> RunLine:
    """Drive a run that nobody drives."""
    await host.resume(run.run_id, data.team)
    return await run_line(host, await host.info(run.run_id))


@post(
    "/runs/{run_id:str}/fork", status_code=201, summary="Begin a run as another one did", **allowed("write")
)
async def fork_run(
    data: JSONBody[ForkBody], run: FromRun, host: FromHost, subject: FromSubject, served: FromServed
) -> ForkedRun:
    """A new run with the records of this one up to `at`, or as far as it goes: the last of them after which
    nothing is at work. It is whoever asks for it; the other run does not change."""
    await check_room(served, subject)
    labels = (await host.info(run.run_id)).labels
    return await host.fork(run.run_id, data.at, labels=replace(labels, owner=subject.name))


@get("/runs/{run_id:str}/check", summary="What taking a run up would meet", **allowed("read"))
async def check(run: FromRun, host: FromHost, team: FromQuery[str] = "") -> TeamCheck:
    """How a team differs from the one that the run was last opened with, and what that means.
    team: as for resume. Nothing is changed."""
    found = await host.compare(run.run_id, team)
    return TeamCheck(found is not None, found or [])


@post("/runs/{run_id:str}/close", status_code=200, summary="End a run for good", **allowed("write"))
async def close(data: JSONBody[CancelBody], run: FromRun, host: FromHost) -> RunLine:
    """Cancel what is open and close the run: nothing can follow in it. `target` must be empty."""
    if data.target:
        raise Refusal(400, "refused", "A run is closed as a whole", "Leave target out, or cancel the call")
    await host.close(run.run_id, data.reason)
    return await run_line(host, await host.info(run.run_id))


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
