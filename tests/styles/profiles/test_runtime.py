"""A profile becomes an agent; its turns, its prompt, its tools, its rules."""

import asyncio

import pytest

from antiphon import UserError, open_run, tool
from antiphon.errors import ConfigError, DuplicateName
from antiphon.models.resolve import settings_of
from antiphon.models.script import call
from antiphon.styles.profiles import load_profiles, model_config
from antiphon.styles.profiles.files.diagnostics import SourceLocation
from antiphon.styles.profiles.files.llm_config import LlmConfig
from antiphon.styles.profiles.limits import ProfileLimits
from antiphon.styles.profiles.model_config import thinking
from antiphon.styles.profiles.team import ProfileTeam
from antiphon.values.model import Reply, Usage
from antiphon.values.secret import Secret
from tests.styles.profiles.profiled import ASSOCIATE, PARTNER, one, script, team
from tests.transcript import recorded, results_shown, shown


@tool(effect="read")
async def look(page: int) -> str:
    """Look at a page."""
    return f"page {page}"


def asked(team, model, message="go", **options):
    return recorded(team.entry, message, agents=team.agents(), model=model, **options)


# -- the flow decider ----------------------------------------------------------------------------


def test_a_tool_call_goes_on(tmp_path):
    found, model = one(
        tmp_path, ASSOCIATE, [call("generate_message_summary"), call("finish_flow", summary="all of it")]
    )
    result, _ = asked(found, model)
    assert (result.outcome, result.output) == ("completed", "all of it")
    assert results_shown(model.requests[1])[0].startswith("Write the summary of your work now")


def test_an_empty_reply_is_a_success(tmp_path):
    found, model = one(tmp_path, ASSOCIATE, ["What I found.", ""])
    result, _ = asked(found, model)
    assert (result.outcome, result.output) == ("completed", "What I found.")
    assert len(model.requests) == 2


def test_the_third_turn_without_a_call_is_an_error(tmp_path):
    found, model = one(tmp_path, ASSOCIATE, ["one", "two", "three", "never"])
    result, _ = asked(found, model)
    assert (result.outcome, result.reason, result.output) == (
        "failed",
        "no tool was called three times",
        "three",
    )
    assert len(model.requests) == 3


def test_a_call_between_begins_the_count_anew(tmp_path):
    found, model = one(
        tmp_path, ASSOCIATE, ["one", "two", call("generate_message_summary"), "one", "two", "three"]
    )
    result, _ = asked(found, model)
    assert (result.outcome, len(model.requests)) == ("failed", 6)


def test_without_a_rule_that_holds_the_agent_is_told_to_go_on_three_times(tmp_path):
    text = """
        type: associate
        flow_decider: [{id: never, condition: "v['flags.x']", action: {type: end_agent_turn}}]
    """
    found, model = one(tmp_path, text, ["1", "2", "3", "4", "5"])
    result, _ = asked(found, model)
    assert (result.outcome, result.reason) == ("no_progress", "3 turns without a call in a row")
    assert (
        shown(model.requests[1])[-1]
        == "user: [system] You called no tool, and no rule says what follows. Go on."
    )


@pytest.mark.parametrize(
    "written", ['<tool_call>{"name": "finish_flow"}</tool_call>', "<function=finish_flow>", "[TOOL_CALLS] x"]
)
def test_a_call_that_is_only_written_is_pointed_out_once(written, tmp_path):
    """4.6: markup of a call forces another try; who then writes of calls again means it."""
    found, model = one(tmp_path, ASSOCIATE, [written, call("finish_flow", summary="over")])
    result, _ = asked(found, model)
    assert result.output == "over"
    assert shown(model.requests[1])[-1].startswith("user: [system] Your last reply holds the text of a tool")
    found, model = one(tmp_path / "again", ASSOCIATE, [written, f"In HTML: {written}", "", "never"])
    asked(found, model)
    assert sum("holds the text of a tool call" in each for each in shown(model.requests[-1])) == 1


