"""Which server is asked, and with which token: whatever could lead it astray is refused."""

import pytest

from antiphon.cli.remote.address import MAX_TOKEN, checked_url, server_address
from antiphon.config.dotenv import environment
from antiphon.errors import ConfigError

GOOD = {
    "http://127.0.0.1:8000": "http://127.0.0.1:8000",
    "http://127.0.0.1:8000/": "http://127.0.0.1:8000",
    "http://127.8.8.8:1": "http://127.8.8.8:1",
    "http://[::1]:8000": "http://[::1]:8000",
    "http://LOCALHOST:8000": "http://LOCALHOST:8000",
    "https://agents.example.org": "https://agents.example.org",
    "https://agents.example.org/desk/": "https://agents.example.org/desk",
}
BAD = {
    "": "is none",
    "127.0.0.1:8000": "no address",
    "ftp://127.0.0.1": "no address",
    "http://": "no address",
    "file:///etc/passwd": "no address",
    "http://127.0.0.1:99999": "is none",
    "http://127.0.0.1:0": "no address",
    "http://ada:secret@127.0.0.1": "a name or a password",
    "https://t0ken@host.example": "a name or a password",
    "http://127.0.0.1:8000/#token=abcdefgh": "a `?` or `#`",
    "http://127.0.0.1/?token=abcdefgh": "a `?` or `#`",
    "http://127.0.0.1\x1b[2J": "is none",
    "http://127.0.0.1 /": "is none",
    "http://x" + "y" * 3_000: "is none",
    "http://agents.example.org": "another machine",
    "http://192.168.0.3:8000": "another machine",
    "http://localhost.example.org": "another machine",
    "http://127.0.0.1.example.org": "another machine",
    "http://[::1": "is none",
}


@pytest.mark.parametrize(("text", "url"), GOOD.items())
def test_an_address(text, url):
    assert checked_url(text) == url


@pytest.mark.parametrize(("text", "why"), BAD.items())
def test_what_is_no_address(text, why):
    with pytest.raises(ConfigError) as refused:
        checked_url(text)
    assert why in str(refused.value)
    for secret in ("secret", "t0ken", "abcdefgh", "\x1b"):
        assert secret not in str(refused.value)


def test_plain_http_to_another_machine_only_when_it_is_said():
    assert checked_url("http://agents.example.org", plain_http=True) == "http://agents.example.org"


def test_the_token_comes_from_the_environment_or_a_file(tmp_path):
    env = {"ANTIPHON_SERVER": "http://127.0.0.1:8000", "ANTIPHON_SERVER_TOKEN": "of the environment"}
    found = server_address(None, None, False, env)
    assert (found.url, found.token.reveal()) == ("http://127.0.0.1:8000", "of the environment")
    assert "of the environment" not in repr(found)
    file = tmp_path / "token"
    file.write_text("of a file\n")
    assert server_address("http://[::1]:1", str(file), False, env).token.reveal() == "of a file"
    for content in ("", "two\nlines", "x" * (MAX_TOKEN + 1), "caf\u00e9"):
        file.write_text(content)
        with pytest.raises(ConfigError) as refused:
            server_address("http://[::1]:1", str(file), False, env)
        assert str(file) in str(refused.value)
        assert not content or content not in str(refused.value)
    with pytest.raises(ConfigError, match="cannot be read"):
        server_address("http://[::1]:1", str(tmp_path / "none"), False, env)
    with pytest.raises(ConfigError, match="needs a token: set ANTIPHON_SERVER_TOKEN"):
        server_address("http://[::1]:1", None, False, {})


def test_a_folder_s_own_file_names_no_server_that_gets_the_shell_s_token(tmp_path):
    (tmp_path / ".env").write_text("ANTIPHON_SERVER=https://evil.example.org\n")
    env = environment(tmp_path / ".env", {"ANTIPHON_SERVER_TOKEN": "of the shell"})
    with pytest.raises(ConfigError, match="ANTIPHON_SERVER_TOKEN comes from") as refused:
        server_address(None, None, False, env)
    assert "of the shell" not in str(refused.value)
    # Typed, it is the person's own wish; and a file may have both.
    assert server_address("https://evil.example.org", None, False, env).token.reveal() == "of the shell"
    (tmp_path / ".env").write_text("ANTIPHON_SERVER=http://127.0.0.1:1\nANTIPHON_SERVER_TOKEN=of the file\n")
    assert (
        server_address(None, None, False, environment(tmp_path / ".env", {})).token.reveal() == "of the file"
    )
