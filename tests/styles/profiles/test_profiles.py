"""Folders of profiles, LLM configs and handover protocols of the documented generation."""

import re
from pathlib import Path

import pytest

from antiphon.errors import ConfigError, UnknownName
from antiphon.styles.profiles import SourceLocation, holds, load_profiles
from antiphon.styles.profiles.files.profile import (
    AddToInbox,
    AwaitUserInput,
    ContinueWithTool,
    EndAgentTurn,
    LoopWithInboxItem,
    UpdateState,
)
from antiphon.values.secret import Secret

DOCUMENTED = Path(__file__).parent / "documented"


@pytest.fixture
def folder(tmp_path):
    """Writes files into a folder of profiles and loads it: names are `profiles/a` and the like."""

    def load(files, **known):
        (tmp_path / "profiles").mkdir(exist_ok=True)
        for name, text in files.items():
            path = tmp_path / f"{name}.yaml"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, "utf-8")
        return load_profiles(tmp_path, **known)

    return load


def said(library, tmp_path):
    return [str(finding).replace(f"{tmp_path}/", "") for finding in library.findings]


def test_documented_files_load_with_warnings_only():
    library = load_profiles(DOCUMENTED)
    assert [finding.severity for finding in library.findings] == ["warning"] * 9
    assert library.refused == {}
    assert set(library.profiles) == {
        "Base_Agent", "Base_Associate", "Associate_WebSearcher", "Partner", "Principal",
    }  # fmt: skip
    partner = library.profile("Partner")
    assert (partner.type, partner.profile_id, partner.rev) == ("partner", "uuid_partner_advisor_en_v1", 1)
    assert partner.tool_access_policy.allowed_individual_tools[0] == "LaunchPrincipalExecutionTool"
    assert partner.timestamp == "2025-05-27T10:00:00.000Z"


def test_segments_stand_in_their_order_with_their_conditions():
    partner = load_profiles(DOCUMENTED).profile("Partner")
    assert [(segment.id, segment.order) for segment in partner.segments] == [
        ("system_current_date", 1),
        ("response_language", 2),
        ("partner_mission", 10),
        ("partner_framework_example_guidance", 20),
        ("partner_tools", 30),
        ("partner_available_associates_list", 45),
        ("partner_system_tool_contributions", 60),
        ("closing", 100),
    ]
    listed = partner.segments[5]
    assert (listed.type, listed.ingestor_id) == ("state_value", "available_associates")
    assert listed.ingestor_params == {"title": "### Who can be staffed"}
    assert listed.condition.text.startswith('get_nested_value_from_context(context_obj, "state.')
    assert partner.segments[2].content.slots == ()
    assert '{"tool_name": "dispatch_submodules"' in partner.segments[2].content.text


def test_observers_and_rules_are_values():
    library = load_profiles(DOCUMENTED)
    partner, worker = library.profile("Partner"), library.profile("Base_Associate")
    principal = library.profile("Principal")
    modules, done = partner.pre_turn_observers
    assert isinstance(modules.action, AddToInbox)
    item = modules.action.inbox_item
    assert (item.source, item.payload.whole) == ("WORK_MODULES_STATUS_UPDATE", "team.work_modules")
    assert done.action.inbox_item.payload == {"content_key": "partner_guidance_on_principal_completion"}
    reset, count = worker.post_turn_observers
    assert isinstance(reset.action, UpdateState)
    assert [
        (each.operation, each.path, each.value) for each in (*reset.action.updates, *count.action.updates)
    ] == [
        ("set", "flags.consecutive_no_tool_call_count", 0),
        ("increment", "flags.consecutive_no_tool_call_count", None),
    ]
    assert [type(rule.action) for rule in partner.flow_decider] == [ContinueWithTool, AwaitUserInput]
    assert [type(rule.action) for rule in principal.flow_decider] == [ContinueWithTool, LoopWithInboxItem]
    ends = [rule.action for rule in worker.flow_decider if isinstance(rule.action, EndAgentTurn)]
    assert [(end.outcome, end.error_message) for end in ends] == [
        ("success", ""),
        ("error", "No tool was called three times in a row."),
    ]


