"""`context = Context()` loads config2.yaml; who thinks with which model."""

import json
from pathlib import Path

import pytest

from antiphon.errors import ConfigError, UnknownName
from antiphon.models.providers import KNOWN
from antiphon.styles.environment.context import Context
from antiphon.styles.environment.metagpt.cost import CostManager
from antiphon.styles.environment.metagpt.settings import (
    PROVIDERS,
    ModelSettings,
    Settings,
    provider_of,
    read_settings,
)

KEY = "sk-not-to-be-seen"
WHOLE = f"""\
llm:
  api_type: openai
  model: gpt-4.1-mini
  base_url: https://example.org/v1
  api_key: {KEY}
  temperature: 0.2
  stop: [END]
  max_token: 512
models:
  small: {{model: "ollama:llama3"}}
  big: {{api_type: claude, model: sonnet, api_key_env: MY_KEY, seed: 7}}
roles:
  - role: Reviewer
    llm: small
  - role: Writer
    llm: {{model: "script:lines.yaml"}}
search:
  api_type: google
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, and an empty home."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return here


def read(folder: Path, text: str) -> Settings:
    path = folder / "some.yaml"
    path.write_text(text)
    return read_settings(path)


def named(model: ModelSettings | None) -> str:
    return model.model if model is not None else ""


def test_a_context_without_a_file_is_empty() -> None:
    context = Context()
    assert context.config == Settings()
    assert context.model_of("Writer") is None
    assert context.kwargs == {}
    assert context.cost_manager.total_cost == 0


def test_a_context_loads_the_file_beside_it_before_the_one_at_home(folder: Path, tmp_path: Path) -> None:
    home = tmp_path / "home" / ".metagpt"
    home.mkdir(parents=True)
    (home / "config2.yaml").write_text("llm: {model: at-home}")
    assert named(Context().model_of()) == "at-home"
    (folder / "config2.yaml").write_text("llm: {model: here}")
    assert named(Context().model_of()) == "here"
    (folder / "other.yaml").write_text("llm: {model: other}")
    assert named(Context(path="other.yaml").model_of()) == "other"
    assert named(Context(Settings(ModelSettings("given"))).model_of()) == "given"


def test_a_file_that_is_named_must_be_there() -> None:
    with pytest.raises(ConfigError, match=r"^nowhere\.yaml: cannot be read"):
        Context(path="nowhere.yaml")


def test_a_whole_file(folder: Path) -> None:
    settings = read(folder, WHOLE)
    llm = settings.llm
    assert llm is not None
    assert (llm.model, llm.base_url, llm.max_output) == ("openai:gpt-4.1-mini", "https://example.org/v1", 512)
    assert llm.settings == {"temperature": 0.2, "stop": ["END"]}
    assert list(settings.models) == ["small", "big"]
    assert settings.model_named("big").settings == {"seed": 7}
    assert named(settings.model_named("big")) == "anthropic:sonnet"
    with pytest.raises(UnknownName, match=r"Unknown model: huge. Known: big, small"):
        settings.model_named("huge")


def test_a_role_stands_above_its_context(folder: Path) -> None:
    context = Context(read(folder, WHOLE))
    assert named(context.model_of("Somebody")) == "openai:gpt-4.1-mini"
    assert named(context.model_of("Somebody", "Writer")) == "script:lines.yaml"
    assert named(context.model_of("Reviewer")) == "ollama:llama3"
    assert named(context.model_of("Reviewer", own=ModelSettings("its-own"))) == "its-own"


def test_a_key_is_shown_nowhere(folder: Path) -> None:
    settings = read(folder, WHOLE)
    assert KEY not in repr(settings)
    assert KEY not in repr(Context(settings).config)
    assert settings.llm is not None
    assert settings.llm.api_key is not None
    assert settings.llm.api_key.reveal() == KEY
    with pytest.raises(ConfigError) as raised:
        read(folder, f"llm: {{model: x, api_key: {KEY}, nonsense: 1}}")
    assert KEY not in str(raised.value)


def test_key_and_address_stand_where_the_provider_looks(folder: Path) -> None:
    settings = read(folder, WHOLE)
    outer = {"PATH": "/bin", "OPENAI_API_KEY": "outer", "MY_KEY": "mine"}
    assert settings.llm is not None
    assert settings.llm.environment(outer) == {
        **outer,
        "OPENAI_API_KEY": KEY,
        "OPENAI_BASE_URL": "https://example.org/v1",
    }
    assert settings.model_named("big").environment(outer) == {**outer, "ANTHROPIC_API_KEY": "mine"}
    assert settings.model_named("small").environment(outer) == outer
    with pytest.raises(ConfigError, match=r"anthropic:sonnet: the key is to be in MY_KEY, which is not set"):
        settings.model_named("big").environment({})


@pytest.mark.parametrize(
    ("model", "prefix"),
    [("gpt-x", "openai"), ("vendor/model", "openai"), ("llama3:8b", "openai"), ("openai/gpt", "openai"),
     ("Anthropic:x", "anthropic"), ("google/gemini", "google"), ("openrouter:a/b", "openrouter")],
)  # fmt: skip
def test_the_provider_of_a_model_string(model: str, prefix: str) -> None:
    assert provider_of(model).prefix == prefix


def test_every_provider_of_ours_can_be_configured() -> None:
    assert KNOWN.keys() <= PROVIDERS.keys()
    for name, known in KNOWN.items():
        assert not PROVIDERS[name].key or PROVIDERS[name].key in known.secrets


def test_a_prefix_is_written_once(folder: Path) -> None:
    settings = read(folder, "llm: {api_type: openai, model: 'openai:gpt-x'}")
    assert named(settings.llm) == "openai:gpt-x"


def test_sections_left_empty_are_not_there(folder: Path) -> None:
    assert read(folder, "llm:\nmodels:\nroles:\nproxy: x\n") == Settings()
    assert read(folder, "# nothing\n") == Settings()


@pytest.mark.parametrize(
    ("text", "where", "said"),
    [
        ("- a", "1:1", "the settings: expected `key: value` lines"),
        ("role: []", "1:1", "unknown section 'role'; did you mean 'roles'?"),
        ("llm: {model: a}\nllm: {model: b}", "2:1", "'llm' stands here twice"),
        ("llm: gpt", "1:6", "a model: expected `key: value` lines"),
        ("llm:\n  temperature: 1", "2:3", "a model needs `model`"),
        ("llm:\n  model: a\n  modell: b", "3:3", "unknown key 'modell'; did you mean 'model'?"),
        ("llm: {api_type: nobody, model: a}", "1:17", "unknown api_type 'nobody'; known: anthropic, azure"),
        ("llm: {model: [a]}", "1:14", "model: expected a text"),
        ("llm: {model: null}", "1:14", "model: expected a text"),
        ("llm: {model: a, max_token: 0}", "1:28", "max_token: expected a whole number above 0, not '0'"),
        ("llm: {model: a, max_token: -1}", "1:28", "max_token: expected a whole number above 0, not '-1'"),
        ("llm: {model: a, top_p: much}", "1:24", "top_p: expected a number, not 'much'"),
        ("llm: {model: a, top_p: nan}", "1:24", "top_p: expected a number, not 'nan'"),
        ("llm: {model: a, stop: [[b]]}", "1:24", "stop: expected a text"),
        ("llm: {model: a, api_key: YOUR_API_KEY}", "1:26", "put your key in place of the placeholder"),
        ("llm: {model: a, api_key: k, api_key_env: E}", "1:29", "give api_key or api_key_env, not both"),
        ("llm: {model: 'local:x', base_url: u}", "1:25", "local takes no base_url"),
        ("llm: {model: 'mistral:x', base_url: u}", "1:27", "mistral takes no base_url"),
        ("roles: {a: b}", "1:8", "roles: expected a list"),
        ("roles: [{role: a}]", "1:9", "a role needs `llm`"),
        ("roles: [{role: a, llm: b}]", "1:24", "`models` has no 'b'; it has: (none)"),
        (
            "models: {m: {model: x}}\nroles: [{role: a, llm: m}, {role: a, llm: m}]",
            "2:35",
            "stands here twice",
        ),
        ("llm: *x", "1:6", "aliases"),
    ],
)
def test_an_error_says_where_it_is(folder: Path, text: str, where: str, said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        read(folder, text)
    assert str(raised.value).startswith(f"{folder / 'some.yaml'}:{where}: ")
    assert said in str(raised.value)


def test_values_of_the_users_own() -> None:
    context = Context(kwargs={"a": 1}, cost_manager=CostManager(3.0))
    values = context.kwargs
    values.set("b", 2)
    values.get_it = 3
    assert (values.get("a"), values.b, values["get_it"]) == (1, 2, 3)
    assert (values.get("c"), values.get("c", 9), values.c) == (None, 9, None)
    values.remove("a")
    values.remove("a")
    assert json.loads(json.dumps(values)) == {"b": 2, "get_it": 3}
    assert context.cost_manager.max_budget == 3.0
    assert not hasattr(values, "__deepcopy__")
    assert Context().kwargs == {}
