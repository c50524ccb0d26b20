"""Routes on rules that are kept beside the runs: list, add, drop."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any

from litestar import delete, get, post
from litestar.params import FromPath, JSONBody, QueryParameter

from antiphon.errors import UnknownName, UserError
from antiphon.host import Host
from antiphon.journal.port import StoredRule
from antiphon.kernel.run.standing import keep_rule, read_rule
from antiphon.server.permissions import allowed
from antiphon.server.problems import Refusal
from antiphon.server.routes.bodies.projects import CreateRule, RuleList
from antiphon.server.routes.loading import FromHost, FromSubject, check_owner
from antiphon.server.routes.projects.projects import visible_project
from antiphon.server.subjects import Subject
from antiphon.values.message import new_id
from antiphon.values.policy import StandingRule

MAX_RULES = 1_000
"""Rules of one author that are kept; every run that is opened reads them."""


async def check_reach(host: Host, subject: Subject, scope: str, key: str) -> None:
    """Raise UnknownName for what a rule is to hold for that is not there for the subject.

    Where the server has no projects, a project is a mere label that anybody can give a run: a rule for it
    would hold in runs of others, so it is for those alone who see them.
    """
    if scope == "run":
        await check_owner(host, subject, key)
    elif scope == "project" and host.known.projects is not None:
        await visible_project(host, subject, key)
    elif not subject.sees_all and (scope, key) != ("owner", subject.name):
        raise UnknownName(scope, key)


async def _reached(host: Host, subject: Subject, found: Sequence[StoredRule]) -> list[StoredRule]:
    """Those of the rules that hold for what the subject may see."""
    if subject.sees_all:
        return list(found)
    seen = set[tuple[str, str]]()
    for scope, key in {(each.scope, each.key) for each in found}:
        with suppress(UnknownName):
            await check_reach(host, subject, scope, key)
            seen.add((scope, key))
    return [each for each in found if (each.scope, each.key) in seen]


@get("/rules", summary="List rules", **allowed("read"))
async def list_rules(
    host: FromHost,
    subject: FromSubject,
    of_run: Annotated[str, QueryParameter(name="run", max_length=200)] = "",
    project: Annotated[str, QueryParameter(max_length=200)] = "",
    owner: Annotated[str, QueryParameter(max_length=200)] = "",
) -> RuleList:
    """The rules for what the subject may see, oldest first; with `run`, `project`, `owner` those for them."""
    asked = {(scope, key) for scope, key in (("run", of_run), ("project", project), ("owner", owner)) if key}
    for scope, key in sorted(asked):
        await check_reach(host, subject, scope, key)
    kept = await host.journal.rules()
    wanted = [each for each in kept if (each.scope, each.key) in asked] if asked else kept
    return RuleList([read_rule(each) for each in await _reached(host, subject, wanted)])


@post("/rules", status_code=201, summary="Add a rule", **allowed("write"))
async def create_rule(data: JSONBody[CreateRule], host: FromHost, subject: FromSubject) -> StandingRule:
    """Keep a rule on tools, made by the subject. It holds in runs that are opened from now on."""
    await check_reach(host, subject, data.scope, data.key)
    rule = new_rule(host, subject, data)
    if not subject.sees_all and await _kept_by(host, subject) >= MAX_RULES:
        raise Refusal(
            409, "rules", f"{MAX_RULES:,} rules of {subject.name} are kept, which is as many as may be",
            "Drop some that are not needed",
        )  # fmt: skip
    await keep_rule(host.journal, rule)
    return rule


@delete("/rules/{rule_id:str}", summary="Drop a rule", **allowed("write"))
async def drop_rule(rule_id: FromPath[str], host: FromHost, subject: FromSubject) -> None:
    """Drop a rule that the subject has made. Runs that are open keep it."""
    named = [each for each in await host.journal.rules() if each.id == rule_id]
    if not await _reached(host, subject, named):
        raise UnknownName("rule", rule_id)
    if not subject.sees_all and read_rule(named[0]).author != subject.name:
        raise Refusal(403, "scope", "The rule was made by somebody else", "Ask whoever runs the server")
    await host.journal.drop_rule(rule_id)


async def _kept_by(host: Host, subject: Subject) -> int:
    """How many rules the subject has made; one that cannot be read is not said to be."""
    found = 0
    for each in await host.journal.rules():
        with suppress(UserError):
            found += read_rule(each).author == subject.name
    return found


def new_rule(host: Host, subject: Subject, said: CreateRule) -> StandingRule:
    """A rule that the subject makes now."""
    return StandingRule(
        f"rule-{new_id()[:12]}", said.scope, said.key, said.tool, said.verdict, said.grant, subject.name,
        host.clock.now(),
    )  # fmt: skip


ROUTES: tuple[Any, ...] = (list_rules, create_rule, drop_rule)