def test_lists_with_ids_are_merged_by_id_and_plain_lists_are_joined():
    worker = load_profiles(DOCUMENTED).profile("Associate_WebSearcher")
    assert worker.bases == ("Base_Associate", "Base_Agent")
    assert worker.type == "associate"
    assert worker.llm_config_ref == "local_llm"
    assert worker.tool_access_policy.allowed_toolsets == ("flow_control_end", "G")
    assert [rule.id for rule in worker.flow_decider] == [
        "rule_tool_call_exists",
        "rule_immediate_meltdown_on_empty_content",
        "rule_consecutive_loops_meltdown",
        "rule_no_tool_call_fallback",
    ]
    # A segment is replaced as a whole, so that one with an id and an order alone says nothing any more.
    assert worker.segments[0].id == "system_current_date"
    assert worker.segments[0].content is None
    texts = worker.text_definitions
    assert (
        texts["associate_self_reflection_on_no_tool_call"].text
        == "You searched for nothing; go on or sum up."
    )


def test_what_a_file_is_called_is_not_inherited(folder):
    library = folder(
        {
            "profiles/base": "type: base\nprofile_id: b\nrev: 7\ntimestamp: then\ndescription_for_human: all",
            "profiles/child": "type: associate\nbase_profile: base",
        }
    )
    child = library.profile("child")
    assert (child.profile_id, child.rev, child.timestamp) == ("child@1", 1, "")
    assert child.description_for_human == "all"


def test_null_takes_away_what_was_inherited(folder):
    library = folder(
        {
            "profiles/base": (
                "type: base\ntext_definitions: {a: x}\nflow_decider:\n"
                "- {id: one, condition: 'True', action: {type: await_user_input}}\n"
                "tool_access_policy: {allowed_toolsets: [planning_tools]}"
            ),
            "profiles/child": (
                "type: associate\nbase_profile: base\nflow_decider:\ntext_definitions: ~\n"
                "tool_access_policy: {allowed_toolsets: null, allowed_individual_tools: [finish_flow]}"
            ),
        }
    )
    child = library.profile("child")
    assert child.flow_decider == ()
    assert child.text_definitions == {}
    assert child.tool_access_policy.allowed_toolsets == ()
    assert child.tool_access_policy.allowed_individual_tools == ("finish_flow",)


def test_inbox_strategies_are_merged_by_source(folder):
    library = folder(
        {
            "profiles/base": (
                "type: base\ninbox_handling_strategies:\n"
                "- {source: USER_PROMPT, ingestor: user_prompt_ingestor}\n"
                "- {source: TOOL_RESULT, ingestor: tool_result}"
            ),
            "profiles/child": (
                "type: associate\nbase_profile: base\ninbox_handling_strategies:\n"
                "- {source: USER_PROMPT, ingestor: tagged_content, injection_mode: prepend_to_role,\n"
                "   params: {role: user, is_persistent_in_memory: true}}"
            ),
        }
    )
    found = library.profile("child").inbox_handling_strategies
    assert [(each.source, each.ingestor, each.injection_mode) for each in found] == [
        ("USER_PROMPT", "tagged_content", "prepend_to_role"),
        ("TOOL_RESULT", "tool_result", "append_as_new_message"),
    ]
    assert found[0].params == {"role": "user", "is_persistent_in_memory": True}


def test_a_circle_of_bases_is_named_and_only_it_is_refused(folder, tmp_path):
    library = folder(
        {
            "profiles/a": "type: base\nbase_profile: b",
            "profiles/b": "type: base\nbase_profile: c",
            "profiles/c": "type: base\nbase_profile: a",
            "profiles/below": "type: base\nbase_profile: a",
            "profiles/free": "type: associate",
        }
    )
    assert said(library, tmp_path) == [
        "profiles/a.yaml:2:15: base_profile: a circle of bases: a -> b -> c -> a; take one of them out",
        "profiles/b.yaml:2:15: base_profile: a circle of bases: b -> c -> a -> b; take one of them out",
        "profiles/c.yaml:2:15: base_profile: a circle of bases: c -> a -> b -> c; take one of them out",
    ]
    assert set(library.profiles) == {"free"}
    with pytest.raises(ConfigError, match=r"profile 'below' cannot be used:\n.*: a -> b -> c -> a"):
        library.profile("below")


