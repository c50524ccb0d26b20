"""One open conversation at the terminal: what is typed goes in, what happens is shown."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

from msgspec import Struct

from antiphon import Record, ReplyDelta, Run, Usage, UserError
from antiphon.cli import exit_codes
from antiphon.cli.display import terminal_escape
from antiphon.cli.display.draw import model_wait
from antiphon.cli.display.record_line import progress, spoken
from antiphon.cli.display.reply_printer import ReplyPrinter, Screen
from antiphon.cli.display.tree import ASKING, COMPACT, CallTree
from antiphon.cli.screen.given import Given, Sent
from antiphon.cli.session.asking import Asking, keep_pattern
from antiphon.cli.session.drive import FollowedEvents, FollowedRun
from antiphon.cli.session.glance import (
    TalkTarget,
    context_of,
    exchange,
    facts,
    gives_output,
    less,
    output_title,
    working,
)
from antiphon.cli.session.own.command import OwnCommands
from antiphon.cli.session.person import Person
from antiphon.cli.source import Runs
from antiphon.kernel.facts import ids
from antiphon.kernel.facts.events import RunResumed
from antiphon.values.message import Attachment
from antiphon.view import RunTree
from antiphon.view.changes import CallQueued, EffectEnd, EffectStart
from antiphon.view.nodes import ActivationNode, Cost, EffectNode
from antiphon.view.wording import cost_text, parts, seconds, told

BUSY = "It is still at work: Esc or Ctrl-C stops it"
"""What is said where something has to wait for its end."""
SHOWN = 2
"""Exchanges that are shown again when a conversation is gone on with."""
STATUS = 40
"""Characters of a word on what is waited for."""


class Opening(Struct, frozen=True):
    """Which run is opened next: `run_id`, or a new one. model: for every agent, instead of its own. watched:
    another process drives it, as long as that lives. seen: the record up to which it was seen here; None: all
    of it that there is."""

    run_id: str | None = None
    model: str | None = None
    watched: bool = False
    seen: int | None = None


class Talk:
    """Lead one open run until the person leaves it, or wants another one. obey: does a line with a slash.
    runs: the run among others. to: the agent that is talked with. begun: the record of each request.
    project: in whose runs a pattern holds that is allowed for good; empty: in this one alone.
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
        runs: Runs,
        project: str = "",
    ) -> None:
        self.run, self.target, self.model, self.person = run, target, model, person
        self.runs, self.to = runs, target.entry
        self.begun: dict[str, int] = {}
        self._obey, self._unattended = obey, unattended
        self.tree = CallTree()
        self.call = ""
        self.next: Opening | None = None
        self.leaving = False
        self.code = exit_codes.COMPLETED
        self.last: tuple[str, Usage] | None = None
        keep = partial(keep_pattern, runs, project) if project else None
        self._asking = Asking(run, self.tree.run, person, target.agents, keep)
        self._voice, self._writing = ReplyPrinter(), ""
        self._before = (Usage(), Cost())
        self._cancelling = self._compacting = False
        self._ticking: asyncio.TimerHandle | None = None
        self._breaks, self._stops = person.breaks, person.stops
        self._left: int | None = None
        self.own = OwnCommands(person.folder, self._show_own)
        if person.inline is not None:
            person.inline.look(lambda: [*self.own.rows(), *working(self.tree)], self._facts)

    @property
    def screen(self) -> Screen:
        """Where it is shown."""
        return self.person.screen

    async def until_end(self, *, again: bool = False, seen: int | None = None) -> Opening | None:
        """What to open next; None when the person has left. again: they know what was said so far. seen: see
        Opening."""
        for record in await self._known():
            if seen is None or record.seq <= seen:
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
            self._asking.next()
            self.person.typed.listen()
            await self._hear()
            while not self.leaving and not self.person.left:
                if not await self.person.bell.listen(self._watch(subscription)):
                    # The interrupted reader may have taken the signal of something it had not read.
                    subscription.wake()
                await self._hear()
        finally:
            await self.own.close()
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
        for each in self.tree.changes:
            if isinstance(each, CallQueued | EffectStart) and not each.activation.id:
                self.begun.setdefault(each.effect.id, record.seq)
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
        if not self.call:
            self._follow_others()
        if isinstance(change, EffectStart) and change.effect.model is not None:
            if self._is_ours(record.activation) and change.effect.purpose != COMPACT:
                self.screen.status("thinking…" if not self._asking.open else "")
            self._watch_model()
        elif isinstance(change, EffectEnd) and change.effect.id == self.call:
            self._end(change.effect, record.at)
            return True
        elif not self._cancelling:
            self._tell(record)
        self._asking.look(told=not self._cancelling)
        return False

    def _follow_others(self) -> None:
        """What somebody else asks, in another terminal or a browser, is followed as what was asked here."""
        for each in self.tree.changes:
            if isinstance(each, EffectStart) and not each.activation.id and each.effect.callee is not None:
                self._begin(each.effect.id)
                asked = each.effect.callee.asked
                if asked and each.effect.purpose != COMPACT:
                    self.screen.note("(asked elsewhere)")
                    exchange(self.screen, each.effect.callee, whole=False, answered=False)

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
        if text and not self._asking.open and not self._cancelling and not self.person.typed.unfinished:
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

    def _tell(self, record: Record) -> None:
        """Show what a record says of what goes on."""
        change, inline = self.tree.change, self.person.inline
        if inline is not None and isinstance(change, EffectEnd) and gives_output(change.effect):
            whose = self.tree.branches.get(record.activation)
            inline.output(output_title(change.effect, whose), change.effect.content)
        elif line := self._line(record):
            self.screen.note(line)

    def _show_own(self, title: str, text: str, end: str) -> None:
        """What a command of the person's gave back."""
        if self.person.inline is not None:
            self.person.inline.output(title, text, own=True)
        elif text:
            self.screen.note(terminal_escape.clean(text), "")
        self.screen.note(f"    {terminal_escape.line(end, 300)}")
        self._prompt()
        self.person.bell.ring()

    def _facts(self) -> str:
        return facts(self.tree, terminal_escape.line(self.to, 60), self.model or "", self._left)

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
        if piece.kind == "progress" and not self._asking.open:
            self.screen.status(terminal_escape.line(told(piece), STATUS))
        if asked.model is None or piece.kind in ("queued", "void"):
            return
        if piece.effect_id != self._writing:
            if self._voice.said and self._same_turn(piece.effect_id):
                self.screen.note("(that answer was cut off; here is another)")
            self._writing, self._voice = piece.effect_id, ReplyPrinter()
        said = self._voice.take(piece)
        self.screen.say(said)
        if not said and not self._asking.open:
            self.screen.status(f"{self.tree.branches[piece.activation].doing}…")

    def _same_turn(self, effect_id: str) -> bool:
        return bool(self._writing) and ids.turn_id_of(effect_id) == ids.turn_id_of(self._writing)

    # -- requests ---------------------------------------------------------------------------

    async def ask(
        self, text: str, *, compact: bool = False, files: tuple[Attachment, ...] = ()
    ) -> None:  # fmt: skip
        """Send a message to the entry agent; while it works, to what it works on. compact: only have the
        conversation shortened."""
        try:
            if not compact and (told := self.own.take_told()):
                text = f"{told}\n\n{text}"
            if self.call:
                await self.run.post(self._at_work(), text, attachments=files)
                return
            self._compacting = compact
            intent, to = (COMPACT, self.target.entry) if compact else ("", self.to)
            self._begin(await self.run.post(to, text, intent=intent, attachments=files))
        except UserError as error:
            self.screen.note(str(error), "red")

    def _at_work(self) -> str:
        """The call that a message is for while one goes on: that of whom one talks with, where it works on
        something of its own. Raises UserError where it does not."""
        node = self._node
        if node is None or node.agent == self.to:
            return self.call
        for each in reversed(list(self.tree.branches.values())):
            if each.node.agent == self.to and each.node.ended_at is None and each.node.call:
                return each.node.call
        raise UserError(
            f"Not sent: {terminal_escape.line(self.to, 60)} has nothing to do now;"
            f" `/to {terminal_escape.line(node.agent, 60)}` says whom to tell, Alt-Enter sends it later"
        )

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
        if self.person.inline is not None and not (self.call or typed.messages or self._asking.open):
            self.person.inline.next_queued()
        while typed.messages and not self.leaving and not (self.call and not typed.terminal):
            message = typed.messages.popleft()
            self.person.breaks = self._breaks = 0
            if message is None:
                self.leaving = True
                break
            self.screen.entered()
            if isinstance(message, Sent):
                await self.ask(message.text, files=message.files)
            elif isinstance(message, Given):
                await self._asking.give(message)
            elif self._asking.open and self.person.inline is None:
                await self._asking.answer(message)
            elif message.startswith("/") and not message.startswith("//"):
                await self._obey(self, message)
            elif message.startswith("!") and self.person.interactive:
                self._run_own(message)
            elif message.strip():
                await self.ask(message[1:] if message.startswith("//") else message)
        self._prompt()

    def _run_own(self, message: str) -> None:
        """A command of the person's: `!`, or with `!!` without the agent's knowing."""
        told = not message.startswith("!!")
        line = message.lstrip("!").strip() if not told else message[1:].strip()
        if self.own.running:
            self.screen.note(f"{terminal_escape.line(self.own.running, 60)} still runs: Esc ends it")
        elif line:
            self.own.run(line, told=told)

    async def _stop(self) -> None:
        """Esc: what goes on is stopped; a command of the person's first."""
        if self.own.running:
            self.own.stop()
        elif self.call and not self._cancelling:
            self._cancelling = True
            self.screen.note("(stopping)")
            with suppress(UserError):
                await self.run.cancel(self.call, "stopped by the user")

    async def _broke_off(self) -> None:
        """Ctrl-C: the first one stops what goes on, the second one leaves."""
        self.person.typed.drop()
        if self.person.breaks > 1:
            self.leaving = True
        elif self.own.running:
            self.own.stop()
        elif self.call:
            self._cancelling = True
            self.screen.note("(stopping; Ctrl-C once more leaves)")
            with suppress(UserError):
                await self.run.cancel(self.call, "stopped by the user")
        else:
            self.screen.note("(Ctrl-C once more leaves, as Ctrl-D and /quit do)")

    def _prompt(self) -> None:
        if self._asking.open or self.call or self.leaving or not self.person.interactive:
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
