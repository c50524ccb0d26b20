"""Paths into an agent's world, texts with paths in them, and what is handed over along them."""

from pathlib import Path

import pytest

from antiphon.styles.profiles import hand_over, load_profiles, lookup, read_template, render
from antiphon.styles.profiles.conditions.path import MAX_PATH, fault
from antiphon.styles.profiles.files.template import MISSING
from antiphon.styles.profiles.world.shape import world_of

DOCUMENTED = Path(__file__).parent / "documented"
WORLD = world_of(
    {
        "messages": [{"content": "one"}, {"content": "two"}],
        "deliverables": {"x": 1},
        "flags": {"debug": True},
        "initial_parameters": {"module_id": "WM_1"},
        "nothing": None,
        "grid": [[1, 2], [3, 4]],
    },
    {"agent_id": "Partner_1"},
    {
        "work_modules": {"WM_1": {"status": "pending"}},
        "a.b": {"c": 1, "c.d": 2},
        "a": {"b": {"c": 3, "e": 4}},
    },
    {"run_type": "partner"},
    {"n": 1},
    {"principal": {"messages": []}},
)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("state.messages[-1].content", "two"),
        ("state.messages[0].content", "one"),
        ("messages[0].content", "one"),
        ("messages.1.content", "two"),
        ("messages.-1.content", "two"),
        ("grid[1][0]", 3),
        ("grid.[1].[0]", 3),
        ("deliverables.x", 1),
        ("meta.agent_id", "Partner_1"),
        ("flags.debug", True),
        ("state.flags.debug", True),
        ("initial_params.module_id", "WM_1"),
        ("team.work_modules.WM_1.status", "pending"),
        ("run.run_type", "partner"),
        ("config.n", 1),
        ("principal.messages", []),
        ("state", WORLD["state"]),
        ("_self", WORLD),
        ("_self.meta.agent_id", "Partner_1"),
        ("unknown", None),
        ("unknown.deeper", None),
        ("partner.messages", None),
        ("messages[9]", None),
        ("messages.content", None),
        ("messages[0].content.more", None),
        ("flags[0]", None),
        ("nothing", None),
        ("", None),
        (None, None),
        (123, None),
        ("a" * (MAX_PATH + 1), None),
    ],
)
def test_where_a_path_leads(path, expected):
    assert lookup(WORLD, path) == expected


@pytest.mark.parametrize("path", ["unknown", "messages[9]", "", None, 123, "a[b]", "partner", "team.x.y"])
def test_what_is_not_there_is_the_default(path):
    assert lookup(WORLD, path, "default") == "default"


def test_null_that_is_there_is_not_the_default():
    assert lookup(WORLD, "state.nothing", "default") is None


def test_a_key_with_dots_wins():
    assert lookup(WORLD, "team.a.b.c") == 1
    assert lookup(WORLD, "team.a.b.c.d") == 2
    assert lookup(WORLD, "team.a.b.e") is None  # the longest key was taken, and there is no way back


@pytest.mark.parametrize("path", ["a..b", ".a", "a.", "a[", "a[b]", "a]b[", " a", "a{b}", "a[1]b", "x" * 251])
def test_a_path_that_is_none_is_known_beforehand(path):
    assert fault(path)


@pytest.mark.parametrize(
    "path", ["a", "team.x", "a.b[0][-1].c", "flags", "a-b.c d", "état.é", "state", "stats"]
)
def test_a_path_is_a_path(path):
    assert fault(path) == ""


def filled(text, world=WORLD):
    return render(read_template(text), lambda path: lookup(world, path, MISSING))


def test_a_text_is_filled_in():
    text = "Hi {{ meta.agent_id }}: {{state.messages[-1].content}}, {{ deliverables }}{{ nothing }}."
    slots = [slot.path for slot in read_template(text).slots]
    assert slots == ["meta.agent_id", "state.messages[-1].content", "deliverables", "nothing"]
    assert filled(text) == 'Hi Partner_1: two, {"x":1}.'


def test_the_innermost_braces_count():
    assert filled("{{ {{ deliverables.x }} }}") == "{{ 1 }}"


def test_what_is_not_there_stays_as_it_is_written():
    assert filled("a {{ no.such }} b") == "a {{ no.such }} b"


