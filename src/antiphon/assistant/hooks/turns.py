"""Hooks around what is asked and answered: before a message of the user's is read, and before an answer.

Both are turns that the assistant plans: in them it calls the agent `hooks`, which runs the programs. So what
they said is on record, and no program runs where the rules of a run are asked.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from antiphon import Agent, Hooks, Message
from antiphon.assistant.hooks.file import HookEvent
from antiphon.assistant.hooks.runner import HookRunner, HookVerdict
from antiphon.values.actions import ActionContext
from antiphon.values.hooks import Continue, PlannedCall, Return, TurnContext, TurnPlan

NAME = "hooks"
"""The agent that runs them."""
ASKED, READ, ANSWER, AGAIN = "hooks asked", "hooks read", "hooks answer", "hooks again"
"""What an activation records: for what hooks are asked, which messages they let pass, the answer that they
are asked about, and whether they had blocked one before."""


def hooks_agent(runner: HookRunner) -> Agent:
    """Who runs the hooks of `UserPromptSubmit` and `Stop`, each event once, also across a crash."""

    async def ask(event: HookEvent, run_id: str, told: dict[str, Any]) -> HookVerdict:
        return await asyncio.to_thread(runner.ask, event, run_id, told)

    async def act(ctx: ActionContext) -> str:
        event, told = msgspec.json.decode(ctx.new_messages[0].content)
        return msgspec.json.encode(await ctx.step(event, ask, event, ctx.run_id, told)).decode()

    return Agent(NAME, description="Runs hooks.", can_call=(), standalone=True, hooks=Hooks(act=act))


def plan_turn(context: TurnContext, runner: HookRunner) -> TurnPlan | None:
    """A turn in which hooks are asked, where one is due."""
    passed = context.data.get(READ) or []
    new = [each for each in context.new_messages if each.id not in passed and each.content]
    if new and runner.has("UserPromptSubmit"):
        return _asking("UserPromptSubmit", {"prompt": "\n\n".join(each.content for each in new)})
    if not context.new_messages and context.data.get(ANSWER) is not None:
        told = {"stop_hook_active": bool(context.data.get(AGAIN))}
        return _asking("Stop", told)
    return None


def _asking(event: HookEvent, told: dict[str, Any]) -> TurnPlan:
    message = msgspec.json.encode((event, told)).decode()
    return TurnPlan((PlannedCall(NAME, message),), {ASKED: event})


def end_turn(context: TurnContext, runner: HookRunner) -> Continue | Return | None:
    """What follows a turn in which hooks were asked, or in which an answer was written."""
    event = context.data.get(ASKED)
    if event == "UserPromptSubmit":
        return _read(context, _verdict(context))
    if event == "Stop":
        return _answered(context, _verdict(context))
    if context.called_tools or context.inbox or not context.reply or not runner.has("Stop"):
        return None
    return Continue(activation_data={ANSWER: context.reply})


def _verdict(context: TurnContext) -> HookVerdict:
    found = context.results[0]
    if found.outcome != "completed":
        return HookVerdict(notes=(f"the hooks could not be asked: {found.reason}",))
    return msgspec.json.decode(found.content, type=HookVerdict)


def _read(context: TurnContext, said: HookVerdict) -> Continue | Return:
    """The messages go into the inbox again, to be read now; those that a hook blocks are never read."""
    if said.blocked:
        reason = f"a hook blocked what was asked: {said.blocked}"
        if context.turn == 1:
            return Return("denied", reason=reason, activation_data={ASKED: None})
        # It was said while work goes on, which goes on without it.
        held = f"[system] A message of your user's was held back: {reason}"
        passed = [each for each in context.new_messages if each.id in (context.data.get(READ) or [])]
        return Continue(held, {ASKED: None}, post=passed)
    told = "\n".join([each for each in (said.output, *(f"[{each}]" for each in said.notes)) if each])
    again = list(context.new_messages)
    if told:
        name = f"{again[-1].id}+hooks"
        again.append(Message("forward", context.agent, context.agent, f"[hooks add]\n{told}", id=name))
    return Continue(post=again, activation_data={ASKED: None, READ: [each.id for each in again]})


def _answered(context: TurnContext, said: HookVerdict) -> Continue | Return:
    """The answer is given, unless a hook blocks it, or something was said meanwhile."""
    answer = str(context.data.get(ANSWER) or "")
    cleared: dict[str, Any] = {ASKED: None, ANSWER: None}
    if said.blocked:
        return Continue(f"[system] A hook of the user's says: {said.blocked}", {**cleared, AGAIN: True})
    if context.inbox:
        return Continue(activation_data=cleared)
    return Return("completed", answer, activation_data={**cleared, AGAIN: None})