def test_a_bad_file_is_reported_and_only_what_needs_it_refuses_to_start(folder, tmp_path):
    library = folder(
        {
            "profiles/bad": "type: base\nflow_deciders: []\nrev: x",
            "profiles/broken": "type: [",
            "profiles/child": "type: associate\nbase_profile: bad",
            "profiles/good": "type: associate",
            "profiles/orphan": "type: associate\nbase_profile: bat",
            "llm_configs/bad_llm": "config: 3",
            "profiles/thinker": "type: partner\nllm_config_ref: bad_llm",
        }
    )
    assert said(library, tmp_path) == [
        "llm_configs/bad_llm.yaml:1:9: config: expected `key: value` lines",
        "profiles/bad.yaml:2:1: flow_deciders: a profile: unknown key 'flow_deciders'; "
        "did you mean 'flow_decider'?",
        "profiles/bad.yaml:3:6: rev: expected a whole number, not 'x'",
        "profiles/broken.yaml:1:8: is not YAML: expected the node content, but found '<stream end>'",
        "profiles/orphan.yaml:2:15: base_profile: there is no active profile 'bat'; did you mean 'bad'?",
    ]
    assert set(library.profiles) == {"good"}
    for name, words in {
        "child": "rev: expected a whole number",
        "thinker": "expected `key: value` lines",
        "broken": "is not YAML",
        "orphan": "there is no active profile 'bat'",
    }.items():
        with pytest.raises(ConfigError) as refused:
            library.profile(name)
        assert words in str(refused.value)
    with pytest.raises(ConfigError):
        library.llm_config("bad_llm")


def test_there_is_no_fallback_profile(folder):
    library = folder(
        {"profiles/Principal": "type: principal", "profiles/Associate_GenericExecutor": "type: associate"}
    )
    with pytest.raises(UnknownName, match=r"Associate_X\. Known: Associate_GenericExecutor, Principal"):
        library.profile("Associate_X")


def test_of_several_revisions_the_highest_active_one_counts(folder, tmp_path):
    library = folder(
        {
            "profiles/one": "name: P\ntype: associate\ndescription_for_human: old",
            "profiles/two": "name: P\ntype: associate\nrev: 2\ndescription_for_human: new",
            "profiles/three": "name: P\ntype: associate\nrev: 3\nis_active: false",
            "profiles/four": "name: P\ntype: associate\nrev: 4\nis_deleted: true",
        }
    )
    assert (library.profile("P").rev, library.profile("P").description_for_human) == (2, "new")
    library = folder({"profiles/zwei": "name: P\ntype: associate\nrev: 2"})
    assert said(library, tmp_path) == [
        "profiles/zwei.yaml:1:1: profile 'P' stands in profiles/two.yaml too; rename one, or raise its `rev`"
    ]
    with pytest.raises(ConfigError):
        library.profile("P")


def test_a_wrong_newest_revision_is_not_replaced_by_an_older_one(folder):
    library = folder({"profiles/a": "name: P\ntype: base", "profiles/b": "name: P\nrev: 2\ntype: bose"})
    with pytest.raises(ConfigError, match="'bose' is not known here; did you mean 'base'"):
        library.profile("P")


