"""An answer to a question, and what is remembered of it beyond the run."""

from __future__ import annotations

import asyncio

from antiphon.errors import AnsweredAlready, UserError
from antiphon.host import Host
from antiphon.kernel.run.standing import keep_rule
from antiphon.server.problems import Refusal
from antiphon.server.routes.bodies import AnswerBody, CommandReceipt
from antiphon.server.routes.bodies.asked import GivenGrant
from antiphon.server.routes.bodies.projects import CreateRule
from antiphon.server.routes.loading import TAKEN_SECONDS
from antiphon.server.routes.rules import check_reach, new_rule
from antiphon.server.subjects import Subject
from antiphon.values.policy import StandingRule
from antiphon.view import RunConnection


async def answered(host: Host, subject: Subject, run: RunConnection, given: AnswerBody) -> CommandReceipt:
    """Post an answer, and keep a rule where it is to hold beyond the run. Raises Refusal when there is an
    answer already, UserError for one that does not fit."""
    rule = await _rule(host, subject, run, given) if given.scope != "run" else None
    try:
        number = await run.answer(
            given.question, given.content, arguments=given.arguments, by=subject.name, grant=given.grant,
            reason=given.reason, ends_turn=given.ends_turn,
        )  # fmt: skip
    except AnsweredAlready:
        raise
    except UserError:
        effect = (await run.tree()).effects.get(given.question)
        if effect is not None and effect.asks_person and effect.ended_at is not None:
            by_whom = effect.wait.by if effect.wait is not None and effect.wait.by else "nobody"
            said = f"{given.question} was answered {effect.content!r} by {by_whom}"
            raise Refusal(409, "answered", said, "It is settled; look at the run") from None
        raise
    found = await receipt(run, number)
    if rule is not None:
        # After the answer: whoever was refused has allowed nothing.
        await keep_rule(host.journal, rule)
    return found


async def _rule(host: Host, subject: Subject, run: RunConnection, given: AnswerBody) -> StandingRule | None:
    """What an answer allows in runs to come. Raises UserError where that means nothing or is not for the
    subject to allow."""
    asked = next((each for each in await run.open_questions() if each.id == given.question), None)
    if given.content != "always" or (asked is not None and not asked.tool):
        raise UserError("scope says how far `always` to a tool reaches; leave it out of any other answer")
    if asked is None:
        # Whoever was first, or what is wrong with it, is told where it is answered.
        return None
    labels = (await host.info(run.run_id)).labels
    key = labels.project if given.scope == "project" else labels.owner
    if not key:
        raise Refusal(
            409,
            "no_scope",
            f"The run has no {given.scope} for which a rule could hold",
            "Answer with scope run",
        )
    await check_reach(host, subject, given.scope, key)
    said = CreateRule(given.scope, key, asked.tool, "allow", given.grant or GivenGrant())
    return new_rule(host, subject, said)


async def receipt(run: RunConnection, number: int) -> CommandReceipt:
    """What became of a command, as far as that shows soon. Raises Refusal when it came too late."""
    try:
        async with asyncio.timeout(TAKEN_SECONDS):
            return CommandReceipt(number, True, await run.taken(number))
    except TimeoutError:
        return CommandReceipt(number, False)
    except UserError as error:
        raise Refusal(409, "too_late", str(error), "Look at the run: it went on meanwhile") from None
