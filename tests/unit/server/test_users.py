"""The file of a server with several users: read as it stands, refused with the place."""

import pytest

from antiphon.errors import ConfigError
from antiphon.server.users import read_users
from tests.unit.cli.conftest import shell  # noqa: F401 - the command in a folder of its own

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
    from antiphon.server.subjects import digest_of

    assert (found.subject.name, found.digest) == ("ada", digest_of(token))
    assert shell("serve", "--new-token", "a b").code == 2
