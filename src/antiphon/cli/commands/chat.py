"""`antiphon chat`: a conversation in the terminal, kept as a run that stays open."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import click
from msgspec.structs import replace

from antiphon import Agent, Policy, open_run
from antiphon.cli import exit_codes
from antiphon.cli.commands.run import endpoint_option, folder_option, model_option
from antiphon.cli.display import output, terminal_escape
from antiphon.cli.session.drive import drain
from antiphon.cli.session.glance import title_of
from antiphon.cli.session.person import Person
from antiphon.cli.session.project_rules import projects_option, run_rules
from antiphon.cli.session.request import CHAT, DisplayOptions, has_unread, manner_of, tell_unattended
from antiphon.cli.session.slash.commands import COMMANDS, obey
from antiphon.cli.session.talk import Opening, Talk
from antiphon.cli.source import JournalRuns, opened_server, refuse_options, source_option
from antiphon.cli.store import RunSource, find, short_id, url_of
from antiphon.cli.target import FORMS, Target, load_target
from antiphon.config.dotenv import environment
from antiphon.errors import AntiphonError, JournalError, RunSuspended
from antiphon.host.summaries import stored_summary
from antiphon.journal import Journal, open_journal
from antiphon.journal.listing import Labels, RunInfo
from antiphon.kernel.run.rows import events_of
from antiphon.view import RunTree

ASSISTANT = Agent("assistant", "You are a helpful assistant.", standalone=True)
TINY = "local:smollm2"
KEYED = "openai:gpt-4.1-mini"


@click.command(
    epilog=f"TARGET is {FORMS}; without one it is a plain assistant. /help lists what can be said."
)
@click.argument("target", required=False)
@model_option
@endpoint_option
@folder_option
@source_option
@click.option(
    "--policy",
    type=click.Choice(["open", "guarded", "strict"]),
    help="What tools may do: guarded asks before a tool acts, strict allows nothing, open everything."
    " What a resumed chat was started with stays in force, too. [default: guarded]",
)
@click.option("--resume", metavar="RUN", help="Resume this run; repeat its TARGET.")
@click.option("--continue", "newest", is_flag=True, help="Resume the newest one.")
@click.option(
    "--watch",
    metavar="RUN",
    help="See and answer this run while another process drives it, and go on with it when that has died;"
    " repeat its TARGET.",
)
@projects_option
@click.option("--quiet", "-q", is_flag=True, help="Show the answers only.")
def chat(
    target: str | None,
    model: str | None,
    endpoints: tuple[str, ...],
    folder: str | None,
    source: RunSource,
    policy: Any,
    resume: str | None,
    newest: bool,
    watch: str | None,
    projects: str | None,
    quiet: bool,
) -> int:
    """Chat with an agent or team. Every chat is a run: saved, and resumed any time.

    Ctrl-C stops what an agent does, a second one leaves. Piped in, each line is a message. With --server
    TARGET is a team of the server.
    """
    if bool(resume) + bool(newest) + bool(watch) > 1:
        raise click.UsageError("--resume, --continue and --watch exclude each other.")
    if source.is_server:
        refuse_options("model", "endpoints", "folder", "policy", "projects")
        # The server drives it, whoever watches.
        resume = resume or watch
        if not (target or resume or newest):
            raise click.UsageError("With --server, TARGET is a team of the server: name one.")
        manner = DisplayOptions(target or "", source, quiet=quiet, chat=True)
        return asyncio.run(_chat_there(manner, resume, newest))
    loaded = Target("", ASSISTANT.name, (ASSISTANT,)) if target is None else load_target(target, folder)
    entered = tuple(
        replace(agent, context="continue") if agent.name == loaded.entry else agent for agent in loaded.agents
    )
    if not (resume or newest or watch):
        loaded.tell_findings()
    loaded = Target(
        loaded.text, loaded.entry, entered, endpoints=loaded.endpoints, source=loaded.source
    )  # fmt: skip
    manner = DisplayOptions(
        target or "", source, folder, model, quiet=quiet, chat=True, endpoints=endpoints, projects=projects
    )
    given = Policy(policy) if policy is not None else None
    belongs = _any if newest else None
    return asyncio.run(lead_chat(loaded, manner, given, resume or watch, belongs, watched=bool(watch)))


async def _chat_there(manner: DisplayOptions, resume: str | None, newest: bool) -> int:
    # Only where a server is asked: it takes long to import.
    from antiphon.cli.session.server_talk import ServerTalks, newest_talk

    person = Person(manner.quiet)
    person.install()
    try:
        async with opened_server(manner.source) as runs:
            runs.client.patient = True
            runs.tell = person.screen.note
            run_id = resume or ""
            if newest:
                run_id = await newest_talk(runs, manner.target)
            return await ServerTalks(runs, manner, person).all(run_id)
    finally:
        person.typed.close()


def _any(kept: DisplayOptions) -> bool:
    return True


async def _obey(talk: Talk, line: str) -> None:
    """Do what a line with a slash says; of one that the team's own user wrote a command for, say that."""
    # A target that knows commands says what they say; one without has none.
    said = getattr(getattr(talk.target, "source", None), "said", None)
    if said is None or line[1:].partition(" ")[0].lower() in COMMANDS:
        await obey(talk, line)
        return
    text = await asyncio.to_thread(said, line)
    if text == line:
        await obey(talk, line)
    else:
        await talk.ask(text)