def test_rules_that_can_never_count_are_errors(folder, tmp_path):
    action = "action: {type: await_user_input}"
    library = folder(
        {
            "profiles/base": f"type: base\nflow_decider:\n- {{id: last, condition: 'True', {action}}}",
            "profiles/child": f"type: associate\nbase_profile: base\nflow_decider:\n"
            f"- {{id: more, condition: \"v['flags.a']\", {action}}}",
            "profiles/other": "type: associate\nflow_decider:\n"
            f"- {{id: a, condition: \"v['flags.a']\", {action}}}\n"
            f"- {{id: b, condition: \"v['flags.a']\", {action}}}\n- {{id: c, condition: 1 > 2, {action}}}",
        }
    )
    assert said(library, tmp_path) == [
        "profiles/child.yaml:4:3: flow_decider[0]: rule 'more' can never count: rule 'last' before it always "
        "holds; a rule with that id would replace it",
        "profiles/other.yaml:4:3: flow_decider[1]: rule 'b' can never count: rule 'a' before it has the same "
        "condition",
        "profiles/other.yaml:5:3: flow_decider[2]: rule 'c' can never count: its condition never holds",
    ]


def test_a_base_may_leave_texts_to_those_that_begin_from_it(folder, tmp_path):
    library = folder(
        {
            "profiles/base": (
                "type: base\nsystem_prompt_construction:\n"
                "  segments: [{id: a, type: static_text, content_key: intro}]"
            ),
            "profiles/with": "type: associate\nbase_profile: base\ntext_definitions: {intro: Hello.}",
            "profiles/without": "type: associate\nbase_profile: base",
        }
    )
    assert set(library.profiles) == {"base", "with"}
    assert said(library, tmp_path) == [
        "profiles/base.yaml:3:14: system_prompt_construction.segments[0]: "
        "there is no text definition 'intro'; there are none"
    ]


@pytest.mark.parametrize("written", ["true", "True", "'True'", '"1 > 0"'])
def test_a_condition_that_always_holds(folder, written):
    action = "action: {type: await_user_input}"
    text = f"type: associate\nflow_decider: [{{id: a, condition: {written}, {action}}}]"
    rule = folder({"profiles/a": text}).profile("a").flow_decider[0]
    assert holds(rule.condition, {}) is True


def test_values_from_the_environment_and_files(folder, tmp_path):
    (tmp_path / "llm_configs").mkdir()
    (tmp_path / "llm_configs/headers.json").write_text('{"x-api-key": "k3", "x-trace": "1"}')
    library = folder(
        {
            "llm_configs/base": (
                "config:\n  api_key: {_type: from_env, var: KEY, required: false}\n"
                "  max_retries: {_type: from_env, var: RETRIES}\n"
                "  temperature: {_type: from_env, var: HEAT}\n"
                "  stream: {_type: from_env, var: STREAM, default: false}\n  nothing: ~\n"
                "  top_p: {_type: from_env, var: TOP_P, default: 0.9}\n  seed: {_type: from_env, var: SEED}"
            ),
            "llm_configs/big": (
                "base_llm_config: base\nconfig:\n  model: {_type: from_env, var: MODEL, required: true}\n"
                "  extra_headers: {_type: json_from_file, path: headers.json}\n  password: hunter2"
            ),
        }
    )
    assert said(library, tmp_path) == [
        "llm_configs/big.yaml:5:13: config.password: warning: a secret stands openly in the file; "
        "write {_type: from_env, var: NAME}"
    ]
    config = library.llm_config("big")
    assert config.bases == ("base",)
    env = {"RETRIES": "1", "HEAT": "0.5", "STREAM": "true", "SEED": "null", "KEY": "123", "MODEL": "m"}
    found = config.resolve(env)
    assert found == {
        "api_key": Secret("123"),
        "max_retries": 1,
        "temperature": 0.5,
        "stream": True,
        "top_p": 0.9,
        "model": "m",
        "extra_headers": {"x-api-key": Secret("k3"), "x-trace": "1"},
        "password": Secret("hunter2"),
    }
    assert "hunter2" not in repr(config)
    assert "k3" not in repr(found)
    with pytest.raises(ConfigError, match=r"big\.yaml:1:1: config\.model: the variable MODEL is not set"):
        config.resolve({})
    with pytest.raises(UnknownName, match=r"Unknown LLM config: bug\. Known: base, big"):
        library.llm_config("bug")


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("{folder}/outside.json", "is absolute"),
        ("../outside.json", "leads out of the folder"),
        ("more/../../outside.json", "leads out of the folder"),
        ("link.json", "symbolic link"),
        ("more/up/outside.json", "symbolic link"),
        ("same.json", "hard link"),
        (".hidden.json", "is hidden"),
        ("nothing.json", "There is no file nothing.json"),
        ("more", "is a folder"),
        ("words.json", "words.json is not JSON"),
    ],
)
def test_a_value_from_a_file_is_from_the_folder_of_its_config(folder, tmp_path, path, told):
    configs = tmp_path / "llm_configs"
    (configs / "more").mkdir(parents=True)
    (tmp_path / "outside.json").write_text('"what is nobody\'s business"')
    (configs / ".hidden.json").write_text("1")
    (configs / "words.json").write_bytes(b'"\xff"')
    (configs / "link.json").symlink_to(tmp_path / "outside.json")
    (configs / "more/up").symlink_to(tmp_path)
    (configs / "same.json").hardlink_to(tmp_path / "outside.json")
    (configs / "more/good.json").write_text("[1]")
    written = path.format(folder=tmp_path)
    library = folder(
        {
            "llm_configs/a": f"config:\n  seed: {{_type: json_from_file, path: {written}}}",
            "llm_configs/b": "config:\n  seed: {_type: json_from_file, path: more/good.json}",
        }
    )
    assert library.llm_config("b").resolve({}) == {"seed": [1]}
    with pytest.raises(ConfigError, match=r"a\.yaml:1:1: config\.seed: .*" + re.escape(told)):
        library.llm_config("a").resolve({})


