"""Projects over HTTP: whose they are, their teams and files, runs in them and between them."""

import asyncio
import os
from contextlib import asynccontextmanager

from antiphon.host import HostedTeam
from antiphon.host.projects import Projects
from antiphon.host.projects.files import MAX_FILE
from antiphon.kernel.run.standing import keep_rule
from antiphon.models.script import call
from antiphon.values.policy import StandingRule
from tests.unit.server.teams import (
    ADA,
    BOB,
    USERS,
    desk,
    in_time,
    payer,
    served,
    started,
    until_asked,
    until_done,
)

TEAMS = {"clerk": lambda: desk("From the project.", name="clerk"), "payer": payer}


def load(path, project):
    """A team that a file names by a word: the loader of these tests."""
    word = path.read_text().strip()
    return HostedTeam((TEAMS[word](),), policy="guarded")


def write(folder, project, text="", **files):
    home = folder / project
    (home / "files").mkdir(parents=True)
    (home / "project.yaml").write_text(text)
    for name, content in files.items():
        (home / f"{name}.yaml").write_text(content)
    return home


@asynccontextmanager
async def with_projects(folder, teams=None, **options):
    projects = Projects(folder, load)
    async with served(
        {"desk": desk("Served.")} if teams is None else teams, tokens=USERS, projects=projects, **options
    ) as (client, host):
        yield client.as_(ADA), client.as_(BOB), client, host


def test_a_project_is_made_listed_renamed_and_deleted_with_confirmation(tmp_path):
    async def work():
        async with with_projects(tmp_path) as (ada, bob, everybody, _):
            made = await ada("POST", "/projects", {"project": "tides", "name": "The tides"})
            assert made.status == 201
            assert made.json == {
                "project": "tides", "name": "The tides", "owner": "ada", "teams": ["desk"], "runs": 0,
                "files": 0, "findings": [],
            }  # fmt: skip
            assert (await ada("GET", "/projects")).json["projects"] == [made.json]
            assert (await everybody("GET", "/projects")).json["projects"] == [made.json]
            assert (await bob("GET", "/projects")).json["projects"] == []
            renamed = await ada("PATCH", "/projects/tides", {"name": 'Ebb & flow: "x"'})
            assert renamed.json["name"] == 'Ebb & flow: "x"'
            assert (await ada("GET", "/projects/tides")).json == renamed.json | {"rules": []}
            for query in ("", "?confirm=", "?confirm=Tides"):
                refused = await ada("DELETE", f"/projects/tides{query}")
                assert (refused.status, refused.json["type"]) == (409, "urn:antiphon:problem:unconfirmed")
            assert (await ada("DELETE", "/projects/tides?confirm=tides")).status == 204
            assert (await ada("GET", "/projects/tides")).status == 404
            assert os.listdir(tmp_path) == []

    in_time(work)


def test_names_that_some_systems_take_for_one_are_not_both_there(tmp_path):
    async def work():
        async with with_projects(tmp_path) as (ada, bob, *_):
            replies = await asyncio.gather(
                *[
                    each("POST", "/projects", {"project": name})
                    for each in (ada, bob)
                    for name in ("Tides", "tides")
                ]
            )
            assert sorted(each.status for each in replies) == [201, 409, 409, 409]
            assert len(os.listdir(tmp_path)) == 1

    in_time(work)


