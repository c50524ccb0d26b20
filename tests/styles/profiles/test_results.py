"""Tool results as inbox items, what a model was asked, and who decided what follows: as turns tell it."""

from antiphon import tool
from antiphon.models.script import call
from antiphon.styles.profiles import ingestor, turns_of
from antiphon.values.model import ChatMessage
from tests.styles.profiles.profiled import ASSOCIATE, one, script, team
from tests.styles.profiles.test_conversation import talk
from tests.styles.profiles.test_handover import partnered
from tests.styles.profiles.test_modules import DONE, dispatch, finishing, planned, work
from tests.transcript import recorded, results_shown, shown

WITH_OWN = ASSOCIATE.replace("flow_control_summary]", "own]")


@tool(effect="read")
async def search(words: str) -> str:
    """Search."""
    return f"found {words}"


@tool(effect="read")
async def broken() -> str:
    """Fail."""
    raise ValueError("no net")


def asked(folder, lines, rules, **options):
    """One associate with tools of its own: the model, its turns."""
    found, model = one(folder, [WITH_OWN, rules], lines, tools={"own": [search, broken]}, **options)
    _, records = recorded(found.entry, "go", agents=found.agents(), model=model)
    return model, turns_of(records, found.library.profiles)


def test_observers_see_tool_results_in_the_inbox_and_nothing_of_them_is_left_there(tmp_path):
    rules = """
        pre_turn_observers:
        - id: failed
          condition: >-
            any(item.get('source') == 'TOOL_RESULT' and item['payload']['is_error']
            and item['payload']['tool_name'] == 'broken' for item in v['state.inbox'])
          action: {type: add_to_inbox, inbox_item: {source: OWN, payload: {content: Try another way.}}}
        - id: found
          condition: "any(item['payload'].get('content') == 'found x' for item in v['state.inbox'])"
          action: {type: update_state, updates: [{operation: increment, path: flags.found}]}
        inbox_handling_strategies: [{source: OWN, ingestor: generic_message}]
        text_definitions: {seen: "Found: {{ flags.found }}; waiting: {{ state.inbox }}"}
        system_prompt_construction:
          system_prompt_segments:
          - {id: name, type: static_text, order: 0, content: 'You are "Associate".'}
          - {id: seen, type: static_text, content_key: seen}
    """
    lines = [call("broken"), call("search", words="x"), call("search", words="y"), finishing]
    model, _ = asked(tmp_path, lines, rules)
    assert shown(model.requests[1])[-2] == "user: Try another way."
    assert shown(model.requests[2])[-1] == "tail: Found: 1; waiting: []"
    assert shown(model.requests[3])[-1] == "tail: Found: 1; waiting: []"
    assert shown(model.requests[3]).count("user: Try another way.") == 1


def test_a_strategy_adds_what_its_ingestor_makes_of_a_result(tmp_path):
    @ingestor
    def headline(payload, params, context):
        known = payload["tool_call_id"] != ""
        return f"{payload['tool_name']} {known} {payload['is_error']}: {payload['content']}"

    rules = "inbox_handling_strategies: [{source: TOOL_RESULT, ingestor: headline}]"
    two = [call("search", words="x"), call("search", words="y")]
    model, turns = asked(tmp_path, [two, finishing], rules, ingestors=[headline])
    assert shown(model.requests[1])[-4:] == [
        "tool: found x", "tool: found y",
        "user: search True False: found x", "user: search True False: found y",
    ]  # fmt: skip
    items = turns[-1].inputs.processed_inbox_items
    assert [each.formatted for each in items] == [
        "search True False: found x", "search True False: found y",
    ]  # fmt: skip


def test_a_turn_lists_the_results_that_it_reads_among_its_inputs(tmp_path):
    lines = [[call("search", words="x"), call("broken")], "Hm.", finishing]
    _, turns = asked(tmp_path, lines, "timestamp: now")
    read = [turn.inputs.processed_inbox_items for turn in turns if turn.turn_type == "agent"]
    assert [[each.source for each in items] for items in read] == [
        ["USER_PROMPT"], ["TOOL_RESULT", "TOOL_RESULT"], ["INTERNAL_DIRECTIVE"],
    ]  # fmt: skip
    found, failed = read[1]
    assert (found.item_id, found.formatted) == ("1/1.c1", "found x")
    assert found.payload["content"] == "found x"
    assert (failed.payload["tool_name"], failed.payload["is_error"]) == ("broken", True)
    assert "no net" in failed.formatted


def test_the_results_of_a_dispatch_and_of_a_launch_are_items_too(tmp_path):
    lines = [planned("A"), call("LaunchPrincipalExecutionTool"), "Wait.", "Done."]
    _, _, records = partnered(tmp_path, lines, [dispatch(work("WM_1")), DONE])
    turns = {each.turn_id: each for each in turns_of(records)}
    (result,) = [each for each in turns["2/2"].inputs.processed_inbox_items if each.source == "TOOL_RESULT"]
    assert result.payload["tool_name"] == "dispatch_submodules"
    assert "SUCCESS" in result.payload["content"]


def test_the_request_is_kept_as_it_was_sent():
    _, records, model, team = talk()
    turns = [each for each in turns_of(records, team.library.profiles) if each.llm_interaction is not None]
    sent = {
        each.effect_id: [*each.messages, *([ChatMessage("user", each.tail)] if each.tail else [])]
        for each in model.requests
    }
    kept = {each.llm_interaction.attempts[-1].stream_id: each.llm_interaction.final_request for each in turns}
    assert kept == sent
    assert len(kept) > 15


def test_the_decision_names_the_rule_that_made_it(tmp_path):
    rules = """
        flow_decider:
        - {id: tool, condition: "v['state.current_action']", action: {type: continue_with_tool}}
        - {id: over, condition: "v['flags.silent'] > 1", action: {type: end_agent_turn, outcome: success}}
        - {id: again, condition: "True", action: {type: loop_with_inbox_item, payload: {content_key: again}}}
        text_definitions: {again: Go on.}
    """
    text = WITH_OWN.split("    flow_decider:")[0]
    found = team(tmp_path, {"Associate": [text, rules]}, tools={"own": [search, broken]})
    model = script(Associate=[call("search", words="x"), "Hm.", "Well."])
    _, records = recorded(found.entry, "go", agents=found.agents(), model=model)
    assert results_shown(model.requests[1]) == ["found x"]
    decided = [each.outputs for each in turns_of(records) if each.turn_type == "agent"]
    assert [(each.next_action, each.rule_action, each.rule_id) for each in decided] == [
        ("search", "", ""), ("loop", "loop_with_inbox_item", "again"), ("end", "end_agent_turn", "over"),
    ]  # fmt: skip


def test_a_decision_that_no_rule_made_names_none(tmp_path):
    written = "<tool_call>finish</tool_call>"
    _, turns = asked(tmp_path, ["Hm.", written, finishing], "timestamp: now")
    decided = [
        (each.outputs.next_action, each.outputs.rule_id) for each in turns if each.turn_type == "agent"
    ]
    assert decided == [("loop", ""), ("loop", ""), ("finish_flow", "")]