def test_what_is_installed_decides_about_toolsets_and_tools(folder, tmp_path):
    lists = "  allowed_toolsets: [mine, G]\n  allowed_individual_tools: [one, tow]"
    text = f"type: associate\ntool_access_policy:\n{lists}"
    library = folder({"profiles/a": text}, toolsets={"mine": ("one", "two")})
    assert said(library, tmp_path) == [
        "profiles/a.yaml:3:28: tool_access_policy.allowed_toolsets[1]: warning: the toolset 'G' is not "
        "installed; it is one of: mine",
        "profiles/a.yaml:4:35: tool_access_policy.allowed_individual_tools[1]: unknown tool 'tow'; "
        "did you mean 'two'?",
    ]


def test_a_nameless_protocol_keeps_no_other_from_being_used(folder, tmp_path):
    good = "protocol_name: good\ntarget_inbox_item: {source: AGENT_STARTUP_BRIEFING}"
    library = folder({"handover_protocols/good": good, "handover_protocols/bad": "version: 2"})
    assert said(library, tmp_path) == [
        "handover_protocols/bad.yaml:1:1: a handover protocol needs `protocol_name`: the name that tools use",
        "handover_protocols/bad.yaml:1:1: a handover protocol needs `target_inbox_item`: "
        "the inbox item of the one who is started",
    ]
    assert set(library.protocols) == {"good"}
    with pytest.raises(UnknownName, match="Unknown handover protocol: none"):
        library.protocol("none")


def test_values_carry_their_places():
    rule = load_profiles(DOCUMENTED).profile("Associate_WebSearcher").flow_decider[-1]
    file = str(DOCUMENTED / "profiles/Associate_WebSearcher_EN.yaml")
    assert rule.place == SourceLocation(file, 40, 5, "flow_decider[0]")


def test_a_folder_without_profiles_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="has no folder `profiles`"):
        load_profiles(tmp_path)


def test_two_hundred_profiles_are_each_merged_once(folder, monkeypatch):
    from antiphon.styles.profiles.files import loader

    merges = []
    inherit = loader.inherit
    monkeypatch.setattr(loader, "inherit", lambda base, fields: merges.append(1) or inherit(base, fields))
    files = {"profiles/p0": "type: base\ntext_definitions: {t0: x}"}
    for number in range(1, 200):
        base = number - 1 if number < 100 else 0
        files[f"profiles/p{number}"] = f"base_profile: p{base}\ntext_definitions: {{t{number}: x}}"
    library = folder(files)
    assert library.findings == ()
    assert len(library.profiles) == 200
    assert len(library.profile("p99").text_definitions) == 100
    assert len(merges) == 199
