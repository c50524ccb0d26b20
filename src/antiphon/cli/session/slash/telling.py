"""Commands that tell what is the case: the team, its tools, costs, rules, files and jobs."""

from __future__ import annotations

from typing import Any

from antiphon.cli.display import terminal_escape
from antiphon.cli.display.draw import clock, tokens
from antiphon.cli.session.glance import exchange
from antiphon.cli.session.talk import Talk
from antiphon.config.dotenv import environment
from antiphon.models.catalog import load_catalog
from antiphon.models.usage import context_left
from antiphon.view.wording import cost_text, parts


async def cost(talk: Talk, rest: str) -> None:
    """`/cost`."""
    tree = talk.tree
    for model, totals in tree.run.models.items():
        if totals.reported:
            name = terminal_escape.line(model, 60)
            talk.screen.note(f"  {name}: {parts(totals.usage)}, {cost_text(totals.cost)}", "")
    talk.screen.note(f"  in all: {tokens(tree)}", "")
    if talk.last is not None:
        model, usage = talk.last
        left = context_left(usage, load_catalog(env=environment()).find(model))
        talk.screen.note(f"  context left: {f'{left} %' if left is not None else 'unknown'}", "")


async def context(talk: Talk, rest: str) -> None:
    """`/context`."""
    if talk.last is None:
        talk.screen.note("Nothing was said yet")
        return
    model, usage = talk.last
    known = load_catalog(env=environment()).find(model)
    limit = known.input_limit if known is not None else None
    left = context_left(usage, known)
    window = f"{limit:,} tokens" if limit else "unknown"
    talk.screen.note(f"  {terminal_escape.line(model, 60)}: window {window}", "")
    talk.screen.note(
        f"  the last request took {usage.input_tokens:,} of it, its reply {usage.output_tokens:,}", ""
    )
    said = f"{left} %; /compact shortens what was said" if left is not None else "unknown"
    talk.screen.note(f"  left: {said}", "")


async def tools(talk: Talk, rest: str) -> None:
    """`/tools`."""
    found = False
    for agent in team_of(talk):
        for tool in agent.tools:
            found = True
            first = tool.description.strip().partition("\n")[0]
            name, effect = tool.name, tool.effect
            acts = "reads" if effect == "read" else "acts"
            talk.screen.note(
                f"  {agent.name}: {name} ({acts})  {terminal_escape.line(first, 100)}", "", wrap=True
            )
    if not found:
        talk.screen.note("  no agent here has tools", "")


async def agents(talk: Talk, rest: str) -> None:
    """`/agents`."""
    for agent in team_of(talk):
        mark = "you talk with it" if agent.name == talk.to else ""
        told = terminal_escape.line(agent.about, 100)
        talk.screen.note("  " + "  ".join(part for part in (agent.name, told, mark) if part), "", wrap=True)


async def history(talk: Talk, rest: str) -> None:
    """`/history`."""
    requests = talk.tree.requests
    for each in requests:
        exchange(talk.screen, each.node, whole=True)
    if not requests:
        talk.screen.note("Nothing was said yet")


async def rules(talk: Talk, rest: str) -> None:
    """`/rules`."""
    run_id, found = talk.run.run_id, 0
    if run_id:
        labels = (await talk.runs.find(run_id)).labels
        for each in await talk.runs.rules(run_id, labels.project, labels.owner):
            found += 1
            grant = each.grant
            reach = [" ".join(f"{name}={pattern}" for name, pattern in one) for one in grant.reaches]
            said = [each.verdict, each.tool, " or ".join(reach)] if reach else [each.verdict, each.tool]
            said += [f"of {grant.agent}"] if grant.agent else []
            said += [f"until {clock('%Y-%m-%d %H:%M', grant.until)}"] if grant.until else []
            said += [f"for this {each.scope} ({each.id})"]
            talk.screen.note("  " + "  ".join(terminal_escape.line(part, 120) for part in said), "")
    for effect in talk.tree.run.effects.values():
        decision = effect.decision
        if decision is not None and decision.remembered and effect.asks_person:
            found += 1
            talk.screen.note(f"  allow  {terminal_escape.line(effect.name, 64)}  as you said in this run", "")
    if not found:
        talk.screen.note("  no rules but those of the policy; `antiphon rules add` makes one", "")


async def jobs(talk: Talk, rest: str) -> None:
    """`/jobs`."""
    # Only where somebody asks: it takes long to import.
    from antiphon.tools.shell.tools import job_lines
    from antiphon.tools.shell.workspace import Workspace

    found = job_lines(Workspace(talk.person.folder))
    for each in found:
        talk.screen.note(f"  {terminal_escape.line(each, 200)}", "")
    if not found:
        talk.screen.note("  nothing runs in the background here", "")


async def diff(talk: Talk, rest: str) -> None:
    """`/diff`."""
    changed = {each.path for files in talk.tree.run.files.values() for each in files}
    if changed:
        told = ", ".join(terminal_escape.line(each, 80) for each in sorted(changed)[:40])
        more = f" and {len(changed) - 40:,} more" if len(changed) > 40 else ""
        talk.screen.note(f"  changed by this run: {told}{more}", "", wrap=True)
    if talk.own.running:
        talk.screen.note(f"{terminal_escape.line(talk.own.running, 60)} still runs: Esc ends it")
    else:
        talk.own.run("git --no-pager diff --no-ext-diff --no-color HEAD --", told=False)


def team_of(talk: Talk) -> list[Any]:
    """The agents of a team, first the one that is talked with."""
    return sorted(talk.target.agents, key=lambda agent: agent.name != talk.target.entry)
