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

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from antiphon.errors import AnsweredAlready, RunIsClosed, UnknownName, UserError
from antiphon.journal import Journal, open_journal
from antiphon.journal.transfer import MAX_SEQ
from antiphon.kernel.facts import ids
from antiphon.kernel.facts.events import VERDICTS, RunClosed
from antiphon.kernel.facts.records import Record, ReplyDelta
from antiphon.kernel.run.commands import (
    AnswerInput,
    AskAgent,
    CallTool,
    CancelEffect,
    Command,
    PostMessage,
    encode,
    posted,
)
from antiphon.kernel.run.live.feed import Ended, Subscription
from antiphon.kernel.run.rows import RecordPages, RecordReader, fold, index_of, read
from antiphon.kernel.run.run import activation_info, open_here
from antiphon.values.agent import AnyAgent, agents_of
from antiphon.values.fields import fit, shown
from antiphon.values.form import fitted
from antiphon.values.limits import Limits
from antiphon.values.message import USER, Attachment, new_id
from antiphon.values.model import ToolSpec
from antiphon.values.policy import Grant
from antiphon.values.result import ActivationInfo
from antiphon.view.changes import CancelRequest, Change, EffectEnd, EffectStart, MessageArrival
from antiphon.view.nodes import DeadLetter, EffectNode, WaitDetail
from antiphon.view.stored_request import StoredRequest, request_of
from antiphon.view.tree import RunTree

REMEMBERED = 10_000
"""Commands whose end a connection knows; of more the oldest are forgotten."""


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
    """Of an approval."""
    arguments: str = ""
    """Of an approval: the tool's, JSON."""
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


