"""From strings, settings and `.env` files to models."""

import asyncio
import copy
import dataclasses
import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.config.dotenv import environment, parse_dotenv
from antiphon.errors import ConfigError, ModelError
from antiphon.models import default_model, resolve_model
from antiphon.models.openai import OpenAIModel
from antiphon.models.script import Script
from antiphon.testing.wire import WireServer
from antiphon.values.model import ModelRequest
from antiphon.values.secret import Secret

KEY = {"OPENAI_API_KEY": "sk-1"}
OPENAI = "https://api.openai.com/v1"


@pytest.mark.parametrize(
    ("spec", "env", "model", "url", "name"),
    [
        ("openai:gpt-x", KEY, "gpt-x", OPENAI, "openai:gpt-x"),
        ("openai/gpt-x", KEY, "gpt-x", OPENAI, "openai:gpt-x"),
        ("OpenAI:gpt-x", KEY, "gpt-x", OPENAI, "openai:gpt-x"),
        (" gpt-x ", KEY, "gpt-x", OPENAI, "openai:gpt-x"),
        ("ft:gpt-x:org", KEY, "ft:gpt-x:org", OPENAI, "openai:ft:gpt-x:org"),
        ("openai:vendor/model:free", KEY, "vendor/model:free", OPENAI, "openai:vendor/model:free"),
        (
            "vendor/model",
            {"OPENAI_BASE_URL": "http://x/v1"},
            "vendor/model",
            "http://x/v1",
            "openai:vendor/model",
        ),
        ("m", {"OPENAI_API_BASE": "http://old/v1"}, "m", "http://old/v1", "openai:m"),
        (
            "m",
            {"OPENAI_BASE_URL": "http://a/v1", "OPENAI_API_BASE": "http://b/v1"},
            "m",
            "http://a/v1",
            "openai:m",
        ),
        ("ollama:llama3:8b", {}, "llama3:8b", "http://127.0.0.1:11434/v1", "ollama:llama3:8b"),
        ("ollama/llama3", {}, "llama3", "http://127.0.0.1:11434/v1", "ollama:llama3"),
        ("ollama/llama3:8b", {}, "llama3:8b", "http://127.0.0.1:11434/v1", "ollama:llama3:8b"),
        ("ollama:m", {"OLLAMA_HOST": "0.0.0.0"}, "m", "http://127.0.0.1:11434/v1", "ollama:m"),
        ("ollama:m", {"OLLAMA_HOST": "box:9"}, "m", "http://box:9/v1", "ollama:m"),
        ("ollama:m", {"OLLAMA_HOST": "https://box/ollama/"}, "m", "https://box/ollama/v1", "ollama:m"),
        ("ollama:m", {"OLLAMA_HOST": "http://box:9/v1"}, "m", "http://box:9/v1", "ollama:m"),
        ("ollama:m", {"OLLAMA_HOST": "[::1]:9"}, "m", "http://[::1]:9/v1", "ollama:m"),
        ("ollama:m", {"OLLAMA_HOST": "[::1]"}, "m", "http://[::1]:11434/v1", "ollama:m"),
        (
            "openrouter:a/b:free",
            {"OPENROUTER_API_KEY": "k"},
            "a/b:free",
            "https://openrouter.ai/api/v1",
            "openrouter:a/b:free",
        ),
    ],
)
def test_strings_that_name_an_endpoint(
    spec: str, env: dict[str, str], model: str, url: str, name: str
) -> None:
    found = resolve_model(spec, env)
    assert isinstance(found, OpenAIModel)
    assert repr(found) == f"OpenAIModel({model!r}, base_url={url!r})"
    assert found.name == name


