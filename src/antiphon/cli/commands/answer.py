"""`antiphon answer`: answer what a run asks, from another terminal or process."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterable, Sequence
from contextlib import aclosing, suppress

import click
import msgspec
from msgspec import Struct

from antiphon import Record
from antiphon.cli import exit_codes
from antiphon.cli.display import output, terminal_escape
from antiphon.cli.duration import seconds_of
from antiphon.cli.session.asked import bare_id, list_questions, plain_questions, ruled_on
from antiphon.cli.session.questions import MORE, answer_in_form, verdict
from antiphon.cli.session.request import manner_of
from antiphon.cli.source import RunAnywhere, opened_runs, source_option
from antiphon.cli.store import RunSource, json_option, short_id
from antiphon.cli.user import my_name
from antiphon.errors import AnsweredAlready, JournalError
from antiphon.journal.listing import RunInfo
from antiphon.kernel.facts import ids
from antiphon.kernel.facts.events import VERDICTS
from antiphon.kernel.run.commands import AnswerInput
from antiphon.values.policy import Grant
from antiphon.view import RunTree
from antiphon.view.changes import Change
from antiphon.view.connection import OpenQuestion, open_questions
from antiphon.view.nodes import DeadLetter, EffectNode

PATIENCE = 5.0
"""Seconds that an owner gets to take an answer in before the command reports without it."""
EFFECT = re.compile(r"\d+/\d+\.[clx]\S*")


@click.command(short_help="Answer what a run asks, from anywhere.")
@click.argument("run_id", metavar="[RUN]", default="")
@click.argument("words", nargs=-1, metavar="[ID] [yes|no|always|TEXT]")
@click.option("--arguments", metavar="JSON", help="Allow the tool with these arguments instead.")
@click.option("--match", metavar="NAME=PATTERN", multiple=True,
              help="With always: only calls whose argument NAME matches, as file names do.")  # fmt: skip
@click.option("--agent-only", is_flag=True, help="With always: only calls of the agent that asks.")
@click.option(
    "--expires-in", "span", metavar="TIME", help="With always: only for so long, such as 30m, 2h or 1d."
)
@click.option(
    "--by",
    metavar="NAME",
    help="Who answers: recorded as `outsider NAME`, since nobody checks it. [default: your user name]",
)
@click.option("--failed", metavar="WHY", help="Of a tool that you were to do: it could not be done.")
@source_option
@json_option
def answer(
    run_id: str,
    words: Sequence[str],
    arguments: str | None,
    match: Sequence[str],
    agent_only: bool,
    span: str | None,
    by: str | None,
    failed: str | None,
    source: RunSource,
    as_json: bool,
) -> int:
    """Answer an open question or permission of a run; without an answer, list what is open.

    ID is the id as listed; it may be left out where only one thing is asked. A run that nobody
    drives takes the answer in when it is resumed. Without RUN, what every run asks is listed.

    A question with options is answered with one of them, or its number; one with a schema with JSON; the
    call of a tool that you are to do with its result, or --failed.

    With always, every later call of the same tool in the run is allowed, as far as the options say.
    """
    if source.is_server and by is not None:
        raise click.UsageError("--by is for a journal; a server records whose token it is.")
    if not run_id:
        return asyncio.run(_inbox(source, as_json))
    reach = _Reach(tuple(map(name_and_pattern, match)), agent_only, _until(span))
    said = _Said(arguments, reach, by or my_name(), failed)
    return asyncio.run(_answer(run_id, words, said, source, as_json))


async def _answer(prefix: str, words: Sequence[str], said: _Said, source: RunSource, as_json: bool) -> int:
    async with opened_runs(source) as runs:
        entry = await runs.find(prefix)
        async with runs.connect(entry.run_id) as run:
            tree = await run.tree()
            asked = open_questions(tree)
            question, text = _chosen(entry, tree, asked, words)
            if said.failed is not None:
                return await _send(run, entry, tree, _failed(entry, asked, question, text, said), source)
            if not text:
                if said.arguments is not None:
                    raise click.UsageError("--arguments comes with an answer: yes or always.")
                shown = [question] if question is not None else asked
                if as_json:
                    output.say(terminal_escape.json_text(plain_questions(shown, entry.run_id)))
                elif not shown:
                    output.say(f"run {short_id(entry.run_id)} asks nothing now")
                else:
                    list_questions(shown, entry.run_id, source)
                return exit_codes.COMPLETED
            if question is None:
                raise exit_codes.NotFound(f"Run {short_id(entry.run_id)} asks nothing now")
            content = _content(question, text)
            edited = _edited(question, text, said.arguments)
            grant = _grant(question, content, said.reach)
            given = AnswerInput(question.id, content, edited, said.by, grant)
            return await _send(run, entry, tree, given, source)


async def _inbox(source: RunSource, as_json: bool) -> int:
    """Everything that any run asks."""
    found: list[tuple[RunInfo, list[OpenQuestion]]] = []
    async with opened_runs(source) as runs:
        for entry in await runs.asking():
            # One damaged run must not hide the others; `verify` says what is wrong with it.
            with suppress(JournalError, exit_codes.NotFound):
                async with runs.connect(entry.run_id) as run:
                    found.append((entry, open_questions(await run.tree())))
    found = [each for each in found if each[1]]
    if as_json:
        output.say(
            terminal_escape.json_text(
                [each for entry, asked in found for each in plain_questions(asked, entry.run_id)]
            )
        )
        return exit_codes.COMPLETED
    for entry, asked in found:
        output.say(f"run {short_id(entry.run_id)}{'' if entry.owner else ' (nobody drives it now)'}")
        list_questions(asked, entry.run_id, source)
    if not found:
        output.say("no run asks anything now")
    return exit_codes.COMPLETED


def _chosen(
    entry: RunInfo, tree: RunTree, asked: list[OpenQuestion], words: Sequence[str]
) -> tuple[OpenQuestion | None, str]:
    """Which question is meant, and what is said to it; no question where there is none to be meant."""
    if not words:
        return None, ""
    named = [each for each in asked if words[0] in (each.id, bare_id(each))]
    if named:
        return named[0], " ".join(words[1:]).strip()
    if EFFECT.fullmatch(words[0]):
        ended = tree.effects.get(ids.approval_id(words[0])) or tree.effects.get(words[0])
        if ended is not None and ended.asks_person and ended.outcome:
            raise exit_codes.Settled(f"{words[0]} is settled already: {_how(ended)}")
        listed = ", ".join(bare_id(each) for each in asked) or "(none)"
        raise exit_codes.NotFound(f"Run {short_id(entry.run_id)} does not ask {words[0]!r}. Open: {listed}")
    if len(asked) > 1:
        listed = ", ".join(bare_id(each) for each in asked)
        raise click.UsageError(f"{len(asked)} things are asked; say which one is meant: {listed}")
    return (asked[0] if asked else None), " ".join(words).strip()


def _failed(
    entry: RunInfo, asked: Sequence[OpenQuestion], question: OpenQuestion | None, text: str, said: _Said
) -> AnswerInput:
    """That the call of an outside tool could not be done."""
    question = question or (asked[0] if len(asked) == 1 else None)
    if question is None:
        listed = ", ".join(bare_id(each) for each in asked) or "(none)"
        raise exit_codes.NotFound(f"Say which call failed. Run {short_id(entry.run_id)} asks: {listed}")
    if not question.tool or ruled_on(question) or text or not said.failed:
        raise click.UsageError("--failed WHY stands in place of the result of a tool that you are to do.")
    return AnswerInput(question.id, "", by=said.by, reason=said.failed)


def _how(effect: EffectNode) -> str:
    if effect.outcome != "completed":
        return f"{effect.outcome}{f' ({terminal_escape.line(effect.reason, 80)})' if effect.reason else ''}"
    by = f" by {terminal_escape.line(effect.wait.by, 40)}" if effect.wait and effect.wait.by else ""
    return f"answered {terminal_escape.line(effect.content, 60)!r}{by}"


def _content(question: OpenQuestion, text: str) -> str:
    """What is answered; to a permission one of the verdicts."""
    if not ruled_on(question):
        try:
            return answer_in_form(text, question.options, question.schema)
        except ValueError as error:
            raise click.UsageError(f"The answer does not fit: {error}") from error
    found = verdict(text)
    if found is None:
        raise click.UsageError(f"A permission is answered {', '.join(VERDICTS)}; got {text!r}.")
    return found


def _edited(question: OpenQuestion, text: str, arguments: str | None) -> str:
    """The arguments to be used instead, as canonical JSON; empty for those that were asked for."""
    if arguments is None:
        return ""
    if not ruled_on(question) or verdict(text) == "no":
        raise click.UsageError("--arguments goes with allowing a tool: yes or always.")
    try:
        found = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, RecursionError) as error:
        raise click.UsageError(f"--arguments is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise click.UsageError(f'--arguments is an object, such as {{"name": 1}}; got {type(found).__name__}')
    return msgspec.json.encode(found).decode()


class _Reach(Struct, frozen=True):
    """How far `always` is to reach. until: Unix seconds, 0 for ever."""

    arguments: tuple[tuple[str, str], ...]
    agent_only: bool
    until: float


class _Said(Struct, frozen=True):
    """What options say of an answer. failed: why there is none; None without that."""

    arguments: str | None
    reach: _Reach
    by: str
    failed: str | None


def name_and_pattern(said: str) -> tuple[str, str]:
    """What `--match` was given: the name of an argument, and a pattern."""
    name, sign, pattern = said.partition("=")
    if not name or not sign:
        raise click.UsageError(f"--match is NAME=PATTERN, such as path='docs/*'; got {said!r}.")
    return name, pattern


def _until(span: str | None) -> float:
    return time.time() + seconds_of("--expires-in", span) if span is not None else 0.0


def _grant(question: OpenQuestion, content: str, reach: _Reach) -> Grant | None:
    """How far the answer reaches; None for all calls of the tool in the run."""
    if reach == _Reach((), False, 0.0):
        return None
    if content != "always" or not ruled_on(question) or ruled_on(question) == MORE:
        raise click.UsageError(
            "--match, --agent-only and --expires-in say how far `always` to a tool reaches."
        )
    return Grant(reach.arguments, question.agent if reach.agent_only else "", reach.until)


async def _send(
    run: RunAnywhere, entry: RunInfo, tree: RunTree, given: AnswerInput, source: RunSource
) -> int:
    """Post the answer; a question is answered once, and the same answer given again changes nothing."""
    short = short_id(entry.run_id)
    try:
        await run.answer(
            given.effect_id, given.content, arguments=given.arguments, by=given.by, grant=given.grant,
            reason=given.reason,
        )  # fmt: skip
    except AnsweredAlready as error:
        raise exit_codes.Settled(str(error)) from error
    if entry.owner:
        return await _told(run, entry, given, tree.seq)
    output.say(f"run {short}: nobody drives it now; the answer waits for whoever resumes it")
    manner = manner_of(tree.data, source)
    if manner is not None:
        output.say(f"  {manner.resume(entry.run_id)}")
    return exit_codes.COMPLETED


async def _told(run: RunAnywhere, entry: RunInfo, command: AnswerInput, since: int) -> int:
    """See whether the owner takes it in, refuses it, or something else came first.

    since: the last record there was when it was given.
    """
    short, tree = short_id(entry.run_id), RunTree(recent=True)
    owner, asked = terminal_escape.line(entry.owner, 80), None
    try:
        async with asyncio.timeout(PATIENCE), aclosing(run.events(deltas=False)) as events:
            async for record in events:
                if not isinstance(record, Record):
                    continue
                changes = tree.add(record)
                if record.seq > since:
                    _check_fits(command, changes)
                asked = tree.effects.get(command.effect_id) or asked
                if asked is not None and asked.wait is not None and asked.outcome:
                    if not asked.wait.command:
                        raise exit_codes.Settled(
                            f"{command.effect_id} was settled before the answer came: {_how(asked)}"
                        )
                    output.say(f"run {short}: {_how(asked)}, taken in by {owner}")
                    return exit_codes.COMPLETED
    except TimeoutError:
        output.say(
            f"run {short}: {owner} has been told, but did not answer within {PATIENCE:g} s; it will take"
            " the answer in when it reads its commands"
        )
        return exit_codes.TAKEN
    raise exit_codes.Settled(f"{command.effect_id} was not answered: run {short} was closed")


def _check_fits(command: AnswerInput, changes: Iterable[Change]) -> None:
    """Raise for an answer that the run's owner has refused."""
    for each in changes:
        if isinstance(each, DeadLetter) and each.message.receiver == command.effect_id:
            said = terminal_escape.line(each.reason, 500)
            raise click.UsageError(f"The answer does not fit, so the question stays open: {said}")
