"""The file of a server with several users: read as it stands, refused with the place."""

import json
import os

import pytest

from antiphon.errors import ConfigError
from antiphon.server.subjects import digest_of
from antiphon.server.users import FollowedUsers, read_users
from tests.unit.cli.conftest import shell  # noqa: F401 - the command in a folder of its own
from tests.unit.server.teams import ADA, BOB, desk, in_time, payer, served, started, until_asked

DIGEST = "a" * 64
ONE = f"users:\n- name: ada\n  token_sha256: {DIGEST}\n"


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("", "1:1", "is empty; expected `users`"),
        ("hosts: [x]", "1:1", "`users` is missing"),
        ("user: []", "1:1", "unknown key 'user'"),
        ("users: ada", "1:8", "users: expected a list"),
        ("users:\n- name: ada\n", "2:3", "`token_sha256` is missing"),
        ("users:\n- name: a b\n  token_sha256: x\n", "2:9", "name: expected 1 to 40 letters"),
        ("users:\n- name: ada\n  token_sha256: secret\n", "3:17", "token_sha256: expected the SHA-256"),
        (ONE + "  scopes: [write, admin]\n", "4:19", "a scope is read or write"),
        (ONE + "  sees_all: perhaps\n", "4:13", "sees_all is true or false"),
        (ONE + "  expires: soon\n", "4:12", "expires is a date"),
        (ONE + "  password: x\n", "4:3", "unknown key 'password'"),
        (ONE + f"- name: ada\n  token_sha256: {'b' * 64}\n", "4:3", "two users are named ada"),
        (ONE + f"- name: bob\n  token_sha256: {DIGEST}\n", "4:3", "two users have one token"),
        (ONE + "hosts: ['x:80']\n", "4:9", "hosts: expected a name or address"),
        (ONE + "origins: [ui.example.org]\n", "4:11", "origins: expected such as https://ui.example.org"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_where_it_stands(tmp_path, text, place, said):
    path = tmp_path / "users.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as error:
        read_users(str(path))
    assert str(error.value).startswith(f"{path}:{place}: "), str(error.value)
    assert said in str(error.value)
    # A token that was written instead of its digest is not told to whoever sees the error.
    assert "secret" not in str(error.value)


def test_another_address_needs_users_and_names(shell):  # noqa: F811
    shell.write("users.yaml", ONE)
    said = shell("serve", "team.yaml", "--host", "0.0.0.0", "--users", "users.yaml")
    assert said.code == 3
    assert "users.yaml:1:1: `hosts` is missing" in said.err


def test_a_new_token_and_the_lines_for_it(shell):  # noqa: F811
    said = shell("serve", "--new-token", "ada")
    assert said.code == 0
    first, _, lines = said.out.partition("\n\n")
    token = first.rpartition(" ")[2]
    shell.write("users.yaml", f"users:\n{lines}")
    (found,) = read_users("users.yaml").tokens
    assert (found.subject.name, found.digest) == ("ada", digest_of(token))
    assert shell("serve", "--new-token", "a b").code == 2


# -- read again -------------------------------------------------------------------------------------------


class Users:
    """A users file, and a clock by which it is followed."""

    def __init__(self, folder, *names):
        self.path, self.now, self.versions = folder / "users.yaml", 0.0, 0
        self.write(*names)
        self.followed = FollowedUsers(str(self.path), steady=lambda: self.now)

    def write(self, *names, more=""):
        lines = [f"- name: {name}\n  token_sha256: {digest_of(TOKENS[name])}\n" for name in names]
        self.write_text("users:\n" + "".join(lines) + more if names else "users: []\n")

    def write_text(self, text):
        self.versions += 1
        self.path.write_text(text)
        os.utime(self.path, (self.versions, self.versions))

    def later(self, seconds=1.0):
        self.now += seconds


TOKENS = {"ada": ADA, "bob": BOB}


def test_who_is_new_in_the_file_comes_in_and_who_is_gone_does_not(tmp_path):
    users = Users(tmp_path, "ada")

    async def work():
        async with served(
            {"desk": desk("Hello.")}, users=users.followed, tokens=users.followed.first.tokens
        ) as (
            client,
            _,
        ):
            ada, bob = client.as_(ADA), client.as_(BOB)
            assert [(await each("GET", "/runs")).status for each in (ada, bob)] == [200, 401]
            users.write("bob", more="hosts: [agents.example.org]\n")
            users.later(0.9)
            assert (await bob("GET", "/runs")).status == 401
            users.later(0.2)
            assert [(await each("GET", "/runs")).status for each in (ada, bob)] == [401, 200]
            bob.host = "agents.example.org"
            assert (await bob("GET", "/runs")).status == 200
            users.write("bob")
            users.later()
            assert (await bob("GET", "/runs")).status == 403

    in_time(work)


def test_what_was_opened_with_a_token_that_is_gone_from_the_file_ends(tmp_path):
    users = Users(tmp_path, "ada", "bob")

    async def work():
        async with served({"desk": payer()}, users=users.followed, tokens=users.followed.first.tokens) as (
            client,
            host,
        ):
            ada = client.as_(ADA)
            run_id = await started(ada)
            asked = await until_asked(ada, run_id)
            ticket = (await ada("POST", "/session")).json["ticket"]
            async with (
                ada.stream("GET", f"/runs/{run_id}/events") as stream,
                client.as_("").socket() as socket,
                client.as_("").socket() as late,
            ):
                await socket.ask({"type": "hello", "request_id": "h", "token": ADA})
                users.write("bob")
                users.later()
                # It does nothing more for her, also where nothing is said to her.
                stop = {"type": "stop_run", "request_id": "s", "run_id": run_id}
                socket.send(json.dumps(stop))
                while await socket.receive() is not None:
                    continue
                assert socket.closed == 1008
                late.send(json.dumps({"type": "hello", "request_id": "h", "ticket": ticket}))
                while await late.receive() is not None:
                    continue
                assert late.closed == 1008
                async with host.connect(run_id) as run:
                    await run.answer(asked["id"], "no")
                told = [(event, data) async for event, _, data in stream.events() if event == "end"]
                assert told == [("end", {"reason": "token"})]
                async with host.connect(run_id) as run:
                    assert not [each for each in await run.records() if each.type == "CancelRequested"]

    in_time(work)


def test_a_broken_file_changes_nothing_and_is_told_once_for_each_change(tmp_path, caplog):
    users = Users(tmp_path, "ada")
    users.write_text("users: [")
    for _ in range(3):
        users.later()
        assert users.followed.changed() is None
    users.path.unlink()
    users.later()
    assert users.followed.changed() is None
    users.write("bob")
    users.later()
    assert [each.subject.name for each in users.followed.changed().tokens] == ["bob"]
    told = [each.getMessage() for each in caplog.records if each.levelname == "ERROR"]
    assert len(told) == 2
    assert "users.yaml:" in told[0]
    assert "cannot be read" in told[1]
