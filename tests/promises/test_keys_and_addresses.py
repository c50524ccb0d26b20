"""A key is sent only to an address of its own layer or a more trusted one, or to the provider itself."""

import asyncio
import os

import pytest

from antiphon import Agent, run
from antiphon.config.dotenv import environment
from antiphon.config.endpoint import TRUSTED_URLS, Endpoint, paired
from antiphon.errors import ConfigError
from antiphon.models import resolve_model
from antiphon.models.providers.known import KNOWN, own_settings
from antiphon.styles.environment import Context
from antiphon.styles.environment.metagpt.settings import ModelSettings, read_settings
from antiphon.styles.environment.models import Models
from antiphon.styles.profiles import load_profiles
from antiphon.styles.profiles.model_config import thinking
from antiphon.testing.wire import WireServer

SHELL = "sk-the-shell's-own-key"
FOLDER = "sk-a-key-of-the-folder"
EVIL = "https://elsewhere.invalid/v1"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE", TRUSTED_URLS):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def settings(folder, dotenv, shell):
    (folder / ".env").write_text("".join(f"{name}={value}\n" for name, value in dotenv.items()))
    return environment(folder / ".env", shell)


def sent(env):
    """The key and the address that a model made from these settings is asked with."""
    found = paired(
        env, Endpoint("m", ("OPENAI_API_KEY",), ("OPENAI_BASE_URL",), ("https://api.openai.com/v1",))
    )
    return found.get("OPENAI_API_KEY", ""), found.get("OPENAI_BASE_URL", "")


def ask_in(folder, monkeypatch, dotenv, shell):
    """What a server has heard that `.env` names, when an agent runs in the folder."""

    async def main():
        async with WireServer() as server:
            await server.play()
            for name, value in shell.items():
                monkeypatch.setenv(name, value.replace("SERVER", server.url))
            text = "".join(f"{name}={value}\n" for name, value in dotenv.items())
            (folder / ".env").write_text(text.replace("SERVER", server.url))
            try:
                await run(Agent("a", model="openai:m"), "hello")
            except ConfigError as error:
                assert not server.heads
                return str(error)
            return b"".join(server.heads).decode()

    return asyncio.run(main())


def test_a_cloned_folder_gets_no_key_of_the_shell(folder, monkeypatch):
    said = ask_in(folder, monkeypatch, {"OPENAI_BASE_URL": "SERVER"}, {"OPENAI_API_KEY": SHELL})
    assert "OPENAI_API_KEY comes from the environment" in said
    assert "(OPENAI_BASE_URL) from .env" in said
    assert SHELL not in said


@pytest.mark.parametrize(
    ("dotenv", "shell", "key"),
    [
        ({"OPENAI_BASE_URL": "SERVER", "OPENAI_API_KEY": FOLDER}, {}, FOLDER),
        ({"OPENAI_BASE_URL": "SERVER", "OPENAI_API_KEY": FOLDER}, {"OPENAI_API_KEY": SHELL}, FOLDER),
        ({"OPENAI_API_KEY": FOLDER}, {"OPENAI_BASE_URL": "SERVER"}, FOLDER),
        ({"OPENAI_BASE_URL": "SERVER"}, {"OPENAI_API_KEY": SHELL, TRUSTED_URLS: "https://x SERVER/"}, SHELL),
        ({}, {"OPENAI_API_KEY": SHELL, "OPENAI_BASE_URL": "SERVER"}, SHELL),
        ({"OPENAI_BASE_URL": "SERVER"}, {"OPENAI_API_KEY": ""}, ""),
        ({"OPENAI_BASE_URL": "SERVER", "OPENAI_API_KEY": FOLDER}, {"OPENAI_API_KEY": ""}, ""),
    ],
)
def test_an_address_gets_the_key_that_belongs_to_it(folder, monkeypatch, dotenv, shell, key):
    heard = ask_in(folder, monkeypatch, dotenv, shell)
    assert (f"Bearer {key}" in heard) == bool(key)
    assert "Bearer" in heard or not key
    assert key == SHELL or SHELL not in heard


def test_a_folder_cannot_vouch_for_its_own_address(folder):
    env = settings(folder, {"OPENAI_BASE_URL": EVIL, TRUSTED_URLS: EVIL}, {"OPENAI_API_KEY": SHELL})
    with pytest.raises(ConfigError, match="is sent only to an address of its own place"):
        sent(env)


def test_the_provider_itself_may_be_named_anywhere(folder):
    home = "https://api.openai.com/v1/"
    env = settings(folder, {"OPENAI_BASE_URL": home}, {"OPENAI_API_KEY": SHELL})
    assert sent(env) == (SHELL, home)


