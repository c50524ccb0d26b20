"""Projects on disk: what may be a name, what project.yaml may say, teams that are read again, crashes."""

import os

import pytest

from antiphon import Agent, UserError
from antiphon.errors import ConfigError, UnknownName
from antiphon.host import HostedTeam
from antiphon.host.projects import ProjectFiles, Projects
from antiphon.host.projects.files import NameTaken
from antiphon.host.projects.names import check_project, parts_of
from antiphon.host.projects.project_file import parse, renamed
from antiphon.models.script import Script


def load(path, folder):
    name = path.read_text().strip()
    if not name:
        raise ConfigError("is empty", str(path), 1, 1)
    return HostedTeam((Agent(name, model=Script(["x"])),), source=folder)


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", ".hidden", "a" * 41, "con", "NUL.txt", "com1", "a.", "ä", "a b", "\x00"]
)
def test_what_cannot_be_a_folder_everywhere_is_no_project(name):
    with pytest.raises(UserError):
        check_project(name)


@pytest.mark.parametrize(
    "path",
    [
        "", "/", "/etc/passwd", "../x", "..", "a/../../b", "a//b", "a/", ".env", "a/.git/x", "a\\b", "C:x",
        "nul", "a/con.txt", "COM1", "x.", "x ", " x", "a\x00b", "a\nb", "a*", "1/2/3/4/5/6/7/8/9", "x" * 121,
        "a\u202eb", "é" * 121, "\ud800",
    ],
)  # fmt: skip
def test_a_path_that_leads_out_or_is_none_elsewhere_is_refused(path):
    with pytest.raises(UserError):
        parts_of(path)


def test_a_path_is_one_however_its_letters_are_composed():
    assert parts_of("Ma\u0308rz/a") == parts_of("M\u00e4rz/a") == ("M\u00e4rz", "a")


WRONG = {
    "names: x": "project.yaml:1:1: a project: unknown key 'names'; did you mean 'name'?",
    "mcp_servers: []": "project.yaml:1:1: a project: unknown key 'mcp_servers'; it is one of: name",
    "name: &a x\nowner: *a": "project.yaml:2:8: aliases (*name) are not allowed here; write it out",
    "name: !!python/object:os.system x": "project.yaml:1:7: the tag",
    "teams: [../other/team.yaml]": "project.yaml:1:9: a team's path stays inside of the project",
    "teams: [/etc/team.yaml]": "project.yaml:1:9: a team's path stays inside of the project",
    "teams: [files/team.yaml]": "project.yaml:1:9: nothing in files/ is a team",
    "teams: [Files/team.yaml]": "project.yaml:1:9: nothing in files/ is a team",
    "teams: ['x=team.py:desk']": "project.yaml:1:9: the team 'team.py:desk' is Python",
    "teams: ['x=desk.py']": "project.yaml:1:9: the team 'desk.py' is Python",
    "teams: [desk, desk]": "project.yaml:1:15: two teams are called 'desk'",
    "teams: [a/team.yaml, b/a.yml]": "project.yaml:1:22: two teams are called 'a'; write NAME=b/a.yml",
    "teams: ['a b=x.yaml']": "project.yaml:1:9: A team is named by",
    "rules: [{tool: pay}]": "project.yaml:1:9: a rule needs `verdict`",
    "rules: [{tool: pay, verdict: alow}]": "project.yaml:1:30: verdict: 'alow'; did you mean 'allow'?",
    "owner: 'a b'": "project.yaml:1:8: A owner is named by",
    "- x": "project.yaml:1:1: a project: expected `key: value` lines",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_project_yaml_may_not_say_is_told_with_its_place(text):
    with pytest.raises(ConfigError) as raised:
        parse(text, "tides", "project.yaml")
    assert str(raised.value).startswith(WRONG[text])


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", 'name: "N: x"\n'),
        ("# mine\nname: Old # why\nowner: ada\n", '# mine\nname: "N: x" # why\nowner: ada\n'),
        ("owner: ada", 'name: "N: x"\nowner: ada'),
        ("name: >\n  Old\nowner: ada\n", 'name: "N: x"\nowner: ada\n'),
        ("{owner: ada}", '{name: "N: x", owner: ada}'),
        ("{}", '{name: "N: x", }'),
        ("name: Old", 'name: "N: x"'),
    ],
)
def test_a_name_is_changed_and_nothing_else_of_the_file(text, wanted):
    assert renamed(text, "tides", "project.yaml", "N: x") == wanted


def test_a_team_is_read_again_when_its_file_or_the_projects_has_changed(tmp_path):
    projects = Projects(tmp_path / "made", load)
    projects.create("tides", owner="ada")
    home = tmp_path / "made/tides"
    (home / "project.yaml").write_text("owner: ada\nteams: [one=team.yaml, desk]\n")
    (home / "team.yaml").write_text("clerk")
    first = projects.team(projects.get("tides"), "one")
    assert [each.name for each in first.agents] == ["clerk"]
    assert first.source == home / "files"
    assert projects.team(projects.get("tides"), "one") is first
    (home / "team.yaml").write_text("another")
    assert projects.team(projects.get("tides"), "one").agents[0].name == "another"
    (home / "team.yaml").write_text("")
    with pytest.raises(UserError, match=r"one of project tides cannot be loaded: team.yaml:1:1: is empty"):
        projects.team(projects.get("tides"), "one")
    names, found = projects.teams(projects.get("tides"), {"desk": None})
    assert names == ["desk"]
    assert found.findings == ("The team one of project tides cannot be loaded: team.yaml:1:1: is empty",)
    (home / "project.yaml").write_text("owner: ada\nteams: [desk=team.yaml]\n")
    (home / "team.yaml").write_text("clerk")
    names, found = projects.teams(projects.get("tides"), {"desk": None})
    assert (names, found.findings) == (
        [], ("tides/project.yaml: the server has a team desk too; write NAME=team.yaml",),
    )  # fmt: skip