def test_a_profile_without_rules_ends_with_its_text(tmp_path):
    found, model = one(tmp_path, "type: associate", ["the answer"])
    result, _ = asked(found, model)
    assert (result.outcome, result.output) == ("completed", "the answer")


def test_a_loop_puts_a_text_definition_into_the_inbox(tmp_path):
    text = """
        type: associate
        text_definitions: {again: "Think of {{ team.question }} again."}
        flow_decider:
        - id: loop
          condition: "v['state.messages[-1].content'] == 'hm'"
          action: {type: loop_with_inbox_item, payload: {content_key: again}}
        - {id: end, condition: "True", action: {type: end_agent_turn, outcome: success}}
    """
    found, model = one(tmp_path, text, ["hm", "done"])
    result, _ = asked(found, model, "the tides")
    assert result.output == "done"
    assert shown(model.requests[1]) == [
        "user: the tides", "assistant: hm", "user: [system] Think of the tides again.",
    ]  # fmt: skip


def test_a_rule_that_fails_does_not_hold_and_the_agent_is_told(tmp_path):
    text = """
        type: associate
        flow_decider:
        - {id: broken, condition: "len(v['flags.nothing']) > 1", action: {type: end_agent_turn}}
        - id: second
          condition: "v['state.messages[-1].content'] == 'two'"
          action: {type: end_agent_turn, outcome: success}
    """
    found, model = one(tmp_path, text, ["one", "two"])
    result, _ = asked(found, model)
    assert (result.outcome, result.output) == ("completed", "two")
    assert "user: [system] The rule broken of your profile failed: " in "\n".join(shown(model.requests[1]))


def test_awaiting_the_user_keeps_the_partner_and_what_it_knows(tmp_path):
    found = team(tmp_path, {"Partner": PARTNER})
    model = script(Partner=["Which tides?", "Those."])

    async def talk():
        async with open_run(found.agents(), model=model) as run:
            for said in ("Tides?", "Of the moon"):
                await run.result(await run.post("Partner", said))

    asyncio.run(talk())
    assert shown(model.requests[1]) == ["user: Tides?", "assistant: Which tides?", "user: Of the moon"]


# -- the prompt ----------------------------------------------------------------------------------


PROMPTED = """
    type: associate
    tool_access_policy: {allowed_toolsets: [pages]}
    text_definitions: {rules: "Be kind."}
    system_prompt_construction:
      system_prompt_segments:
      - {id: last, type: static_text, content: "The end."}
      - {id: who, type: static_text, content: 'You are "Associate".', order: 1}
      - {id: rules, type: static_text, content_key: rules, order: 2}
      - {id: tools, type: tool_description, order: 3}
      - {id: asked, type: static_text, content: "It is about {{ team.question }}.", order: 4}
      - {id: never, type: static_text, content: "no", order: 5, condition: "False"}
      - {id: calm, type: static_text, content: "Calm down.", order: 6, condition: "v['flags.upset']"}
      - {id: given, type: state_value, source_state_path: flags, order: 7, ingestor_params: {title: Flags}}
      - {id: broken, type: static_text, content: "x", order: 8, condition: "v['flags.n'] > 'a'"}
    pre_turn_observers:
    - {id: n, action: {type: update_state, updates: [{operation: increment, path: flags.n}]}}
"""


def test_segments_that_never_change_are_the_instructions_in_their_order(tmp_path):
    found = team(tmp_path, {"Associate": PROMPTED}, tools={"pages": [look]})
    assert found.entry.instructions == (
        'You are "Associate".\n\nBe kind.\n\nYour tools:\n- look (pages): Look at a page.\n\nThe end.'
    )


def test_the_others_are_made_anew_in_every_turn_and_leave_no_trace(tmp_path):
    found = team(tmp_path, {"Associate": PROMPTED}, tools={"pages": [look]})
    model = script(Associate=[call("look", page=1), "done"])
    asked(found, model, "tides")
    tails = [shown(each)[-1] for each in model.requests]
    assert tails[0].startswith(
        "tail: It is about tides.\n\n## Flags\n- n: 1\n\n[system] [error] The part 'broken'"
    )
    assert "- n: 2" in tails[1]
    assert "Calm" not in "".join(tails)
    assert sum("It is about" in text for text in shown(model.requests[1])) == 1
    assert model.requests[0].system == model.requests[1].system