def test_values_are_never_read_for_braces():
    world = {"state": {"a": "{{ b }} {b} {0.__class__}", "b": "secret"}}
    assert filled("{{ a }}", world) == "{{ b }} {b} {0.__class__}"
    assert filled("{{ a }}{{ b }}", world) == "{{ b }} {b} {0.__class__}secret"


@pytest.mark.parametrize(
    "text",
    [
        "{0.__class__}", "{name}", "{state.messages}", "${state.x}", "%(a)s", "{% raw %}", "{# a #}", "{}",
        '{"tool_name": "x", "assignments": [{"a": 1}]}', "{{", "}}", "}} {{", "{{ a b", "{ { a } }", "{{}}",
        "{{ 7 * 7 }}", "{{ a|safe }}", "{{ a() }}{", "{{ ''.__class__ }}", "{{ a\n.b }}", "{{ {a} }}",
        "{{ a['b'] }}", "{{ config.__init__.__globals__['os'] }}", "{{{{ a b }}}}", "{{ }}", "<%= a %>",
    ],
)  # fmt: skip
def test_everything_else_is_text(text):
    world = {"state": {"a": {"b": "secret"}, "state": {"x": "secret"}}, "config": {}}
    assert filled(text, world) == text


def test_only_keys_are_followed_and_never_attributes():
    text = "{{ state.__class__ }} {{ state.items }} {{ meta.agent_id.upper }}"
    assert filled(text) == text


def test_many_braces_are_read_in_one_pass():
    template = read_template("{{ a " * 50_000 + "}}" * 50_000)
    assert len(template.parts) <= 3


def action(**parameters):
    modules = {
        "WM_1": {"title": "first", "context_archive": [{"messages": [{"content": "old"}, kept("briefing")]}]},
        "WM_2": {"title": "second", "context_archive": [{"messages": [{"content": "other"}]}]},
    }
    return {
        "state": {"current_action": {"tool_name": "dispatch_submodules", "parameters": parameters}},
        "team": {"work_modules": modules},
    }


def kept(content):
    return {"content": content, "_internal": {"_no_handover": True}}


@pytest.fixture(scope="module")
def briefing():
    return load_profiles(DOCUMENTED).protocol("principal_to_associate_briefing")


def test_what_the_model_said_and_what_is_inherited_are_handed_over(briefing):
    world = action(
        module_id_to_assign="WM_1",
        assignment_specific_instructions="Do it.",
        agent_profile_logical_name="not declared",
    )
    item = hand_over(briefing, world)
    assert item["source"] == "AGENT_STARTUP_BRIEFING"
    data, schema = item["payload"]["data"], item["payload"]["schema_for_rendering"]
    assert list(data) == [
        "assignment_specific_instructions",
        "module_id_to_assign",
        "module_details",
        "full_context_archive_for_rework",
    ]
    assert data["module_details"]["title"] == "first"
    assert schema["properties"]["module_details"] == {"x-handover-title": "The module"}
    assert schema["properties"]["full_context_archive_for_rework"] == {
        "x-handover-title": "full_context_archive_for_rework"
    }
    assert schema["properties"]["assignment_specific_instructions"]["x-handover-title"] == "Instructions"


def test_what_is_not_all_there_is_not_handed_over(briefing):
    assert hand_over(briefing, action())["payload"]["data"] == {}
    data = hand_over(briefing, action(module_id_to_assign="WM_9"))["payload"]["data"]
    assert list(data) == ["module_id_to_assign"]


def test_messages_with_a_flag_stay_behind(briefing):
    data = hand_over(briefing, action(inherit_messages_from=["WM_1", "WM_9", "WM_2"]))["payload"]["data"]
    assert data["inherited_messages"] == [{"content": "old"}, {"content": "other"}]


def test_a_name_without_a_value_leads_nowhere_even_where_the_rest_is_a_path(tmp_path):
    (tmp_path / "profiles").mkdir()
    (tmp_path / "handover_protocols").mkdir()
    (tmp_path / "handover_protocols/all.yaml").write_text(
        "protocol_name: all\ntarget_inbox_item: {source: X}\ninheritance:\n"
        "- {as_payload_key: a, from_source: {path: 'team{{ rest }}', replace: {rest: state.rest}}}"
    )
    protocol = load_profiles(tmp_path).protocol("all")
    world = {"state": {}, "team": {"secret": 1}}
    assert hand_over(protocol, world)["payload"]["data"] == {}
    assert hand_over(protocol, {**world, "state": {"rest": ".secret"}})["payload"]["data"] == {"a": 1}
