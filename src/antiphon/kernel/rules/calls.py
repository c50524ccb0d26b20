"""The calls of a turn: how many at once, and what one becomes: checked, permitted, started or refused."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import Any

from antiphon.kernel.facts import ids
from antiphon.kernel.facts.activation import Activation, Turn
from antiphon.kernel.facts.agent_call import FINISH, AgentCall
from antiphon.kernel.facts.events import (
    ApprovalEffect,
    CallEffect,
    EffectFinished,
    EffectStarted,
    PermissionDecided,
    QuestionEffect,
    ToolEffect,
)
from antiphon.kernel.facts.fold.calls import planned_above
from antiphon.kernel.facts.ledger import overspent
from antiphon.kernel.facts.state import RunState
from antiphon.kernel.rules import cancelling, hooks
from antiphon.kernel.rules.answers import deadline_of
from antiphon.kernel.rules.builtins import BUILTINS, ask_user, call_detail, cannot_call, within
from antiphon.kernel.rules.found_tools import in_turn, meant_call, meant_tool, no_such_tool, with_arguments
from antiphon.kernel.rules.next import AGAIN, WAIT, Emit, Next
from antiphon.kernel.rules.team.compiled import CompiledAgent, CompiledTeam
from antiphon.values.codec import clean_text, encode_value, text_of
from antiphon.values.fields import shown
from antiphon.values.form import wrong_form
from antiphon.values.hooks import Authorize, DirectResult, PlannedCall
from antiphon.values.message import USER, ToolCall
from antiphon.values.policy import (
    CallSubject,
    Policy,
    Ruling,
    StandingRule,
    covers,
    rule,
    rule_for,
    strictest,
)
from antiphon.values.schema.arguments import Invalid, Repaired, is_json
from antiphon.values.tool import Tool
from antiphon.values.tool.definition import OutsideCall

EXPOSED = "the agent was shown something untrusted and something private, so a person allows what acts"
"""Why a call is asked for that everything else allows."""
SHOWN_DESCRIPTION = 1_000
"""Characters of an outside tool's description that whoever does the call is shown."""

# -- how many at once -----------------------------------------------------------------------------


def advance(
    emit: Emit, run: RunState, team: CompiledTeam, member: CompiledAgent, activation: Activation
) -> Next:
    """Start as many of the turn's calls as its agent lets run at once."""
    turn, agent = activation.turn, member.agent
    if run.totals.overruns and overspent(activation.scopes):
        _start_none(emit, run, team, member, activation)
        return WAIT if activation.phase == "calling" else AGAIN
    if turn.pending:
        _take_up_approvals(emit, run, team, member, activation, turn)
    count = len(turn.calls)
    in_order = agent.loop.finish_mode == "in_order"
    if not turn.cursor and count > 1 and not in_order:
        finishing = _first_finishing(member, turn)
        if finishing is not None:
            _finish_alone(emit, run, team, member, activation, finishing)
    mode = agent.tool_execution
    most = agent.loop.max_parallel_calls if mode in ("parallel", "ordered") else 1
    while turn.cursor < count:
        if most is not None and turn.waiting + len(turn.pending or ()) >= most:
            break
        index = turn.cursor
        if in_order and (turn.waiting or turn.pending) and _stands_alone(member, turn, index):
            break
        if mode == "ordered" and (turn.waiting or turn.pending) and not _reads_on(member, turn, index):
            break
        if turn.finish is not None:
            _skip(emit, activation, index, "was skipped: the turn was over before it")
        elif mode == "single" and index:
            reason = "only one call per reply is done; this one was skipped"
            emit(EffectFinished(ids.call_id(activation.id, turn.number, index), "skipped", reason=reason))
        else:
            take_up(emit, run, team, member, activation, index)
    return WAIT if activation.phase == "calling" else AGAIN


def _start_none(
    emit: Emit, run: RunState, team: CompiledTeam, member: CompiledAgent, activation: Activation
) -> None:
    """Skip every call that has not started; one that only hands back a result costs nothing, and is done."""
    turn = activation.turn
    for index in (*(turn.pending or ()), *range(turn.cursor, len(turn.calls))):
        if turn.finish is None and _only_finishes(member, turn.calls[index].name):
            take_up(emit, run, team, member, activation, index)
        else:
            _skip(emit, activation, index, "was skipped: the budget is used up")


def _skip(emit: Emit, activation: Activation, index: int, reason: str) -> None:
    turn = activation.turn
    reason = f"{turn.calls[index].name} {reason}"
    emit(EffectFinished(ids.call_id(activation.id, turn.number, index), "skipped", reason=reason))


