"""Where a team is written: its files as they are now, what was wrong in them, and no secret of theirs."""

import os

import pytest

from antiphon import Agent
from antiphon.cli.serving.serve import TeamOptions
from antiphon.cli.serving.sources import source_of
from antiphon.cli.target import load_target
from antiphon.config.yaml import MAX_BYTES
from antiphon.host import HostedTeam
from antiphon.host.sources import MAX_SOURCE, MAX_SOURCES, MAX_SOURCES_TOTAL, masked, texts_of
from antiphon.host.team import SourceFile, TeamSource
from tests.unit.server.teams import BOB, USERS, desk, in_time, served

DESK = "name: desk\ntype: partner\nllm_config_ref: quick\n"
WRONG = "name: clerk\ntype: associate\nflow_decidr: []\n"
CONFIG = "name: quick\nconfig:\n  model: script\n  api_key: sk-written-openly\n"


@pytest.fixture
def folder(tmp_path):
    for name, text in (("profiles/desk", DESK), ("profiles/clerk", WRONG), ("llm_configs/quick", CONFIG)):
        file = tmp_path / f"{name}.yaml"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    (tmp_path / ".env").write_text("SECRET=1")
    return tmp_path


def shown(team):
    """What GET /teams/desk/source says of a team."""

    async def work():
        async with served({"desk": team}) as (client, _):
            return (await client("GET", "/teams/desk/source")).json

    return in_time(work)


def hosted(text):
    return TeamOptions().team(load_target(str(text)))


def test_profiles_are_shown_with_what_is_wrong_at_its_line_and_without_their_secrets(folder):
    found = shown(hosted(folder))
    assert (found["place"], found["left_out"]) == (str(folder), 0)
    files = {each["name"]: each for each in found["files"]}
    assert list(files) == ["profiles/clerk.yaml", "profiles/desk.yaml", "llm_configs/quick.yaml"]
    assert files["profiles/desk.yaml"] == {
        "name": "profiles/desk.yaml", "state": "loaded", "text": DESK, "size": len(DESK), "cut": False,
        "findings": [],
    }  # fmt: skip
    (wrong,) = files["profiles/clerk.yaml"]["findings"]
    assert (wrong["line"], wrong["severity"]) == (3, "error")
    assert "did you mean 'flow_decider'" in wrong["text"]
    assert files["llm_configs/quick.yaml"]["text"] == CONFIG.replace("sk-written-openly", "***")
    assert [each["line"] for each in files["llm_configs/quick.yaml"]["findings"]] == [4]


def test_a_file_that_changed_or_went_away_says_so_and_what_was_wrong_in_it_stays(folder):
    team = hosted(folder)
    (folder / "profiles/desk.yaml").write_text(DESK + "rev: 2\n")
    (folder / "profiles/clerk.yaml").unlink()
    clerk, desk_file, _ = shown(team)["files"]
    assert (desk_file["state"], desk_file["text"]) == ("changed", DESK + "rev: 2\n")
    assert (clerk["state"], clerk["text"], len(clerk["findings"])) == ("missing", "", 1)


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
@pytest.mark.parametrize("swapped", ["profiles/desk.yaml", "profiles"])
def test_what_lies_outside_of_the_teams_folder_is_not_read_through_a_link(folder, tmp_path_factory, swapped):
    outside = tmp_path_factory.mktemp("outside")
    (outside / "desk.yaml").write_text("private")
    team = hosted(folder)
    place = folder / swapped
    place.rename(folder / "away")
    place.symlink_to(outside / "desk.yaml" if place.suffix else outside)
    found = {each["name"]: each for each in shown(team)["files"]}["profiles/desk.yaml"]
    assert (found["state"], found["text"]) == ("missing", "")


def test_a_pipe_in_a_files_place_keeps_nobody_waiting(folder):
    team = hosted(folder)
    (folder / "profiles/desk.yaml").unlink()
    os.mkfifo(folder / "profiles/desk.yaml")
    assert {each["state"] for each in shown(team)["files"]} == {"loaded", "missing"}


def test_files_are_shown_in_bounds(tmp_path):
    (tmp_path / "long.yaml").write_text("é" * MAX_SOURCE)
    origin = TeamSource("it", tmp_path, (SourceFile("long.yaml"),) * (MAX_SOURCES + 1))
    (first, *_), left_out = texts_of(origin, {})
    assert (first.cut, first.size, len(first.text.encode())) == (True, 2 * MAX_SOURCE, MAX_SOURCE)
    files, _ = texts_of(origin, {})
    assert sum(len(each.text.encode()) for each in files) <= MAX_SOURCES_TOTAL
    assert left_out == len(origin.files) - len(files)
    (tmp_path / "long.yaml").write_text("x" * (MAX_BYTES + 1))
    (found,), _ = texts_of(TeamSource("it", tmp_path, (SourceFile("long.yaml"),)), {})
    assert (found.cut, found.size) == (True, MAX_BYTES + 1)


