"""The scenarios that are killed everywhere; all they know is in the world and the requests."""

import asyncio

import msgspec
from msgspec.structs import replace

from antiphon import Agent, Hooks, Limits, LoopOptions, Message, ModelError, ModelOptions, tool
from antiphon.kernel.facts.events import ApprovalEffect, EffectStarted, LimitEffect
from antiphon.kernel.run.commands import AnswerInput, AskAgent, CallTool, CancelEffect
from antiphon.models.script import Script, call, finish
from antiphon.styles.environment import Action, Environment, Role
from antiphon.styles.environment import Message as Said
from antiphon.styles.profiles import ProfileLimits, ProfileTeam
from antiphon.styles.tasks import Controller, StructuredMessage
from antiphon.styles.tasks.scheduling.task import mail_of
from antiphon.testing.crash import Scenario
from antiphon.values.hooks import Continue, DirectResult, PlannedCall, Return, TurnPlan
from antiphon.values.model import Reply, Usage
from antiphon.values.policy import StandingRule
from tests.promises.asking_scenario import ASKING, stepped
from tests.promises.crash_tools import BROUGHT, exposed, seeing, tools_of
from tests.promises.toolset_scenario import TOOLSETS
from tests.styles.profiles.profiles_in_code import library


def team(**members):
    """Agents by name, each with the names of its tools."""

    def agents(world):
        tools = tools_of(world)
        return [
            Agent(name, f"You are {name}.", tools=[tools[each] for each in own])
            for name, own in members.items()
        ]

    return agents


def script(**lines):
    return lambda: Script(lines, by="turn")


def to(agent, text="please"):
    return call("call_agent", agent_name=agent, message=text)


def approve(record):
    event = record.event
    if type(event) is EffectStarted and type(event.detail) is ApprovalEffect:
        return [(f"answer {event.id}", AnswerInput(event.id, "yes"))]
    return []


def ask(**form):
    return call("call_agent", agent_name="user", message="Which?", **form)


def choose(record):
    """Say what does not fit first; the second question gets no answer in time."""
    event = record.event
    if type(event) is EffectStarted and getattr(event.detail, "options", ()):
        return [("wrong", AnswerInput(event.id, "green")), ("right", AnswerInput(event.id, "blue"))]
    return []


def do_outside(record):
    """Answer the call of an outside tool wrongly, then rightly; the second one failed where it was done."""
    event = record.event
    if type(event) is not EffectStarted or not getattr(event.detail, "tool", ""):
        return approve(record)
    if event.id.startswith("1/1"):
        return [("wrong", AnswerInput(event.id, '"far"')), ("right", AnswerInput(event.id, "[1, 2]"))]
    return [("failed", AnswerInput(event.id, "", reason="no view"))]


def allow_more(record):
    event = record.event
    if type(event) is EffectStarted and type(event.detail) is LimitEffect and not event.detail.joins:
        return [(f"more {event.id}", AnswerInput(event.id, "yes"))]
    return []


def cancel_call(record):
    event = record.event
    if type(event) is EffectStarted and getattr(event.detail, "name", "") == "hang":
        return [("cancel", CancelEffect("1/1.c1", "enough"))]
    return []


def change_plan(record):
    """A person changes the plan while a tool acts, and then in a way that cannot be."""
    event = record.event
    if type(event) is EffectStarted and getattr(event.detail, "name", "") == "pay":
        return [
            ("add", CallTool("a", "plan", '{"what":"b"}', "ann")),
            ("wrong", CallTool("a", "plan", '{"what":"a"}', "ann")),
        ]
    return []


SINGLE = Scenario("single", team(a=["pay"]), script(a=[call("pay", what="x"), "done"]), (("a", "go"),))
CONTRACTS = Scenario(
    "three contracts",
    team(a=["look", "put", "pay"]),
    script(
        a=[
            [call("look", what="x"), call("put", what="y"), call("pay", what="z"), call("pay", what="w")],
            "done",
        ]
    ),
    (("a", "go"),),
)
CIRCULAR = Scenario(
    "circular",
    team(a=["pay"], b=["put"]),
    lambda: Script(
        {"a": _a_in_the_circle, "b": [call("put", what="y"), to("a", "inner"), finish("b is done")]},
        by="turn",
    ),
    (("a", "outer"),),
)


def _a_in_the_circle(request):
    if request.messages[0].content == "inner":
        return "inner done"
    spoken = sum(message.role == "assistant" for message in request.messages)
    return [to("b"), call("pay", what="x"), finish("outer done")][spoken]


