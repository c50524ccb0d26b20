"""Toolsets with a provider in teams of profiles: files name them whole, or single tools of them."""

from antiphon import run_sync, tool
from antiphon.models.script import Script, call
from antiphon.styles.profiles.files.loader import load_profiles
from antiphon.testing.provider import ScriptedProvider
from tests.styles.profiles.profiled import team


@tool(effect="read")
def shop_find(what: str) -> str:
    """Find something."""
    return f"found {what}"


@tool(effect="read")
def shop_buy() -> str:
    """Buy it."""
    return "bought"


def profile(policy):
    return f"""
        type: associate
        tool_access_policy: {policy}
        system_prompt_construction:
          system_prompt_segments:
          - {{id: name, type: static_text, order: 0, content: 'You are a clerk.'}}
          - {{id: tools, type: tool_description, order: 1}}
        flow_decider:
        - {{id: tool, condition: "v['state.current_action']", action: {{type: continue_with_tool}}}}
        - {{id: end, condition: "True", action: {{type: end_agent_turn, outcome: success}}}}
    """


def asked(folder, policy, **fields):
    """What the model of a clerk with this policy is asked, at its last turn."""
    shop = ScriptedProvider(shop_find, shop_buy).toolset("shop", **fields)
    model = Script([call("shop_find", what="tea"), "done"])
    found = team(folder, {"Clerk": profile(policy)}, tools={"shop": shop})
    assert found.findings == ()
    run_sync(found.entry, "go", agents=found.agents(), model=model)
    return model.requests[-1]


def test_a_toolset_is_named_as_those_of_tools_are(tmp_path):
    request = asked(tmp_path, "{allowed_toolsets: [shop]}")
    assert [each.name for each in request.tools] == ["shop_find", "shop_buy"]
    assert "- shop_find (shop): " in request.tail
    assert "found tea" in str(request.messages)


def test_one_of_its_tools_is_named_by_itself(tmp_path):
    request = asked(tmp_path, "{allowed_individual_tools: [shop_find]}")
    assert [each.name for each in request.tools] == ["shop_find"]
    assert "- shop_find (shop): " in request.tail


def test_of_a_toolset_that_says_which_it_takes_others_are_unknown(tmp_path):
    text = profile("{allowed_individual_tools: [shop_find, shop_buy]}")
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles/Clerk.yaml").write_text(text)
    (finding,) = load_profiles(tmp_path, toolsets={"shop": ("shop_find",)}).findings
    assert "unknown tool 'shop_buy'" in finding.text
    assert load_profiles(tmp_path, toolsets={"shop": None}).findings == ()
    assert len(load_profiles(tmp_path, toolsets={"bank": None}).findings) == 2