def test_another_users_project_is_told_of_as_none_is(tmp_path):
    write(tmp_path, "nobodys", "name: Old\n")

    async def work():
        async with with_projects(tmp_path) as (ada, bob, everybody, _):
            await ada("POST", "/projects", {"project": "tides"})
            for asked in (
                ("GET", ""), ("PATCH", "", {"name": "x"}), ("DELETE", "?confirm=PROJECT"), ("GET", "/files"),
                ("PUT", "/files/a", b"x"), ("GET", "/files/a"), ("DELETE", "/files/a"),
            ):  # fmt: skip
                method, rest, *body = asked
                hidden, missing = [
                    await bob(method, f"/projects/{name}{rest.replace('PROJECT', name)}", *body)
                    for name in ("tides", "nobodys")
                ]
                none = await bob(method, f"/projects/none{rest.replace('PROJECT', 'none')}", *body)
                for found, name in ((hidden, b"tides"), (missing, b"nobodys")):
                    assert (found.status, found.body) == (404, none.body.replace(b"none", name, 1)), asked
            assert (
                await bob("POST", "/runs", {"team": "desk", "message": "x", "project": "tides"})
            ).status == 404
            assert (await bob("GET", "/teams?project=tides")).status == 404
            # What nobody owns is seen by those who see everything.
            assert (await everybody("GET", "/projects/nobodys")).json["name"] == "Old"

    in_time(work)


def test_a_websocket_knows_projects_as_http_does(tmp_path):
    write(tmp_path, "tides", "owner: ada\nteams: [own.yaml]\n", own="clerk")

    async def work():
        async with with_projects(tmp_path) as (ada, *_), ada.as_("").socket() as socket:
            await socket.ask({"type": "hello", "request_id": "h", "token": BOB})
            start = {
                "type": "start_run",
                "request_id": "1",
                "team": "own",
                "message": "Hi",
                "project": "tides",
            }
            tools = {
                "type": "request_available_toolsets",
                "request_id": "2",
                "team": "own",
                "project": "tides",
            }
            for message in (start, tools):
                assert (await socket.ask(message))["code"] == "unknown_project"
            async with ada.as_("").socket() as hers:
                await hers.ask({"type": "hello", "request_id": "h", "token": ADA})
                assert (await hers.ask(tools))["toolsets"] == {"clerk": []}
                run_id = (await hers.ask(start | {"policy": "strict"}))["run_id"]
                await until_done(ada, run_id)
                looser = await hers.ask(start | {"policy": "open"})
                assert (looser["code"], looser["problem"]["status"]) == ("refused", 400)
                model = await hers.ask(start | {"model": "openai:gpt-x"})
                assert model["code"] == "unknown_name"
                profiles = {"type": "request_run_profiles", "request_id": "3", "run_id": run_id}
                assert (await hers.ask(profiles))["team"]["agents"][0]["name"] == "clerk"

    in_time(work)


def test_files_come_and_go_as_they_are(tmp_path):
    data = bytes(range(256)) * 5_000

    async def work():
        async with with_projects(tmp_path) as (ada, *_):
            await ada("POST", "/projects", {"project": "tides"})
            stored = await ada("PUT", "/projects/tides/files/data/März 1.bin", data)
            assert (stored.status, stored.json["path"]) == (200, "data/März 1.bin")
            assert stored.json["size"] == len(data)
            listed = (await ada("GET", "/projects/tides/files")).json["files"]
            assert listed == [stored.json]
            found = await ada("GET", "/projects/tides/files/data/März 1.bin")
            assert found.body == data
            assert found.headers["content-disposition"] == "attachment; filename*=UTF-8''M%C3%A4rz%201.bin"
            assert found.headers["x-content-type-options"] == "nosniff"
            assert found.headers["content-type"] == "application/octet-stream"
            assert (await ada("PUT", "/projects/tides/files/data/März 1.bin", b"x")).json["size"] == 1
            assert (await ada("GET", "/projects/tides")).json["files"] == 1
            assert (await ada("DELETE", "/projects/tides/files/data/März 1.bin")).status == 204
            assert (await ada("GET", "/projects/tides/files/data/März 1.bin")).status == 404
            assert os.listdir(tmp_path / "tides/files") == []

    in_time(work)