FAN_OUT = Scenario(
    "fan-out",
    team(a=[], b=["pay"], c=["look"], d=[]),
    script(
        a=[[to("b"), to("c"), to("d")], finish("all there")],
        b=[call("pay", what="b"), "b done"],
        c=[call("look", what="c"), "c done"],
        d=["d done"],
    ),
    (("a", "go"),),
)
BACKGROUND = Scenario(
    "background",
    team(a=["pay"], b=["put"]),
    script(
        a=[
            call("call_agent", agent_name="b", message="slowly", background=True),
            call("pay", what="x"),
            call("get_result", call_id="1/1.c1"),
            "done",
        ],
        b=[call("put", what="y"), "b done"],
    ),
    (("a", "go"),),
    options={"background": True},
)
APPROVAL = Scenario(
    "approval", team(a=["wire", "look"]),
    script(a=[[call("wire", what="x"), call("look", what="y")], call("wire", what="z"), "done"]),
    (("a", "go"),), approve,
)  # fmt: skip
FORM = Scenario(
    "questions with form", team(a=["pay"]),
    script(a=[[ask(options=["red", "blue"]), ask(timeout_seconds=30)], call("pay", what="x"), "done"]),
    (("a", "go"),), choose,
)  # fmt: skip
EXPOSED = Scenario(
    "an agent that was shown both", exposed,
    script(a=[call("look", what="x"), to("b"), [call("pay", what="x"), call("look", what="y")], "done"],
           b=[call("fetch", what="z"), "b"]),
    (("a", "go"),), approve,
)  # fmt: skip
OUTSIDE = Scenario(
    "an outside tool", seeing,
    script(a=[[call("see"), call("pay", what="x")], call("see"), call("pay", what="y"), "done"]),
    (("a", "go"),), do_outside,
)  # fmt: skip
REQUESTED = Scenario(
    "a request with options", team(a=["pay", "wire"]),
    script(a=[[call("see"), call("pay", what="x")], call("wire", what="y"), "far", "[3]"]),
    (AskAgent("a", "go", options=BROUGHT),), do_outside,
)  # fmt: skip
HELD = Scenario(
    "held by one limit", team(a=[], b=["look"], c=["look"]),
    script(a=[[to("b"), to("c")], "done"], b=[call("look", what="x"), "b"], c=[call("look", what="y"), "c"]),
    (("a", "go"),), allow_more, {"limits": Limits(turns=1, on_breach="ask")},
)  # fmt: skip
RULED = replace(
    SINGLE, name="a rule beside the runs", agents=team(a=["wire"]),
    model=script(a=[call("wire", what="x"), "done"]),
    options={"rules": (StandingRule("r1", "project", "shop", "w*", "allow", author="ann"),)},
)  # fmt: skip
RETRY = Scenario(
    "retry", team(a=["pay"]),
    script(a=[call("pay", what="x"), ModelError("rate_limit", ""), ModelError("overloaded", ""), "done"]),
    (("a", "go"),),
)  # fmt: skip
CANCEL = Scenario(
    "cancel", team(a=["pay"], b=["hang"]),
    script(a=[to("b"), call("pay", what="x"), "gave up"], b=[call("hang"), "never"]),
    (("a", "go"),), cancel_call,
)  # fmt: skip


def _first(request):
    """Fails in passing at its second step, and at the fourth for good."""
    step = _step(request)
    if request.tool_choice == "none":
        return _spare(request)
    if step == 2 and request.effect_id.endswith(".m1"):
        raise ModelError("overloaded", "busy")
    if step == 4:
        raise ModelError("auth", "not any more")
    return _spare(request)


def _spare(request):
    if request.tool_choice == "none":
        return "<retain>a fact</retain><summary>so far</summary>"
    if request.system.startswith('You are "b"'):
        return f"b heard {sum(message.role == 'user' for message in request.messages)}"
    step = _step(request)
    calls = [
        [to("b", "one"), call("pay", what="x")], [call("look", what="y")], [call("wire", what="z")],
        [to("b", "two")], [call("put", what="w"), finish("all done"), call("pay", what="never")],
    ]  # fmt: skip
    named = tuple(replace(each, id=f"{step}-{index}") for index, each in enumerate(calls[step - 1]))
    return Reply(f"step {step}", named, "calls", Usage(900 if step == 3 else 10, 1))


