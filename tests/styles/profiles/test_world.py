"""What rules, texts, ingestors and readers of a run see of an agent's world, in its documented shape."""

import asyncio

import pytest

from antiphon import open_run
from antiphon.models.script import call
from antiphon.styles.profiles import ingestor, load_profiles, run_context
from tests.styles.profiles.profiled import ASSOCIATE, PARTNER, PRINCIPAL, TEAM, of, profile, script, team
from tests.styles.profiles.test_handover import LAUNCH, partnered
from tests.styles.profiles.test_modules import DONE, dispatch, finishing, planned, work
from tests.transcript import Gate, recorded, shown, until

SEES = """
    pre_turn_observers:
    - id: last
      condition: "(v['principal.messages'] or [{}])[-1].get('content') == 'I look.'"
      action:
        type: add_to_inbox
        inbox_item: {source: PRINCIPAL_ACTIVITY_UPDATE, payload: "{{ principal.messages }}"}
    - id: flag
      condition: "v['principal.flags.looked'] and v['run.run_id']"
      action: {type: update_state, updates: [{operation: set, path: flags.seen, value: true}]}
    text_definitions:
      said: "{{ principal.flags.looked }} {{ partner.flags.seen }} {{ principal.nothing }} {{ run.status }}"
"""
LOOKS = """
    post_turn_observers:
    - id: looked
      action: {type: update_state, updates: [{operation: set, path: flags.looked, value: by night}]}
    pre_turn_observers:
    - id: asks
      condition: "v['partner.messages'] and v['partner.messages'][0]['role'] == 'user'"
      action: {type: add_to_inbox, inbox_item: {source: OWN, payload: {content_key: partner}}}
    text_definitions: {partner: "The user said: {{ partner.messages[0].content }}"}
    flow_decider:
    - {id: again, condition: "True", action: {type: loop_with_inbox_item, payload: {content_key: partner}}}
"""
SEEN = """
    system_prompt_construction:
      system_prompt_segments:
      - {id: name, type: static_text, order: 0, content: 'You are "Partner".'}
      - {id: seen, type: static_text, content_key: said}
"""


def test_a_partner_sees_its_principal_and_the_principal_its_partner(tmp_path):
    gate = Gate(planned("B"))
    profiles = {**TEAM, "Partner": [PARTNER, SEES, SEEN], "Principal": [PRINCIPAL, LOOKS]}
    found = team(tmp_path, profiles)
    model = script(
        Partner=[planned("A"), LAUNCH, "Wait.", "It looks.", "Done."], Principal=["I look.", gate, DONE]
    )

    async def talk():
        async with open_run(found.agents(), model=model) as run:
            asked = await run.post("Partner", "the tides")
            await until(run, "2/1.m1 completed: I look.")
            await until(run, "1/3.m1 completed: Wait.")
            await until(run, "2/2.m1 model started")
            await run.post(asked, "How far is it?")
            await until(run, "1/4.m1 completed: It looks.")
            seen = await run_context(run, found)
            gate.open.set()
            await run.result(asked)
            return seen

    seen = asyncio.run(talk())
    later = "\n".join(shown(of(model, "Partner")[3]))
    assert "- assistant: I look." in later
    assert "by night true {{ principal.nothing }} RUNNING" in later
    assert "user: The user said: the tides" in shown(of(model, "Principal")[1])
    assert seen.partner.at("principal.flags.looked") == "by night"
    assert seen.principal.at("partner.flags.seen") is True
    assert seen.partner.at("principal.messages[2].content") == "I look."
    assert seen.partner.at("run.run_id") == seen.meta.run_id == seen.partner.at("meta.run_id")
    assert seen.partner.at("config.agent_profiles_store.Associate@1.name") == "Associate"
    assert seen.partner.at("state.profiles_list_instance_ids") == ["Associate@1"]


