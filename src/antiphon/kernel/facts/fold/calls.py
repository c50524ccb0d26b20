"""The fold of calls: tools, agents, approvals, questions, and the results that a turn waits for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from antiphon.kernel.context.output_store import DONE
from antiphon.kernel.facts import ids
from antiphon.kernel.facts.activation import (
    REFUSED,
    Activation,
    AnsweredCall,
    FinishedCall,
    OpenEffect,
    Progress,
    Turn,
)
from antiphon.kernel.facts.agent_call import (
    CALL_AGENT,
    INCOMPLETE,
    AgentCall,
    opening,
    read_call,
    reason_shown,
    returned,
)
from antiphon.kernel.facts.events import (
    ApprovalEffect,
    CallEffect,
    EffectFinished,
    MessagePosted,
    PermissionDecided,
    QuestionEffect,
    ResultEffect,
    ToolEffect,
)
from antiphon.kernel.facts.fold import hops
from antiphon.kernel.facts.fold.inbox import carry, deliver, labelled
from antiphon.kernel.facts.fold.transcript_edits import abandon, begin_with
from antiphon.kernel.facts.fold.turns import operation_begun, settle_turn
from antiphon.kernel.facts.ledger import answered, asked, call_scopes
from antiphon.kernel.facts.state import RunState, keep_outputs, log, mark_ready
from antiphon.values.codec import encode_value
from antiphon.values.fields import unchecked
from antiphon.values.message import USER, Message, ToolCall, ToolResult
from antiphon.values.model import NO_USAGE, Usage

_message = unchecked(Message)
SHOWN_ARGUMENTS = 1_000
"""Characters of arguments that a model is told its own were read as."""
KEPT = 1_000
"""Ends of background calls that the user and a planning agent remember; the oldest are forgotten first. Those
of the user's requests are found in the journal again, and a plan was shown its own."""

# -- starts ---------------------------------------------------------------------------------------


def tool_started(run: RunState, activation: Activation, opened: OpenEffect, detail: ToolEffect) -> None:
    """A tool of the turn runs."""
    pending = activation.turn.pending
    opened.allowed = detail.allowed or (pending is not None and opened.index in pending)
    _taken_up(activation, opened)
    activation.turn.waiting += 1


def result_awaited(run: RunState, activation: Activation, opened: OpenEffect, detail: ResultEffect) -> None:
    """A call of the turn waits for one in the background."""
    _taken_up(activation, opened)
    activation.turn.waiting += 1


def _taken_up(activation: Activation, opened: OpenEffect) -> None:
    """An effect is call `index` of its turn, and counts as one."""
    turn = activation.turn
    index = opened.index
    if index >= len(turn.results):
        raise IndexError(f"{opened.id} is no call of its turn")
    if index >= turn.cursor:
        turn.cursor = index + 1
    if turn.pending:
        turn.pending.pop(index, None)
    for scope in activation.scopes:
        scope.calls += 1


def approval_started(
    run: RunState, activation: Activation, opened: OpenEffect, detail: ApprovalEffect
) -> None:
    """A call of the turn waits for a person's decision."""
    activation.turn.cursor = max(activation.turn.cursor, opened.index + 1)
    activation.turn.waiting += 1
    people_asked(run, activation, detail.detaches)


def question_started(
    run: RunState, activation: Activation, opened: OpenEffect, detail: QuestionEffect
) -> None:
    """A call of the turn, or something inside an action or a tool, waits for a person's answer."""
    if opened.index >= 0:
        _taken_up(activation, opened)
        activation.turn.waiting += 1
    else:
        operation_begun(activation, opened)
    question = _message(
        "forward",
        activation.agent,
        USER,
        detail.text,
        opened.id,
        ids.opening_id(opened.id),
        activation.task_id,
    )
    log(run, activation.request, question)
    people_asked(run, activation, detail.detaches)


def people_asked(run: RunState, activation: Activation, detaches: Iterable[str] | None) -> None:
    """A person is waited for; planned calls above go on in the background."""
    asked(activation.scopes, run.at)
    for call_id in planned_above(run, activation) if detaches is None else detaches:
        caller = run.activations[ids.activation_of(call_id)]
        opened = caller.open[call_id]
        opened.detached = caller.turn.calls[opened.index]
        caller.turn.results[opened.index] = ToolResult("")
        caller.turn.waiting -= 1
        mark_ready(run, caller)
        settle_turn(run, caller)


def planned_above(run: RunState, waiting: Activation) -> tuple[str, ...]:
    """The planned calls under which an activation works, and that their turns still wait for; innermost
    first."""
    found, activation = [], waiting
    while activation.caller:
        caller = run.activations[activation.caller]
        opened = caller.open[activation.call]
        if caller.turn.planned and not opened.detached and opened.index >= 0:
            found.append(opened.id)
        activation = caller
    return tuple(found)