def _step(request):
    """How far it is, from what it said itself: that outlives a compaction."""
    said = [each.content for each in request.messages if each.role == "assistant"]
    return 1 + max([int(text.removeprefix("step ")) for text in said if text.startswith("step ")], default=0)


def _narrow():
    model = Script(_first)
    model.window = 1_000
    return model


def _loop(world):
    tools = tools_of(world)
    return [
        Agent(
            "a",
            "You are a.",
            tools=[tools[name] for name in ("look", "put", "pay", "wire")],
            tool_execution="sequential",
            loop=LoopOptions(finish_mode="in_order"),
            asking=ModelOptions(fallback_models=[Script(_spare, name="spare")]),
        ),
        Agent("b", "You are b.", context="continue"),
    ]


LOOP = Scenario("loop", _loop, _narrow, (("a", "go"),), approve)


def _controlled(world):
    return Controller(team(a=["pay"], b=["put"])(world)).agents()


def _b_at_work(request):
    """Its own task acts; what is handed over to it does not."""
    if any("handed" in each.content for each in request.messages):
        return "b went on"
    return [call("put", what="y"), "b done"][sum(each.role == "assistant" for each in request.messages)]


def _a_at_work(request):
    if any(each.content == "with b" for each in request.messages):
        return call("call_agent", agent_name="b", message="handed over", handoff=True)
    return [call("pay", what="x"), "a done"][sum(each.role == "assistant" for each in request.messages)]


def _task(task_id, worker, text, priority):
    return mail_of(
        StructuredMessage.create_task(text, "user", worker, {"priority": priority}, task_id=task_id)
    )


TASKS = Scenario(
    "tasks", _controlled, lambda: Script({"a": _a_at_work, "b": _b_at_work}, by="turn"),
    (
        AskAgent(
            "controller",
            "",
            inbox=(
                _task("1", "a", "alone", "low"),
                _task("2", "b", "alone", "medium"),
                _task("3", "a", "with b", "high"),
            ),
        ),
    ),
)  # fmt: skip


def _acting(world):
    """A broker, one that acts with steps, an ask and a call, and one that is asked for help."""

    async def act(ctx):
        found = [await ctx.step("fetch", stepped, world, ctx, "fetch")]
        found += await asyncio.gather(ctx.ask_model("What of it?"), ctx.call("b", "help"))
        found.append(await ctx.step("send", stepped, world, ctx, "send"))
        ctx.set("found", found)
        ctx.append("reactions", [len(ctx.all_messages)])
        ctx.publish(Message("forward", "a", "", f"{found} {ctx.data.get('reactions')}"))

    def plan(context):
        return TurnPlan(
            [PlannedCall("a", forward=tuple(range(len(context.new_messages))))] if context.turn < 3 else ()
        )

    def decide(context):
        if context.turn < 3:
            return Continue(activation_data={f"taken {context.turn}": len(context.new_messages)})
        return Return(
            output=f"{[each.content for each in context.new_messages]} {dict(context.data)} {context.hops}"
        )

    tools = tools_of(world)
    return [
        Agent("broker", hooks=Hooks(plan_turn=plan, end_turn=decide)),
        Agent("a", "You are a.", hooks=Hooks(act=act), tools=[tools["pay"]], context="continue"),
        Agent("b", "You are b.", tools=[tools["put"]]),
    ]


ACTION = Scenario(
    "action", _acting,
    script(a=[call("pay", what="x"), "a thought"], b=[call("put", what="y"), "b helped"]),
    (("broker", "go"),),
)  # fmt: skip


def _written(world):
    """Both have their instructions written, from what they are asked and by whom."""

    async def write(ctx):
        await asyncio.sleep(0)
        return f"You are {ctx.agent}, asked {ctx.messages[-1].content!r}."

    tools = tools_of(world)
    return [Agent("a", write, context="continue"), Agent("b", write, tools=[tools["pay"]])]


INSTRUCTIONS = Scenario(
    "instructions", _written,
    script(a=[to("b"), "a is done", "a again"], b=[call("pay", what="x"), "b is done"]),
    (("a", "go"), ("a", "again")),
)  # fmt: skip


def _talking(world):
    return [Agent("a", context="continue", tools=[tools_of(world)["wire"], tools_of(world)["pay"]])]


CONVERSATION = Scenario(
    "requests of one conversation", _talking,
    script(a=[call("wire", what="x"), "one done", call("pay", what="y"), "two done", "three done"]),
    (("a", "one"), ("a", "two"), ("a", "three")), approve,
)  # fmt: skip


