"""ToolCapableAgent: a worker that answers structured messages, with the tools it has a permission for."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from antiphon import Agent, Hooks, Model, Result, Run, RunFailed, Tool, ToolCall, UserError, open_run
from antiphon.styles.tasks.blocking import blocking
from antiphon.styles.tasks.messages.blocks import call_blocks
from antiphon.styles.tasks.messages.enclosed import enclosed, shows_enclosed, shows_something
from antiphon.styles.tasks.messages.message import MESSAGE_TYPES, StructuredMessage
from antiphon.styles.tasks.messages.reply import noted, reply_to
from antiphon.styles.tasks.scheduling.results import Workings
from antiphon.styles.tasks.toolkits.declared import ExecutableTool
from antiphon.styles.tasks.toolkits.toolkit import AgentToolkit, arguments_json
from antiphon.values.agent import own_tools
from antiphon.values.hooks import Decision
from antiphon.values.message import new_id

ROUNDS = 8
"""How often the calls that a model wrote into its text are done before the answer is given up."""
GO_ON = "These are the results of the calls in your last reply. Go on."


class ToolCapableAgent:
    """A worker with a toolkit. One message is one run of one agent.

    worker_id: its name, in the toolkit's permissions too. specialization, capabilities: what it is
    for, told to the model unless `system_prompt_file` says it all. toolkit: shared with others, or
    its own by default. options: of `open_run`, for every run (`journal`, `limits`, `policy` …);
    unless `interactive` is True an approval that a tool needs is refused.

    Raises UserError for a prompt file that cannot be read.
    """

    def __init__(
        self,
        worker_id: str,
        specialization: str,
        system_prompt_file: str | os.PathLike[str] | None = None,
        toolkit: AgentToolkit | None = None,
        capabilities: Iterable[str] = (),
        model: str | Model | None = None,
        **options: Any,
    ) -> None:
        self.worker_id, self.specialization = worker_id, specialization
        self.capabilities = tuple(capabilities)
        self.toolkit = AgentToolkit() if toolkit is None else toolkit
        self._prompt = self._introduction() if system_prompt_file is None else _read(system_prompt_file)
        self._model = model
        self.options = {"interactive": False, **options}

    def _introduction(self) -> str:
        said = f'You are "{self.worker_id}", specialized in {self.specialization}.'
        return f"{said} You can: {', '.join(self.capabilities)}." if self.capabilities else said

    @property
    def agent(self) -> Agent:
        """The worker as a team takes it, with the tools it may use now; a later revocation still holds."""
        return Agent(
            self.worker_id,
            self._prompt,
            model=self._model,
            tools=self.toolkit.tools_of(self.worker_id),
            description=self.specialization,
            standalone=True,
            context="continue",
            tool_execution="sequential",
            hooks=Hooks(authorize=self._judge),
        )

    def _judge(self, tool: Tool, arguments: str) -> tuple[Decision, str] | None:
        if self.toolkit.has_permission(self.worker_id, tool.name):
            return None
        return "deny", f"{self.worker_id} has no permission for {tool.name}"

    def register_tool(self, tool: Tool | ExecutableTool | Callable[..., Any]) -> str:
        """Add a tool to the toolkit and let this worker use it; returns the tool's name."""
        name = self.toolkit.register_tool(tool)
        self.toolkit.grant_permission(self.worker_id, name, by=self.worker_id)
        return name

    # -- messages --------------------------------------------------------------------------------

    def process_structured_message(self, message: StructuredMessage) -> StructuredMessage:
        """`aprocess_structured_message` for programs without an event loop."""
        return blocking(self.aprocess_structured_message, message)

    async def aprocess_structured_message(self, message: StructuredMessage) -> StructuredMessage:
        """Answer a message: do its tool calls, then let the model answer with their results at hand.

        A call that the message brings the result of is done already. The model is shown these results and
        the metadata, see `enclosed`. Calls that the model makes, or writes into its text (see `blocks`),
        are done too, and it goes on with their results. The reply holds every result in order, those of
        the message first, and the calls that the model made. It is of type `result` to a task,
        `tool_response` to a tool request, else `response`. Its metadata say the `outcome` of the run, and
        the `status`: `completed`, `partial` when some of the message's own calls failed, `failed` when all
        did or there is no answer. Without an answer it is of type `error`, says why, and has what there
        was of it as `output`.

        A message of type `status` or `error` is not worked on; the reply is a `status` that says so.

        Raises InvalidMessage and InvalidArguments for a message that JSON cannot carry.
        """
        if message.is_notice:
            return noted(message, self.worker_id)
        agent = shows_enclosed(self.agent) if shows_something(message) else self.agent
        async with open_run([agent], **self.options) as run:
            result = await self._ask(run, message)
            records = await run.records()
            await run.close()
        tools = {each.name: each for each in own_tools(agent)}
        found = Workings.of(records)
        given = len(message.open_tool_calls)
        work = found.done(found.of_agent(self.worker_id), self.worker_id, given, lambda name: tools)
        return reply_to(
            message, work.giver, result.outcome, result.output, result.reason, work.results, work.calls
        )

    async def _ask(self, run: Run, message: StructuredMessage) -> Result:
        """Ask, and go on while the answer's text holds calls."""
        text, data = message.content, enclosed(message)
        calls, rounds = calls_of(message.open_tool_calls), 0
        intent = message.message_type if message.message_type in MESSAGE_TYPES else ""
        while True:
            asked = await run.post(
                self.worker_id,
                text,
                intent=intent,
                calls=calls,
                task_id=message.task_id,
                data=data,
            )
            try:
                result = await run.result(asked)
            except RunFailed as failed:
                found: Result = failed.result
                return found
            written = call_blocks(result.output) if result.outcome == "completed" else []
            if not written:
                return result
            if rounds == ROUNDS:
                why = f"after {ROUNDS} rounds of calls in its text it still asks for more"
                return replace(result, outcome="no_progress", reason=why)
            text, data, calls, rounds = GO_ON, None, calls_of(written), rounds + 1

    # -- tasks -----------------------------------------------------------------------------------

    def process_task(self, task: Mapping[str, Any]) -> dict[str, Any]:
        """`aprocess_task` for programs without an event loop."""
        return blocking(self.aprocess_task, task)

    async def aprocess_task(self, task: Mapping[str, Any]) -> dict[str, Any]:
        """Do a task given as a dictionary: `query`, `tool_calls`, `task_id`; one of the first two.

        Returns `task_id`, `worker_id`, `status` (see `aprocess_structured_message`), `result`,
        `tool_results` and `error`.
        """
        message = StructuredMessage(
            task.get("query") or "", task_id=task.get("task_id"), tool_calls=task.get("tool_calls")
        )
        if not message.content and not message.has_tool_calls:
            error = "The task has neither a 'query' nor 'tool_calls'; give it one"
            return self._report(message, "failed", None, [], error)
        reply = await self.aprocess_structured_message(message)
        status, results = reply.metadata["status"], reply.tool_results
        if reply.metadata["outcome"] == "completed":
            return self._report(message, status, reply.content, results, None)
        return self._report(message, status, reply.metadata["output"], results, reply.content)

    def _report(
        self,
        message: StructuredMessage,
        status: str,
        result: str | None,
        results: list[dict[str, Any]],
        error: str | None,
    ) -> dict[str, Any]:
        return {
            "task_id": message.task_id,
            "worker_id": self.worker_id,
            "status": status,
            "result": result,
            "tool_results": results,
            "error": error,
        }


def _read(prompt_file: str | os.PathLike[str]) -> str:
    try:
        return Path(prompt_file).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"The system prompt file {os.fspath(prompt_file)!r} cannot be read: {error}"
        ) from error


def calls_of(calls: Iterable[Mapping[str, Any]]) -> tuple[ToolCall, ...]:
    """The calls of a message as the kernel takes them, each with an id of its own."""
    found: dict[str, ToolCall] = {}
    for call in calls:
        call_id = call["id"] if call["id"] and call["id"] not in found else new_id()
        found[call_id] = ToolCall(call_id, call["name"], arguments_json(call["name"], call["arguments"]))
    return tuple(found.values())