class RunConnection:
    """One run, whoever drives it; made by `connect`. Belongs to one event loop.

    Everything raises JournalError and its kinds when the journal cannot be read.
    """

    def __init__(self, journal: Journal, run_id: str) -> None:
        self._journal, self._run_id = journal, run_id
        self._reader, self._tree = RecordReader(journal, run_id), RunTree(recent=True)
        self._reading = asyncio.Lock()
        self._taken: dict[int, str | UserError] = {}
        self._request = 0
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
        return max(self._reader.seq, self._known)

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

    async def view(self, activation: int, at: int | None = None) -> ActivationInfo:
        """What one activation saw as of record `at`, or sees: its transcript, its inbox, its open effects.

        Raises UnknownName when there was none of that number, or it had returned for good.
        """
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

    async def open_questions(self) -> tuple[OpenQuestion, ...]:
        """What the run asks people now, oldest first."""
        await self._read_on()
        found = []
        for each in open_questions(self._tree):
            schema = await self._parameters(each) if each.tool else each.schema
            found.append(replace(each, schema=schema))
        return tuple(found)

    async def _parameters(self, question: OpenQuestion) -> dict[str, Any] | None:
        """The schema of the arguments of the tool that an approval is about, as its agent's model is told."""
        digest = self._tree.activations[ids.activation_of(question.id)].prefix
        if digest not in self._tools:
            told = _decode_prefix(await self._journal.blob(self._run_id, digest)) if digest else _Prefix()
            self._tools[digest] = {each.name: each.parameters for each in told.tools}
        return self._tools[digest].get(question.tool)

    # -- asking -------------------------------------------------------------------------------

    async def ask(
        self, agent: str | AnyAgent, text: str, *, attachments: Iterable[Attachment] = (), intent: str = "",
        task_id: str = "", data: Any = None, limits: Limits | None = None, key: str = "",
    ) -> int:  # fmt: skip
        """Ask an agent, as the user; the number of the command, whose `taken` is the id of the call.

        key: makes it once, however often it is posted under that key. Raises UserError for what JSON cannot
        hold, and for a run that is closed.
        """
        name = agent if isinstance(agent, str) else agents_of(agent)[0].name
        command = AskAgent(name, text, tuple(attachments), intent, task_id, data, limits=limits)
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
        asked for. grant: how far `always` reaches. reason: of a `no`, told to the model; ends_turn: with the
        `no` the turn ends too. by: who answers; recorded as an outsider, since nobody checks it. Raises
        UserError when the effect asks nothing now, or has an answer that waits to be taken in, or the answer
        does not fit. Whether the tool takes edited arguments its owner says: `taken` raises where it does
        not, and the question stays open for another answer.
        """
        await self._read_on()
        asked = self._tree.human_inputs.get(effect_id)
        if asked is None:
            raise UserError(f"{effect_id} is not an open question or approval of run {self._run_id}")
        if not asked.is_question and content not in VERDICTS:
            raise UserError(f"An approval is answered yes, no or always; got {content!r}")
        if arguments and (not asked.is_approval or content == "no"):
            raise UserError("Arguments come with `yes` or `always` to a tool's approval only")
        if grant is not None and content != "always":
            raise UserError(f"Only `always` is remembered, and so takes a grant; got {content!r}")
        wait = asked.wait or WaitDetail()
        if asked.is_question:
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
        await self._read_on()
        if self._tree.closed:
            raise RunIsClosed(self._run_id)
        key = key or new_id()
        new = await self._journal.post(self._run_id, key, encode(posted(command)))
        if not new and answers:
            raise AnsweredAlready(answers)
        for stored in await self._journal.commands(self._run_id, self._newest if new else 0):
            self._newest = max(self._newest, stored.number)
            if stored.key == key:
                return stored.number
        raise UserError(f"The command {key!r} of run {self._run_id} is too long ago to be known")

    async def taken(self, command: int) -> str:
        """Wait until the run's owner has taken a command in; the id of what it became.

        Of a request that is its call, of an answer what it ended, of a message or a cancel the empty text.
        Waits as long as nobody drives the run: give it a timeout. Raises UserError with the reason when it
        came too late, or could not be delivered.
        """
        while True:
            await self._read_on()
            found = self._taken.get(command)
            if isinstance(found, UserError):
                raise found
            if found is not None:
                return found
            if self._tree.closed:
                raise UserError(f"Command {command} was not taken in: run {self._run_id} is closed")
            if self._reader.state.command >= command and not self._request:
                raise UserError(f"Command {command} of run {self._run_id} is too long ago to be known")
            await self._reader.wait()

    async def _read_on(self) -> None:
        """Read what is new, and note what became of commands."""
        async with self._reading:
            async for record in self._reader.records():
                self._note(record, self._tree.add(record))

    async def _look(self) -> None:
        """Make sure that the run is there, and know where it ends, without reading it all again."""
        index = await index_of(self._journal, self._run_id)
        await index.reach(self._journal, self._run_id, MAX_SEQ)
        self._known = index.seq

    def _note(self, record: Record, changes: Iterable[Change]) -> None:
        number = getattr(record.event, "command", 0)
        for change in changes:
            match change:
                case EffectStart(activation, effect) | EffectEnd(activation, effect) if (
                    self._request and not activation.id
                ):
                    # The user's turn does the call of a request as soon as that is there.
                    self._keep(self._request, effect.id)
                    self._request = 0
                case EffectEnd(_, effect) if number:
                    self._keep(number, effect.id)
                case DeadLetter(reason=reason) if number:
                    self._keep(number, UserError(f"Command {number} was not taken in: {reason}"))
                case MessageArrival(activation) if number and not activation.id:
                    self._request = number
                case MessageArrival() | CancelRequest() if number:
                    self._keep(number, "")

    def _keep(self, number: int, became: str | UserError) -> None:
        self._taken[number] = became
        if len(self._taken) > REMEMBERED:
            del self._taken[next(iter(self._taken))]


class _Prefix(Struct):
    """Of what a model was told before the conversation, the tools."""

    tools: tuple[ToolSpec, ...] = ()


_decode_prefix = msgspec.json.Decoder(_Prefix).decode


class RunEvents:
    """An async iterator over a run's records, and pieces where it is driven here: `RunConnection.events`.

    It goes over to whoever drives the run: from the journal to this event loop's own, and back.
    position: the number of the last record that was handed out. ended: `closed` once it has ended with the
    run; empty while it goes on, and for who stopped watching before.
    """

    def __init__(self, journal: Journal, run_id: str, after: int, deltas: bool) -> None:
        self._journal, self._run_id, self._deltas = journal, run_id, deltas
        self.position = after
        self.ended: Ended = ""
        self._pages: RecordPages | None = None
        self._found: deque[Record] = deque()
        self._live: Subscription | None = None
        self._over = False

    def __aiter__(self) -> RunEvents:
        return self

    async def __anext__(self) -> Record | ReplyDelta:
        while not self._over:
            if self._live is not None:
                try:
                    return self._given(await anext(self._live))
                except StopAsyncIteration:
                    # It was left, or has failed: somebody else may go on, from where it ended.
                    self._live = self._pages = None
            elif self._found:
                return self._given(self._found.popleft())
            elif (here := open_here(self._journal, self._run_id)) is not None:
                self._live = here.events(self.position, deltas=self._deltas)
            else:
                await self._read_on()
        raise StopAsyncIteration

    def _given(self, item: Record | ReplyDelta) -> Record | ReplyDelta:
        if isinstance(item, Record):
            self.position = item.seq
            if isinstance(item.event, RunClosed):
                self._end()
        return item

    async def _read_on(self) -> None:
        if self._pages is None:
            self._pages = RecordPages(self._journal, self._run_id, self.position)
        found = await self._pages.read()
        self._found.extend(found)
        if self._pages.closed and not found:
            self._end()
        elif not found:
            await self._pages.wait()

    def _end(self) -> None:
        self.ended = "closed"
        self.close()

    def close(self) -> None:
        """Stop watching."""
        self._over = True
        if self._live is not None:
            self._live.close()
            self._live = None

    async def aclose(self) -> None:
        """`close`, for `contextlib.aclosing`."""
        self.close()


def open_questions(tree: RunTree) -> list[OpenQuestion]:
    """What a run asks people now, oldest first."""
    return [_question(tree, each) for each in tree.human_inputs.values()]


def _question(tree: RunTree, asked: EffectNode) -> OpenQuestion:
    agent, since = tree.activations[ids.activation_of(asked.id)].agent, asked.began_at
    wait = asked.wait or WaitDetail()
    until = wait.due_at or None
    if asked.is_question:
        return OpenQuestion(
            asked.id, "question", agent, asked.text, since=since, options=wait.options, schema=wait.schema,
            deadline=until, refused=wait.refused,
        )  # fmt: skip
    kind: Literal["approval", "limit"] = "approval" if asked.is_approval else "limit"
    tool, arguments = (asked.name, asked.arguments) if asked.is_approval else ("", "")
    return OpenQuestion(
        asked.id, kind, agent, asked.text, tool, arguments, since, VERDICTS, None, until, wait.refused, True,
        () if asked.is_approval else _joining(tree, asked.id),
    )  # fmt: skip


def _joining(tree: RunTree, question: str) -> tuple[str, ...]:
    """The agents whose calls wait for the answer to a question about a limit that they share."""
    return tuple(
        tree.activations[ids.activation_of(each.id)].agent
        for each in tree.effects.values()
        if each.ended_at is None and each.wait is not None and each.wait.joins == question
    )


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
        connection = RunConnection(store, run_id)
        try:
            await connection._look()
        except UnknownName:
            raise UnknownName("run", run_id) from None
        yield connection
    finally:
        if store is not journal:
            await store.close()


def _check_there(url: str) -> None:
    """A file that is not there would be made, and be empty: most likely its name is wrong."""
    parts = urlsplit(url)
    path = unquote(parts.path[1:])
    if parts.scheme == "sqlite" and path and not os.path.exists(path):
        raise UserError(f"There is no journal at {path}; the one who drives the run makes it")
