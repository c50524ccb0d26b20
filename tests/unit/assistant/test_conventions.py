"""Guidance, skills, commands and MCP servers, as people write them for agents; what is wrong with them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from antiphon.assistant import coder
from antiphon.models.script import call
from tests.transcript import results_shown
from tests.unit.assistant.asked import ask, lines

SKILL = "---\nname: {0}\ndescription: {1}\n---\n{2}\n"


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def told(place: Path) -> str:
    script = lines("done")
    ask(place, script)
    return script.requests[0].system


def findings(place: Path) -> str:
    return "\n".join(each.labelled for each in coder(place).findings)


# -- guidance -------------------------------------------------------------------------------------


def test_guidance_from_the_root_of_the_repository_down_to_here(place: Path, tmp_path: Path) -> None:
    (place / ".git").mkdir()
    write(tmp_path / "AGENTS.md", "outside")
    write(tmp_path / "config/antiphon/AGENTS.md", "of the user")
    write(place / "AGENTS.md", "of the root")
    write(place / "CLAUDE.md", "not this one")
    write(place / "a/CLAUDE.md", "of a folder")
    write(place / "a/b/AGENTS.md", "of here")
    found = told(place / "a/b")
    places = [found.index(each) for each in ("of the user", "of the root", "of a folder", "of here")]
    assert places == sorted(places)
    assert "outside" not in found
    assert "not this one" not in found


def test_without_a_repository_that_of_the_folder_alone(place: Path) -> None:
    write(place / "AGENTS.md", "above")
    write(place / "a/AGENTS.md", "here")
    assert "here" in told(place / "a")
    assert "above" not in told(place / "a")


def test_guidance_is_read_for_each_request(place: Path) -> None:
    team, script = coder(place, model=(script := lines("one", "two"))), script
    from antiphon import run_sync

    write(place / "AGENTS.md", "first")
    run_sync(team, "go")
    write(place / "AGENTS.md", "second")
    run_sync(team, "go")
    assert ["first" in script.requests[0].system, "second" in script.requests[1].system] == [True, True]


def test_a_link_out_of_the_project_is_not_followed(place: Path, tmp_path: Path) -> None:
    write(tmp_path / "secret", "sk-secret")
    (place / "AGENTS.md").symlink_to(tmp_path / "secret")
    found = told(place)
    assert "sk-secret" not in found
    assert "leads out of the project" in found


def test_the_users_own_may_lie_anywhere(place: Path, tmp_path: Path) -> None:
    write(tmp_path / "dotfiles/AGENTS.md", "of the user")
    write(tmp_path / "dotfiles/skills/tides/SKILL.md", SKILL.format("tides", "Knows tides.", "Ebb."))
    (tmp_path / "config").mkdir()
    (tmp_path / "config/antiphon").symlink_to(tmp_path / "dotfiles")
    found = told(place)
    assert "of the user" in found
    assert "- tides: Knows tides." in found


def test_skills_and_commands_of_a_project_lie_in_it(place: Path, tmp_path: Path) -> None:
    write(tmp_path / "far/skills/tides/SKILL.md", SKILL.format("tides", "Knows tides.", "Ebb."))
    write(tmp_path / "far/commands/look.md", "Look.")
    (place / ".agents").symlink_to(tmp_path / "far")
    assert "tides" not in told(place)
    assert coder(place).said("/look") == "/look"
    assert findings(place).count("leads out of the project") == 2


def test_guidance_that_is_long_is_cut(place: Path) -> None:
    write(place / "AGENTS.md", "x" * 100_000)
    found = told(place)
    assert "cut off here" in found
    assert len(found) < 50_000


# -- skills ---------------------------------------------------------------------------------------


def test_a_skill_is_loaded_when_it_is_needed(place: Path) -> None:
    write(place / ".agents/skills/tides/SKILL.md", SKILL.format("tides", "Knows tides.", "Ebb, then flood."))
    write(place / ".agents/skills/tides/table.txt", "06:12 low\n")
    script = lines(call("skill", name="tides"), call("skill", name="tides", file="table.txt"), "done")
    ask(place, script)
    assert "- tides: Knows tides." in script.requests[0].system
    assert "Ebb" not in script.requests[0].system
    body, table = results_shown(script.requests[2])
    assert body.startswith("Ebb, then flood.")
    assert "- table.txt" in body
    assert table == "06:12 low\n"


@pytest.mark.parametrize("name", ["nowhere", "tides/../../.."])
def test_a_skill_that_there_is_not(place: Path, name: str) -> None:
    write(place / ".agents/skills/tides/SKILL.md", SKILL.format("tides", "Knows tides.", "Ebb."))
    script = lines(call("skill", name=name), call("skill", name="tides", file="../../../x"), "done")
    ask(place, script)
    assert [each.startswith("Error") for each in results_shown(script.requests[2])] == [True, True]


def test_the_nearer_of_two_skills_counts(place: Path, tmp_path: Path) -> None:
    write(tmp_path / "config/antiphon/skills/tides/SKILL.md", SKILL.format("tides", "The user's.", "far"))
    write(place / ".agents/skills/tides/SKILL.md", SKILL.format("tides", "The project's.", "near"))
    assert "The project's." in told(place)
    assert "The user's." not in told(place)


BROKEN = {
    "no head": ("Ebb.", ":1: begins with no front matter"),
    "no end": ("---\nname: x\n", ":1: the front matter has no second line"),
    "no name": ("---\ndescription: x\n---\nEbb.", ":1: the front matter needs `name: …`"),
    "no description": ("---\nname: x\n---\nEbb.", ":1: the front matter needs `description: …`"),
    "no YAML": ("---\nname: [x\n---\nEbb.", "is not YAML"),
    "a bad name": ("---\nname: No Name\ndescription: x\n---\nEbb.", "the name 'No Name' is none of a skill"),
    "a list": ("---\nname: [x]\ndescription: x\n---\nEbb.", ":2:7: name: expected a text"),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_skill_is_named_and_left_out(place: Path, broken: str) -> None:
    text, said = BROKEN[broken]
    write(place / ".agents/skills/bad/SKILL.md", text)
    write(place / ".agents/skills/good/SKILL.md", SKILL.format("good", "Is well.", "yes"))
    assert ".agents/skills/bad/SKILL.md" in findings(place)
    assert said in findings(place)
    assert "- good: Is well." in told(place)
    assert "- x" not in told(place)


def test_an_unknown_key_is_told_with_its_line(place: Path) -> None:
    text = "---\nname: tides\ndescription: Knows tides.\ndescriptoin: x\n---\nEbb."
    write(place / ".agents/skills/tides/SKILL.md", text)
    assert "SKILL.md:4:1: unknown key 'descriptoin'; did you mean 'description'?" in findings(place)
    assert "- tides: Knows tides." in told(place)


def test_all_that_is_wrong_is_told_at_once(place: Path) -> None:
    write(place / ".agents/skills/one/SKILL.md", "x")
    write(place / ".agents/skills/two/SKILL.md", "x")
    write(place / ".agents/rules.yaml", "allow: [x(]\npermit: []\n")
    write(place / ".agents/hooks.json", '{"hooks": {"PreTool": []}, "x": 1}')
    said = findings(place)
    for each in ("one/SKILL.md", "two/SKILL.md", "rules.yaml:2:1", "hooks.json:1:12", "hooks.json:1:28"):
        assert each in said, said


# -- commands -------------------------------------------------------------------------------------


def test_a_command_is_said_with_what_follows_its_name(place: Path) -> None:
    write(
        place / ".agents/commands/review.md", "---\ndescription: Reviews.\n---\nReview $ARGUMENTS, $1 first."
    )
    write(place / ".agents/commands/plain.md", "Just this.")
    team = coder(place)
    assert team.said("/review src docs") == "Review src docs, src first."
    assert team.said("/plain and more") == "Just this.\n\nand more"
    assert team.said("/plain") == "Just this."
    assert team.said("/nothing here") == "/nothing here"
    assert team.said("review src") == "review src"
    assert team.conventions.commands["review"].description == "Reviews."


def test_a_script_of_the_users_own_command_is_run(place: Path, tmp_path: Path) -> None:
    write(place / "a.txt", "x")
    write(tmp_path / "config/antiphon/commands/look.md", "There is !`ls` and !`exit 3`, $1.")
    said = coder(place).said("/look '!`touch bad`'")
    assert said == "There is a.txt and [`exit 3` failed with 3: ], !`touch bad`."
    assert not (place / "bad").exists()


def test_a_script_of_the_project_waits_for_trust(place: Path) -> None:
    path = write(place / ".agents/commands/look.md", "There is !`touch ran`.")
    team = coder(place)
    assert team.said("/look") == "/look"
    assert f"{path}: command, not trusted" in findings(place)
    team.conventions.trust_all()
    assert coder(place).said("/look") == "There is ."
    assert (place / "ran").exists()
    write(path, "There is !`touch other`.")
    assert coder(place).said("/look") == "/look"


# -- MCP servers ----------------------------------------------------------------------------------


def servers(place: Path) -> list[str]:
    return [each.name for each in coder(place).agents()[0].toolsets]


def test_servers_of_the_project_wait_for_trust_and_those_of_the_user_do_not(
    place: Path, tmp_path: Path
) -> None:
    write(tmp_path / "config/antiphon/mcp.json", json.dumps({"mcpServers": {"mine": {"command": "x"}}}))
    write(place / ".mcp.json", json.dumps({"mcpServers": {"theirs": {"command": "./serve", "args": ["."]}}}))
    write(place / "serve", "echo one")
    team = coder(place)
    assert [each.name for each in team.agents()[0].toolsets] == ["mine"]
    assert [each.runs for each in team.conventions.untrusted] == [("./serve .",)]
    coder(place).conventions.trust_all()
    assert [each.name for each in coder(place).agents()[0].toolsets] == ["mine", "theirs"]
    # What it starts is another program now.
    write(place / "serve", "echo two")
    assert [each.name for each in coder(place).agents()[0].toolsets] == ["mine"]


def test_a_wrong_file_of_servers_is_told(place: Path) -> None:
    write(place / ".mcp.json", '{"mcpServers": {"shop": {"comand": "x"}}}')
    assert ".mcp.json:1:26: mcpServers.shop.comand: unknown key" in findings(place)


def test_what_is_trusted_lies_outside_of_the_project(place: Path, tmp_path: Path) -> None:
    write(place / ".mcp.json", json.dumps({"mcpServers": {"theirs": {"command": "x"}}}))
    coder(place).conventions.trust_all()
    assert (tmp_path / "state/antiphon/trusted").stat().st_mode & 0o777 == 0o600
    assert not coder(place).conventions.untrusted


def test_what_is_trusted_in_one_folder_is_not_in_another(place: Path, tmp_path: Path) -> None:
    for folder in (place, tmp_path / "other"):
        write(folder / ".mcp.json", json.dumps({"mcpServers": {"theirs": {"command": "x"}}}))
    coder(place).conventions.trust_all()
    assert coder(tmp_path / "other").conventions.untrusted