def call_started(run: RunState, caller: Activation, opened: OpenEffect, detail: CallEffect) -> None:
    """An agent is called: an activation begins, or a dormant one goes on."""
    turn, call = caller.turn, None
    if opened.index >= 0:
        _taken_up(caller, opened)
        call = turn.calls[opened.index]
    else:
        operation_begun(caller, opened)
        for scope in caller.scopes:
            scope.calls += 1
    if not caller.id and detail.stays_dormant:
        line = caller.mailbox.requests = caller.mailbox.requests or {}
        line.setdefault(detail.agent, []).append(opened.id)
    if detail.queued:
        opened.queued = call
    else:
        callee = _callee(run, caller, opened, detail, detail.reactivates)
        _deliver_opening(run, caller, callee, detail, call)
    if opened.index < 0:
        return
    if detail.background:
        turn.results[opened.index] = ToolResult(detail.shown)
        mark_ready(run, caller)
        settle_turn(run, caller)
    else:
        turn.waiting += 1


def queued_begins(run: RunState, message: MessagePosted) -> None:
    """A request has waited for its conversation, which is dormant now, and takes it up."""
    opened = run.open[message.begins]
    detail: Any = opened.detail
    call, opened.queued = opened.queued, None
    if call is None:
        raise ValueError(f"{opened.id} is not queued")
    # It waited for others: its own time begins now.
    caller, opened.since = run.activations[opened.activation], run.at
    callee = _callee(run, caller, opened, detail, message.to)
    _deliver_opening(run, caller, callee, detail, call)


def _callee(
    run: RunState, caller: Activation, opened: OpenEffect, detail: CallEffect, reactivates: int
) -> Activation:
    """The activation that a call is."""
    outer = caller.scopes[detail.outside :]
    scopes = call_scopes(detail.limits, outer, run.options.limits, run.totals.scopes)
    request = caller.request or opened.id
    # Plans add no depth, and an agent that asks its own model is still the same agent.
    deeper = caller.id > 0 and not caller.turn.planned and not detail.own_model
    depth = caller.depth + deeper
    if reactivates:
        callee = run.activations[reactivates]
        del run.dormant[callee.caller, callee.agent]
        if caller.mailbox.unread:
            caller.mailbox.unread.pop(callee.agent, None)
        callee.call, callee.request, callee.scopes, callee.depth = opened.id, request, scopes, depth
        callee.conversation.compaction = ""
        callee.progress = Progress(earlier_turns=callee.turn.number, deadlines=callee.progress.deadlines)
    else:
        run.activation_count += 1
        callee = Activation(
            run.activation_count, detail.agent, opened.id, caller.id, request, depth, scopes,
            own_model=detail.own_model,
        )  # fmt: skip
        callee.conversation.prefix = detail.digest
        run.activations[callee.id] = callee
        for scope in scopes:
            scope.activations += 1
    callee.progress.policy = caller.progress.policy
    opened.child = callee.id
    mark_ready(run, callee)
    return callee


def _deliver_opening(
    run: RunState, caller: Activation, callee: Activation, detail: CallEffect, call: ToolCall | None
) -> None:
    read = read_call(detail.arguments or (call.arguments if call is not None else ""))
    callee.task_id = read.task_id or caller.task_id
    if read.request is not None:
        callee.progress.request, callee.progress.policy = encode_value(read.request), read.request.policy
    if read.history:
        begin_with(callee, read.history, ids.opening_id(callee.call))
    message = opening(caller, callee, read, call.attachments if call is not None else ())
    if message is not None:
        deliver(callee, labelled(message, caller))
        log(run, callee.request, message)
    for each in read.inbox:
        deliver(callee, labelled(each, caller))
    for position in read.forward:
        hops.hand_on(caller, callee, position)


# -- ends -----------------------------------------------------------------------------------------


def result_of(event: EffectFinished) -> ToolResult:
    """A call's end as the model is shown it."""
    if event.outcome == "completed":
        content = shown_content(event) if event.incomplete else event.content
        return ToolResult(content, event.attachments)
    partial = f"\nPartial output: {event.content}" if event.content else ""
    return ToolResult(f"Error: {reason_shown(event)}{partial}", event.attachments, is_error=True)


def shown_content(event: EffectFinished) -> str:
    """The content of a completed call as its caller is shown it: an answer that is not whole says so."""
    if not event.incomplete:
        return event.content
    return f"[not the whole answer: {INCOMPLETE[event.incomplete]}]\n{event.content}"


