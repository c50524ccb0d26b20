"""A run as somebody has it who does not drive it: watched, asked, answered and cancelled, from any process.

    async with connect("sqlite:///runs.db", run_id) as run:
        for question in await run.open_questions():
            await run.answer(question.id, "yes")
        async for item in run.events(run.seq):
            print(item)

It holds no lease, so it is nobody's rival. What it wants is posted as a command, and the run's owner takes
it in; of a run that nobody drives the next owner does. Every command has a number, and `taken` says what
became of it.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from functools import partial
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from antiphon.errors import AnsweredAlready, RunIsClosed, UnknownName, UserError, visible
from antiphon.journal import Journal, open_journal
from antiphon.journal.transfer import MAX_SEQ
from antiphon.kernel.facts import ids
from antiphon.kernel.facts.events import VERDICTS
from antiphon.kernel.facts.records import Record
from antiphon.kernel.run.commands import (
    AnswerInput,
    AskAgent,
    CallTool,
    CancelEffect,
    Command,
    PostMessage,
    decode,
    encode,
    from_outside,
    known_history,
    known_options,
    posted,
)
from antiphon.kernel.run.rows import RecordReader, fold, index_of, read
from antiphon.kernel.run.run import activation_info
from antiphon.values.agent import AnyAgent, RequestOptions, agents_of
from antiphon.values.fields import fit, shown
from antiphon.values.form import RESULT_AND_REASON, fitted
from antiphon.values.limits import Limits
from antiphon.values.message import USER, Attachment, new_id
from antiphon.values.model import ChatMessage, ToolSpec
from antiphon.values.policy import Grant
from antiphon.values.result import ActivationInfo
from antiphon.view.nodes import EffectNode, WaitDetail
from antiphon.view.reading.events import RunEvents
from antiphon.view.reading.folded import FoldedRun
from antiphon.view.stored_request import StoredRequest, request_of
from antiphon.view.tree import RunTree


class OpenQuestion(Struct, frozen=True):
    """Something that a run asks a person."""

    id: str
    """What `answer` knows it by."""
    kind: Literal["question", "approval", "limit"]
    """A question is answered in words; an approval of a tool call, or of a higher limit, `yes`, `no` or
    `always`."""
    agent: str
    """Who asks."""
    text: str
    tool: str = ""
    """Of an approval; of a question that is the call of an outside tool, whose result is the answer."""
    arguments: str = ""
    """The tool's, JSON."""
    call_id: str = ""
    """Of the call of an outside tool, as the model numbered it."""
    since: float = 0.0
    """When it was asked, Unix seconds."""
    options: tuple[str, ...] = ()
    """What may be answered: one of these; empty for any text, or what fits the schema."""
    schema: dict[str, Any] | None = None
    """JSON Schema of the answer, which is JSON then; of an approval that of the arguments, should they be
    edited, where the journal has it. None: no such form."""
    deadline: float | None = None
    """Unix seconds when it ends without an answer; None: it waits for ever."""
    refused: int = 0
    """Posted answers that did not fit, after each of which it stayed open."""
    takes_verdict: bool = False
    """Of an approval and a limit: it is answered `yes`, `no` or `always`."""
    also: tuple[str, ...] = ()
    """Of a limit: the agents beside `agent` that wait for the same answer, each as often as it waits."""
    rule: str = ""
    """Of an approval: the hook or the policy that wants a person asked, see `Decision.rule`."""

    @property
    def is_approval(self) -> bool:
        """Whether a person is asked to allow a tool."""
        return self.kind == "approval"