async def lead_chat(
    target: Target, manner: DisplayOptions, policy: Policy | None, resume: str | None,
    newest: Callable[[DisplayOptions], bool] | None, *, watched: bool = False,
) -> int:  # fmt: skip
    """Talk with a team in a journal; the exit code. newest: the newest conversation of those that it says
    yes to is gone on with. watched: another process may drive it."""
    env = environment()
    journal = open_journal(url_of(manner.source.journal, env))
    person = Person(manner.quiet, manner.folder)
    person.install()
    sessions = _Sessions(journal, target, manner, policy, person, env)
    try:
        run_id: str | None = None
        if resume:
            run_id = (await find(journal, resume)).run_id
        elif newest is not None:
            run_id = (await newest_chat(journal, newest)).run_id
        return await sessions.all(Opening(run_id, manner.model, watched))
    finally:
        person.typed.close()
        await journal.close()


class _Sessions:
    """The conversations of one call of the program, one after another."""

    def __init__(
        self, journal: Journal, target: Target, manner: DisplayOptions, policy: Policy | None,
        person: Person, env: Mapping[str, str],
    ) -> None:  # fmt: skip
        self._journal, self._target, self._manner, self._policy = journal, target, manner, policy
        self._person, self._env = person, env
        self._code = exit_codes.COMPLETED

    async def all(self, opening: Opening | None) -> int:
        """Lead one after another; the exit code."""
        before: Opening | None = None
        while opening is not None:
            try:
                before, opening = await self._lead(opening, before)
            except RunSuspended as suspended:
                exit_codes.complain(str(suspended))
                return exit_codes.code_of(suspended)
            except AntiphonError as error:
                # An option that cannot be met ends no conversation that was well before.
                if before is None:
                    raise
                exit_codes.complain(str(error))
                opening, before = before, None
        return self._code

    async def _lead(self, opening: Opening, before: Opening | None) -> tuple[Opening, Opening | None]:
        """One conversation: what would open it again, and what is opened next."""
        opening = await self._settled(opening)
        if opening.watched and (await self._journal.info(opening.run_id or "")).owner:
            return await self._watch(opening, before)
        again = before is not None and opening.run_id is not None and before.run_id == opening.run_id
        manner = replace(self._manner, model=opening.model)
        person, target = self._person, self._target
        policy = self._policy
        if policy is None and opening.run_id is None:
            policy = Policy("guarded")
        labels = Labels(manner.project)
        standing, said = await run_rules(
            self._journal, manner.projects, opening.run_id or "", labels, declared=not manner.project
        )
        if said:
            person.screen.note(f"note: {said}")
        async with open_run(
            target.agents, journal=self._journal, run_id=opening.run_id, model=opening.model,
            policy=policy, rules=standing, interactive=person.interactive, data=manner.data, labels=labels,
            endpoints=target.with_endpoints(manner.endpoints, opening.model),
        ) as conversation:  # fmt: skip
            run_id = conversation.run_id
            person.farewell = _farewell(manner, run_id)
            if person.interactive and not opening.run_id:
                person.screen.note(
                    f"You talk with {title_of(target)}. /help lists what can be said; Ctrl-D leaves."
                )

            async def unattended(tree: RunTree) -> bool:
                if await has_unread(self._journal, conversation, tree):
                    return False
                tell_unattended(tree, manner, run_id, "")
                return True

            runs = JournalRuns(manner.source, self._journal)
            talk = Talk(conversation, target, opening.model, person, _obey, unattended, runs, manner.project)
            if again and before is not None and before.model != opening.model:
                person.screen.note(f"From now on {terminal_escape.line(opening.model or '', 80)} is asked.")
            after = await talk.until_end(again=again, seen=opening.seen)
            empty = not talk.tree.root.rows
            if empty and not opening.run_id:
                await conversation.close("nothing was said")
            if talk.call:
                # Whoever asks to stop once more does not want to wait.
                person.left = True
                await drain(conversation, talk.tree, person.screen.note)
                if talk.call not in await conversation.open_requests():
                    talk.call = ""
            await conversation.until_durable()
            self._code = self._code_of(talk)
        if not empty and after is None and self._journal.durability != "none":
            person.screen.note(person.farewell)
        return Opening(None if empty else run_id, opening.model), after

    async def _watch(self, opening: Opening, before: Opening | None) -> tuple[Opening, Opening | None]:
        """One conversation that another process leads: as `_lead`."""
        # Only where one is watched: it takes long to import.
        from antiphon.cli.session.watched import WatchedRun

        person, run_id, runs = (
            self._person,
            opening.run_id or "",
            JournalRuns(self._manner.source, self._journal),
        )
        again = before is not None and before.run_id == run_id
        manner = replace(self._manner, model=opening.model)
        person.farewell = _farewell(manner, run_id)
        if not again:
            person.screen.note(
                f"Run {short_id(run_id)} is driven by another process; you see and answer it here."
            )

        async def unattended(tree: RunTree) -> bool:
            return False

        talk = Talk(WatchedRun(runs, run_id), self._target, opening.model, person, obey, unattended, runs)
        try:
            after = await talk.until_end(again=again)
        except RunSuspended:
            person.screen.note("(nobody drives it any more: it goes on here)")
            return opening, replace(opening, seen=talk.tree.run.seq)
        if after is None:
            person.screen.note(
                f"run {short_id(run_id)} goes on where it is driven; {person.farewell.partition('; ')[2]}"
            )
        return opening, after

    def _code_of(self, talk: Talk) -> int:
        """The exit code when the person leaves now."""
        if not talk.call:
            return exit_codes.COMPLETED if self._person.interactive else talk.code
        kept = self._person.polite and self._journal.durability != "none"
        return exit_codes.COMPLETED if kept else exit_codes.SUSPENDED

    async def _settled(self, opening: Opening) -> Opening:
        """The run's id in full, and the model that is asked when nothing else names one."""
        run_id, model = opening.run_id, opening.model
        if run_id is not None:
            entry = await find(self._journal, run_id)
            run_id = entry.run_id
            kept = await _kept(self._journal, entry)
            if kept is not None and kept.target != self._manner.target:
                raise exit_codes.NotFound(
                    f"Run {short_id(run_id)} is a conversation with"
                    f" {terminal_escape.line(kept.target, 80) or 'the plain assistant'}:"
                    f" {replace(kept, source=self._manner.source).resume(run_id)}"
                )
            if model is None and kept is not None:
                model = kept.model
        if model is None and not self._manner.target:
            model = self._fallback()
        return replace(opening, run_id=run_id, model=model)

    def _fallback(self) -> str | None:
        """The plain assistant's model where none is set: nobody should need a key to see how it is."""
        env = self._env
        if any(env.get(name, "").strip() for name in ("ANTIPHON_MODEL", "OPENAI_DEFAULT_MODEL")):
            return None
        if any(env.get(name, "").strip() for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL")):
            return KEYED
        if not self._manner.quiet:
            output.tell(
                f"No model is set, so this is {TINY}: tiny, in this process, and often wrong."
                " --model or ANTIPHON_MODEL names a real one."
            )
        return TINY


def _farewell(manner: DisplayOptions, run_id: str) -> str:
    return f"run {short_id(run_id)}; to go on: {manner.resume(run_id)}"


async def newest_chat(journal: Journal, belongs: Callable[[DisplayOptions], bool]) -> RunInfo:
    """The newest conversation that can be gone on with, of those that `belongs` says yes to. Raises
    NotFound."""
    for entry in await journal.runs():
        # One damaged run must not hide the others; `runs verify` says what is wrong with it.
        with suppress(JournalError):
            kept = await _kept(journal, entry)
            if kept is None or not belongs(kept):
                continue
            if (await stored_summary(journal, entry)).state != "closed":
                return entry
    raise exit_codes.NotFound("There is no conversation to go on with; `antiphon chat` begins one")


async def _kept(journal: Journal, entry: RunInfo) -> DisplayOptions | None:
    """How a conversation was begun; None for a run that is none."""
    rows = await journal.read(entry.run_id)
    if not rows:
        return None
    first = next(iter(await events_of(journal, entry.run_id, rows[0])), None)
    data = getattr(first, "data", None)
    return manner_of(data, RunSource()) if isinstance(data, dict) and CHAT in data else None
