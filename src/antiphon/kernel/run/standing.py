"""Rules on tools that a journal keeps beside its runs: those that hold for a run, and new ones."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from antiphon.errors import UserError
from antiphon.journal.listing import Labels
from antiphon.journal.port import Journal, StoredRule
from antiphon.values.codec import encode_shallow
from antiphon.values.fields import fit
from antiphon.values.policy import Grant, Ruling, StandingRule


class RuleBody(Struct, frozen=True, omit_defaults=True):
    """What of a rule the journal does not look at."""

    tool: str
    verdict: Ruling
    grant: Grant = Grant()
    author: str = ""


_decode = msgspec.json.Decoder(RuleBody).decode


async def standing_rules(
    journal: Journal, *, run: str = "", project: str = "", owner: str = ""
) -> tuple[StandingRule, ...]:
    """The rules of a journal that hold for a run, a project and an owner, oldest first: what
    `open_run(rules=...)` takes. Of what is not named there is none.

    Raises JournalError and its kinds; UserError for a rule that this version cannot read, since what it
    denies must not be allowed for that.
    """
    wanted = {("run", run), ("project", project), ("owner", owner)}
    return tuple(
        [read_rule(each) for each in await journal.rules() if each.key and (each.scope, each.key) in wanted]
    )


async def rules_for(journal: Journal, run_id: str, labels: Labels | None = None) -> tuple[StandingRule, ...]:
    """The rules for a run, its project and its owner. labels: of a run that is not there yet; None: its own.

    Raises as `standing_rules`, UnknownName.
    """
    known = labels if labels is not None else (await journal.info(run_id)).labels
    return await standing_rules(journal, run=run_id, project=known.project, owner=known.owner)


async def all_rules(journal: Journal) -> tuple[StandingRule, ...]:
    """Every rule of a journal, oldest first. Raises as `standing_rules`."""
    return tuple(map(read_rule, await journal.rules()))


async def keep_rule(journal: Journal, rule: StandingRule) -> bool:
    """Keep a rule beside a journal's runs; False when there is one of that id.

    It holds in runs that are opened from now on. Raises UserError for what is no rule, JournalError.
    """
    rule = fit(rule, StandingRule, "keep_rule(rule)")
    body = encode_shallow(RuleBody(rule.tool, rule.verdict, rule.grant, rule.author))
    return await journal.add_rule(StoredRule(rule.id, rule.scope, rule.key, body, rule.created_at))


def read_rule(rule: StoredRule) -> StandingRule:
    """A rule as it is kept. Raises UserError for one that this version cannot read."""
    try:
        body = _decode(rule.body)
        return msgspec.convert(
            {
                "id": rule.id, "scope": rule.scope, "key": rule.key, "tool": body.tool,
                "verdict": body.verdict, "grant": body.grant, "author": body.author,
                "created_at": rule.created_at,
            },
            StandingRule,
        )  # fmt: skip
    except (msgspec.MsgspecError, UserError, RecursionError) as error:
        raise UserError(
            f"The rule {rule.id!a} cannot be read ({error}), so nobody knows what it denies; drop it, or"
            " upgrade if a newer version made it"
        ) from error
