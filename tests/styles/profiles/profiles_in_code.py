"""The same team as `profiled.TEAM`, without a line of YAML."""

from antiphon.styles.profiles import (
    Library,
    Observer,
    Profile,
    Rule,
    Segment,
    SourceLocation,
    ToolAccess,
    read_expression,
    read_template,
)
from antiphon.styles.profiles.files.profile import (
    AwaitUserInput,
    ContinueWithTool,
    EndAgentTurn,
    Update,
    UpdateState,
)

HERE = SourceLocation("in code")
CALLED = read_expression("v['state.current_action']")
SILENT = read_expression("not v['state.current_action']")


def _profile(name, role, **fields):
    who = Segment("name", HERE, "static_text", read_template(f'You are "{name}".'), order=0)
    return Profile(name, role, f"{name}@1", HERE, segments=(who,), **fields)


def _observer(name, condition, *update):
    return Observer(name, HERE, UpdateState((Update(*update),), HERE), condition=condition)


def _rule(name, condition, action):
    return Rule(
        name, condition if not isinstance(condition, str) else read_expression(condition), action, HERE
    )


def partner():
    tools = ToolAccess(
        ("LaunchPrincipalExecutionTool", "monitoring_tools", "intervention_tools"), ("manage_work_modules",)
    )
    rules = (_rule("wait", "True", AwaitUserInput(HERE)),)
    return _profile("Partner", "partner", tool_access_policy=tools, flow_decider=rules)


def principal():
    tools = ToolAccess(("planning_tools", "reporting_tools", "flow_control_end"))
    return _profile("Principal", "principal", tool_access_policy=tools)


def associate(*toolsets):
    strikes = EndAgentTurn(HERE, "error", "no tool was called three times")
    empty = "len(v['state.messages[-1].content'].strip()) == 0"
    return _profile(
        "Associate",
        "associate",
        available_for_staffing=True,
        description_for_human="does what it is told",
        tool_access_policy=ToolAccess(("flow_control_end", "flow_control_summary", *toolsets)),
        post_turn_observers=(
            _observer("called", CALLED, "set", "flags.silent", HERE, 0),
            _observer("silent", SILENT, "increment", "flags.silent", HERE),
        ),
        flow_decider=(
            _rule("tool", CALLED, ContinueWithTool(HERE)),
            _rule("empty", empty, EndAgentTurn(HERE, "success")),
            _rule("strikes", "v['flags.silent'] > 2", strikes),
        ),
    )


def library(*toolsets):
    """All three as a library."""
    profiles = {each.name: each for each in (partner(), principal(), associate(*toolsets))}
    return Library(profiles, {}, {})