class RunConnection:
    """One run, whoever drives it; made by `connect`. Belongs to one event loop.

    Everything raises JournalError and its kinds when the journal cannot be read.
    """

    def __init__(self, journal: Journal, run_id: str, shared: Callable[[], FoldedRun] | None = None) -> None:
        self._journal, self._run_id = journal, run_id
        self._shared = shared
        self._own: FoldedRun | None = None
        self._newest = 0
        self._tools: dict[str, dict[str, dict[str, Any]]] = {}
        self._known = 0

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self._run_id

    @property
    def seq(self) -> int:
        """The number of the last record that this connection knows of."""
        return self._known

    # -- reading ------------------------------------------------------------------------------

    def events(self, after: int = 0, *, deltas: bool = True) -> RunEvents:
        """An async iterator over the records numbered above `after`, and those that come; it ends with the
        run's close, and waits while nobody drives it.

        Of a run that this event loop drives, pieces of replies come too unless `deltas` is False; what
        is being written when it begins comes as one piece. Of one that is driven elsewhere records come
        within 0.25 s.
        """
        after = fit(after, int, "RunConnection.events(after)")
        return RunEvents(self._journal, self._run_id, after, deltas)

    async def records(self, after: int = 0) -> list[Record]:
        """The records numbered above `after` that there are."""
        if after > 0:
            return await read(self._journal, self._run_id, after)
        return await RecordReader(self._journal, self._run_id).read()

    async def tree(self, at: int | None = None) -> RunTree:
        """The run as of record `at`, or as it is: activations, turns, effects, costs."""
        tree = RunTree()
        async with aclosing(RecordReader(self._journal, self._run_id).records()) as records:
            async for record in records:
                if at is not None and record.seq > at:
                    break
                tree.add(record)
        return tree

    async def folded(self) -> FoldedRun:
        """The run as it is, folded: for whoever reads it before anything else is awaited."""
        if self._own is None:
            # One that others read too has all of the run; one's own as little as can be.
            made = partial(FoldedRun, self._journal, self._run_id, recent=True)
            self._own = (self._shared or made)()
        await self._own.read_on()
        self._known = max(self._known, self._own.seq)
        return self._own

    async def view(self, activation: int, at: int | None = None) -> ActivationInfo:
        """What one activation saw as of record `at`, or sees: its transcript, its inbox, its open effects.

        Raises UnknownName when there was none of that number, or it had returned for good.
        """
        if at is None:
            state = (await self.folded()).state
        else:
            state = await fold(self._journal, self._run_id, upto=at)
        found = state.activations.get(activation)
        if found is None:
            raise UnknownName("activation", str(activation), map(str, state.activations))
        return activation_info(found)

    async def request_of(self, effect_id: str) -> StoredRequest:
        """Exactly what a model was asked in one call: system text, messages, tools, tail and settings.

        Raises UnknownName for an id that is no model call of the run.
        """
        return await request_of(self._journal, self._run_id, effect_id)

    async def blob(self, digest: str) -> bytes:
        """A payload that a record names by its digest: a prompt prefix, a manifest. Raises JournalError."""
        return await self._journal.blob(self._run_id, digest)

    async def open_questions(self) -> tuple[OpenQuestion, ...]:
        """What the run asks people now, oldest first."""
        tree = (await self.folded()).tree
        asked = [(each, tree.activations[ids.activation_of(each.id)].prefix) for each in open_questions(tree)]
        found = []
        for each, digest in asked:
            schema = await self._parameters(each, digest) if each.takes_verdict and each.tool else each.schema
            found.append(replace(each, schema=schema))
        return tuple(found)

    async def _parameters(self, question: OpenQuestion, digest: str) -> dict[str, Any] | None:
        """The schema of the arguments of the tool that an approval is about, as its agent's model is told.
        digest: of the agent's prompt prefix."""
        if digest not in self._tools:
            told = _decode_prefix(await self.blob(digest)) if digest else _Prefix()
            self._tools[digest] = {each.name: each.parameters for each in told.tools}
        return self._tools[digest].get(question.tool)

    # -- asking -------------------------------------------------------------------------------

    async def ask(
        self, agent: str | AnyAgent, text: str, *, attachments: Iterable[Attachment] = (), intent: str = "",
        task_id: str = "", data: Any = None, limits: Limits | None = None, key: str = "",
        traceparent: str = "", history: Iterable[ChatMessage] = (), options: RequestOptions | None = None,
    ) -> int:  # fmt: skip
        """Ask an agent, as the user; the number of the command, whose `taken` is the id of the call.

        key: makes it once, however often it is posted under that key. traceparent: the span of whoever asks
        (W3C Trace Context), under which the request's stand. history: what was said before, with which the
        agent's conversation begins; one that has begun takes none, and the request fails. options: what holds
        for this request alone; whether the agent can be asked so, its owner says. Raises UserError for what
        JSON cannot hold, for a history that no provider would take, for options that can never be, and for a
        run that is closed.
        """
        name = agent if isinstance(agent, str) else agents_of(agent)[0].name
        command = AskAgent(
            name, text, tuple(attachments), intent, task_id, data, limits=limits, traceparent=traceparent,
            history=known_history(history), options=known_options(options),
        )  # fmt: skip
        return await self._post(command, key)

    async def post(
        self, call_id: str, text: str, *, attachments: Iterable[Attachment] = (), key: str = ""
    ) -> int:
        """Tell the agent that works on an open call something more. Otherwise as `ask`."""
        return await self._post(PostMessage(call_id, text, tuple(attachments)), key)

    async def answer(
        self, effect_id: str, content: str, *, arguments: str = "", by: str = USER,
        grant: Grant | None = None, reason: str = "", ends_turn: bool = False,
    ) -> int:  # fmt: skip
        """Answer an open question; or an approval, or a limit to be raised, with `yes`, `no` or `always`.

        content: as the question's `options` or `schema` say. arguments: JSON that replaces the arguments
        asked for. grant: how far `always` reaches. reason: of a `no`, told to the model; of an outside tool's
        call that failed, why, in place of a content; ends_turn: with the `no` the turn ends too. by: who
        answers; recorded as an outsider, since nobody checks it. Raises UserError when the effect asks
        nothing now, or has an answer that waits to be taken in, or the answer does not fit; the same answer
        given once more by the same person changes nothing. Whether the tool takes edited arguments its owner
        says: `taken` raises where it does not, and the question stays open for another answer.
        """
        asked = (await self.folded()).tree.human_inputs.get(effect_id)
        if asked is None:
            raise UserError(f"{effect_id} is not an open question or approval of run {self._run_id}")
        if not asked.is_question and content not in VERDICTS:
            raise UserError(f"An approval is answered yes, no or always; got {content!r}")
        if arguments and (not asked.is_approval or content == "no"):
            raise UserError("Arguments come with `yes` or `always` to a tool's approval only")
        if grant is not None and content != "always":
            raise UserError(f"Only `always` is remembered, and so takes a grant; got {content!r}")
        wait = asked.wait or WaitDetail()
        failed = wait.tool and reason
        if failed and content:
            raise UserError(f"{effect_id} is not answered: {RESULT_AND_REASON}")
        if asked.is_question and not failed:
            try:
                content = fitted(content, wait.options, wait.schema)
            except ValueError as error:
                raise UserError(f"{effect_id} is not answered: {error}") from error
        command = AnswerInput(effect_id, content, arguments, by, grant, reason, ends_turn)
        return await self._post(command, answer_key(effect_id, wait.refused), effect_id)

    async def call(
        self, agent: str, tool: str, arguments: Mapping[str, Any], *, by: str = USER, key: str = ""
    ) -> int:
        """Call a tool of an agent, as the user and without its model; the number of the command.

        It is one that the agent's own hook answers at once; `taken` is the id by which its end is found.
        by: who calls; recorded as an outsider. Otherwise as `ask`.
        """
        try:
            given = msgspec.json.encode(arguments).decode()
        except (TypeError, ValueError, RecursionError) as error:
            raise UserError(f"The arguments of {tool} are not JSON: {error}") from error
        return await self._post(CallTool(agent, tool, given, by), key)

    async def cancel(self, target: str = "", reason: str = "") -> int:
        """Stop a call or tool and all under it; without a target, every request."""
        return await self._post(CancelEffect(target, reason), "")

    async def _post(self, command: Command, key: str, answers: str = "") -> int:
        if (await self.folded()).tree.closed:
            raise RunIsClosed(self._run_id)
        key = key or new_id()
        body = encode(posted(command))
        new = await self._journal.post(self._run_id, key, body)
        for stored in await self._journal.commands(self._run_id, self._newest if new else 0):
            self._newest = max(self._newest, stored.number)
            if stored.key == key:
                if answers and stored.body != body:
                    raise AnsweredAlready(answers, _waits(stored.body))
                return stored.number
        if answers and not new:
            raise AnsweredAlready(answers)
        raise UserError(f"The command {key!r} of run {self._run_id} is too long ago to be known")

    async def taken(self, command: int) -> str:
        """Wait until the run's owner has taken a command in; the id of what it became.

        Of a request that is its call, of an answer what it ended, of a message or a cancel the empty text.
        Waits as long as nobody drives the run: give it a timeout. Raises UserError with the reason when it
        came too late, or could not be delivered.
        """
        while True:
            folded = await self.folded()
            found = folded.taken(command)
            if found is not None:
                return found
            await folded.wait()

    async def _look(self) -> None:
        """Make sure that the run is there, and know where it ends, without reading it all again."""
        index = await index_of(self._journal, self._run_id)
        await index.reach(self._journal, self._run_id, MAX_SEQ)
        self._known = max(self._known, index.seq)


