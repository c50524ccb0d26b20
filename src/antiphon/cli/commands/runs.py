"""`antiphon runs`: look at runs, follow, resume, fork, rename, move, cancel, delete, check, export them."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from contextlib import aclosing
from functools import partial
from typing import Any

import click
import msgspec

from antiphon import Record
from antiphon.cli import exit_codes
from antiphon.cli.commands.export import export, import_run
from antiphon.cli.commands.manage import cancel, check, fork, move, rename, resume
from antiphon.cli.commands.retention import prune, rm
from antiphon.cli.commands.undo.commands import redo, undo
from antiphon.cli.commands.verify import verify
from antiphon.cli.display import output, terminal_escape
from antiphon.cli.display.draw import Drawing, clock, tokens
from antiphon.cli.display.record_line import told
from antiphon.cli.display.request_lines import lines_of
from antiphon.cli.display.tree import CallBranch, CallTree, Remark
from antiphon.cli.session.request import manner_of
from antiphon.cli.source import opened_runs, source_option
from antiphon.cli.store import ListedRun, RunSource, command, json_option, short_id, state_of
from antiphon.errors import UnknownName
from antiphon.host.summaries import STATES
from antiphon.journal.listing import MAX_NAME, RunFilter, RunInfo
from antiphon.kernel.facts import ids
from antiphon.kernel.facts.summary import RunSummary, summary_of
from antiphon.kernel.run.rows import fold_records
from antiphon.values.message import Message
from antiphon.view import RunTree
from antiphon.view.nodes import Cost, EffectNode
from antiphon.view.wording import cost_text, dollars, name_of, outcome_of, parts, seconds, text_of

run_argument = click.argument("run_id", metavar="RUN")


@click.group(
    commands=[
        cancel,
        check,
        fork,
        move,
        rename,
        resume,
        undo,
        redo,
        verify,
        export,
        import_run,
        rm,
        prune,
    ],
    epilog="RUN is the start of a run's id, as long as only one run begins so, or its name.",
)
def runs() -> None:
    """Look at runs, resume, fork, undo, rename, move, cancel or delete them, check and export them."""


@runs.command("ls", short_help="List the newest runs.")
@source_option
@json_option
@click.option(
    "--limit", type=click.IntRange(min=1), default=20, show_default=True, help="The newest N.", metavar="N"
)
@click.option("--before", metavar="RUN", help="Only runs that are older than this one.")
@click.option("--project", metavar="NAME", help="Only runs of this project.")
@click.option("--owner", metavar="NAME", help="Only runs of this owner.")
@click.option("--team", metavar="NAME", help="Only runs of this team.")
@click.option(
    "--state",
    type=click.Choice(list(STATES)),
    help="Only runs in this state, or whose last request ended so.",
)
@click.option("--text", default="", metavar="WORDS", help="Only runs with these words in name or message.")
def ls(
    source: RunSource, as_json: bool, limit: int, before: str | None, project: str | None,
    owner: str | None, team: str | None, state: str | None, text: str,
) -> int:  # fmt: skip
    """List the newest runs: id, age, state, entry, tokens, cost, owner, and the name or the first words."""
    where = RunFilter(project, owner, team, text=text)
    return asyncio.run(_ls(source, as_json, where, state, before, limit))


async def _ls(
    source: RunSource, as_json: bool, where: RunFilter, state: str | None, before: str | None, limit: int
) -> int:
    found: list[ListedRun] = []
    try:
        async with opened_runs(source) as runs:
            first = (await runs.find(before)).number if before is not None else 0
            found = await runs.page(where, state, first, limit + 1)
    except exit_codes.NotFound as error:
        if before is not None:
            raise
        if not as_json:
            output.say(str(error))
    rows = [(each.entry, each.known, terminal_escape.line(each.state, 20)) for each in found[:limit]]
    if as_json:
        output.say(terminal_escape.json_text([_listed(*row) for row in rows]))
        return exit_codes.COMPLETED
    if rows:
        for line in _table(rows, terminal_width()):
            output.say(line)
    if len(found) > limit:
        last = terminal_escape.line(short_id(found[limit - 1].entry.run_id))
        output.say(f"there are older ones; --before {last} lists them, --limit shows more at once")
    return exit_codes.COMPLETED


def terminal_width() -> int:
    """Columns of the standard output; 0 when it is no terminal and nothing needs to be cut."""
    return output.terminal().size.width if sys.stdout.isatty() else 0


def _listed(entry: RunInfo, known: RunSummary | None, state: str) -> dict[str, Any]:
    return {
        "run_id": entry.run_id,
        "name": entry.name,
        "created_at": entry.created_at,
        "updated_at": entry.updated_at,
        "state": state,
        "closed": known is not None and known.state == "closed",
        "entry": known.entry if known is not None else "",
        "title": known.title if known is not None else "",
        "outcome": known.outcome if known is not None else "",
        "tokens": known.tokens if known is not None else 0,
        "cost_usd": Cost(known.nano_usd).usd if known is not None else None,
        "unpriced_calls": known.unpriced if known is not None else 0,
        "records": entry.seq,
        "owner": entry.owner,
        "labels": msgspec.to_builtins(entry.labels),
        "asked": known.asked if known is not None else 0,
        "questions": [msgspec.structs.asdict(each) for each in known.questions] if known is not None else [],
        "activity": list(known.activity) if known is not None else [],
        "activity_span": known.activity_span if known is not None else 0.0,
    }


def _table(rows: list[tuple[RunInfo, RunSummary | None, str]], width: int) -> list[str]:
    now = time.time()
    cells = [["RUN", "AGE", "STATE", "ENTRY", "TOKENS", "COST", "OWNER", "MESSAGE"]]
    for entry, known, state in rows:
        title = known.title if known is not None else f"antiphon runs verify {short_id(entry.run_id)}"
        title = f"[{entry.name}] {title}" if entry.name else title
        cells.append([
            short_id(entry.run_id),
            age(now - entry.created_at),
            state,
            terminal_escape.line(known.entry, 20) if known is not None else "",
            f"{known.tokens:,}" if known is not None else "",
            short_cost(Cost(known.nano_usd, known.unpriced)) if known is not None else "",
            terminal_escape.line(entry.owner, 30) or "-",
            terminal_escape.line(title, 80),
        ])  # fmt: skip
    widths = [max(len(row[column]) for row in cells) for column in range(7)]
    lines = [
        "  ".join([*(cell.ljust(size) for cell, size in zip(row, widths, strict=False)), row[7]])
        for row in cells
    ]
    return [line[:width].rstrip() if width else line.rstrip() for line in lines]


def short_cost(cost: Cost) -> str:
    """A cost that fits into a column; `>` where a part of it is not known."""
    if cost.unpriced:
        return f">{dollars(cost.nano_usd)}" if cost.nano_usd else "unknown"
    return dollars(cost.nano_usd)


def age(span: float) -> str:
    """How long ago, in one unit."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if span >= size:
            return f"{span / size:.0f} {unit}"
    return f"{max(span, 0):.0f} s"