def test_a_team_file_is_shown_and_a_team_in_code_has_the_line_of_its_name(tmp_path, monkeypatch):
    text = "agents:\n- name: desk\n  instructions: Ünïcode\n"
    (tmp_path / "team.yaml").write_text(text)
    found = shown(hosted(tmp_path / "team.yaml"))
    (file,) = found["files"]
    assert (found["place"], file["name"], file["text"]) == (str(tmp_path / "team.yaml"), "team.yaml", text)
    code = tmp_path / "code.py"
    code.write_text("from antiphon import Agent\n\ndesk = Agent('first')\n\ndesk = Agent('desk')\n")
    assert shown(hosted(f"{code}:desk")) == {"place": f"{code}:5 (desk)", "files": [], "left_out": 0}
    (tmp_path / "own_team_module.py").write_text("from code_of import team\n")
    (tmp_path / "code_of.py").write_text("from antiphon import Agent\nteam = Agent('desk')\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert source_of(load_target("own_team_module:team")).place == "own_team_module:1 (team)"
    assert shown(HostedTeam((Agent("desk"),))) == {"place": "", "files": [], "left_out": 0}


def test_a_source_is_shown_to_those_who_may_read_and_of_served_teams_only(folder):
    async def work():
        async with served({"desk": hosted(folder)}, tokens=USERS) as (client, _):
            assert (await client.as_(BOB)("GET", "/teams/desk/source")).status == 200
            assert (await client.as_("nobody")("GET", "/teams/desk/source")).status == 401
            assert (await client("GET", "/teams/other/source")).status == 404
            assert (await client("GET", "/teams/..%2F..%2Fetc/source")).status == 404
            assert (await client("GET", "/teams/desk/source?project=other")).status == 404

    in_time(work)


KEY = "sk-0123456789"
SECRETS = [
    f"api_key: {KEY}",
    f"config: {{max_tokens: 5, api_key: '{KEY}', model: m}}",
    f"config:\n  headers: {{x-auth-token: {KEY}}}\n  model: m",
    f"é: ü\napi_key: |\n  {KEY}\n  {KEY}\nmodel: m",
    f"api_key: {{_type: from_env, var: OPENAI_API_KEY, default: {KEY}}}",
    f"address: {{_type: from_env, var: OPENAI_API_KEY, default: {KEY}}}",
    f"passwords: []\npassword:\n- {KEY}\n- [{KEY}]",
    f"api_key: {KEY}\nbroken: [",
    f"broken: [\nconfig:\n  api_key: |\n    {KEY}\n    {KEY}\n  model: m",
    f"broken: [\nconfig: {{model: m, api_key: {KEY}}}",
    f'broken: [\n"api_key": "{KEY}"',
    f"model: m\n# api_key: {KEY}",
    f"model: m # once it was api_key: {KEY}",
    f"{'x' * 300} api_key: {KEY}\nbroken: [",
    f"instructions: The key is {KEY}.",
    f"# {KEY}\nbroken: [",
]


@pytest.mark.parametrize("text", SECRETS)
def test_no_secret_is_shown_and_lines_keep_their_numbers(text):
    found = masked(text, [KEY])
    assert KEY not in found
    assert "***" in found
    assert found.count("\n") == text.count("\n")
    assert ("model: m" in found) == ("model: m" in text)
    if "api_key" in text or "token" in text or "password" in text:
        assert KEY not in masked(text)


def test_what_is_no_secret_is_not_masked():
    text = "content_key: hello\nmax_tokens: 5\napi_key: {_type: from_env, var: OPENAI_API_KEY}\n"
    assert masked(text) == text
    assert masked("", []) == ""


def test_an_environments_secrets_are_masked_wherever_they_stand(folder, monkeypatch):
    monkeypatch.setenv("OTHER_API_KEY", "of-the-environment")
    team = hosted(folder)
    (folder / "profiles/desk.yaml").write_text(f"{DESK}# of-the-environment\n")
    assert {each["name"]: each for each in shown(team)["files"]}["profiles/desk.yaml"][
        "text"
    ] == f"{DESK}# ***\n"


def test_one_long_line_is_masked_in_time():
    for text in ("a" * 1_000_000, "key: " * 100_000, "api_key:\n" * 100_000, "- " * 100_000):
        assert masked(f"broken: [\n{text}").startswith("broken: [\n")


def test_a_team_that_nobody_described_has_no_files():
    assert shown(desk("Hi"))["files"] == []