def test_a_world_is_the_same_for_a_rule_and_for_a_reader_of_the_run(tmp_path):
    """Every path that an ingestor can read leads to the same in `run_context`."""
    paths = [
        "state.flags", "state.initial_parameters", "state.profiles_list_instance_ids",
        "meta.agent_id", "meta.run_id", "meta.profile_instance_id", "meta.module_description", "run.run_id",
        "run.meta.run_id", "team.work_modules", "team.question", "partner.flags", "principal.flags",
        "config.agent_profiles.Associate.name", "initial_params", "team.profiles_list_instance_ids",
        "_self.meta", "flags.a",
    ]  # fmt: skip
    found_by = {}

    @ingestor
    def look(payload, params, context):
        found_by.update({path: context.at(path) for path in paths})
        return "looked"

    sees = """
        inbox_handling_strategies: [{source: USER_PROMPT, ingestor: look}]
        pre_turn_observers:
        - {id: a, action: {type: update_state, updates: [{operation: set, path: flags.a, value: 1}]}}
    """
    found = team(tmp_path, {**TEAM, "Partner": [PARTNER, sees]}, ingestors=[look])

    async def talk():
        async with open_run(found.agents(), model=script(Partner=["Hello."])) as run:
            await run.result(await run.post("Partner", "the tides"))
            return await run_context(run, found)

    partner = asyncio.run(talk()).partner
    read = {path: partner.at(path) for path in paths}
    read["_self.meta"].pop("activation")
    assert read == found_by


def test_a_path_that_leads_nowhere_stays_as_it_is_written(tmp_path):
    told = """
        system_prompt_construction:
          system_prompt_segments:
          - {id: name, type: static_text, order: 0, content: 'You are "Associate".'}
          - {id: b, type: static_text, content: "a {{ mandate }} b {{ flags.none }} c {{ meta.module_id }}."}
    """
    model = script(Associate=[finishing])
    found = team(tmp_path, {"Associate": [ASSOCIATE, told]})
    recorded(found.entry, "go", agents=found.agents(), model=model)
    assert "a {{ mandate }} b {{ flags.none }} c ." in "\n".join(shown(model.requests[0]))


# -- observers and items ---------------------------------------------------------------------------


def test_an_observer_with_a_passed_over_action_replaces_that_of_its_base(tmp_path):
    base = """
        post_turn_observers:
        - id: told
          action: {type: add_to_inbox, inbox_item: {source: OWN, payload: again}}
    """
    child = """
        base_profile: Base
        post_turn_observers: [{id: told, action: {type: end_agent_turn, outcome: success}}]
    """
    found = team(
        tmp_path, {"Base": ["type: base", base], "Associate": [ASSOCIATE.split("post_turn")[0], child]}
    )
    (observer,) = found.library.profile("Associate").post_turn_observers
    assert (observer.id, type(observer.action).__name__) == ("told", "PassedOver")
    model = script(Associate=["One.", "Two."])
    result, _ = recorded(found.entry, "go", agents=found.agents(), model=model)
    assert (result.output, len(model.requests)) == ("One.", 1)


def test_the_metadata_of_an_item_is_passed_over(tmp_path):
    told = """
        pre_turn_observers:
        - id: a
          action: {type: add_to_inbox, inbox_item: {source: OWN, payload: x, metadata: {reminder_id: r}}}
    """
    found = team(tmp_path, {"Associate": [ASSOCIATE, told]})
    (warning,) = found.findings
    assert (warning.severity, "this key is passed over" in warning.text) == ("warning", True)


def test_a_loop_posts_a_prompt_for_self_reflection(tmp_path):
    rules = """
        inbox_handling_strategies:
        - {source: SELF_REFLECTION_PROMPT, ingestor: tagged_content, params: {tag: think}}
        flow_decider:
        - {id: again, condition: "True", action: {type: loop_with_inbox_item, payload: {content_key: again}}}
        text_definitions: {again: Think again.}
    """
    found = team(tmp_path, {"Associate": ["type: associate", rules]})
    model = script(Associate=["1", "2", "3", "4"])
    recorded(found.entry, "go", agents=found.agents(), model=model)
    assert any("<think>" in each for each in shown(model.requests[1]))