def _stands_alone(member: CompiledAgent, turn: Turn, index: int) -> bool:
    """Whether a call that finishes is next, or was last: nothing runs beside that."""
    return turn.calls[index].name in member.finishing or (
        index > 0 and turn.calls[index - 1].name in member.finishing
    )


def _reads_on(member: CompiledAgent, turn: Turn, index: int) -> bool:
    """Whether a call only reads, and so did the one before it: nobody can tell which ran first."""
    beside = turn.calls[max(index - 1, 0) : index + 1]
    tools = [meant_tool(member, each) if member.hidden else member.tools.get(each.name) for each in beside]
    return all(tool is not None and tool.effect == "read" and not tool.exclusive for tool in tools)


def _first_finishing(member: CompiledAgent, turn: Turn) -> int | None:
    for index, call in enumerate(turn.calls):
        if call.name in member.finishing:
            return index
    return None


def _finish_alone(
    emit: Emit, run: RunState, team: CompiledTeam, member: CompiledAgent, activation: Activation,
    finishing: int,
) -> None:  # fmt: skip
    """A finishing call is exclusive: the first one counts, every other call is skipped."""
    name = activation.turn.calls[finishing].name
    for index in range(len(activation.turn.calls)):
        if index == finishing:
            take_up(emit, run, team, member, activation, index)
        else:
            _skip(emit, activation, index, f"was skipped: {name} ends the task in the same reply")


def _take_up_approvals(
    emit: Emit, run: RunState, team: CompiledTeam, member: CompiledAgent, activation: Activation, turn: Turn
) -> None:
    """Take up approvals that were answered: decide, then start or refuse the call."""
    for index, pending in list((turn.pending or {}).items()):
        effect_id, event = ids.call_id(activation.id, turn.number, index), pending.event
        ends_turn = isinstance(event, EffectFinished) and event.finishes
        if isinstance(event, EffectFinished):
            event = _decision(member, turn.calls[index], effect_id, event, pending.digest)
            emit(event)
        if event.allowed:
            take_up(emit, run, team, member, activation, index, event)
        else:
            by = f" by {event.decided_by}" if event.decided_by else ""
            reason = f"permission denied{by}: {event.reason}"
            emit(EffectFinished(effect_id, "denied", reason=reason, finishes=ends_turn))


def _decision(
    member: CompiledAgent, call: ToolCall, effect_id: str, answer: EffectFinished, digest: str
) -> PermissionDecided:
    """What a person's answer to an approval of the tool `digest` means."""
    allowed = answer.outcome == "completed" and answer.content in ("yes", "always")
    tool = meant_tool(member, call) if member.hidden else member.tools.get(call.name)
    if allowed and tool is not None and tool.digest != digest:
        changed = f"{tool.name} has changed since it was asked for; call it again to have it allowed as it is"
        return PermissionDecided(effect_id, False, answer.decided_by, changed, answer.arguments)
    bound = tool.revalidate(answer.arguments) if tool is not None else answer.arguments
    arguments = bound if isinstance(bound, str) else answer.arguments
    always = tool.digest if tool is not None and answer.content == "always" else ""
    reason = "" if allowed else answer.reason or "refused"
    return PermissionDecided(effect_id, allowed, answer.decided_by, reason, arguments, always, answer.grant)


# -- one call -------------------------------------------------------------------------------------


def take_up(
    emit: Emit, run: RunState, team: CompiledTeam, member: CompiledAgent, caller: Activation, index: int,
    permission: PermissionDecided | None = None,
) -> None:  # fmt: skip
    """What call `index` of the caller's turn becomes.

    permission: the decision on this call, when a person or a rule has already given one.
    """
    turn = caller.turn
    written = turn.calls[index]
    effect_id = ids.call_id(caller.id, turn.number, index)
    for scope in caller.scopes:
        limit = scope.limits.calls
        if limit is not None and scope.calls >= limit and not _only_finishes(member, written.name):
            reason = f"the limit of {limit:,} calls is used up"
            emit(EffectFinished(effect_id, "limit", reason=reason))
            return
    call = meant_call(member, written) if member.hidden else written
    if isinstance(call, Invalid):
        emit(EffectFinished(effect_id, "invalid_arguments", reason=call.text))
        return
    if turn.offered_tools is not None and not in_turn(member, turn.offered_tools, call.name):
        offered = ", ".join(turn.offered_tools) or "(nothing)"
        reason = f"{call.name} is not offered in this turn. Offered: {offered}"
        emit(EffectFinished(effect_id, "not_found", reason=reason))
        return
    if turn.stop == "length" and not turn.planned and _is_cut(written, last=index == len(turn.calls) - 1):
        most = member.agent.asking.max_output_tokens
        reason = (
            f"{call.name} was not called: your reply reached its limit of {most:,} output tokens in the "
            "middle of the arguments. Call it again with shorter arguments, or in several parts"
        )
        emit(EffectFinished(effect_id, "invalid_arguments", reason=reason))
        return
    tool = member.tools.get(call.name)
    if tool is not None:
        begun = _use_tool(emit, run, team, member, caller, call, effect_id, tool, permission)
        if call is not written:
            begun = with_arguments(begun, call)
        if member.agent.hooks.intercept_call is not None and type(begun) is EffectStarted:
            _intercepted(emit, run, team, member, caller, call, begun)
        else:
            emit(begun)
    elif call is written and (call.name in member.builtins or turn.planned):
        BUILTINS[call.name].rule(emit, run, team, member, caller, call, effect_id)
    else:
        emit(EffectFinished(effect_id, "not_found", reason=no_such_tool(member, call.name)))