@runs.command("show", short_help="Show a run's call tree and messages.")
@run_argument
@source_option
@json_option
def show(run_id: str, source: RunSource, as_json: bool) -> int:
    """Show a run: its call tree with outcomes and tokens, and the messages."""
    return asyncio.run(_show(run_id, source, as_json))


async def _show(prefix: str, source: RunSource, as_json: bool) -> int:
    async with opened_runs(source) as runs:
        entry = await runs.find(prefix)
        tree = CallTree()
        async with runs.connect(entry.run_id) as run:
            records = await run.records()
    for record in records:
        tree.take(record)
    state = fold_records(records)
    known = summary_of(state, entry.seq)
    messages = [logged.message for logged in state.log]
    if as_json:
        output.say(terminal_escape.json_text(_shown(entry, known, tree, messages)))
        return exit_codes.COMPLETED
    facts = [
        state_of(entry, known),
        f"{entry.seq:,} records",
        seconds(entry.updated_at - entry.created_at),
        tokens(tree),
    ]
    called = f" ({terminal_escape.line(entry.name, MAX_NAME)})" if entry.name else ""
    output.say(f"run {terminal_escape.line(entry.run_id)}{called}: {', '.join(facts)}")
    if tree.run.fork is not None:
        output.say(f"forked from run {short_id(tree.run.fork.origin)} after record {tree.run.fork.seq:,}")
    if entry.owner:
        output.say(f"held by {terminal_escape.line(entry.owner, 80)}")
    elif (manner := manner_of(state.data, source)) is not None:
        if known.state in ("open", "waiting"):
            output.say(f"to resume it: {manner.resume(entry.run_id)}")
        elif manner.chat and known.state == "idle":
            output.say(f"to go on with it: {manner.resume(entry.run_id)}")
    for model, totals in tree.run.models.items():
        if totals.reported:
            name = terminal_escape.line(model, 60)
            output.say(f"  {name}: {parts(totals.usage)}, {cost_text(totals.cost)}")
    for each in tree.run.toolsets.values():
        offered = f"down: {each.reason}" if each.reason else f"{len(each.tools)} tools"
        output.say(f"  toolset {terminal_escape.line(each.name, 64)}: {terminal_escape.line(offered)}")
    output.say()
    encoding = (sys.stdout.encoding or "").lower()
    drawing = Drawing(tree, terminal_width(), ascii_only=not encoding.startswith("utf"), whole=True)
    for line in drawing.lines(entry.updated_at):
        output.say(line.plain)
    if messages:
        output.say("\nmessages")
    for message in messages:
        arrow = ">" if message.type == "forward" else "<"
        pair = (message.sender, message.receiver) if arrow == ">" else (message.receiver, message.sender)
        text = message.content.replace("\n", "\n      ")
        output.say(
            f"  {terminal_escape.line(pair[0], 40)} {arrow} {terminal_escape.line(pair[1], 40)}\n      {text}"
        )
    for dead in tree.run.dead_letters:
        text = terminal_escape.line(dead.message.content, 200)
        output.say(f"  not delivered ({terminal_escape.line(dead.reason)}): {text}")
    if tree.run.traces:
        output.say("\nexceptions")
    for effect_id, trace in tree.run.traces.items():
        output.say("\n".join(f"  {line}" for line in [effect_id, *terminal_escape.clean(trace).split("\n")]))
    return exit_codes.COMPLETED