def test_a_name_that_leads_out_or_is_none_elsewhere_is_refused(tmp_path):
    async def work():
        async with with_projects(tmp_path) as (ada, *_):
            for name in ("", "..", "a/b", "con", "a."):
                refused = await ada("POST", "/projects", {"project": name})
                assert (refused.status, refused.json["type"]) == (400, "urn:antiphon:problem:refused")
            await ada("POST", "/projects", {"project": "tides"})
            before = sorted(each for _, _, names in os.walk(tmp_path) for each in names)
            for path in ("../project.yaml", "a/../../b", ".env", "a\\b", "nul", "a\x00b"):
                for method, body in (("PUT", b"x"), ("GET", None), ("DELETE", None)):
                    refused = await ada(method, f"/projects/tides/files/{path}", body)
                    assert refused.status in (400, 404), (method, refused)
            assert sorted(each for _, _, names in os.walk(tmp_path) for each in names) == before

    in_time(work)


def test_links_and_devices_are_never_followed(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    projects = tmp_path / "projects"
    files = write(projects, "tides", "owner: ada\n") / "files"
    (files / "folder").symlink_to(outside)
    (files / "link").symlink_to(outside / "secret")
    os.link(outside / "secret", files / "hard")
    os.mkfifo(files / "pipe")

    async def work():
        async with with_projects(projects) as (ada, *_):
            assert (await ada("GET", "/projects/tides/files")).json["files"] == []
            for path in ("link", "hard", "pipe", "folder/secret"):
                assert (await ada("GET", f"/projects/tides/files/{path}")).status == 404, path
                assert (await ada("DELETE", f"/projects/tides/files/{path}")).status == 404, path
            assert (await ada("PUT", "/projects/tides/files/folder/secret", b"x")).status == 409
            assert (await ada("PUT", "/projects/tides/files/folder/new/x", b"x")).status == 409
            # A link in its place is replaced, and what it led to stays.
            assert (await ada("PUT", "/projects/tides/files/link", b"mine")).status == 200
            assert (outside / "secret").read_text() == "secret"
            assert os.listdir(outside) == ["secret"]

    in_time(work)


def test_a_file_in_the_place_of_a_folder_and_other_letters_are_refused(tmp_path):
    async def work():
        async with with_projects(tmp_path) as (ada, *_):
            await ada("POST", "/projects", {"project": "tides"})
            assert (await ada("PUT", "/projects/tides/files/Data/a", b"1")).status == 200
            for path in ("Data", "data/b", "Data/A", "Data/a/b"):
                refused = await ada("PUT", f"/projects/tides/files/{path}", b"2")
                assert (refused.status, refused.json["type"]) == (409, "urn:antiphon:problem:name_taken"), (
                    path
                )
            listed = (await ada("GET", "/projects/tides/files")).json["files"]
            assert [(each["path"], each["size"]) for each in listed] == [("Data/a", 1)]
            assert [name for _, _, names in os.walk(tmp_path / "tides/files") for name in names] == ["a"]

    in_time(work)


def test_a_file_above_the_bound_is_refused_before_and_while_it_comes(tmp_path):
    async def work():
        async with with_projects(tmp_path) as (ada, *_):
            await ada("POST", "/projects", {"project": "tides"})
            told = await ada("PUT", "/projects/tides/files/big", b"x", content_length=str(MAX_FILE + 1))
            assert (told.status, told.json["type"]) == (413, "urn:antiphon:problem:too_large")
            lied = await ada("PUT", "/projects/tides/files/big", b"x" * (MAX_FILE + 1), content_length="1")
            assert (lied.status, lied.json["type"]) == (413, "urn:antiphon:problem:too_large")
            assert [each for _, _, names in os.walk(tmp_path / "tides/files") for each in names] == []

    in_time(work)


def test_a_project_has_so_many_files_and_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr("antiphon.host.projects.files.MAX_FILES", 2)
    monkeypatch.setattr("antiphon.host.projects.files.MAX_TOTAL", 10)

    async def work():
        async with with_projects(tmp_path) as (ada, *_):
            await ada("POST", "/projects", {"project": "tides"})
            put = [await ada("PUT", f"/projects/tides/files/{each}", b"12345") for each in "abc"]
            assert [each.status for each in put] == [200, 200, 409]
            assert put[2].json["type"] == "urn:antiphon:problem:full"
            assert (await ada("PUT", "/projects/tides/files/a", b"123456")).status == 409
            assert (await ada("PUT", "/projects/tides/files/a", b"1")).status == 200

    in_time(work)


class Slow:
    """An upload whose end the test says: what was sent so far, and how it ends."""

    def __init__(self, client, path):
        self.sent, self.began, self.ends = [], asyncio.Event(), asyncio.get_running_loop().create_future()
        headers = {"content-type": "text/plain"}
        self.task = asyncio.ensure_future(
            client.app(client.scope("http", path, headers, method="PUT"), self.receive, self.send)
        )

    async def receive(self):
        if not self.began.is_set():
            self.began.set()
            return {"type": "http.request", "body": b"half", "more_body": True}
        return await asyncio.shield(self.ends)

    async def send(self, message):
        self.sent.append(message)

    async def end(self, message):
        self.ends.set_result(message)
        await asyncio.wait((self.task,))
        return self.sent[0]["status"] if self.sent else None


def test_who_leaves_in_the_middle_of_an_upload_leaves_nothing(tmp_path):
    async def work():
        async with with_projects(tmp_path) as (ada, *_):
            await ada("POST", "/projects", {"project": "tides"})
            await ada("PUT", "/projects/tides/files/a", b"old")
            slow = [Slow(ada, f"/projects/tides/files/{name}") for name in ("a", "b", "c", "d")]
            for each in slow:
                await each.began.wait()
            refused = await ada("PUT", "/projects/tides/files/e", b"x")
            assert (refused.status, refused.json["type"]) == (429, "urn:antiphon:problem:uploads")
            # A reader has the old one until the new one is there.
            assert (await ada("GET", "/projects/tides/files/a")).body == b"old"
            for each in slow[:3]:
                await each.end({"type": "http.disconnect"})
            assert (
                await slow[3].end({"type": "http.request", "body": b" and half", "more_body": False}) == 200
            )
            found = {name for _, _, names in os.walk(tmp_path / "tides/files") for name in names}
            assert found == {"a", "d"}
            assert (await ada("GET", "/projects/tides/files/a")).body == b"old"
            assert (await ada("GET", "/projects/tides/files/d")).body == b"half and half"
            assert (await ada("PUT", "/projects/tides/files/e", b"x")).status == 200

    in_time(work)


def test_a_project_that_is_removed_under_an_upload_stays_removed(tmp_path):
    async def work():
        async with with_projects(tmp_path) as (ada, bob, *_):
            await ada("POST", "/projects", {"project": "tides"})
            slow = Slow(ada, "/projects/tides/files/a")
            await slow.began.wait()
            assert (await ada("DELETE", "/projects/tides?confirm=tides")).status == 204
            await bob("POST", "/projects", {"project": "tides"})
            assert await slow.end({"type": "http.request", "body": b"", "more_body": False}) == 404
            assert (await bob("GET", "/projects/tides/files")).json["files"] == []

    in_time(work)


def test_names_that_are_given_at_once_leave_one_of_them(tmp_path):
    write(tmp_path, "tides", "# kept\nowner: ada\nrules: []\n")

    async def work():
        async with with_projects(tmp_path) as (ada, *_):
            names = [f"Name {number}" for number in range(20)]
            replies = await asyncio.gather(
                *[ada("PATCH", "/projects/tides", {"name": each}) for each in names]
            )
            assert {each.status for each in replies} == {200}
            assert (await ada("GET", "/projects/tides")).json["name"] in names
            text = (tmp_path / "tides/project.yaml").read_text()
            assert text.startswith("# kept\n")
            assert text.endswith("owner: ada\nrules: []\n")
            assert sorted(os.listdir(tmp_path / "tides")) == ["files", "project.yaml"]

    in_time(work)


def test_a_run_of_a_project_is_of_its_own_team_and_sees_its_files_enclosed(tmp_path):
    write(tmp_path, "tides", "owner: ada\nteams: [desk, own=own.yaml, gone]\n", own="clerk")

    async def work():
        async with with_projects(tmp_path) as (ada, *_):
            found = (await ada("GET", "/projects/tides")).json
            assert found["teams"] == ["desk", "own"]
            assert found["findings"] == ["tides/project.yaml: the server has no team gone. It has: desk"]
            assert [each["name"] for each in (await ada("GET", "/teams?project=tides")).json["teams"]] == [
                "desk",
                "own",
            ]
            assert (await ada("GET", "/teams/own?project=tides")).json["agents"][0]["name"] == "clerk"
            assert (await ada("GET", "/teams/own")).status == 404
            await ada("PUT", "/projects/tides/files/a.csv", b"1,2")
            run_id = await started(ada, "own", project="tides", files=["a.csv"])
            tree = await until_done(ada, run_id)
            assert tree["activations"][1]["content"] == "From the project."
            assert tree["messages"][0]["attachments"] == [
                {"media_type": "text/csv", "data": "MSwy", "name": "a.csv"}
            ]
            assert (await ada("GET", "/projects/tides")).json["runs"] == 1
            for wrong in (
                {"files": ["none"]}, {"files": ["../project.yaml"]}, {"team": "payer"},
                {"team": "desk", "project": "", "files": ["a.csv"]}, {"files": list("abcdefghijk")},
            ):  # fmt: skip
                body = {"team": "own", "message": "x", "project": "tides"} | wrong
                assert (await ada("POST", "/runs", body)).status in (400, 404), wrong

    in_time(work)


def test_a_run_moves_to_where_its_team_is(tmp_path):
    write(tmp_path, "tides", "owner: ada\nteams: [own.yaml]\n", own="payer")
    write(tmp_path, "moon", "owner: ada\nteams: [own.yaml]\n", own="clerk")
    write(tmp_path, "sun", "owner: ada\n")
    write(tmp_path, "bobs", "owner: bob\n")

    async def work():
        async with with_projects(tmp_path) as (ada, *_):
            plain = await started(ada, "desk")
            await until_done(ada, plain)
            moved = await ada("PATCH", f"/runs/{plain}", {"project": "sun", "name": "Noon"})
            assert (moved.json["project"], moved.json["name"]) == ("sun", "Noon")
            assert (await ada("PATCH", f"/runs/{plain}", {"project": ""})).json["project"] == ""
            assert (await ada("PATCH", f"/runs/{plain}", {"project": "bobs"})).status == 404
            assert (await ada("PATCH", f"/runs/{plain}", {"project": "none"})).status == 404
            own = await started(ada, "own", project="tides")
            asked = await until_asked(ada, own)
            refused = await ada("PATCH", f"/runs/{own}", {"project": "sun"})
            assert (refused.status, refused.json["type"]) == (409, "urn:antiphon:problem:not_moved")
            assert refused.json["title"] == (
                "Not moved: It is a run of the team own in the project sun, which is not here. Here: desk"
            )
            busy = await ada("PATCH", f"/runs/{own}", {"project": "moon"})
            assert (busy.status, busy.json["type"]) == (409, "urn:antiphon:problem:in_use")
            assert (await ada("GET", f"/runs/{own}")).json["project"] == "tides"
            answer = {"question": asked["id"], "content": "no"}
            assert (await ada("POST", f"/runs/{own}/answers", answer)).status == 202
            await until_done(ada, own)
            assert (await ada("PATCH", f"/runs/{own}", {"project": "moon"})).json["project"] == "moon"
            # It goes on there, with that project's team.
            again = await ada("POST", f"/runs/{own}/requests", {"agent": "clerk", "message": "Again"})
            assert again.status == 202
            tree = await until_done(ada, own, 2)
            assert tree["activations"][-1]["content"] == "From the project."

    in_time(work)


def test_a_project_is_not_deleted_under_a_run_at_work(tmp_path):
    write(tmp_path, "tides", "owner: ada\nteams: [own.yaml]\n", own="payer")

    async def work():
        async with with_projects(tmp_path) as (ada, *_):
            run_id = await started(ada, "own", project="tides")
            await until_asked(ada, run_id)
            refused = await ada("DELETE", "/projects/tides?confirm=tides")
            assert (refused.status, refused.json["type"]) == (409, "urn:antiphon:problem:in_use")
            await ada("POST", f"/runs/{run_id}/close", {})
            assert (await ada("DELETE", "/projects/tides?confirm=tides")).status == 204
            assert (await ada("GET", f"/runs/{run_id}")).json["project"] == "tides"

    in_time(work)


def test_always_holds_in_the_project_for_whoever_was_told_so(tmp_path):
    write(tmp_path, "tides", "owner: ada\n")

    async def work():
        teams = {"desk": desk(call("pay", amount=3), "done", tools=payer().tools)}
        async with with_projects(tmp_path, teams) as (ada, bob, _, host):
            run_id = await started(ada, project="tides")
            asked = await until_asked(ada, run_id)
            for wrong in ({"content": "yes"}, {"content": "no"}):
                body = {"question": asked["id"], "scope": "project"} | wrong
                assert (await ada("POST", f"/runs/{run_id}/answers", body)).status == 400
            body = {"question": asked["id"], "content": "always", "scope": "project"}
            assert (await ada("POST", f"/runs/{run_id}/answers", body)).status == 202
            rules = (await ada("GET", "/projects/tides")).json["rules"]
            assert [(each["tool"], each["verdict"], each["author"]) for each in rules] == [
                ("pay", "allow", "ada")
            ]
            await until_done(ada, run_id)
            # The next run of the project asks no more; one outside of it, and another's, does.
            await until_done(ada, await started(ada, project="tides"))
            assert await until_asked(ada, await started(ada))
            assert await until_asked(bob, await started(bob))
            # A rule for an owner holds wherever that owner's runs are.
            run_id = await started(ada)
            body = {"question": (await until_asked(ada, run_id))["id"], "content": "always", "scope": "owner"}
            assert (await ada("POST", f"/runs/{run_id}/answers", body)).status == 202
            await until_done(ada, await started(ada))
            assert await until_asked(bob, await started(bob))
            # Whoever made a rule may take it back; what others made stays, with the project's file.
            operators = StandingRule("rule-1", "project", "tides", "pay", "deny", author="eve")
            await keep_rule(host.journal, operators)
            ids = [each["id"] for each in (await ada("GET", "/projects/tides")).json["rules"]]
            assert len(ids) == 2
            dropped = {each: (await ada("DELETE", f"/rules/{each}")).status for each in ids}
            assert dropped == {"rule-1": 403, rules[0]["id"]: 204}
            assert (await ada("DELETE", "/rules/none")).status == 404
            assert (await bob("DELETE", "/rules/rule-1")).status == 404
            assert [each["id"] for each in (await ada("GET", "/projects/tides")).json["rules"]] == ["rule-1"]
            # With the project its rules are gone.
            assert (await ada("DELETE", "/projects/tides?confirm=tides")).status == 204
            await bob("POST", "/projects", {"project": "tides"})
            assert (await bob("GET", "/projects/tides")).json["rules"] == []

    in_time(work)


def test_without_a_folder_there_are_no_projects():
    async def work():
        async with served({"desk": desk("x")}, tokens=USERS) as (client, _):
            assert (await client("GET", "/projects")).json == {"projects": []}
            refused = await client("POST", "/projects", {"project": "x"})
            assert (refused.status, refused.json["type"]) == (409, "urn:antiphon:problem:no_projects")
            assert (await client("GET", "/projects/x")).status == 404
            # A project is a mere label then.
            run_id = await started(client, project="rent")
            assert (await client("GET", f"/runs/{run_id}")).json["project"] == "rent"

    in_time(work)