def tool_finished(run: RunState, activation: Activation, opened: OpenEffect, event: EffectFinished) -> None:
    """A tool of the turn has ended; one that finishes and says nothing is shown as done."""
    detail, turn = opened.detail, activation.turn
    finishes = type(detail) is ToolEffect and detail.finishes
    silent = event.finishes and not event.content and event.outcome == "completed"
    turn.waiting -= 1
    if event.files:
        activation.progress.files += event.files
    if event.labels:
        carry(activation, event.labels)
    if type(detail) is ToolEffect and detail.labels:
        carry(activation, detail.labels)
    shown = ToolResult(DONE) if silent else result_of(event)
    if type(detail) is ToolEffect and detail.repaired:
        shown = msgspec.structs.replace(shown, content=_read_as(detail.arguments) + shown.content)
    _book(run, activation, opened.index, event, shown, finishes)


def _read_as(arguments: str) -> str:
    """The line that tells a model how its broken arguments were understood."""
    if len(arguments) > SHOWN_ARGUMENTS:
        arguments = f"{arguments[:SHOWN_ARGUMENTS]}... ({len(arguments):,} characters)"
    return f"[the arguments were not valid JSON; they were read as {arguments}]\n"


def call_finished(run: RunState, caller: Activation, opened: OpenEffect, event: EffectFinished) -> None:
    """A callee has returned: to the turn, to an action or a tool, or in the background."""
    detail: Any = opened.detail
    request = b""
    labels: tuple[str, ...] = ()
    if opened.child:
        callee = run.activations[opened.child]
        request, labels = callee.progress.request, callee.conversation.labels
    usage, task_id = _release(run, caller, opened, detail, event) if opened.child else (NO_USAGE, "")
    if not caller.id and detail.stays_dormant and caller.mailbox.requests:
        _leave_line(caller.mailbox.requests, detail.agent, opened.id)
    if event.files and caller.id:
        caller.progress.files += event.files
    if labels:
        carry(caller, labels)
    if opened.index < 0:
        operation_finished(run, caller, opened, event)
    elif opened.detached is not None:
        mailbox = caller.mailbox
        mailbox.background_results = (*mailbox.background_results, (opened.detached, event))
        caller.another_turn = True
    elif detail.background:
        _background_finished(caller, FinishedCall(event, usage, detail.agent, task_id, request=request))
    else:
        caller.turn.waiting -= 1
        if detail.finishes and event.outcome == "completed":
            caller.turn.handoff = detail.agent
        _book(run, caller, opened.index, event, result_of(event), detail.finishes)


def _leave_line(requests: dict[str, list[str]], agent: str, call_id: str) -> None:
    requests[agent].remove(call_id)
    if not requests[agent]:
        del requests[agent]


def _remember(caller: Activation, ended: FinishedCall) -> None:
    caller.done[ended.event.id] = ended
    if len(caller.done) > KEPT and (not caller.id or caller.turn.planned):
        del caller.done[next(iter(caller.done))]


def _background_finished(caller: Activation, ended: FinishedCall) -> None:
    """Whoever waits for messages takes a turn, and its hooks see the end."""
    _remember(caller, ended)
    if caller.id:
        call = ToolCall(ended.event.id, CALL_AGENT, encode_value(AgentCall(ended.agent)).decode())
        mailbox = caller.mailbox
        mailbox.background_results = (*mailbox.background_results, (call, ended.event))
        caller.another_turn = caller.another_turn or caller.phase == "idle"


def result_finished(run: RunState, activation: Activation, opened: OpenEffect, event: EffectFinished) -> None:
    """The background call that a call of the turn waited for has ended."""
    activation.turn.waiting -= 1
    _book(run, activation, opened.index, event, result_of(event))


def approval_finished(
    run: RunState, activation: Activation, opened: OpenEffect, event: EffectFinished
) -> None:
    """A person has decided; the rules take it up."""
    people_answered(run, activation)
    activation.turn.waiting -= 1
    digest = opened.detail.digest if type(opened.detail) is ApprovalEffect else ""
    note_pending(activation.turn, opened.index, event, digest)


def note_pending(turn: Turn, index: int, event: EffectFinished | PermissionDecided, digest: str = "") -> None:
    """Note a call whose approval was answered or decided."""
    if turn.pending is None:
        turn.pending = {}
    turn.pending[index] = AnsweredCall(event, digest)


def question_finished(
    run: RunState, activation: Activation, opened: OpenEffect, event: EffectFinished
) -> None:
    """A person has answered a call of the turn, an action or a tool."""
    people_answered(run, activation)
    _log_return(run, activation, USER, event, activation.task_id)
    if opened.index < 0:
        operation_finished(run, activation, opened, event)
        return
    activation.turn.waiting -= 1
    detail = opened.detail
    finishes = type(detail) is QuestionEffect and detail.finishes
    if type(detail) is QuestionEffect and detail.labels:
        carry(activation, detail.labels)
    _book(run, activation, opened.index, event, result_of(event), finishes)