def _shown(entry: RunInfo, known: RunSummary, tree: CallTree, messages: list[Message]) -> dict[str, Any]:
    return {
        **_listed(entry, known, state_of(entry, known)),
        "usage": {model: each.usage for model, each in tree.run.models.items() if each.reported},
        "costs": {
            model: {"cost_usd": each.cost.usd, "unpriced_calls": each.cost.unpriced}
            for model, each in tree.run.models.items()
        },
        "fork": tree.run.fork and {"origin": tree.run.fork.origin, "record": tree.run.fork.seq},
        "requests": _requests(tree),
        "toolsets": list(tree.run.toolsets.values()),
        "messages": messages,
        "exceptions": tree.run.traces,
        "dead_letters": [
            {"text": each.message.content, "reason": each.reason} for each in tree.run.dead_letters
        ],
    }


def _requests(tree: CallTree) -> list[dict[str, Any]]:
    """The user's requests and all below them."""
    found = [_branch(each) for each in tree.requests]
    # A stack of its own: calls may be nested deeper than Python's.
    left = list(zip(tree.requests, found, strict=True))
    while left:
        branch, made = left.pop()
        for row in branch.rows:
            called = tree.called(row) if isinstance(row, EffectNode) else None
            made["items"].append(_row(row) if called is None else _branch(called))
            if called is not None:
                left.append((called, made["items"][-1]))
    return found


def _branch(branch: CallBranch) -> dict[str, Any]:
    node = branch.node
    return {
        "id": node.call, "kind": "call", "agent": node.agent, "asked": node.asked, "outcome": node.outcome,
        "result": node.content, "reason": node.reason, "usage": node.own.usage, "started": node.started_at,
        "ended": node.ended_at or 0.0, "items": [],
    }  # fmt: skip


