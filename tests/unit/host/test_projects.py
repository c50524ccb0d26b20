"""Projects on disk: what may be a name, what project.yaml may say, teams that are read again, crashes."""

import asyncio
import os
from contextlib import aclosing

import pytest
from msgspec.structs import replace

from antiphon import Agent, UserError
from antiphon.errors import ConfigError, RunInUse, UnknownName
from antiphon.host import Host, HostedTeam
from antiphon.host.hosted import chosen_model
from antiphon.host.projects import ProjectFiles, Projects
from antiphon.host.projects.files import NameTaken
from antiphon.host.projects.names import check_project, parts_of
from antiphon.host.projects.project_file import parse, renamed
from antiphon.host.removal import ProjectBusy
from antiphon.host.starting import HostDraining, KeyUsed
from antiphon.journal import Labels
from antiphon.kernel.run.rows import fold
from antiphon.models.script import Script, call
from antiphon.testing.clock import VirtualClock
from tests.unit.host.hosts import answer_of, in_time, pay, rested, until


def load(path, project):
    name = path.read_text().strip()
    if not name:
        raise ConfigError("is empty", str(path), 1, 1)
    return HostedTeam((Agent(name, model=Script(["x"])),), source=project.files.folder)


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
    "mcp: []": "project.yaml:1:1: a project: unknown key 'mcp'",
    "mcp_servers: shop": "project.yaml:1:14: mcp_servers",
    "mcp_servers: [[shop]]": "project.yaml:1:15: an MCP server",
    "knowledge: [docs]": "project.yaml:1:12: knowledge",
    "knowledge: {a b: docs}": "project.yaml:1:12: knowledge: a source is named by 1 to 40 letters",
    "knowledge: {docs: [x]}": "project.yaml:1:19: docs",
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
    projects = Projects(tmp_path / "made", lambda path, project: load(outside / "x.yaml", project))
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
    with pytest.raises(NameTaken, match="There is a project tides, perhaps in other letters"):
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


def test_where_folders_cannot_be_opened_one_below_the_other_links_are_looked_for(tmp_path, monkeypatch):
    monkeypatch.setattr("antiphon.host.projects.files._BY_COMPONENT", False)
    files = ProjectFiles(tmp_path / "files")
    for path in ("a/b", "a/c", "d"):
        upload = files.upload(path)
        upload.write(path.encode())
        assert upload.commit().path == path
        upload.discard()
    assert [(each.path, each.size) for each in files.list()] == [("a/b", 3), ("a/c", 3), ("d", 1)]
    assert files.read("a/b", 10) == b"a/b"
    files.remove("a/b")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/x").write_text("secret")
    (tmp_path / "files/link").symlink_to(tmp_path / "outside")
    (tmp_path / "files/x").symlink_to(tmp_path / "outside/x")
    for path in ("link/x", "x"):
        with pytest.raises(UnknownName):
            files.read(path, 10)
    with pytest.raises(NameTaken):
        files.upload("link/y")
    assert [each.path for each in files.list()] == ["a/c", "d"]
    with pytest.raises(UserError, match="larger than 0 bytes"):
        files.read("d", 0)


def test_one_owner_has_so_many_projects(tmp_path, monkeypatch):
    monkeypatch.setattr("antiphon.host.projects.store.MAX_OWNED", 1)
    projects = Projects(tmp_path, load)
    projects.create("one", owner="ada")
    with pytest.raises(UserError, match="ada has 1 projects"):
        projects.create("two", owner="ada")
    projects.create("two", owner="bob")
    monkeypatch.setattr("antiphon.host.projects.store.MAX_PROJECTS", 2)
    with pytest.raises(UserError, match="There are 2 projects"):
        projects.create("three", owner="eve")


# -- runs of projects in a host -------------------------------------------------------------------


def held(model):
    """A loader of one agent that asks this model, whatever the file says."""
    return lambda path, folder: HostedTeam((Agent("clerk", model=model),))


async def unanswered(request):
    await asyncio.Event().wait()


