"""The user's conversations with agents that go on with them: who waits for whom, and how one begins."""

from __future__ import annotations

from antiphon.kernel.facts import ids
from antiphon.kernel.facts.activation import Activation
from antiphon.kernel.facts.agent_call import AgentCall
from antiphon.kernel.facts.events import EffectFinished, MessagePosted
from antiphon.kernel.facts.fold.transcript_edits import check_history
from antiphon.kernel.facts.state import RunState
from antiphon.kernel.rules.next import Emit
from antiphon.kernel.rules.team.compiled import CompiledTeam
from antiphon.values.message import Message


def conversation_at_work(run: RunState, user: Activation, name: str) -> int:
    """The activation that goes on with the user's conversation with an agent, while it works on a request."""
    line = (user.mailbox.requests or {}).get(name)
    return run.open[line[0]].child if line else 0


def begin_queued(emit: Emit, run: RunState, team: CompiledTeam, user: Activation) -> None:
    """Let requests begin whose conversation has come to rest, one for each conversation, in their order."""
    for name, line in list((user.mailbox.requests or {}).items()):
        # One that cannot begin ends, and the next one has its turn.
        for call_id in list(line):
            if run.open[call_id].child:
                break
            resting = run.dormant.get((user.id, name))
            if name not in team.members:
                emit(EffectFinished(call_id, "failed", reason=f"the team has no agent {name} any more"))
            elif resting is None:
                reason = "the conversation that it waited for was given up; ask again"
                emit(EffectFinished(call_id, "failed", reason=reason))
            else:
                message = Message("forward", user.agent, name, "", call_id, ids.opening_id(call_id))
                emit(MessagePosted(message, resting, begins=call_id))
                break


def history_refused(run: RunState, team: CompiledTeam, caller: Activation, asked: AgentCall) -> str:
    """Why a call cannot bring what was said before, if so."""
    name = asked.agent_name
    if caller.id or name not in team.members:
        return "a history goes with a request of the user to an agent"
    if team.members[name].agent.hooks.act is not None:
        return f"{name} acts by its own code and has no conversation that a history could begin"
    resting = run.dormant.get((caller.id, name))
    if resting is not None or (caller.mailbox.requests or {}).get(name):
        return f"the conversation with {name} has begun; a history goes with its first request"
    try:
        check_history(asked.history)
    except ValueError as error:
        return f"not a conversation: {error}"
    return ""