@pytest.mark.parametrize(
    ("spec", "url", "key"),
    [
        ("gpt-x", "OPENAI_API_BASE", "OPENAI_API_KEY"),
        ("openai:x", "OPENAI_BASE_URL", "OPENAI_API_KEY"),
        ("ollama:x", "OLLAMA_HOST", "OLLAMA_API_KEY"),
        ("openrouter:x/y", "OPENROUTER_BASE_URL", "OPENROUTER_API_KEY"),
    ],
)
def test_every_compatible_endpoint_is_held_to_it(folder, spec, url, key):
    with pytest.raises(ConfigError, match=f"{key} comes from the settings given in code"):
        resolve_model(spec, settings(folder, {url: EVIL}, {key: SHELL}))


@pytest.mark.parametrize("name", sorted(name for name, known in KNOWN.items() if known.url))
def test_every_provider_is_held_to_it(folder, name):
    known = KNOWN[name]
    for key in known.secrets:
        env = settings(folder, {known.url: EVIL}, {key: SHELL})
        with pytest.raises(ConfigError, match=f"{key} comes from"):
            own_settings(known, f"{name}:x", env)


def test_what_an_sdk_sends_of_itself_stays_here_too(folder, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "x-gateway: secret")
    dotenv = {"ANTHROPIC_BASE_URL": EVIL, "ANTHROPIC_API_KEY": FOLDER}
    with pytest.raises(ConfigError, match="ANTHROPIC_CUSTOM_HEADERS comes from"):
        own_settings(KNOWN["anthropic"], "anthropic:x", settings(folder, dotenv, {}))
    env = settings(folder, {"AWS_ENDPOINT_URL_BEDROCK_RUNTIME": EVIL}, {"AWS_PROFILE": "work"})
    with pytest.raises(ConfigError, match="a credential that is not in the settings"):
        own_settings(KNOWN["bedrock"], "bedrock:x", env)


PROFILE = "name: helper\ntype: associate\nllm_config_ref: fast"


def config_of(folder, text):
    (folder / "llm_configs").mkdir()
    (folder / "profiles").mkdir()
    (folder / "llm_configs/fast.yaml").write_text(f"name: fast\nconfig:\n{text}")
    (folder / "profiles/helper.yaml").write_text(PROFILE)
    return load_profiles(folder).llm_config("fast")


@pytest.mark.parametrize(
    "text",
    [
        f"  model: openai/m\n  base_url: {EVIL}",
        f"  model: openai/m\n  base_url: {EVIL}\n  api_key: {{_type: from_env, var: OPENAI_API_KEY}}",
        f"  model: openai/m\n  base_url: {EVIL}\n  api_key: {{_type: from_env, var: AWS_SECRET_ACCESS_KEY}}",
        "  model: openai/m\n  base_url: {_type: from_env, var: NONE, default: '" + EVIL + "'}",
    ],
)
def test_a_profile_that_names_a_server_gets_no_key_of_the_shell(folder, text):
    shell = {"OPENAI_API_KEY": SHELL, "AWS_SECRET_ACCESS_KEY": SHELL}
    with pytest.raises(
        ConfigError, match=r"OPENAI_API_KEY comes from .* \(OPENAI_BASE_URL\) from .*fast.yaml"
    ):
        thinking(config_of(folder, text), shell)


def test_a_profile_cannot_send_a_key_as_a_setting(folder):
    text = f"  model: m\n  base_url: {EVIL}\n  user: {{_type: from_env, var: GITHUB_TOKEN}}"
    with pytest.raises(ConfigError, match="user is a secret"):
        thinking(config_of(folder, text), {"GITHUB_TOKEN": SHELL})


def test_a_profile_may_name_the_variables_of_both(folder):
    text = (
        "  model: openai/m\n  base_url: {_type: from_env, var: MY_URL}\n"
        "  api_key: {_type: from_env, var: MY_KEY}"
    )
    found = thinking(config_of(folder, text), {"MY_URL": EVIL, "MY_KEY": SHELL})
    assert found.model.base_url == EVIL


def test_a_settings_file_that_names_a_server_gets_no_key_of_the_shell(folder, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", SHELL)
    path = folder / "config2.yaml"
    for key in ("", ", api_key_env: OPENAI_API_KEY"):
        path.write_text(f"llm: {{model: m, base_url: '{EVIL}'{key}}}")
        with pytest.raises(ConfigError, match="comes from the environment, but its address"):
            _ = Models(Context(read_settings(path)), None).any
    # Whoever writes the address in code means it.
    made = ModelSettings("openai:m", EVIL, api_key_env="OPENAI_API_KEY").environment(os.environ)
    assert resolve_model("openai:m", made).base_url == EVIL
    keyed = ModelSettings("openai:m", api_key_env="OPENAI_API_KEY")
    with pytest.raises(ConfigError, match="comes from the settings made in code"):
        resolve_model("openai:m", keyed.environment(settings(folder, {"OPENAI_BASE_URL": EVIL}, os.environ)))