def made(folder):
    """A folder with the project `tides`, which has a team of its own."""
    home = folder / "projects/tides"
    (home / "files").mkdir(parents=True)
    (home / "project.yaml").write_text("owner: ada\nteams: [team.yaml]\n")
    (home / "team.yaml").write_text("clerk")
    return folder / "projects", f"sqlite:///{folder}/runs.db"


def test_a_run_of_a_project_is_taken_up_with_the_projects_team(tmp_path):
    folder, url = made(tmp_path)

    async def main():
        asked = asyncio.Event()

        async def hangs(request):
            asked.set()
            await asyncio.Event().wait()

        projects = Projects(folder, held(Script(hangs)))
        async with Host(url, {}, projects=projects, drain_seconds=0) as host:
            labels = Labels("tides", "ada")
            run_id = (await host.start("team", "Hi", labels=labels)).run_id
            await asked.wait()
        async with Host(url, {}, projects=Projects(folder, held(Script(["It is back."])))) as host:
            return await answer_of(host, run_id)

    assert in_time(main) == "It is back."


@pytest.mark.parametrize(
    ("gone", "said"),
    [
        ("project", "It is a run of the team team in the project tides, and that project is not here"),
        ("team", "It is a run of the team team in the project tides, which is not here. Here: desk"),
        ("file", "The team team of project tides cannot be loaded: team.yaml: is not there"),
        ("yaml", "whose file is wrong: tides/project.yaml:1:1: a project: unknown key 'teem'"),
        ("projects", "It is a run of the team team, which is not here. Here: desk"),
    ],
)
def test_a_run_whose_project_or_team_is_gone_is_suspended_with_the_reason(tmp_path, gone, said):
    folder, url = made(tmp_path)
    home = folder / "tides"

    async def main():
        projects = Projects(folder, held(Script(unanswered)))
        async with Host(url, {}, projects=projects, drain_seconds=0) as host:
            run_id = (await host.start("team", "Hi", labels=Labels("tides", "ada"))).run_id
        if gone == "project":
            os.rename(home, tmp_path / "moved")
        elif gone == "team":
            (home / "project.yaml").write_text("owner: ada\n")
        elif gone == "file":
            (home / "team.yaml").unlink()
        elif gone == "yaml":
            (home / "project.yaml").write_text("teem: x\n")
        left = None if gone == "projects" else Projects(folder, held(Script(["never"])))
        desk = Agent("desk", model=Script(["never"]))
        async with Host(url, {"desk": desk}, projects=left) as host:
            hosted = host.runs[run_id]
            return hosted.state, hosted.reason

    state, reason = in_time(main)
    assert state == "suspended"
    assert said in reason


def test_a_model_and_a_policy_that_were_chosen_hold_as_long_as_the_run(tmp_path):
    """Also after a restart, and with another default; the run is no other run's business."""
    url = f"sqlite:///{tmp_path}/runs.db"
    for name in ("one", "two"):
        (tmp_path / f"{name}.yaml").write_text(f"- {name}\n- {name}\n- {name}\n")
    strings = [f"script:{tmp_path}/{name}.yaml" for name in ("one", "two")]
    team = HostedTeam((Agent("desk"),), model=strings[0], policy="guarded")

    async def options(host, run_id):
        return (await fold(host.journal, run_id)).options

    async def main():
        async with Host(url, {"desk": team}, models=strings) as host:
            chosen = await host.start("desk", "Hi", model=strings[1], policy="strict")
            assert await answer_of(host, chosen.run_id) == "two"
            plain = await host.start("desk", "Hi")
            assert await answer_of(host, plain.run_id) == "one"
            with pytest.raises(UnknownName, match=r"Unknown model: openai:gpt-x. Known: script:"):
                await host.start("desk", "Hi", model="openai:gpt-x")
            with pytest.raises(UserError, match="policy open allows more than guarded, which is the team's"):
                await host.start("desk", "Hi", policy="open")
            await host.start("desk", "Hi", key="k")
            with pytest.raises(KeyUsed):
                await host.start("desk", "Hi", key="k", policy="strict")
        async with Host(url, {"desk": team}) as host:
            async with host.connect(chosen.run_id) as run:
                await run.taken(await run.ask("desk", "Again"))
            assert await answer_of(host, chosen.run_id, 2) == "two"
            found, info = await options(host, chosen.run_id), await host.info(chosen.run_id)
            # What came from elsewhere does not choose what is asked here.
            assert await chosen_model(host.journal, replace(info, imported=True)) == ""
            return found.model, found.policy.preset, (await options(host, plain.run_id)).policy.preset

    assert in_time(main) == (strings[1], "strict", "guarded")