@pytest.mark.parametrize(
    ("spec", "env", "words"),
    [
        ("openai:gpt-x", {}, "openai:gpt-x needs a key: set OPENAI_API_KEY"),
        ("gpt-x", {"OPENAI_API_KEY": ""}, "set OPENAI_API_KEY"),
        ("openrouter:x", KEY, "set OPENROUTER_API_KEY"),
        ("anthropic:claude-x", KEY, "extra `anthropic`"),
        ("anthropic/claude-x", KEY, "extra `anthropic`"),
        ("google:gemini-x", KEY, "extra `google`"),
        ("bedrock:x", KEY, "extra `bedrock`"),
        ("", KEY, "model string is empty"),
        ("script:none.yaml", {}, "none.yaml: cannot be read"),
        (3, {}, "int has none"),
        (None, {}, "No model is set"),
    ],
)
def test_strings_that_name_nothing_say_what_to_do(spec: Any, env: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve_model(spec, env)
    assert words in str(caught.value)


def test_a_model_is_given_back_and_a_script_is_loaded(tmp_path: Path) -> None:
    script = Script(["x"])
    assert resolve_model(script, {}) is script
    path = tmp_path / "a.yaml"
    path.write_text("- hello\n")
    assert resolve_model(f"script:{path}", {}).name == f"script:{path}"


def test_the_default_comes_from_the_environment() -> None:
    assert default_model({"ANTIPHON_MODEL": " a ", "OPENAI_DEFAULT_MODEL": "b"}) == "a"
    assert default_model({"ANTIPHON_MODEL": "", "OPENAI_DEFAULT_MODEL": "b"}) == "b"
    assert resolve_model(None, {"OPENAI_DEFAULT_MODEL": "gpt-x", **KEY}).name == "openai:gpt-x"
    with pytest.raises(ConfigError, match="set ANTIPHON_MODEL"):
        default_model({})


def test_ollama_is_sent_the_cap_it_knows() -> None:
    async def go() -> list[Any]:
        async with WireServer() as server:
            await server.play()
            model = resolve_model("ollama:m", {"OLLAMA_HOST": server.url.removesuffix("/v1")})
            await model.complete(ModelRequest("m", "", ()), lambda _: None)
            return server.requests

    assert asyncio.run(go())[0]["max_tokens"] == 4096


def test_importing_models_reads_nothing_and_loads_no_adapter() -> None:
    code = "import sys, antiphon.models; print('httpx2' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# .env


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("A=1", {"A": "1"}),
        ("\ufeffA=1".removeprefix("\ufeff"), {"A": "1"}),
        ("export A = b c \r\nB=2\rC=3", {"A": "b c", "B": "2", "C": "3"}),
        ("# x\n\n  # y\nA=1 # z\nB=1#z\nC=#z", {"A": "1", "B": "1#z", "C": ""}),
        ("A='$x \\n # y' # z", {"A": "$x \\n # y"}),
        ('A="a\\n\\"b\\" \\\\ \\$x \\q"', {"A": 'a\n"b" \\ $x \\q'}),
        ('A="one\ntwo"\nB=3', {"A": "one\ntwo", "B": "3"}),
        ('A="one \n two "  ', {"A": "one \n two "}),
        ("A= one  ", {"A": "one"}),
        ("A=\nB=''", {"A": "", "B": ""}),
        ("A=1\nA=2", {"A": "2"}),
        ("A=a=b", {"A": "a=b"}),
        ("a.b=1", {"a.b": "1"}),
        ("A=${HOME}", {"A": "${HOME}"}),
    ],
)
def test_dotenv_by_example(text: str, values: dict[str, str]) -> None:
    assert parse_dotenv(text) == values


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("A=1\nnonsense", "2:1"),
        ("=x", "1:1"),
        ("1A=x", "1:1"),
        ("A B=x", "1:1"),
        ("A='x\ny", "1"),
        ('A="x" y', "1"),
    ],
)
def test_a_wrong_line_is_named_without_its_value(text: str, place: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_dotenv(text)
    assert str(caught.value).startswith(f".env:{place}: ")


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        values = parse_dotenv(text)
    except ConfigError:
        return
    assert all(isinstance(value, str) for value in values.values())


@pytest.mark.slow
@given(
    st.dictionaries(
        st.from_regex(r"[A-Z][A-Z0-9_]{0,5}", fullmatch=True), st.text(st.characters(codec="utf-8"))
    )
)
def test_quoted_values_come_back(values: dict[str, str]) -> None:
    values = {key: value.replace("\r", "") for key, value in values.items()}
    lines = []
    for key, value in values.items():
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        lines.append(f'{key}="{escaped}"')
    assert parse_dotenv("\n".join(lines)) == values


def test_the_environment_wins_and_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    path.write_text("A=file\nB=file\n")
    outer = {"A": "process"}
    assert environment(path, outer) == {"A": "process", "B": "file"}
    assert outer == {"A": "process"}
    assert environment(tmp_path / "none", outer) == outer
    assert environment(tmp_path, outer) == outer


def test_a_file_that_is_no_settings_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"A=1\nB=\xff\n")
    with pytest.raises(ConfigError, match=r"a:2: is not UTF-8"):
        environment(tmp_path / "a", {})
    (tmp_path / "b").write_bytes(b"#" * 1_000_001)
    with pytest.raises(ConfigError, match="larger than 1 MB"):
        environment(tmp_path / "b", {})


# Secrets


def test_a_secret_is_a_mask_everywhere() -> None:
    secret = Secret("canary")
    shown = [
        repr(secret),
        str(secret),
        f"{secret}",
        "%s %r" % (secret, secret),  # noqa: UP031
        repr({"key": [secret]}),
        msgspec.json.encode({"key": secret}).decode(),
        repr(msgspec.to_builtins(secret)),
        repr(dataclasses.asdict(secret)),
        repr(vars(secret)),
        repr(copy.deepcopy(secret)),
    ]
    assert "canary" not in " ".join(shown)
    assert msgspec.json.encode(secret) == b'{"secret":"***"}'
    with pytest.raises(TypeError):
        json.dumps(secret)
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(secret)


def test_a_secret_is_its_value_where_it_is_used() -> None:
    assert Secret("a").reveal() == "a"
    assert Secret(Secret("a")) == Secret("a") != Secret("b")
    assert Secret("é") != "é"
    assert len({Secret("a"), Secret("a"), Secret("b")}) == 2
    assert [bool(Secret("")), bool(Secret("a"))] == [False, True]


def test_a_wrong_key_is_not_in_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve_model("gpt-x", {"OPENAI_API_KEY": "canary\nx"})
    assert "canary" not in str(caught.value)
    assert not issubclass(ConfigError, ModelError)