@pytest.mark.parametrize("link", ["team.yaml", "inner", "inner/profiles/x.yaml", "files"])
def test_a_team_behind_a_link_is_a_finding(tmp_path, link):
    outside = tmp_path / "outside"
    (outside / "profiles").mkdir(parents=True)
    for each in ("team.yaml", "x.yaml", "profiles/x.yaml"):
        (outside / each).write_text("clerk")
    projects = Projects(tmp_path / "made", lambda path, folder: load(outside / "x.yaml", folder))
    projects.create("tides", owner="ada")
    home = tmp_path / "made/tides"
    (home / "project.yaml").write_text("teams: [team.yaml, inner/]\n")
    (home / "team.yaml").write_text("clerk")
    (home / "inner/profiles").mkdir(parents=True)
    place = home / link
    if place.is_dir():
        for each in (place / "profiles", place):
            if each.is_dir():
                each.rmdir()
    place.unlink(missing_ok=True)
    place.symlink_to(outside / ("profiles" if link == "files" else link.removeprefix("inner").lstrip("/")))
    names, found = projects.teams(projects.get("tides"), {})
    assert len(names) == (0 if link == "files" else 1)
    assert any("link" in each for each in found.findings), found


def test_a_project_whose_file_is_wrong_is_shown_with_that_and_is_nobodys(tmp_path):
    projects = Projects(tmp_path, load)
    (tmp_path / "tides").mkdir()
    (tmp_path / "tides/project.yaml").write_text("owner: ada\nteam: x\n")
    (tmp_path / "empty").mkdir()
    (found,) = projects.all()
    assert (found.id, found.owner) == ("tides", "")
    assert found.findings == ("tides/project.yaml:2:1: a project: unknown key 'team'; did you mean 'teams'?",)
    with pytest.raises(UnknownName, match="Unknown project: empty"):
        projects.get("empty")
    with pytest.raises(ConfigError):
        projects.rename("tides", "x")
    assert (tmp_path / "tides/project.yaml").read_text() == "owner: ada\nteam: x\n"


@pytest.mark.parametrize("step", ["mkdir", "fsync", "rename", "replace"])
def test_what_is_cut_off_in_the_middle_leaves_what_was_there(tmp_path, monkeypatch, step):
    projects = Projects(tmp_path, load)
    projects.create("kept", "Kept", "ada")
    files = projects.get("kept").files
    upload = files.upload("a.txt")
    upload.write(b"old")
    upload.commit()
    upload.discard()

    def broken(*args, **kwargs):
        raise OSError(28, "No space left on device")

    def tried(work):
        with monkeypatch.context() as patched:
            patched.setattr(os, step, broken)
            try:
                work()
            except Exception as error:
                return str(error)

    def put():
        upload = files.upload("a.txt")
        try:
            upload.write(b"new")
            upload.commit()
        finally:
            upload.discard()

    said = [
        tried(lambda: projects.create("new")),
        tried(lambda: projects.rename("kept", "Other")),
        tried(put),
    ]
    assert any("No space left" in each for each in said if each), said
    if step != "mkdir":
        assert projects.get("kept").name in ("Kept", "Other")
    again = Projects(tmp_path, load)
    assert [each.id for each in again.all()] == ["kept"] if said[0] else ["kept", "new"]
    assert again.get("kept").files.read("a.txt", 10) == (b"old" if said[2] else b"new")
    assert [each for each in os.listdir(tmp_path / "kept/files") if each != "a.txt"] == []
    assert [each for each in os.listdir(tmp_path) if each.startswith(".new-")] == []


def test_what_a_dead_process_left_is_cleared_away(tmp_path):
    projects = Projects(tmp_path, load)
    projects.create("tides")
    upload = projects.get("tides").files.upload("a/b")
    upload.write(b"half")
    (tmp_path / ".gone-1/files").mkdir(parents=True)
    (tmp_path / ".new-1").mkdir()
    (tmp_path / ".new-2").mkdir()
    (draft,) = (tmp_path / "tides/files/a").iterdir()
    for each in (tmp_path / ".new-1", draft):
        os.utime(each, (1, 1))
    again = Projects(tmp_path, load)
    assert sorted(os.listdir(tmp_path)) == [".new-2", "tides"]
    assert list((tmp_path / "tides/files/a").iterdir()) == []
    assert again.get("tides").files.list() == []
    upload.discard()


def test_a_name_of_other_letters_is_another_name(tmp_path):
    projects = Projects(tmp_path, load)
    projects.create("Tides")
    with pytest.raises(UnknownName):
        projects.get("tides")
    with pytest.raises(NameTaken, match="There is a project Tides; give this one another name"):
        projects.create("tides")


def test_a_folder_that_became_a_link_on_the_way_is_not_followed(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    files = ProjectFiles(tmp_path / "files")
    upload = files.upload("a/b")
    # Between the first byte and the last one somebody swaps the folder.
    os.rename(tmp_path / "files/a", tmp_path / "files/moved")
    (tmp_path / "files/a").symlink_to(outside)
    upload.write(b"x")
    upload.commit()
    upload.discard()
    assert os.listdir(outside) == []
    assert os.listdir(tmp_path / "files/moved") == ["b"]