def test_the_rules_of_a_project_that_nobody_can_read_hold_its_runs_back(tmp_path):
    folder, url = made(tmp_path)

    async def main():
        projects = Projects(folder, held(Script(["x"])))
        async with Host(url, {"desk": Agent("desk", model=Script(["x", "x"]))}, projects=projects) as host:
            (folder / "tides/project.yaml").write_text("rules: [{tool: '*', verdict: deny}, {}]\n")
            with pytest.raises(UserError, match="The rules of project tides cannot be read"):
                await host.start("desk", "Hi", labels=Labels("tides", "ada"))
            (folder / "tides/project.yaml").write_text("rules: [{tool: '*', verdict: deny}]\n")
            run_id = (await host.start("desk", "Hi", labels=Labels("tides", "ada"))).run_id
            (rule,) = (await fold(host.journal, run_id)).owner.rules
            return rule.id, rule.verdict, rule.author

    assert in_time(main) == ("project.yaml:1", "deny", "tides/project.yaml")


def test_a_project_is_not_removed_while_a_run_begins_in_it(tmp_path):
    folder, url = made(tmp_path)

    async def main():
        async with Host(url, {}, projects=Projects(folder, held(Script(["x", "x"])))) as host:
            labels = Labels("tides", "ada")
            starting = asyncio.ensure_future(host.start("team", "Hi", labels=labels))
            await asyncio.sleep(0)
            with pytest.raises(ProjectBusy, match="A run begins in the project tides just now"):
                await host.delete_project("tides")
            run_id = (await starting).run_id
            await answer_of(host, run_id)
            removing = asyncio.ensure_future(host.delete_project("tides"))
            await asyncio.sleep(0)
            with pytest.raises(ProjectBusy, match="is being removed"):
                await host.start("team", "Hi", labels=labels)
            await removing
            with pytest.raises(UnknownName, match="Unknown project: tides"):
                await host.start("team", "Hi", labels=labels)

    in_time(main)


def test_a_question_that_waits_holds_its_project_also_when_the_run_was_let_go(tmp_path):
    folder, url = made(tmp_path)
    model = Script([call("pay", amount=3), "paid"], by="turn")
    clock = VirtualClock(autojump=False)

    async def main():
        team = HostedTeam((Agent("clerk", model=model, tools=[pay]),))
        projects = Projects(folder, lambda path, files: team)
        async with Host(url, {}, projects=projects, clock=clock) as host:
            run_id = (await host.start("team", "Pay", labels=Labels("tides", "ada"))).run_id
            await until(lambda: host.runs[run_id].run is not None)
            async with host.connect(run_id) as run, aclosing(run.events(deltas=False)) as events:
                async for _ in events:
                    if await run.open_questions():
                        break
            with pytest.raises(RunInUse):
                await host.delete_project("tides")
            await rested(host, clock, run_id)
            with pytest.raises(RunInUse):
                await host.delete_project("tides")
            await host.close(run_id)
            await host.delete_project("tides")

    in_time(main)


def test_a_host_that_is_left_meanwhile_begins_nothing(tmp_path):
    """A team is looked for in a thread; whoever leaves does not wait for that."""
    folder, url = made(tmp_path)

    async def main():
        async with Host(url, {}, projects=Projects(folder, held(Script(["x"])))) as host:
            starting = asyncio.ensure_future(host.start("team", "Hi", labels=Labels("tides", "ada")))
            await asyncio.sleep(0)
            await host.drain(0)
            with pytest.raises(HostDraining):
                await starting
            assert not host.runs
            assert not await host.journal.runs()

    in_time(main)