def test_a_profile_has_the_tools_that_its_policy_names(tmp_path):
    text = """
        type: associate
        tool_access_policy: {allowed_toolsets: [flow_control_end], allowed_individual_tools: [look]}
    """
    found = team(tmp_path, {"Associate": text}, tools={"pages": [look]})
    assert [each.name for each in found.entry.tools] == ["finish_flow", "look"]


def test_a_tool_that_a_profile_has_no_permission_for_does_not_exist_for_it(tmp_path):
    found, model = one(tmp_path, ASSOCIATE, [call("look", page=1), call("finish_flow", summary="x")],
                       tools={"pages": [look]})  # fmt: skip
    asked(found, model)
    assert results_shown(model.requests[1]) == [
        "Error: Unknown tool: look. Available tools: finish_flow, generate_message_summary"
    ]


def test_a_finishing_tool_is_exclusive_and_the_first_of_two_counts(tmp_path):
    """The design's order: the finishing call wins, every other call gets a `skipped` result."""
    calls = [
        call("generate_message_summary"),
        call("finish_flow", summary="a"),
        call("finish_flow", summary="b"),
    ]
    found, model = one(tmp_path, ASSOCIATE, [calls])
    result, records = asked(found, model)
    assert result.output == "a"
    ends = {each.event.id: each.event.outcome for each in records if each.type == "EffectFinished"}
    assert [ends[f"1/1.c{number}"] for number in (1, 2, 3)] == ["skipped", "completed", "skipped"]


def test_finish_flow_without_a_summary_hands_back_the_last_text(tmp_path):
    found, model = one(tmp_path, ASSOCIATE, ["What I found.", call("finish_flow")])
    assert asked(found, model)[0].output == "What I found."


# -- models --------------------------------------------------------------------------------------


def config(**values):
    return LlmConfig("fast", SourceLocation("fast.yaml", 1, 1), values)


def test_an_llm_config_says_which_model_thinks_and_how():
    found = thinking(config(model="openai/m", temperature=0.5, max_tokens=100, max_retries=4), {})
    assert (found.model, found.settings, found.max_output) == ("openai/m", {"temperature": 0.5}, 100)
    assert (found.retry.max_attempts, found.retry.initial_delay) == (5, 1.0)


def test_an_address_and_a_key_make_a_model_of_its_own():
    found = thinking(config(model="openai/m", base_url="http://127.0.0.1:9/v1", api_key=Secret("k")), {})
    assert found.model.name == "openai:m"
    assert "k" not in repr(found.settings)


@pytest.mark.parametrize(
    "model", ["openai:m", "vendor/m", "openrouter:a/b", "ollama/m:8b", "google:gemini-x", "azure:m", "groq:m"]
)
def test_an_address_is_that_of_its_provider_whichever_setting_that_has_for_it(model, monkeypatch):
    looked = []
    monkeypatch.setattr(model_config, "ConfiguredModel", lambda name, env: looked.append(env))
    thinking(config(model=model, base_url="http://127.0.0.1:9/v1", api_key=Secret("k")), {})
    address, key = settings_of(model)
    assert (looked[0][address], looked[0][key]) == ("http://127.0.0.1:9/v1", "k")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"model": "mistral:m", "base_url": "http://x"}, "config.base_url: mistral:m has no other address"),
        (
            {"model": "bedrock:m", "api_key": Secret("k")},
            "config.api_key: bedrock:m takes no key",
        ),
        ({"max_tokens": "many"}, "config.max_tokens: expected a number"),
        ({"model": 3}, "config.model: expected a text"),
        ({"extra_token": Secret("k")}, "config.extra_token is a secret"),
    ],
)
def test_what_is_wrong_in_an_llm_config_is_said(values, said):
    with pytest.raises(ConfigError, match=f"fast.yaml:1:1: {said}"):
        thinking(config(**values), {})