def _is_cut(call: ToolCall, *, last: bool) -> bool:
    """Whether the arguments of a call break off, in a reply that was cut: nothing of them may be guessed."""
    if not call.arguments.strip():
        return last
    return not is_json(call.arguments)


def _only_finishes(member: CompiledAgent, name: str) -> bool:
    """Whether a call does nothing but hand back a result, which costs nothing."""
    return name == FINISH and FINISH in member.builtins


def _use_tool(
    emit: Emit, run: RunState, team: CompiledTeam, member: CompiledAgent, caller: Activation, call: ToolCall,
    effect_id: str, tool: Tool, permission: PermissionDecided | None,
) -> EffectStarted | EffectFinished:  # fmt: skip
    """Check the arguments, then the permission, then start."""
    decided = permission.arguments if permission is not None else ""
    read = tool.prepare(call.arguments)
    repaired, outside = isinstance(read, Repaired), tool.function
    if repaired and (call.name in member.finishing or type(outside) is OutsideCall):
        read = tool.revalidate(call.arguments)
    arguments = tool.revalidate(decided) if decided else read.text if isinstance(read, Repaired) else read
    if isinstance(arguments, Invalid):
        return EffectFinished(effect_id, "invalid_arguments", reason=arguments.text)
    if permission is None:
        if run.owner.rules:
            ruling, reason, stop, by, standing = judge(run, team, member, caller, tool, arguments)
        else:
            ruling, reason, stop, by = permit(run, team, member, caller, tool, arguments)
            standing = None
        if ruling == "allow" and caller.conversation.labels and tool.reaches_out and _is_exposed(caller):
            ruling, reason, by, standing = "ask", EXPOSED, "labels", None
        if standing is not None:
            allowed, author = ruling == "allow", standing.author
            permission = PermissionDecided(effect_id, allowed, author, reason, arguments, rule=standing.id)
            emit(permission)
        if ruling == "ask" and not run.options.interactive:
            ruling, reason = "deny", f"{reason}, and nobody is there to ask"
        if ruling == "deny":
            reason = f"permission denied: {reason}"
            return EffectFinished(effect_id, "denied", reason=reason, finishes=stop, decided_by=by)
        if ruling == "ask":
            why = f"{reason}; {tool._shown.caution}" if tool._shown.caution else reason
            asked = ApprovalEffect(
                tool.name, arguments, tool.digest, why, planned_above(run, caller),
                deadline_of(run, caller), by,
            )  # fmt: skip
            return EffectStarted(ids.approval_id(effect_id), asked)
    if type(outside) is OutsideCall:
        return _asked_outside(run, member, caller, call, effect_id, tool, arguments, outside)
    return EffectStarted(
        effect_id,
        ToolEffect(
            tool.name,
            tool.digest if call.name in member.sources else "",
            arguments="" if arguments == call.arguments else arguments,
            allowed=permission is None and tool.effect != "read",
            finishes=call.name in member.finishing,
            repaired=repaired,
            labels=tool.labels,
        ),
    )


def _asked_outside(
    run: RunState, member: CompiledAgent, caller: Activation, call: ToolCall, effect_id: str, tool: Tool,
    arguments: str, outside: OutsideCall,
) -> EffectStarted | EffectFinished:  # fmt: skip
    """The call of an outside tool is a question to whoever runs the request."""
    if not run.options.interactive:
        reason = f"{tool.name} is done by whoever runs the request, and nobody is there to answer"
        return EffectFinished(effect_id, "denied", reason=reason)
    told = f"Do {tool.name}, and answer with its result. {tool.description[:SHOWN_DESCRIPTION]}".strip()
    until = run.at + tool.timeout if tool.timeout < inf else None
    asked = QuestionEffect(
        told, planned_above(run, caller), (), outside.result, deadline_of(run, caller, until), tool.name,
        arguments, call.id, call.name in member.finishing, tool.labels,
    )  # fmt: skip
    return EffectStarted(effect_id, asked)