def _row(row: EffectNode | Remark) -> dict[str, Any]:
    if isinstance(row, Remark):
        return {
            "id": "", "kind": "message" if row.sender else "text", "name": row.sender, "purpose": "",
            "arguments": "", "outcome": "completed", "text": row.text, "started": 0.0, "ended": 0.0,
            "decision": None,
        }  # fmt: skip
    return {
        "id": row.id, "kind": row.kind, "name": name_of(row), "purpose": row.purpose,
        "arguments": row.arguments, "outcome": outcome_of(row), "text": text_of(row),
        "started": row.began_at, "ended": row.ended_at or 0.0, "decision": row.decision,
    }  # fmt: skip


@runs.command("request", short_help="Show exactly what a model was asked.")
@run_argument
@click.argument("effect_id", metavar="CALL")
@source_option
@json_option
def request(run_id: str, effect_id: str, source: RunSource, as_json: bool) -> int:
    """Show exactly what a model was asked: system text, tools, messages, tail, settings.

    CALL is the model call's id, such as 1/2.m1; `runs show --json` and `runs tail --json` have them. Messages
    that the request before of the same agent had are left out; --json has all. The digest that was recorded
    before the model was asked is compared with what is shown.
    """
    return asyncio.run(_request(run_id, effect_id, source, as_json))


async def _request(prefix: str, effect_id: str, source: RunSource, as_json: bool) -> int:
    async with opened_runs(source) as runs:
        entry = await runs.find(prefix)
        try:
            async with runs.connect(entry.run_id) as run:
                found = await run.request_of(effect_id)
        except UnknownName as error:
            raise exit_codes.NotFound(str(error)) from error
    if as_json:
        output.say(terminal_escape.json_text(found))
    else:
        for line in lines_of(found):
            output.say(line)
    return exit_codes.COMPLETED


@runs.command("tail", short_help="Print a run's records; -f follows.")
@run_argument
@source_option
@click.option(
    "--follow", "-f", is_flag=True, help="Go on with what comes, until the run is closed or Ctrl-C."
)
@click.option("--json", "as_json", is_flag=True, help="Write every record as a line of JSON.")
@click.option(
    "--lines",
    "-n",
    type=click.IntRange(min=0),
    metavar="N",
    help="Only the last N records of those there are.",
)
def tail(run_id: str, source: RunSource, follow: bool, as_json: bool, lines: int | None) -> int:
    """Print a run's records, one per line, oldest first."""
    try:
        return asyncio.run(_tail(run_id, source, follow, as_json, lines))
    except KeyboardInterrupt:
        return exit_codes.COMPLETED


async def _tail(prefix: str, source: RunSource, follow: bool, as_json: bool, lines: int | None) -> int:
    async with opened_runs(source) as runs:
        entry = await runs.find(prefix)
        tree = CallTree()

        def show(record: Record) -> None:
            output.say(terminal_escape.json_line(record) if as_json else _line(record, tree))

        async with runs.connect(entry.run_id) as run:
            found = await run.records()
            for record in found:
                tree.take(record)
                if lines is None or record.seq > found[-1].seq - lines:
                    show(record)
            if follow:
                answer = partial(command, "answer", short_id(entry.run_id), source=source)
                waits = Waits(tree.run, answer, output.tell)
                waits.look()
                async with aclosing(run.events(tree.run.seq, deltas=False)) as events:
                    async for item in events:
                        if isinstance(item, Record):
                            tree.take(item)
                            show(item)
                            if item.last_of_row:
                                waits.look()
        return exit_codes.COMPLETED


class Waits:
    """Says it when a request waits for a person and for nothing else, once for each question.

    answer: the command that answers, but for what is asked and what is said.
    """

    def __init__(self, run: RunTree, answer: Callable[[str], str], tell: Callable[[str], object]) -> None:
        self._run, self._answer, self._tell, self._told = run, answer, tell, ""

    def look(self) -> None:
        """A row was read."""
        waits = any(self._run.waits(request) for request in self._run.requests)
        asked = next(iter(self._run.human_inputs), "") if waits else ""
        if asked and asked != self._told:
            agent = terminal_escape.line(self._run.activations[ids.activation_of(asked)].agent, 40)
            self._tell(
                f"(waits for a person: {agent} asks; to answer: {self._answer(asked.removesuffix('?'))})"
            )
        self._told = asked


def _line(record: Record, tree: CallTree) -> str:
    return f"{record.seq:>6}  {clock('%H:%M:%S', record.at)}  {told(record, tree)}"
