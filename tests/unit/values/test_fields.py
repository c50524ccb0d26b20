"""What a program writes into an agent's options is checked where it is written, never ignored later."""

import asyncio
from decimal import Decimal
from enum import StrEnum
from http import HTTPStatus

import msgspec
import pytest

from antiphon import (
    Agent,
    Hooks,
    Limits,
    LoopOptions,
    ModelOptions,
    Policy,
    RetryPolicy,
    Topics,
    UserError,
    open_run,
    run_sync,
    tool,
)
from antiphon.errors import ToolDefinitionError
from antiphon.models.script import Script, call
from antiphon.values.limits import OutputLimits
from antiphon.values.policy import Grant

WRONG = {
    "Agent(loop=...) takes a LoopOptions; got {'max_reminders': 1}; "
    "did you mean LoopOptions(max_reminders=1)?": lambda: Agent("a", loop={"max_reminders": 1}),
    "Agent(policy=...) takes a Policy, 'open', 'guarded' or 'strict' or None; got {'deny': ['rm']}; "
    "did you mean Policy(deny=['rm'])?": lambda: Agent("a", policy={"deny": ["rm"]}),
    "Agent(context=...) takes 'fresh' or 'continue'; got 'kept'": lambda: Agent("a", context="kept"),
    "Agent(can_call=...) takes a list, each item a text; got 'b'; did you mean ('b',)?": lambda: Agent(
        "a", can_call="b"
    ),
    "Agent(can_call=...) takes a list, each item a text; got [3]": lambda: Agent("a", can_call=[3]),
    "Agent(name=...) takes a text; got 3": lambda: Agent(3),
    "Agent(standalone=...) takes True or False; got 'no'": lambda: Agent("a", standalone="no"),
    "Agent(model=...) takes a text, an object with name and complete or None; got 3": lambda: Agent(
        "a", model=3
    ),
    # A text would be read letter by letter: nothing called `rm` was denied, nothing heard of `draft`.
    "Policy(deny=...) takes a list, each item a text; got 'rm'; did you mean ('rm',)?": lambda: Policy(
        deny="rm"
    ),
    "Topics(watch=...) takes a list, each item a text; got 'draft'; did you mean ('draft',)?": lambda: Topics(
        watch="draft"
    ),
    "Hooks(act=...) takes a function or None; got 3": lambda: Hooks(act=3),
    "LoopOptions(batch=...) takes 'one' or 'all'; got 'few'": lambda: LoopOptions(batch="few"),
    "LoopOptions(max_parallel_calls=...) takes a whole number or None; got '3'; did you mean 3?": lambda: (
        LoopOptions(max_parallel_calls="3")
    ),
    "LoopOptions(max_parallel_calls=...) is at least 1; got 0": lambda: LoopOptions(max_parallel_calls=0),
    "ModelOptions(max_output_tokens=...) is at least 1; got -1": lambda: ModelOptions(max_output_tokens=-1),
    "ModelOptions(settings=...) takes a dict that JSON can hold, each key a text; got 3": lambda: (
        ModelOptions(settings=3)
    ),
    "Limits(on_breach=...) takes 'stop', 'ask', 'degrade' or 'handoff'; got 'pray'": lambda: Limits(
        on_breach="pray"
    ),
    "Limits(turns=...) is at least 0, or None for no limit; got -1": lambda: Limits(turns=-1),
    "Limits(turns=...) takes a whole number or None; got 10.5; did you mean 10?": lambda: Limits(turns=10.5),
    "Limits(usd=...) is at most 9,223,372,036,854,775,807, or None for no limit; got 1e+308": lambda: Limits(
        usd=1e308
    ),
    "Limits(tokens=...) takes a whole number or None; got '1000'; did you mean 1000?": lambda: Limits(
        tokens="1000"
    ),
    "Limits(tokens=...) takes a whole number or None; got 9223372036854775808": lambda: Limits(tokens=2**63),
    "Limits(usd=...) takes a finite number or None; got '1.50'; did you mean 1.5?": lambda: Limits(
        usd="1.50"
    ),
    "OutputLimits(kept=...) is at least 0, or None for no limit; got -1": lambda: OutputLimits(kept=-1),
    "Policy(preset=...) takes 'open', 'guarded' or 'strict'; got 'gaurded'; did you mean 'guarded'?": (
        lambda: Policy("gaurded")
    ),
    "Agent(policy=...) takes a Policy, 'open', 'guarded' or 'strict' or None; got 'Strict'; "
    "did you mean 'strict'?": lambda: Agent("a", policy="Strict"),
    "Agent(tool_execution=...) takes 'parallel', 'sequential', 'ordered' or 'single'; got 'paralel'; "
    "did you mean 'parallel'?": lambda: Agent("a", tool_execution="paralel"),
    "Agent(instructions=...) takes a text or a function; got ['be', 'brief']": lambda: Agent(
        "a", ["be", "brief"]
    ),
    "Grant(arguments=...) takes a list, each item a list of a text and a text; got ('path', 'docs/*')": (
        lambda: Grant(arguments=("path", "docs/*"))
    ),
    "Agent has no 'watch'; did you mean topics=Topics(watch=('draft',))?": lambda: Agent(
        "a", watch=("draft",)
    ),
    "Agent has no 'max_turns'; did you mean limits=Limits(turns=3)?": lambda: Agent("a", max_turns=3),
    "Limits has no 'token'; did you mean tokens=5?": lambda: Limits(token=5),
    "Topics has no 'q'; it takes watch, publishes": lambda: Topics(q=1),
    "RetryPolicy(initial_delay=...) takes a finite number; got inf": lambda: RetryPolicy(
        initial_delay=float("inf")
    ),
}


