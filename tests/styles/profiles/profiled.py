"""Teams of profiles for tests: YAML in, a team out; and a model that knows its agents by their prompts."""

import textwrap

from antiphon.models.script import Script
from antiphon.styles.profiles.team import ProfileTeam

ASSOCIATE = """
    type: associate
    available_for_staffing: true
    description_for_human: does what it is told
    tool_access_policy: {allowed_toolsets: [flow_control_end, flow_control_summary]}
    post_turn_observers:
    - id: called
      condition: "v['state.current_action']"
      action: {type: update_state, updates: [{operation: set, path: flags.silent, value: 0}]}
    - id: silent
      condition: "not v['state.current_action']"
      action: {type: update_state, updates: [{operation: increment, path: flags.silent}]}
    flow_decider:
    - {id: tool, condition: "v['state.current_action']", action: {type: continue_with_tool}}
    - id: empty
      condition: "len(v['state.messages[-1].content'].strip()) == 0"
      action: {type: end_agent_turn, outcome: success}
    - id: strikes
      condition: "v['flags.silent'] > 2"
      action: {type: end_agent_turn, outcome: error, error_message: "no tool was called three times"}
"""
PRINCIPAL = """
    type: principal
    tool_access_policy: {allowed_toolsets: [planning_tools, reporting_tools, flow_control_end]}
"""
PARTNER = """
    type: partner
    tool_access_policy:
      allowed_toolsets: [LaunchPrincipalExecutionTool, monitoring_tools, intervention_tools]
      allowed_individual_tools: [manage_work_modules]
    flow_decider:
    - {id: wait, condition: "True", action: {type: await_user_input}}
"""
TEAM = {"Partner": PARTNER, "Principal": PRINCIPAL, "Associate": ASSOCIATE}


def profile(text):
    """A profile's YAML, a piece of a test or two joined."""
    return "\n".join(textwrap.dedent(part) for part in ([text] if isinstance(text, str) else text))


def introduced(name):
    """A segment by which the script knows who asks."""
    return f"""
        system_prompt_construction:
          system_prompt_segments:
          - {{id: name, type: static_text, order: 0, content: 'You are "{name}".'}}
    """


def team(folder, profiles, *, files=(), **options):
    """A ProfileTeam of profiles by name, as YAML; those without a prompt of their own say who they are."""
    for name, text in profiles.items():
        text = profile(text)
        if "system_prompt_construction" not in text:
            text += profile(introduced(name))
        _write(folder / "profiles" / f"{name}.yaml", text)
    for path, text in dict(files).items():
        _write(folder / path, profile(text))
    found = ProfileTeam(folder, **options)
    errors = [str(each) for each in found.library.findings if each.severity == "error"]
    if errors:
        raise ValueError("\n".join(errors))
    return found


def _write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def script(**lines):
    """A model with lines for each agent."""
    return Script(lines)


def of(model, agent):
    """The requests that an agent made."""
    return [each for each in model.requests if f'You are "{agent}"' in each.system]


def one(folder, text, lines, message="go", **options):
    """One associate on its own: the team, its model."""
    return team(folder, {"Associate": text}, **options), script(Associate=lines)