# -- what ingestors are told -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ingestor", "params", "payload", "expected"),
    [
        ("tagged_content", "{wrapper_tags: [<a>, </a>]}", "x", "<a>\nx\n</a>"),
        ("templated_content", "{wrapper_tags: [<a>, </a>]}", "x", "<a>\nx\n</a>"),
        ("generic_message", "{content_template: 'It says {{ payload.a }} {{ payload.b }}'}", "{a: 1}",
         "It says 1 {{ payload.b }}"),
        ("generic_message", "{content_template: 'All: {{ payload }}'}", "x", "All: x"),
        ("markdown_formatter", "{exclude_keys: [b], key_renames: {a: First}}", "{a: 1, b: 2}", "- First: 1"),
        ("principal_history_summary", "{max_messages: 2, title: T}",
         "[{role: u, content: a}, {role: u, content: b}, {role: u, content: c}]", "## T\n- u: b\n- u: c"),
    ],
)  # fmt: skip
def test_what_an_ingestor_is_told_is_applied(ingestor, params, payload, expected, tmp_path):
    told = f"""
        pre_turn_observers:
        - id: a
          condition: "not v['flags.once']"
          action: {{type: add_to_inbox, inbox_item: {{source: OWN, payload: {payload}}}}}
        inbox_handling_strategies: [{{source: OWN, ingestor: {ingestor}, params: {params}}}]
    """
    model = script(Associate=[finishing])
    found = team(tmp_path, {"Associate": [ASSOCIATE, told]})
    assert found.findings == ()
    recorded(found.entry, "go", agents=found.agents(), model=model)
    assert f"user: {expected}" in shown(model.requests[0])


def test_what_an_ingestor_does_not_know_is_reported(tmp_path):
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles/a.yaml").write_text(
        profile(
            """
            type: associate
            inbox_handling_strategies:
            - {source: OWN, ingestor: work_modules, params: {role: user, titel: x}}
            - {source: TOOL_RESULT, ingestor: tool_result, params: {is_persistent_in_memory: true}}
            system_prompt_construction:
              system_prompt_segments:
              - {id: a, type: state_value, source_state_path: flags, ingestor_params: {depth: 2}}
              - {id: b, type: state_value, source_state_path: flags, ingestor_id: dispatch_result,
                 ingestor_params: {title: x}}
            """
        )
    )
    said = [each.text for each in load_profiles(tmp_path).findings]
    assert len(said) == 3
    assert "'work_modules' passes over the parameter 'titel'; did you mean 'title'?" in said[0]
    assert "'markdown_formatter' passes over the parameter 'depth'" in said[1]
    assert "'dispatch_result' passes over the parameter 'title'; it takes none" in said[2]


def test_a_briefing_is_written_in_the_words_of_its_protocol(tmp_path):
    start = """
        protocol_name: partner_to_principal_initial_briefing
        target_inbox_item: {source: AGENT_STARTUP_BRIEFING}
        context_parameters:
          type: object
          properties:
            initial_briefing_for_principal:
              type: object
              x-handover-title: Project briefing
              properties: {user_query: {type: string, x-handover-title: What is asked}}
    """
    launch = call("LaunchPrincipalExecutionTool", initial_briefing_for_principal={"user_query": "Tides?"})
    lines = [planned("A"), launch, "Wait.", "Done."]
    files = {"handover_protocols/start.yaml": start}
    _, model, _ = partnered(tmp_path, lines, [dispatch(work("WM_1")), DONE], files=files)
    assert "## Project briefing\n- What is asked: Tides?" in shown(of(model, "Principal")[0])[0]
