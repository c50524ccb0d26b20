"""One open conversation at the terminal: what is typed goes in, what happens is shown."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

from msgspec import Struct
from rich.text import Text

from antiphon import Record, ReplyDelta, Run, Usage, UserError
from antiphon.cli import exit_codes
from antiphon.cli.display import terminal_escape
from antiphon.cli.display.draw import model_wait
from antiphon.cli.display.record_line import progress, spoken
from antiphon.cli.display.reply_printer import ReplyPrinter, Screen
from antiphon.cli.display.tree import ASKING, COMPACT, CallTree
from antiphon.cli.screen.given import Given
from antiphon.cli.session.drive import FollowedEvents, FollowedRun
from antiphon.cli.session.glance import context_of, facts, working
from antiphon.cli.session.person import Person
from antiphon.cli.session.questions import MORE, Question, Questions, answer_to, does, show
from antiphon.kernel.facts import ids
from antiphon.kernel.facts.events import RunResumed
from antiphon.view import RunTree
from antiphon.view.changes import EffectEnd, EffectStart
from antiphon.view.nodes import ActivationNode, Cost, EffectNode
from antiphon.view.wording import cost_text, parts, seconds, told

SHOWN = 2
"""Exchanges that are shown again when a conversation is gone on with."""
STATUS = 40
"""Characters of a word on what is waited for."""


class Opening(Struct, frozen=True):
    """Which run is opened next: `run_id`, or a new one. model: for every agent, instead of its own."""

    run_id: str | None = None
    model: str | None = None


class TalkTarget(Protocol):
    """Who is talked with: a Target, or a team of a server."""

    @property
    def entry(self) -> str: ...

    @property
    def agents(self) -> Sequence[Any]: ...


class Talk:
    """Lead one open run until the person leaves it, or wants another one. obey: does a line with a slash.
    unattended: says that the run waits for people where none is here, unless something posted may answer it.
    """

    def __init__(
        self,
        run: FollowedRun,
        target: TalkTarget,
        model: str | None,
        person: Person,
        obey: Callable[[Talk, str], Awaitable[None]],
        unattended: Callable[[RunTree], Awaitable[bool]],
    ) -> None:
        self.run, self.target, self.model, self.person = run, target, model, person
        self._obey, self._unattended = obey, unattended
        self.tree = CallTree()
        self.call = ""
        self.next: Opening | None = None
        self.leaving = False
        self.code = exit_codes.COMPLETED
        self.last: tuple[str, Usage] | None = None
        self._questions = Questions(self.tree.run)
        self._asking: Question | None = None
        self._voice, self._writing = ReplyPrinter(), ""
        self._before = (Usage(), Cost())
        self._cancelling = self._compacting = False
        self._ticking: asyncio.TimerHandle | None = None
        self._breaks, self._stops = person.breaks, person.stops
        self._left: int | None = None
        if person.inline is not None:
            person.inline.look(partial(working, self.tree), self._facts)

    @property
    def screen(self) -> Screen:
        """Where it is shown."""
        return self.person.screen

    async def until_end(self, *, again: bool = False) -> Opening | None:
        """What to open next; None when the person has left. again: they know what was said so far."""
        for record in await self._known():
            self._learn(record)
        subscription = self.run.events(self.tree.run.seq)
        left = [each.node.call for each in self.tree.requests if not each.node.outcome]
        if not again:
            self._welcome()
        for call in dict.fromkeys([*left, *await self.run.open_requests()]):
            self._begin(call)
            self.screen.note("(going on with what was asked last)")
        try:
            await self._is_unattended()
            self._ask()
            self.person.typed.listen()
            await self._hear()
            while not self.leaving and not self.person.left:
                if not await self.person.bell.listen(self._watch(subscription)):
                    # The interrupted reader may have taken the signal of something it had not read.
                    subscription.wake()
                await self._hear()
        finally:
            await subscription.aclose()
            self._stop_watching()
            self.screen.end_line()
        return self.next

    async def _known(self) -> list[Record]:
        """The records that are shown as what was said before: of a run that is driven here, those up to the
        one that took it up. What followed that already, such as the end of a command, is news."""
        records = await self.run.records()
        ours = [at for at, each in enumerate(records, 1) if isinstance(each.event, RunResumed)]
        return records[: ours[-1]] if ours and isinstance(self.run, Run) else records

    # -- what happens -----------------------------------------------------------------------

    async def _watch(self, subscription: FollowedEvents) -> None:
        """Show what happens, until the request has ended or the run has."""
        async for found in subscription:
            if isinstance(found, ReplyDelta):
                self._piece(found)
                continue
            self._learn(found)
            if self._note(found) or (found.last_of_row and await self._is_unattended()):
                return
        self.leaving = True
        # Nothing follows: the run was closed, or it was suspended, which is said by raising.
        await self.run.records(self.tree.run.seq)

    def _learn(self, record: Record) -> None:
        self.tree.take(record)
        change = self.tree.change
        if isinstance(change, EffectEnd) and change.effect.model is not None:
            reply = change.effect.model.reply
            if reply is not None and reply.usage is not None and reply.usage.total:
                self.last = (change.effect.name, reply.usage)
                if self.person.inline is not None:
                    self._left = context_of(*self.last)

    def _note(self, record: Record) -> bool:
        """Show a record; whether the request has ended with it."""
        change = self.tree.change
        self._say()
        if isinstance(change, EffectStart) and change.effect.model is not None:
            if self._is_ours(record.activation) and change.effect.purpose != COMPACT:
                self.screen.status("thinking…" if self._asking is None else "")
            self._watch_model()
        elif isinstance(change, EffectEnd) and change.effect.id == self.call:
            self._end(change.effect, record.at)
            return True
        elif not self._cancelling and (line := self._line(record)):
            self.screen.note(line)
        if self._asking is not None and not self._questions.is_open(self._asking):
            self._put_away("" if self._cancelling else "(it was settled elsewhere)")
        self._ask()
        return False

    async def _is_unattended(self) -> bool:
        """Whether it waits for people alone and none is here; then it is left, and it was told so."""
        if self.person.interactive or not self.tree.run.waits(self.call):
            return False
        if await self._unattended(self.tree.run):
            self.leaving, self.code = True, exit_codes.SUSPENDED
        return self.leaving

    def _say(self) -> None:
        """What was said on the way to the answer."""
        if self.tree.spoken is None or self._cancelling:
            return
        branch, text = self.tree.spoken
        if not self._is_ours(branch.node.id):
            self.screen.note(f"  {spoken(self.tree)}")
            return
        self.screen.end_line()
        if self._voice.said.strip() != text:
            self.screen.say(text + "\n")

    def _watch_model(self) -> None:
        """While nothing has come of the reply, say how long that is; timed by the event loop."""
        self._stop_watching()
        if self.screen.live and self.call:
            self._ticking = asyncio.get_running_loop().call_later(1.0, self._tick)

    def _stop_watching(self) -> None:
        if self._ticking is not None:
            self._ticking.cancel()
            self._ticking = None

    def _tick(self) -> None:
        self._ticking = None
        asking = [each for each in self.tree.branches.values() if each.doing == ASKING]
        if not asking:
            return
        branch = next((each for each in asking if self._is_ours(each.node.id)), asking[0])
        text = model_wait(branch, time.time())
        if text and self._asking is None and not self._cancelling and not self.person.typed.unfinished:
            whose = "" if self._is_ours(branch.node.id) else f"{terminal_escape.line(branch.label, 40)}: "
            # All of one length, so that only what changes is written.
            self.screen.status(f"{whose}{text:<{STATUS}}")
        self._watch_model()

    def _line(self, record: Record) -> str:
        """The line for a record, or an empty one: what is shown in another way is not said twice."""
        match self.tree.change:
            case EffectStart(_, effect):
                if effect.id == self.call or (effect.asks_person and self.person.interactive):
                    return ""
            case EffectEnd(_, effect) if effect.asks_person:
                return ""
        line = progress(record, self.tree)
        return f"  {line}" if line else ""

    def _facts(self) -> str:
        return facts(self.tree, name_of(self.target), self.model or "", self._left)

    def _is_ours(self, activation: int) -> bool:
        node = self._node
        return node is not None and node.id == activation

    @property
    def _node(self) -> ActivationNode | None:
        """Who works on what was asked."""
        effect = self.tree.run.effects.get(self.call)
        return effect.callee if effect is not None else None

    def _asked(self, piece: ReplyDelta) -> EffectNode | None:
        """The model call that a piece is of, while it goes on."""
        effect = self.tree.run.effects.get(piece.effect_id)
        return effect if effect is not None and effect.ended_at is None else None

    def _piece(self, piece: ReplyDelta) -> None:
        if not self.screen.live:
            return
        self.tree.take(piece)
        asked = self._asked(piece)
        if asked is None or not self._is_ours(piece.activation) or asked.purpose == COMPACT:
            return
        if piece.kind == "progress" and self._asking is None:
            self.screen.status(terminal_escape.line(told(piece), STATUS))
        if asked.model is None or piece.kind in ("queued", "void"):
            return
        if piece.effect_id != self._writing:
            if self._voice.said and self._same_turn(piece.effect_id):
                self.screen.note("(that answer was cut off; here is another)")
            self._writing, self._voice = piece.effect_id, ReplyPrinter()
        said = self._voice.take(piece)
        self.screen.say(said)
        if not said and self._asking is None:
            self.screen.status(f"{self.tree.branches[piece.activation].doing}…")

    def _same_turn(self, effect_id: str) -> bool:
        return bool(self._writing) and ids.turn_id_of(effect_id) == ids.turn_id_of(self._writing)

    # -- requests ---------------------------------------------------------------------------

    async def ask(self, text: str, *, compact: bool = False) -> None:
        """Send a message to the entry agent; while it works, to what it works on."""
        try:
            if self.call:
                await self.run.post(self.call, text)
                return
            self._compacting = compact
            self._begin(await self.run.post(self.target.entry, text, intent=COMPACT if compact else ""))
        except UserError as error:
            self.screen.note(str(error), "red")

    def _begin(self, call: str) -> None:
        self.call, self._cancelling = call, False
        self._voice, self._writing = ReplyPrinter(), ""
        totals = self.tree.run.totals
        self._before = (totals.usage, totals.cost)

    def _end(self, effect: EffectNode, at: float) -> None:
        """The request has ended: whatever of the answer is not on the screen yet, and what it cost."""
        took = at - effect.began_at
        output = effect.content
        self.call, self._cancelling = "", False
        if self._compacting and effect.outcome == "completed":
            self.screen.note(output)
        elif self.screen.live and output and self._voice.said.strip() == output.strip():
            self.screen.end_line()
        elif output:
            self.screen.end_line()
            self.screen.say(output.rstrip("\n") + "\n")
        self._compacting = False
        if effect.outcome != "completed":
            style = "yellow" if effect.outcome == "cancelled" else "red"
            self.screen.note(f"({effect.outcome}: {effect.reason})", style)
            self.code = exit_codes.OUTCOMES.get(effect.outcome, exit_codes.FAILED)
        else:
            if effect.reason:
                self.screen.note(f"({effect.reason})", "yellow")
            self.code = exit_codes.COMPLETED
        (usage, cost), totals = self._before, self.tree.run.totals
        spent = less(totals.usage, usage)
        if spent.total:
            paid = cost_text(totals.cost - cost)
            self.screen.note(f"  {spent.total:,} tokens ({parts(spent)}), {paid}, {seconds(took)}")

    # -- what is typed ----------------------------------------------------------------------

    async def _hear(self) -> None:
        """Take up what was typed and what Ctrl-C means, then ask for more."""
        typed = self.person.typed
        if self.person.stops > self._stops:
            self._stops = self.person.stops
            await self._stop()
        if self.person.breaks > self._breaks:
            self._breaks = self.person.breaks
            await self._broke_off()
        elif typed.unfinished:
            self.screen.entered()
        if self.person.inline is not None and not (self.call or typed.messages or self._asking):
            self.person.inline.next_queued()
        while typed.messages and not self.leaving and not (self.call and not typed.terminal):
            message = typed.messages.popleft()
            self.person.breaks = self._breaks = 0
            if message is None:
                self.leaving = True
                break
            self.screen.entered()
            if not isinstance(message, str):
                if self._asking is not None:
                    await self._give(self._asking, message)
            elif self._asking is not None and self.person.inline is None:
                await self._answer(self._asking, message)
            elif message.startswith("/") and not message.startswith("//"):
                await self._obey(self, message)
            elif message.strip():
                await self.ask(message[1:] if message.startswith("//") else message)
        self._prompt()

    async def _stop(self) -> None:
        """Esc: what goes on is stopped."""
        if self.call and not self._cancelling:
            self._cancelling = True
            self.screen.note("(stopping)")
            with suppress(UserError):
                await self.run.cancel(self.call, "stopped by the user")

    async def _broke_off(self) -> None:
        """Ctrl-C: the first one stops what goes on, the second one leaves."""
        self.person.typed.drop()
        if self.person.breaks > 1:
            self.leaving = True
        elif self.call:
            self._cancelling = True
            self.screen.note("(stopping; Ctrl-C once more leaves)")
            with suppress(UserError):
                await self.run.cancel(self.call, "stopped by the user")
        else:
            self.screen.note("(Ctrl-C once more leaves, as Ctrl-D and /quit do)")

    def _prompt(self) -> None:
        if self._asking is not None or self.call or self.leaving or not self.person.interactive:
            return
        self.screen.prompt("… " if self.person.typed.unfinished else "> ")

    def _welcome(self) -> None:
        """What was said last, where a conversation is gone on with."""
        said = [each.node for each in self.tree.requests if each.node.outcome]
        if not said or self.screen.quiet:
            return
        if len(said) > SHOWN:
            self.screen.note(f"({len(said) - SHOWN:,} earlier; /history shows all)")
        for node in said[-SHOWN:]:
            exchange(self.screen, node, whole=False)

    # -- questions --------------------------------------------------------------------------

    def _ask(self) -> None:
        """Put the oldest open question to the person, one at a time."""
        question = self._questions.next()
        if question is None or self._asking is not None or not self.person.interactive:
            return
        self._asking = question
        typed, inline = self.person.typed, self.person.inline
        if question.tool in self._questions.always:
            typed.messages.appendleft("always" if inline is None else Given("always"))
            self.person.bell.ring()
            return
        if inline is not None:
            self.screen.end_line()
            show(self.screen.console, question, whole=True, prompt=False)
            inline.ask(
                question.tool, question.arguments, offers=question.tool not in ("", MORE),
                subjects=does(self.target.agents, question),
            )  # fmt: skip
            return
        typed.raw = True
        typed.forget()
        self._show(question)

    def _show(self, question: Question, whole: bool = False) -> None:
        self.screen.end_line()
        show(self.screen.console, question, whole)
        self.screen.asked()

    async def _give(self, question: Question, given: Given) -> None:
        """Give the answer that the panel took."""
        content = given.content
        try:
            if not question.tool:
                content = answer_to(question, content) or ""
            if content or question.tool:
                await self.run.answer(
                    question.id, content, arguments=given.arguments, grant=given.grant, reason=given.reason
                )
        except (ValueError, UserError) as error:
            if self._questions.is_open(question) and question.id in self.tree.run.human_inputs:
                self.screen.note(f"({terminal_escape.line(str(error), 300)})", "yellow")
                self._asking = None
                self._ask()
                return
        narrow = given.grant is not None and bool(given.grant.reaches)
        said = {"yes": "allowed once", "no": "refused", "always": "allowed from now on"}.get(content, content)
        self.screen.note(f"  {terminal_escape.line(said, 200)}")
        self._questions.answered(question, "yes" if narrow else content)
        self._put_away("")
        self._ask()

    async def _answer(self, question: Question, line: str) -> None:
        answer: str | None = None
        try:
            answer = answer_to(question, line)
        except ValueError as error:
            self.screen.note(f"({error})")
        if not answer:
            self._show(question, bool(question.tool) and line.strip().lower() in ("v", "view"))
            return
        try:
            await self.run.answer(question.id, answer)
        except UserError:
            self.screen.note("(it was settled elsewhere)")
        self._questions.answered(question, answer)
        self._put_away("")
        self._ask()

    def _put_away(self, why: str) -> None:
        self._asking, self.person.typed.raw = None, False
        if self.person.inline is not None:
            self.person.inline.put_away()
        if why:
            self.screen.note(why)


def exchange(screen: Screen, node: ActivationNode, *, whole: bool) -> None:
    """What was asked and answered; `whole`: all of it."""
    if not (node.asked or node.content):
        return
    said = node.content if node.outcome == "completed" else f"({node.outcome or 'at work'}: {node.reason})"
    screen.end_line()
    for mark, text in (("> ", node.asked), ("", said)):
        shown = text if whole else terminal_escape.line(text, 400)
        screen.console.print(Text(mark + shown, "bold" if mark else ""), soft_wrap=True)


def less(whole: Usage, part: Usage) -> Usage:
    """The tokens of `whole` without those of `part`."""
    return Usage(*(getattr(whole, name) - getattr(part, name) for name in Usage.__struct_fields__))


def name_of(target: TalkTarget) -> str:
    """Whom one talks to, fit for the screen."""
    return terminal_escape.line(target.entry, 60)