@pytest.mark.parametrize("said", WRONG)
def test_a_field_of_the_wrong_kind_is_refused_with_its_name(said):
    with pytest.raises(UserError) as refused:
        WRONG[said]()
    assert str(refused.value) == said


def test_what_is_declared_is_taken():
    agent = Agent(
        "a", "b", Script([]), can_call={"c"}, policy=Policy(deny=["rm"]), limits=Limits(),
        topics=Topics(watch=("d",)), asking=ModelOptions(max_output_tokens=800.0, fallback_models=["x"]),
        loop=LoopOptions(max_parallel_calls=2), hooks=Hooks(authorize=lambda *_: None),
    )  # fmt: skip
    assert (agent.asking.max_output_tokens, agent.policy.deny) == (800, ("rm",))


class Preset(StrEnum):
    CAREFUL = "guarded"


class Effect(StrEnum):
    READ = "read"


class Count:
    """A whole number of a class of its own, as numerical libraries have them."""

    def __init__(self, number):
        self.number = number

    def __index__(self):
        return self.number


def test_what_means_the_same_is_converted():
    assert (
        Agent("a", policy="guarded").policy == Agent("a", policy=Preset.CAREFUL).policy == Policy("guarded")
    )
    assert Limits(turns=3.0, tokens=Decimal("1e6"), calls=Count(7), depth=HTTPStatus.OK, usd=1) == Limits(
        turns=3, tokens=1_000_000, calls=7, depth=200, usd=1.0
    )
    agent = Agent(Preset.CAREFUL, "half a \ud800 pair", can_call=["b"])
    assert (type(agent.name), agent.name, agent.can_call) == (str, "guarded", ("b",))
    assert agent.instructions == "half a \ufffd pair"
    assert Grant(arguments=[["path", "docs/*"]]).arguments == (("path", "docs/*"),)
    assert ModelOptions(settings={"stop": ("a", "b")}).settings == {"stop": ["a", "b"]}


def test_what_cannot_be_shown_is_refused_by_its_type():
    class Silent:
        def __repr__(self):
            raise RuntimeError

    with pytest.raises(UserError, match=r"takes a text or a function; got a test_what_cannot.*Silent$"):
        Agent("a", Silent())
    with pytest.raises(UserError, match=r"got 'x{199}…$"):
        Policy("x" * 300)


