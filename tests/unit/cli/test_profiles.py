"""`antiphon profiles`: what is wrong in a folder of profiles, and the schema of its files."""

from antiphon.styles.profiles.files.fields import SHAPES

GOOD = "type: associate\ntool_access_policy: {allowed_toolsets: [arithmetic, G]}\n"
BAD = "type: asociate\nflow_decider:\n- {id: a, condition: stat, action: {type: await_user_input}}\n"


def test_a_good_folder_ends_with_0_and_its_warnings(shell):
    shell.write("team/profiles/good.yaml", GOOD)
    said = shell("profiles", "check", "team")
    assert said.code == 0
    assert said.err == ""
    warning, *rest = said.out.splitlines()
    assert warning.startswith(
        "team/profiles/good.yaml:2:53: tool_access_policy.allowed_toolsets[1]: "
        "warning: the toolset 'G' is not installed"
    )
    assert rest == ["0 errors, 1 warnings", "usable: 1 profiles, 0 LLM configs, 0 handover protocols"]


def test_a_bad_folder_ends_with_3_and_every_error(shell):
    shell.write("team/profiles/bad.yaml", BAD)
    shell.write("team/profiles/good.yaml", "type: base")
    said = shell("profiles", "check", "team")
    assert said.code == 3
    assert said.out.splitlines() == [
        "team/profiles/bad.yaml:1:7: type: error: 'asociate' is not known here; did you mean 'associate'?",
        "team/profiles/bad.yaml:3:22: flow_decider[0].condition: error: unknown name 'stat'; it is one of: "
        "v, any, all, len, str, int, get_nested_value_from_context",
        "2 errors, 0 warnings",
        "refused: profile bad",
        "usable: 1 profiles, 0 LLM configs, 0 handover protocols",
    ]


def test_json_for_programs(shell):
    shell.write("team/profiles/bad.yaml", BAD)
    shell.write("team/llm_configs/small.yaml", "config: {model: m}")
    said = shell("profiles", "check", "team", "--json")
    assert said.code == 3
    assert said.value["refused"] == [{"kind": "profile", "name": "bad"}]
    assert (said.value["profiles"], said.value["llm_configs"]) == ([], ["small"])
    assert said.value["findings"][0] == {
        "severity": "error",
        "file": "team/profiles/bad.yaml",
        "line": 1,
        "column": 7,
        "path": "type",
        "text": "'asociate' is not known here; did you mean 'associate'?",
    }


def test_control_characters_of_a_file_do_not_reach_the_terminal(shell):
    shell.write("team/profiles/bad.yaml", 'type: "\\e[31mred\\nline"')
    said = shell("profiles", "check", "team")
    assert said.code == 3
    assert "\x1b" not in said.out
    assert len(said.out.splitlines()) == 4


def test_a_folder_that_is_none(shell):
    said = shell("profiles", "check", "nowhere")
    assert said.code == 3
    assert said.err == "error: nowhere: has no folder `profiles`; expected profiles/*.yaml in it\n"
    assert shell("profiles", "check").code == 2


def test_the_schema_says_every_key_the_loader_knows(shell):
    for kind, shape in SHAPES.items():
        found = shell("profiles", "schema", kind).value
        assert set(found["properties"]) == set(shape.fields)
        assert found["additionalProperties"] is False
        assert all(each["description"] for each in found["properties"].values())
    assert shell("profiles", "schema").value["title"] == "profile"
    assert shell("profiles", "schema", "robot").code == 2


SAYS = "- Done.\n"
CLERK = "type: partner\ntool_access_policy: {allowed_toolsets: [G]}\n"


def test_a_run_with_a_refused_partner_stops_with_its_errors_first(shell):
    shell.write("team/profiles/Partner.yaml", "type: partner\nunknown: 1\n")
    shell.write("team/profiles/Clerk.yaml", "type: associate\n")
    model = shell.write("says.yaml", SAYS)
    said = shell("run", "team", "Hello", "--model", f"script:{model}")
    assert said.code == 3
    assert (
        "team/profiles/Partner.yaml:2:1: unknown: error: a profile: unknown key 'unknown'"
        in said.err.splitlines()[0]
    )
    assert "cannot start without 'Partner'" in said.err
    named = shell("run", "team:Clerk", "Hello", "--model", f"script:{model}")
    assert (named.code, named.out) == (0, "Done.\n")
    assert named.err.splitlines()[0].startswith("team/profiles/Partner.yaml:2:1: unknown: error: ")


def test_findings_are_told_when_a_run_begins_and_not_when_it_is_resumed(shell):
    shell.write("team/profiles/Clerk.yaml", CLERK)
    model = shell.write("says.yaml", SAYS)
    assert "'G' is not installed" in shell("run", "team", "Hello", "--model", f"script:{model}").err
    (run,) = shell("runs", "ls", "--json").value
    again = shell("runs", "resume", run["run_id"], "team", "--model", f"script:{model}")
    assert "Done." in again.out
    assert "is not installed" not in again.err