def _intercepted(
    emit: Emit, run: RunState, team: CompiledTeam, member: CompiledAgent, caller: Activation,
    call: ToolCall, begun: EffectStarted,
) -> None:  # fmt: skip
    """What the agent's own hook makes of a tool call: its result at once, a call of an agent, or the tool."""
    detail, intercept = begun.detail, member.agent.hooks.intercept_call
    if not isinstance(detail, ToolEffect | QuestionEffect) or intercept is None:
        emit(begun)
        return
    turn = caller.turn
    try:
        context = hooks.context(run, caller, turn.messages, turn.number, caller.mailbox.inbox)
        found = hooks.checked(
            intercept(context, call.name, detail.arguments or call.arguments), DirectResult, PlannedCall
        )
    except Exception as error:  # noqa: BLE001 - a hook that raises fails this call, never the run
        emit(begun)
        reason = hooks.raised("intercept_call", caller, error).reason
        emit(EffectFinished(begun.id, "failed", reason=reason, decided_by="intercept_call"))
        return
    if found is not None and type(detail) is ToolEffect and detail.repaired:
        # It is not the reading tool that follows, so nothing of the arguments may be guessed.
        refused = member.tools[call.name].revalidate(call.arguments)
        reason = refused.text if isinstance(refused, Invalid) else ""
        emit(EffectFinished(begun.id, "invalid_arguments", reason=reason))
    elif isinstance(found, DirectResult):
        content, reason = (found.content, "") if found.outcome == "completed" else ("", found.content)
        hooks.record_changes(emit, caller, found, "intercept_call")
        emit(begun)
        end = EffectFinished(
            begun.id, found.outcome, content, reason=reason, finishes=found.finishes,
            decided_by="intercept_call",
        )  # fmt: skip
        emit(end)
    elif isinstance(found, PlannedCall):
        _call_instead(emit, run, team, member, caller, begun.id, found)
    else:
        emit(begun)


def _call_instead(
    emit: Emit, run: RunState, team: CompiledTeam, member: CompiledAgent, caller: Activation,
    effect_id: str, found: PlannedCall,
) -> None:  # fmt: skip
    """A tool call becomes a call of an agent."""
    refusal = cannot_call(run, team, member, caller, found.agent)
    if refusal is not None:
        emit(EffectFinished(effect_id, refusal[0], reason=refusal[1], decided_by="intercept_call"))
        return
    if found.agent == USER:
        _ask_instead(emit, run, caller, effect_id, found)
        return
    asked = AgentCall(found.agent, found.message, task_id=found.task_id, data=found.data, calls=found.calls)
    limits = within(team.members[found.agent].agent.limits, found.deadline, run.at)
    if found.cancel_previous:
        _replace(emit, run, caller, found.agent, effect_id)
    hooks.record_changes(emit, caller, found, "intercept_call")
    detail = call_detail(
        team, found.agent, arguments=encode_value(asked).decode(), limits=limits, background=found.background,
        shown=f"Started in the background as {effect_id}" if found.background else "",
        by="intercept_call",
    )  # fmt: skip
    emit(EffectStarted(effect_id, detail))


def _ask_instead(emit: Emit, run: RunState, caller: Activation, effect_id: str, found: PlannedCall) -> None:
    """A tool call becomes a question to the user."""
    wrong = wrong_form(found.options, found.schema)
    if wrong:
        emit(EffectFinished(effect_id, "invalid_arguments", reason=wrong))
        return
    hooks.record_changes(emit, caller, found, "intercept_call")
    ask_user(emit, run, caller, effect_id, found.message, found.options, found.schema, found.deadline)


def _replace(emit: Emit, run: RunState, caller: Activation, agent: str, effect_id: str) -> None:
    """End the calls of the same agent that go on in the background."""
    for opened in list(caller.open.values()):
        detail = opened.detail
        if type(detail) is CallEffect and detail.background and detail.agent == agent:
            cancelling.cancel(emit, run, opened, f"replaced by {effect_id}", replaced_by=effect_id)
            cancelling.end_waits(emit, run, opened.id)


# -- permission -----------------------------------------------------------------------------------


Judged = tuple[Ruling, str, bool, str]
"""A ruling on a call; why; whether the turn ends with it; and whose it is."""


