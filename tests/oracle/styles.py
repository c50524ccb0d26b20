"""Scenarios: the styles. Delegation has a file of its own."""

import asyncio

from antiphon import RunFailed, Topics, tool
from antiphon.models.script import call
from antiphon.styles.environment import Environment, Message
from antiphon.styles.loop import AgentServices, LoopAgent, TaskComplete
from antiphon.styles.tasks import Controller, StructuredMessage, ToolCapableAgent, Worker
from antiphon.values.agent import Compaction
from antiphon.values.model import Reply, Usage
from tests.oracle.stage import scenario
from tests.oracle.tools import agent, look
from tests.styles.environment.ensemble import member
from tests.styles.profiles.profiled import TEAM, script, team

# -- loop ---------------------------------------------------------------------------------------


async def looped(stage, replies, *messages, **options):
    model = stage.script(replies)
    services = AgentServices(clock=stage.clock)
    one = LoopAgent(llm=model, journal=stage.journal, services=services, env={}, **options)
    for message in messages or ("go",):
        try:
            stage.note(f"answer: {await one.run(message)}")
        except RunFailed as failed:
            stage.note(failed.result)


@tool
async def done(message: str = "") -> None:
    """End the task."""
    raise TaskComplete(message)


@scenario
async def loop_with_a_done_tool(stage):
    replies = ["thinking", [call("look"), call("done", message="all is well"), call("look")], call("done")]
    await looped(stage, replies, "go", "again", tools=[look, done], require_done_tool=True)


@scenario
async def loop_at_its_limit(stage):
    await looped(stage, [call("look")] * 2 + ["what I have"], tools=[look], max_iterations=2)


@scenario
async def loop_with_compaction(stage):
    class Registry:
        def find(self, model):
            return type("Known", (), {"input_limit": 1_000})

    replies = [
        Reply("one", usage=Usage(900, 1), model="script"),
        "<retain>x</retain><summary>S</summary>",
        "two",
    ]
    options = {"model_registry": Registry(), "compaction": Compaction(ratio=0.8)}
    await looped(stage, replies, "a", "b", **options)


# -- environment --------------------------------------------------------------------------------


async def performed(stage, environment, *messages, rounds=None):
    async with environment:
        for message in messages:
            environment.publish_message(message)
        try:
            stage.note(await environment.run(rounds, until_idle=rounds is None))
        except RunFailed as failed:
            stage.note(failed.result)
        stage.note(f"said: {[each.content for each in environment.archive()]}")


@scenario
async def environment_rounds(stage):
    """A chain, a circle up to its laps, one that is addressed, and a model."""
    roles = [
        member("A", [], "go", says=lambda news: f"{news}A"),
        member("B", [], "A", "C", says=lambda news: f"{news}B"),
        member("C", [], "B", says=lambda news: f"{news}C"),
        member("D", [], says=lambda news: Message("for A", send_to="A", cause_by="D")),
    ]
    environment = Environment(roles=roles, laps=2, journal=stage.journal, clock=stage.clock, env={})
    await performed(stage, environment, Message("x", cause_by="go"), Message("y", send_to="D"))


@scenario
async def environment_where_one_fails(stage):
    def fails(news):
        raise ValueError(f"cannot {news}")

    roles = [member("A", [], "go"), member("B", [], "go", says=fails), member("C", [], "A")]
    environment = Environment(roles=roles, journal=stage.journal, clock=stage.clock, env={})
    await performed(stage, environment, Message("x", cause_by="go"))


@scenario
async def environment_of_agents(stage):
    """Agents with topics, whom they call, and rounds that are used up."""
    writer = agent(
        "writer",
        topics=Topics(watch=["go"]),
        model=stage.script([call("call_agent", agent_name="expert", message="?"), "a text"]),
    )
    critic = agent("critic", topics=Topics(watch=["writer"]), model=stage.script(["not good"]))
    expert = agent("expert", model=stage.script(["a fact"]))
    options = {"agents": [expert], "journal": stage.journal, "clock": stage.clock, "env": {}}
    environment = Environment(roles=[writer, critic], **options)
    await performed(stage, environment, Message("x", cause_by="go"), rounds=1)