def test_a_missing_field_is_missing_as_in_any_call():
    with pytest.raises(TypeError, match="Missing required argument 'name'"):
        Agent()


def test_a_stored_limit_is_read_whatever_it_is():
    assert msgspec.json.decode(b'{"turns":-1}', type=Limits).turns == -1


SHELL = call("shell", command="rm -rf /")


@pytest.mark.parametrize("policy", ["guarded", "strict", Policy(deny=["shell"]), Policy(deny={"sh*"})])
@pytest.mark.parametrize("whose", ["the agent's", "the run's"])
def test_a_policy_is_a_preset_or_rules_wherever_it_is_taken(policy, whose):
    ran = []

    @tool
    def shell(command: str) -> str:
        """Run a command."""
        ran.append(command)
        return "done"

    own, options = (policy, {}) if whose == "the agent's" else (None, {"policy": policy})
    model = Script([SHELL, lambda request: request.messages[-1].content])
    agent = Agent("a", tools=[shell], policy=own)
    assert "permission denied" in str(run_sync(agent, "go", model=model, **options))
    assert not ran


def test_a_policy_of_a_run_that_is_none_is_refused():
    with pytest.raises(UserError, match=r"got 'gaurded'; did you mean 'guarded'\?"):
        run_sync(Agent("a"), "go", model=Script(["x"]), policy="gaurded")
    said = (
        r"open_run\(policy=...\) takes a Policy; got {'deny': 'shell'}; did you mean Policy\(deny='shell'\)\?"
    )
    with pytest.raises(UserError, match=said):
        run_sync(Agent("a"), "go", model=Script(["x"]), policy={"deny": "shell"})


def test_one_name_in_place_of_a_list_of_names_is_refused():
    async def opened():
        async with open_run([Agent("a")], model=Script([]), disabled_tools="finish"):
            pass

    said = r"open_run\(disabled_tools=...\) takes a list, each item a text; got 'finish'"
    with pytest.raises(UserError, match=said):
        asyncio.run(opened())


def shell(command: str) -> str:
    """Run a command."""
    return command


TOOL_OPTIONS = {
    "shell: tool(effect=...) takes 'read', 'idempotent' or 'once'; got 'raed'; did you mean 'read'?": {
        "effect": "raed"
    },
    "shell: tool(timeout=...) takes a finite number; got '5'; did you mean 5?": {"timeout": "5"},
    "shell: tool(timeout=...) takes a finite number; got nan": {"timeout": float("nan")},
    "shell: timeout must be more than 0 seconds": {"timeout": 0},
    "shell: tool has no 'timout'; did you mean timeout?": {"timout": 5},
    "shell: tool(labels=...) takes a list, each item a text; got 'untrusted'; did you mean ('untrusted',)?": {
        "labels": "untrusted"
    },
    "shell: tool(requires_approval=...) takes True or False; got 'no'": {"requires_approval": "no"},
    "shell: tool(reconcile=...) takes a function, 'resume' or None; got 5": {"reconcile": 5},
    "tool(description=...) takes a text or None; got 5": {"description": 5},
}


@pytest.mark.parametrize("said", TOOL_OPTIONS)
def test_a_wrong_option_of_a_tool_is_refused_where_it_is_made(said):
    with pytest.raises(ToolDefinitionError) as refused:
        tool(**TOOL_OPTIONS[said])(shell)
    assert str(refused.value) == said


def test_options_of_a_tool_are_kept_as_they_are_declared():
    made = tool(timeout=5, labels=["untrusted"], description="half \ud800", effect=Effect.READ)(shell)
    assert (made.timeout, made.labels, made.description) == (5.0, ("untrusted",), "half \ufffd")
    assert (type(made.timeout), type(made.effect), made.has_side_effects) == (float, str, False)


def test_what_is_no_function_is_no_tool():
    with pytest.raises(ToolDefinitionError, match="tool takes a function, or options by name; got 'shell'"):
        tool("shell")