def test_a_profile_thinks_with_the_model_its_config_names(tmp_path):
    files = {"llm_configs/fast.yaml": "config: {model: 'ollama:m', temperature: 0}"}
    found = team(tmp_path, {"Associate": "type: associate\nllm_config_ref: fast"}, files=files)
    assert (found.entry.model, found.entry.asking.settings) == ("ollama:m", {"temperature": 0})


# -- the team ------------------------------------------------------------------------------------


def test_there_is_no_team_without_a_profile_that_could_be_an_agent(tmp_path):
    with pytest.raises(UserError, match="there is no partner, principal or associate"):
        team(tmp_path, {"Base": "type: base"})


def test_two_tools_of_one_name_are_refused(tmp_path):
    @tool
    async def finish_flow() -> str:
        """End."""
        return ""

    with pytest.raises(DuplicateName):
        team(tmp_path, {"Associate": ASSOCIATE}, tools={"mine": [finish_flow]})


def test_the_documented_profiles_are_a_team():
    library = load_profiles("tests/styles/profiles/documented")
    found = ProfileTeam(library, models={name: script() for name in library.profiles})
    assert [each.name for each in found.agents()] == [
        "Partner", "Partner/dispatch", "Principal", "Principal/dispatch", "Associate_WebSearcher",
        "Base_Associate",
    ]  # fmt: skip
    assert found.entry.context == "continue"


# -- steps and room ------------------------------------------------------------------------------


def test_two_steps_before_the_end_the_agent_is_told_and_in_the_last_it_may_only_finish(tmp_path):
    more = call("generate_message_summary")
    found, model = one(
        tmp_path, ASSOCIATE, [more, more, call("finish_flow", summary="x")], bounds=ProfileLimits(steps=3)
    )
    result, _ = asked(found, model)
    assert result.output == "x"
    offered = [[spec.name for spec in each.tools] for each in model.requests]
    assert offered == [["finish_flow", "generate_message_summary"]] * 2 + [["finish_flow"]]
    assert "remaining" not in shown(model.requests[0])[-1]
    assert "[system] 2 remaining: you have 2 steps left" in shown(model.requests[1])[-1]
    assert "This is your last step. Call finish_flow with what you have." in shown(model.requests[2])[-1]


def test_without_a_finishing_tool_the_tools_stay_and_the_note_says_so(tmp_path):
    text = "type: associate\ntool_access_policy: {allowed_toolsets: [pages]}"
    found, model = one(
        tmp_path,
        text,
        [call("look", page=1), call("look", page=2)],
        bounds=ProfileLimits(steps=2),
        tools={"pages": [look]},
    )
    result, _ = asked(found, model)
    assert [spec.name for spec in model.requests[1].tools] == ["look"]
    assert "This is your last step. Answer with what you have." in shown(model.requests[1])[-1]
    assert (result.outcome, result.reason) == ("limit", "the budget of 2 steps is used up")


def test_an_agent_whose_window_fills_is_warned_urged_and_closed(tmp_path):
    """4.12: thresholds of the tokens that the provider billed, 60, 75 and 85 % of the window."""

    def used(tokens):
        return Reply("", (call("generate_message_summary"),), "calls", Usage(tokens, 0))

    found, model = one(
        tmp_path, ASSOCIATE, [used(590), used(600), used(750), used(850), call("finish_flow", summary="x")],
        bounds=ProfileLimits(window=1000),
    )  # fmt: skip
    result, _ = asked(found, model)
    assert result.output == "x"
    tails = [shown(each)[-1] for each in model.requests]
    assert "Your context is" not in tails[1]
    assert "60% full. Be brief" in tails[2]
    assert "75% full. Finish your task now." in tails[3]
    assert "85% full. Call finish_flow with what you have." in tails[4]
    assert [spec.name for spec in model.requests[4].tools] == ["finish_flow"]