# -- tasks --------------------------------------------------------------------------------------


def task(task_id, worker, text="Do it", **data):
    return StructuredMessage.create_task(text, "user", worker, data, task_id)


@scenario
async def tasks_by_priority_and_deadline(stage):
    """Two at once by one worker; one is missed, one comes with calls, one is for nobody."""

    def b_at_work(request):
        return [call("hang"), "b did it"][sum(each.role == "assistant" for each in request.messages)]

    def a_at_work(request):
        return f"a did {[each.content for each in request.messages if each.role == 'user'][-1]}"

    a = agent("a", model=stage.script(a_at_work))
    b = agent("b", model=stage.script(b_at_work))
    tasks = [
        task("1", "a", "one", priority="low"),
        task("2", "a", "two", priority="high"),
        task("3", "a", "three"),
        task("4", "b", "four", deadline="5s"),
        task("5", "nobody"),
    ]
    tasks[0].add_tool_call("look", {"where": "there"})
    options = {"journal": stage.journal, "clock": stage.clock, "env": {}}
    controller = Controller([Worker(a, concurrency=2), b], name="lead", **options)
    for reply in await controller.run_tasks(tasks, run_id="tasks"):
        stage.note(f"{reply.task_id} {reply.metadata['outcome']}: {reply.content!r}")


@scenario
async def tasks_routed_by_a_model(stage):
    router = stage.script([call("call_agent", agent_name="a", message="sum it"), "It is 3."])
    worker = ToolCapableAgent("a", "sums", model=stage.script(["3"]))
    controller = Controller([worker], router, journal=stage.journal, clock=stage.clock, env={})
    message = StructuredMessage("What is 1 and 2?", {"type": "query"}, task_id="thread")
    message.source_agent = "user"
    reply = await controller.aprocess_structured_message(message)
    stage.note(f"{reply.metadata['outcome']}: {reply.content!r}")


# -- profiles -----------------------------------------------------------------------------------


@scenario
async def profiles_with_a_dispatch(stage):
    """A partner plans, launches a principal in the background, which dispatches two associates at once."""

    def assigned(module):
        return {"module_id_to_assign": module, "agent_profile_logical_name": "Associate"}

    modules = [{"action": "create", "name": name, "description": f"about {name}"} for name in ("moon", "sun")]
    reviewed = [
        {"action": "status_change", "module_id": each, "status": "completed"} for each in ("WM_1", "WM_2")
    ]
    model = stage.kept(
        script(
            Partner=[
                call("manage_work_modules", actions=modules),
                call("LaunchPrincipalExecutionTool"),
                "Wait.",
                "All is done.",
            ],
            Principal=[
                call("dispatch_submodules", assignments=[assigned("WM_1"), assigned("WM_2")]),
                call("manage_work_modules", actions=reviewed),
                call("finish_flow", summary="both are done"),
            ],
            Associate=lambda request: [
                call("generate_message_summary"),
                "",
                call("finish_flow", summary="found"),
            ][sum(each.role == "assistant" for each in request.messages)],
        )
    )
    found = team(stage.folder, TEAM)
    async with stage.open(*found.agents(), model=model) as run:
        await stage.ended(run, await run.post(found.entry, "Look at moon and sun."))


@scenario
async def profiles_that_talk_and_ask_back(stage):
    model = stage.kept(script(Partner=["Which tides?", "Ah."]))
    found = team(stage.folder, TEAM)
    async with stage.open(*found.agents(), model=model) as run:
        for text in ("Tides?", "All of them."):
            await stage.ended(run, await run.post(found.entry, text))


@scenario
async def profiles_with_observers(stage):
    """An associate alone that never calls a tool: three strikes; and one that says nothing."""
    for lines in (["one", "two", "three", "four"], [""]):
        model = stage.kept(script(Associate=lines))
        found = team(stage.folder / str(len(lines)), {"Associate": TEAM["Associate"]})
        async with stage.open(*found.agents(), model=model) as run:
            await stage.ended(run, await run.post(found.entry, "go"))
    await asyncio.sleep(0)