class Work(Action):
    """Does something to the world, once; asks its model, if it has one; says what came of it."""

    def __init__(self, world, asks=False, parts=1):
        super().__init__()
        self.world, self.asks, self.parts = world, asks, parts

    async def run(self, with_messages=None, **kwargs):
        role, news = self.role, with_messages[-1].content
        said = await self.ctx.step("do", self.do, news)
        if self.asks:
            said = await self._aask(said)
        role.done = [*role.done, news]
        for part in range(1, self.parts):
            role.rc.env.publish_message(Said(f"{said} {part}", cause_by=role.key))
        return Said(f"{said} {self.parts}" if self.parts > 1 else said, cause_by=role.key)

    def do(self, news):
        stepped(self.world, self.ctx, "do")
        return f"{self.role.key}({news})"


class Worker(Role):
    done: list[str] = []  # noqa: RUF012 - each role gets its own


def _environment(world):
    """A splits into three subtasks; each goes round B, C and D, twice."""
    return Environment(
        roles=[
            Worker(name="A", actions=[Work(world, parts=3)]),
            Worker(name="B", actions=[Work(world)], watch=["A", "D"]),
            Worker(name="C", actions=[Work(world, asks=True)], watch=["B"]),
            Worker(name="D", actions=[Work(world)], watch=["C"]),
        ],
        laps=2,
    ).agents()


ENVIRONMENT = Scenario(
    "environment",
    _environment,
    lambda: Script(lambda request: request.messages[-1].content + "!"),
    (("environment", "go"),),
)


def _joined(world):
    """A splits into three subtasks; two of B do them at the same time, C waits until all are done."""
    return Environment(
        roles=[
            Worker(name="A", actions=[Work(world, parts=3)]),
            Worker(name="B", actions=[Work(world)], watch=["A"], pool=2),
            Worker(name="C", actions=[Work(world, asks=True)], watch=["B"], join=3),
        ]
    ).agents()


JOIN = replace(ENVIRONMENT, name="join", agents=_joined)


def _profiled(world):
    """A partner, a principal in the background that gives way to another one, two associates that act."""
    tools, bounds = tools_of(world), ProfileLimits()
    acting = [tools["pay"], tools["put"]]
    return ProfileTeam(library("acts"), tools={"acts": acting}, bounds=bounds).agents()


def _assigned(module):
    return {"module_id_to_assign": module, "agent_profile_logical_name": "Associate"}


LAUNCH = call("LaunchPrincipalExecutionTool")
PROFILES = Scenario(
    "profiles", _profiled,
    script(
        Partner=[
            call("manage_work_modules", actions=[{"action": "create", "name": name} for name in "ab"]),
            [LAUNCH, call("LaunchPrincipalExecutionTool", force_terminate_and_relaunch=True)],
            "Wait.", "All is done.",
        ],
        Principal=[
            call("dispatch_submodules", assignments=[_assigned("WM_1"), _assigned("WM_2")]),
            call("finish_flow", summary="done"),
        ],
        Associate=[call("put", what="y"), call("pay", what="x"), call("finish_flow", summary="found")],
    ),
    (("Partner", "go"),),
)  # fmt: skip


def _planning(world):
    """An agent whose plan is changed by itself and by a person: each thing stands there once."""

    def intercept(context, name, arguments):
        if name != "plan":
            return None
        what, known = msgspec.json.decode(arguments)["what"], context.run_data.get("plan", [])
        if what in known:
            return DirectResult(f"{what} is planned already", "failed")
        return DirectResult(f"planned {what}", run_data={"plan": [*known, what]})

    @tool(effect="read")
    async def plan(what: str) -> str:
        "Plan."
        return ""

    own = [plan, tools_of(world)["pay"]]
    return [Agent("a", "You are a.", tools=own, hooks=Hooks(intercept_call=intercept))]


_plans = script(a=[call("plan", what="a"), call("pay", what="x"), "done"])
BOARD = Scenario("calls of a person", _planning, _plans, (("a", "go"),), change_plan)
ALL = [
    *(SINGLE, CONTRACTS, CIRCULAR, FAN_OUT, BACKGROUND, APPROVAL, RETRY, CANCEL, LOOP, TASKS, ACTION, BOARD),
    *(
        ENVIRONMENT,
        PROFILES,
        INSTRUCTIONS,
        FORM,
        EXPOSED,
        OUTSIDE,
        REQUESTED,
        HELD,
        RULED,
        CONVERSATION,
        ASKING,
        TOOLSETS,
    ),
]