def operation_finished(
    run: RunState, activation: Activation, opened: OpenEffect, event: EffectFinished
) -> None:
    """What an action or a tool began has ended: it is remembered, should that be run again."""
    _remember_operation(activation, event)


def _remember_operation(activation: Activation, event: EffectFinished) -> None:
    within = activation.open.get(ids.parent_of(event.id))
    if within is None:
        raise ValueError(f"{event.id} ended but never started")
    if within.operations is None:
        within.operations = {}
    within.operations[event.id] = event


def never_started(run: RunState, event: EffectFinished) -> None:
    """A call was refused, or done by the kernel itself; or what an action or a tool asked for was."""
    activation = run.activations[ids.activation_of(event.id)]
    index = ids.index_of(event.id)
    if index < 0 or ids.is_approval(event.id):
        _remember_operation(activation, event)
        return
    if event.outcome in REFUSED and not activation.turn.planned:
        activation.progress.refused += 1
    if event.outcome == "limit":
        activation.turn.breached_limit = event.reason
    elif not event.finishes:
        for scope in activation.scopes:
            scope.calls += 1
    if not activation.id and activation.turn.calls[index].name == CALL_AGENT:
        # A request that never became a call: whoever asked is told how it ended all the same.
        _remember(activation, FinishedCall(event, NO_USAGE))
    _book(run, activation, index, event, result_of(event))
    mark_ready(run, activation)


def _book(
    run: RunState,
    activation: Activation,
    index: int,
    event: EffectFinished,
    shown: ToolResult,
    finishes: bool = False,
) -> None:
    """Store the one result of call `index`, and what the model is shown of it."""
    turn = activation.turn
    if turn.pending:
        turn.pending.pop(index, None)
    if index >= turn.cursor:
        turn.cursor = index + 1
    turn.results[index] = shown
    if turn.ends is not None:
        turn.ends[index] = event
    if turn.finish is None and (finishes or event.finishes):
        stops = event.finishes and event.outcome == "denied"
        if stops or event.outcome == "completed":
            turn.finish = event
    settle_turn(run, activation)


# -- people, and callees that have returned ---------------------------------------------------------


def people_answered(run: RunState, activation: Activation) -> None:
    """A question is closed: the time it took counts for no limit, and deadlines were put off."""
    answered(activation.scopes, run.at)
    caller: Activation | None = activation
    while caller is not None and caller.id:
        if caller.progress.overdue:
            mark_ready(run, caller)
        caller = run.activations.get(caller.caller)


def _log_return(
    run: RunState, receiver: Activation, sender: str, event: EffectFinished, task_id: str
) -> None:
    message = returned(sender, receiver.agent, event.id, result_of(event).content, task_id)
    log(run, receiver.request or event.id, message)


def _release(
    run: RunState, caller: Activation, opened: OpenEffect, detail: CallEffect, event: EffectFinished
) -> tuple[Usage, str]:
    """Let a callee that has returned be dormant, or forget it; the tokens it used on scopes of its own, and
    its thread."""
    callee = run.activations[opened.child]
    if callee.open:
        raise ValueError(f"activation {callee.id} returned with effects in flight")
    _log_return(run, caller, callee.agent, event, callee.task_id or caller.task_id)
    own = len(callee.scopes) - len(caller.scopes if caller.id else run.totals.scopes)
    usage = callee.scopes[own - 1].usage if own > 0 else NO_USAGE
    if not detail.stays_dormant:
        forget(run, callee)
        return usage, callee.task_id
    keep_outputs(run, abandon(callee, "cancelled before it was done", run.options.outputs.message))
    other = run.dormant.get((caller.id, callee.agent))
    if other is not None:
        forget(run, run.activations[other])
    run.dormant[caller.id, callee.agent] = callee.id
    if callee.mailbox.inbox:
        note_unread(caller, callee)
    callee.call, callee.scopes, callee.phase, callee.another_turn = "", (), "idle", False
    return usage, callee.task_id


def note_unread(caller: Activation, callee: Activation) -> None:
    """Note that messages wait for a dormant callee."""
    if caller.mailbox.unread is None:
        caller.mailbox.unread = {}
    caller.mailbox.unread[callee.agent] = len(callee.mailbox.inbox)


def forget(run: RunState, gone: Activation) -> None:
    """Drop an activation, and those that are dormant for it."""
    lost = [gone.id]
    while lost:
        number = lost.pop()
        del run.activations[number]
        for key in [key for key in run.dormant if key[0] == number] if run.dormant else ():
            lost.append(run.dormant.pop(key))