def judge(
    run: RunState, team: CompiledTeam, member: CompiledAgent, caller: Activation, tool: Tool, arguments: str
) -> tuple[Ruling, str, bool, str, StandingRule | None]:
    """`permit` where rules are in force; the last part is the rule that allowed or denied."""
    subjects = tool.subjects(arguments)
    found = [rule_for(run.owner.rules, tool.name, caller.agent, each, run.at) for each in subjects]
    for each in found:
        if each is not None and each.verdict == "deny":
            return "deny", f"the rule {each.id} denies {tool.name}", False, f"rule {each.id}", each
    allowing = [each for each in found if each is not None and each.verdict == "allow"]
    if allowing and all(
        each in allowing or _granted(run, caller, tool, (subject,))
        for each, subject in zip(found, subjects, strict=True)
    ):
        ruling, reason, stop, by = permit(run, team, member, caller, tool, arguments, granted=True)
        return ruling, reason, stop, by, allowing[0] if ruling == "allow" else None
    asking = next((each for each in found if each is not None and each.verdict == "ask"), None)
    if asking is None:
        return *permit(run, team, member, caller, tool, arguments), None
    asked, name = f"the rule {asking.id} asks for {tool.name}", f"rule {asking.id}"
    ruling, reason, stop, by = permit(run, team, member, caller, tool, arguments, asked=asked)
    return ruling, reason, stop, name if reason == asked else by, None


def permit(
    run: RunState, team: CompiledTeam, member: CompiledAgent, caller: Activation, tool: Tool, arguments: str,
    granted: bool = False, asked: str = "",
) -> Judged:  # fmt: skip
    """The ruling on a call: the strictest of the run's policy, the agent's and its callers'.

    granted, asked: what a rule says of it, see `policy.rule`. An agent's own hook that raises denies.
    """
    if run.grants and not granted:
        granted = _granted(run, caller, tool, tool.subjects(arguments))
    ruling = (*rule(run.options.policy, tool, granted, asked), "policy")
    if run.owner.policy is not None:
        ruling = strictest((ruling, (*rule(run.owner.policy, tool, granted, asked), "policy")))
    if caller.progress.policy is not None:
        own_policy = Policy(caller.progress.policy)
        ruling = strictest((ruling, (*rule(own_policy, tool, granted, asked), "policy of the request")))
    if not team.policies:
        return ruling[0], ruling[1], False, ruling[2]
    rulings = [ruling]
    if member.agent.hooks.authorize is not None:
        own, reason, stop = _ask_judge(member.agent.hooks.authorize, tool, arguments)
        if stop:
            return "deny", reason, True, "authorize"
        if own == "ask" and granted:
            # A person was asked, and said `always`.
            own = "allow"
        if own is not None and (own != "allow" or ruling[0] != "deny"):
            # No code of an agent's waives what a rule asks for.
            rulings = [(own, reason, "authorize"), *([ruling] if asked else [])]
    activation: Activation | None = caller
    while activation is not None and activation.id:
        known = team.members.get(activation.agent)
        policy = known.policy if known is not None else Policy("strict")
        if policy is not None:
            rulings.append((*rule(policy, tool, granted, asked), f"policy of {activation.agent}"))
        activation = run.activations.get(activation.caller)
    ruled, reason, by = strictest(rulings)
    return ruled, reason, False, by


def _is_exposed(caller: Activation) -> bool:
    """Whether an agent was shown what a stranger may have written, and what must not get out."""
    labels = caller.conversation.labels
    return "untrusted" in labels and "private" in labels


def _granted(run: RunState, caller: Activation, tool: Tool, subjects: Iterable[CallSubject]) -> bool:
    """Whether approvals that are remembered cover all that a call does."""
    grants = run.grants.get(tool.digest, ())
    return bool(grants) and all(
        any(covers(grant, caller.agent, each, run.at) for grant in grants) for each in subjects
    )


def _ask_judge(judge: Authorize, tool: Tool, arguments: str) -> tuple[Ruling | None, str, bool]:
    verdict: Any
    try:
        found = judge(tool, arguments)
        verdict, reason = found if isinstance(found, tuple) else (found, "")
        reason = clean_text(reason)
    except Exception as error:  # noqa: BLE001 - whatever it is, a check that failed allows nothing
        return "deny", f"the permission check failed: {text_of(error)}", False
    if verdict is None:
        return None, reason, False
    said: Any = clean_text(verdict) if isinstance(verdict, str) else ""
    if said == "stop":
        return None, reason, True
    if said in ("allow", "ask", "deny"):
        return said, reason, False
    return "deny", f"the permission check failed: it said {shown(verdict)}", False