class _Prefix(Struct):
    """Of what a model was told before the conversation, the tools."""

    tools: tuple[ToolSpec, ...] = ()


_decode_prefix = msgspec.json.Decoder(_Prefix).decode


def open_questions(tree: RunTree) -> list[OpenQuestion]:
    """What a run asks people now, oldest first."""
    return [_question(tree, each) for each in tree.human_inputs.values()]


def _question(tree: RunTree, asked: EffectNode) -> OpenQuestion:
    agent, since = tree.activations[ids.activation_of(asked.id)].agent, asked.began_at
    wait = asked.wait or WaitDetail()
    until = wait.due_at or None
    if asked.is_question:
        arguments, call_id = "", ""
        if wait.tool:
            arguments, call_id = asked.arguments, asked.call.id if asked.call is not None else ""
        return OpenQuestion(
            asked.id, "question", agent, asked.text, wait.tool, arguments, call_id, since, wait.options,
            wait.schema, until, wait.refused,
        )  # fmt: skip
    kind: Literal["approval", "limit"] = "approval" if asked.is_approval else "limit"
    tool, arguments = (asked.name, asked.arguments) if asked.is_approval else ("", "")
    return OpenQuestion(
        asked.id, kind, agent, asked.text, tool, arguments, "", since, VERDICTS, None, until, wait.refused,
        True, () if asked.is_approval else _joining(tree, asked.id), wait.rule,
    )  # fmt: skip


def _joining(tree: RunTree, question: str) -> tuple[str, ...]:
    """The agents whose calls wait for the answer to a question about a limit that they share."""
    return tuple(
        tree.activations[ids.activation_of(each.id)].agent
        for each in tree.effects.values()
        if each.ended_at is None and each.wait is not None and each.wait.joins == question
    )


def _waits(body: bytes) -> str:
    """What is said of an answer that was posted before."""
    said = "has an answer already, which waits to be read"
    with suppress(msgspec.DecodeError, RecursionError):
        found = from_outside(decode(body))
        if isinstance(found, AnswerInput):
            return f"{said}: {found.content[:60]!r} by {visible(found.by[:40])}"
    return said


def answer_key(effect_id: str, refused: int = 0) -> str:
    """The key of the command that answers a question: a question is answered once, whoever does it first.

    refused: how many posted answers did not fit; the next one has a key of its own.
    """
    return f"answer:{effect_id}:{refused}" if refused else f"answer:{effect_id}"


@asynccontextmanager
async def connect(journal: Journal | str, run_id: str) -> AsyncIterator[RunConnection]:
    """A connection to a run of a journal, whoever drives it: this process, another one, nobody.

    journal: a Journal, which stays open, or the URL of a file that is there. Raises UnknownName for a run
    that the journal does not have; it names no others. UserError when there is no such file.
    """
    given: object = journal
    run_id = fit(run_id, str, "connect(run_id)")
    if isinstance(journal, str):
        _check_there(journal)
    elif not callable(getattr(given, "claim", None)):
        raise UserError(f"connect(journal) takes a Journal or the URL of one; got {shown(given)}")
    store = open_journal(journal)
    try:
        yield await connection_to(store, run_id)
    finally:
        if store is not journal:
            await store.close()


async def connection_to(
    journal: Journal, run_id: str, shared: Callable[[], FoldedRun] | None = None
) -> RunConnection:
    """A connection to a run of an open journal. shared: gives the run as others have folded it already.

    Raises UnknownName.
    """
    connection = RunConnection(journal, run_id, shared)
    try:
        await connection._look()
    except UnknownName:
        raise UnknownName("run", run_id) from None
    return connection


def _check_there(url: str) -> None:
    """A file that is not there would be made, and be empty: most likely its name is wrong."""
    parts = urlsplit(url)
    path = unquote(parts.path[1:])
    if parts.scheme == "sqlite" and path and not os.path.exists(path):
        raise UserError(f"There is no journal at {path}; the one who drives the run makes it")
