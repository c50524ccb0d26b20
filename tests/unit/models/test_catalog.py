"""What is known of models, and what a call costs."""

import json
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from antiphon.config.yaml import MAX_BYTES
from antiphon.errors import ConfigError
from antiphon.models.catalog import Catalog, ModelSpec, Prices, Tier, cost, load_catalog
from antiphon.models.catalog.snapshot import FILE, figures
from antiphon.values.model import Usage

USD = Decimal
CATALOG = Catalog()


def own(tmp_path: Path, text: str) -> Catalog:
    path = tmp_path / "models.yaml"
    path.write_text(text, encoding="utf-8")
    return load_catalog(path)


@pytest.mark.parametrize(
    ("text", "provider", "id_"),
    [
        ("gpt-4.1", "openai", "gpt-4.1"),
        ("openai:gpt-4.1", "openai", "gpt-4.1"),
        ("OpenAI/gpt-4.1", "openai", "gpt-4.1"),
        ("gpt-4.1-2025-04-14", "openai", "gpt-4.1"),
        ("gpt-4.1-20991231", "openai", "gpt-4.1"),
        ("openai:gpt-4.1@20260301", "openai", "gpt-4.1"),
        ("openai-responses:gpt-4.1-2026-03-01", "openai", "gpt-4.1"),
        ("claude-sonnet-4-5", "anthropic", "claude-sonnet-4-5"),
        ("claude:claude-sonnet-4-5-20991231", "anthropic", "claude-sonnet-4-5"),
        ("models/gemini-2.5-pro", "google", "gemini-2.5-pro"),
        ("gemini:gemini-2.5-pro", "google", "gemini-2.5-pro"),
        ("google-cloud:gemini-2.5-pro", "google-vertex", "gemini-2.5-pro"),
        ("openrouter:openai/gpt-4.1", "openrouter", "openai/gpt-4.1"),
        ("azure:gpt-4.1", "azure", "gpt-4.1"),
        ("bedrock:us.amazon.nova-lite-v1:0", "bedrock", "amazon.nova-lite-v1:0"),
        ("amazon.nova-lite-v1:0", "bedrock", "amazon.nova-lite-v1:0"),
    ],
)
def test_a_model_is_found_under_its_names(text: str, provider: str, id_: str) -> None:
    spec = CATALOG.find(text)
    assert spec is not None
    assert (spec.provider, spec.id) == (provider, id_)
    assert spec.context_window
    assert CATALOG.find(text) is spec


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nobody",
        "openai:nobody",
        "nobody:gpt-4.1x",
        "ollama:llama3:8b",
        "openai:",
        "anthropic:gpt-4.1",
        "/",
    ],
)
def test_an_unknown_model_has_no_window_and_no_price(text: str) -> None:
    assert CATALOG.find(text) is None
    assert cost(Usage(1, 1), CATALOG.find(text)) is None


def test_a_provider_may_be_given_apart() -> None:
    spec = CATALOG.find("gpt-4.1-2025-04-14", "azure")
    assert spec is not None
    assert spec.provider == "azure"
    assert CATALOG.find("gpt-4.1", "anthropic") is None


def test_an_alias_of_two_providers_names_nobody(tmp_path: Path) -> None:
    catalog = own(tmp_path, "a:one: {aliases: [fast]}\nb:two: {aliases: [fast, slow]}\n")
    assert catalog.find("fast") is None
    for text, id_ in (("a:fast", "one"), ("b:fast", "two"), ("slow", "two"), ("b:slow-2026-03-01", "two")):
        spec = catalog.find(text)
        assert spec is not None, text
        assert spec.id == id_


def test_an_id_of_several_sellers_is_its_makers() -> None:
    sellers = [name for name, known in figures().providers.items() if "gpt-4.1" in known.models]
    assert {"openai", "azure"} <= set(sellers)
    spec = CATALOG.find("gpt-4.1")
    assert spec is not None
    assert spec.provider == "openai"


def test_what_runs_in_this_process_is_free_and_its_window_not_known() -> None:
    for text in ("local:smollm2", "script", "script:file.yaml"):
        spec = CATALOG.find(text)
        assert cost(Usage(10, 10, 5, 5), spec) == 0
        assert spec is not None
        assert spec.input_limit is None


def test_the_snapshot_says_what_it_is() -> None:
    assert FILE.stat().st_size <= 400_000
    assert CATALOG.as_of == figures().as_of >= "2026-11-20"
    assert len(figures().sources) == 2
    specs = list(CATALOG.models())
    assert len(specs) > 1000
    assert len({(spec.provider, spec.id) for spec in specs}) == len(specs)
    for spec in specs:
        prices = (spec.prices.input, spec.prices.output, spec.prices.cached_input, spec.prices.reasoning)
        if not any(price for price in prices if price is not None):
            assert spec.id.endswith(":free") or not any(price is not None for price in prices)
        assert [tier.above for tier in spec.prices.tiers] == sorted(tier.above for tier in spec.prices.tiers)
        assert spec.context_window is None or spec.context_window > 0
    assert {spec.provider for spec in CATALOG.models("claude")} == {"anthropic"}


def test_the_snapshot_is_read_at_the_first_lookup_and_quickly() -> None:
    code = (
        "import time, antiphon.models.catalog as c, antiphon.models.catalog.snapshot as s\n"
        "assert s.figures.cache_info().currsize == 0\n"
        "catalog = c.load_catalog(env={})\n"
        "assert s.figures.cache_info().currsize == 0\n"
        "begin = time.process_time()\n"
        "assert catalog.find('gpt-4.1') is not None\n"
        "print(time.process_time() - begin)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 0.015


def test_a_lookup_is_cheap() -> None:
    CATALOG.find("gpt-4.1")
    begin = time.process_time()
    for _ in range(10_000):
        CATALOG.find("gpt-4.1")
    assert (time.process_time() - begin) / 10_000 < 5e-6


PRICED = ModelSpec("m", "p", prices=Prices(USD("3"), USD("15"), USD("0.3"), USD("3.75"), USD("20")))


def test_cost_counts_cached_input_cache_writes_and_reasoning() -> None:
    usage = Usage(input_tokens=1000, output_tokens=100, cache_read_tokens=600, reasoning_tokens=40)
    assert cost(usage, PRICED) == USD("0.003080")  # 400*3 + 600*0.3 + 60*15 + 40*20 millionths
    assert cost(replace(usage, cache_write_tokens=400), PRICED) == USD(
        "0.003380"
    )  # the 400 at 3.75 instead of 3


def test_cost_falls_back_to_the_price_of_the_whole() -> None:
    spec = ModelSpec("m", "p", prices=Prices(USD("3"), USD("15")))
    assert cost(Usage(1000, 100, 600, 40, 100), spec) == USD("0.0045")


@pytest.mark.parametrize(
    ("prices", "usage"),
    [
        (Prices(), Usage(1, 0)),
        (Prices(input=USD("1")), Usage(1, 1)),
        (Prices(output=USD("1")), Usage(1, 1)),
        (Prices(output=USD("1"), cached_input=USD("1")), Usage(2, 0, 1)),
    ],
)
def test_an_unknown_price_is_never_zero(prices: Prices, usage: Usage) -> None:
    assert cost(usage, ModelSpec("m", "p", prices=prices)) is None
    assert cost(usage, None) is None


def test_only_a_price_that_is_needed_must_be_known() -> None:
    assert cost(Usage(1_000_000, 0), ModelSpec("m", "p", prices=Prices(input=USD("0.1")))) == USD("0.1")
    assert cost(Usage(), ModelSpec("m", "p")) == 0


def test_a_tier_prices_the_whole_request() -> None:
    tiers = (Tier(200_000, USD("6"), USD("22.5")), Tier(500_000, USD("9")))
    spec = ModelSpec("m", "p", prices=Prices(USD("3"), USD("15"), USD("0.3"), tiers=tiers))
    assert cost(Usage(200_000, 1000), spec) == USD("0.615")
    assert cost(Usage(200_001, 1000), spec) == USD("1.222506")
    assert cost(Usage(600_000, 1000, 100_000), spec) == USD("4.5") + USD("0.03") + USD("0.0225")


@given(
    st.integers(0, 10**9),
    st.integers(0, 10**9),
    st.integers(0, 10**9),
    st.integers(0, 10**9),
    st.integers(0, 10**9),
)
def test_cost_is_exact_and_counts_every_token_once(
    taken: int, given_: int, cached: int, thought: int, written: int
) -> None:
    one = USD("0.1")
    spec = ModelSpec("m", "p", prices=Prices(one, one, one, one, one))
    found = cost(Usage(taken, given_, cached, thought, written), spec)
    assert found == USD(taken + given_) / 10**7


def test_a_users_file_changes_single_fields(tmp_path: Path) -> None:
    known = CATALOG.find("anthropic:claude-sonnet-4-5")
    assert known is not None
    assert known.prices.tiers
    catalog = own(
        tmp_path,
        """\
        claude:claude-sonnet-4-5:
          max_output: 8_000
          reasoning: false
          prices: {input: 0.1}
        openai:mine: {context_window: 32000, prices: {input: 0.07, output: 1e-3,
          tiers: [{above: 10, input: 2}, {above: 5, input: 1}]}, modalities: [text, image], tools: true}
        plain: {aliases: [short]}
        gpt-4.1: {context_window: null, prices: null}
        """,
    )
    changed = catalog.find("claude-sonnet-4-5-20991231")
    assert changed is not None
    assert (changed.max_output, changed.reasoning) == (8000, False)
    assert (changed.context_window, changed.tools) == (known.context_window, known.tools)
    assert (changed.prices.input, changed.prices.output) == (USD("0.1"), known.prices.output)
    assert changed.prices.tiers == (), "the snapshot's tiers would contradict the user's price"
    mine = catalog.find("openai:mine")
    assert mine is not None
    assert (mine.prices.input, mine.prices.output) == (USD("0.07"), USD("0.001"))
    assert [tier.above for tier in mine.prices.tiers] == [5, 10]
    assert (mine.modalities, mine.tools) == (("text", "image"), True)
    plain = catalog.find("short")
    assert plain is not None
    assert (plain.provider, plain.id) == ("openai", "plain")
    unknown = catalog.find("openai:gpt-4.1")
    assert unknown is not None
    assert (unknown.input_limit, cost(Usage(1), unknown)) == (None, None)
    assert unknown.max_output is not None
    ids = [spec.id for spec in catalog.models("openai")]
    assert {"mine", "plain", "gpt-4.1"} <= set(ids)
    assert len(ids) == len(set(ids))


def test_the_environment_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "models.json"
    path.write_text(json.dumps({"openai:mine": {"context_window": 7}}))
    spec = load_catalog(env={"ANTIPHON_MODELS": f" {path} "}).find("openai:mine")
    assert spec is not None
    assert spec.context_window == 7
    assert load_catalog(env={}).find("openai:mine") is None
    path.write_text("")
    assert load_catalog(path, env={}).find("gpt-4.1") is not None


@pytest.mark.parametrize(
    ("text", "at", "words"),
    [
        ("- a", (1, 1), "models: expected `key: value` lines"),
        ("m: 3", (1, 4), "a model: expected `key: value` lines"),
        ("m: {window: 3}", (1, 5), "unknown key 'window'; did you mean 'context_window'?"),
        ("m:\n  max_output: -3", (2, 15), "expected a whole number of tokens, not '-3'"),
        ("m: {max_output: 3.5}", (1, 17), "whole number"),
        ("m: {max_output: [3]}", (1, 17), "expected a text"),
        ("m: {tools: maybe}", (1, 12), "expected true or false, not 'maybe'"),
        ("m: {modalities: [smell]}", (1, 18), "'smell' is none of text, image"),
        ("m: {modalities: text}", (1, 17), "expected a list"),
        ("m: {prices: {input: cheap}}", (1, 21), "expected USD per million tokens, not 'cheap'"),
        ("m: {prices: {input: -1}}", (1, 21), "-1 cannot be USD"),
        ("m: {prices: {input: .nan}}", (1, 21), "not '.nan'"),
        ("m: {prices: {input: 1e99}}", (1, 21), "cannot be"),
        ("m: {prices: {tiers: [{input: 3}]}}", (1, 22), "a tier needs `above`"),
        ("m: {}\nm: {}", (2, 1), "'m' stands here twice"),
        ("m: &a {}\nn: *a", (2, 4), "aliases (*name) are not allowed"),
        ("m: {", (1, 5), "is not YAML"),
    ],
)
def test_a_wrong_file_says_where(tmp_path: Path, text: str, at: tuple[int, int], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        own(tmp_path, text)
    assert words in str(caught.value)
    assert (caught.value.line, caught.value.column) == at


def test_a_file_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.yaml: cannot be read"):
        load_catalog(tmp_path / "none.yaml")
    (tmp_path / "binary").write_bytes(b"a: {}\n\xff")
    with pytest.raises(ConfigError, match="not UTF-8"):
        load_catalog(tmp_path / "binary")
    (tmp_path / "deep").write_text("[" * 5000)
    with pytest.raises(ConfigError, match="nested deeper than 40"):
        load_catalog(tmp_path / "deep")
    (tmp_path / "big").write_bytes(b"#" * (MAX_BYTES + 1))
    with pytest.raises(ConfigError, match="larger than 4 MB"):
        load_catalog(tmp_path / "big")


def refresh() -> dict[str, Any]:
    """The script's own functions: its packages are not needed for what is tested here."""
    path = Path(__file__).resolve().parents[3] / "scripts" / "refresh_catalog.py"
    names: dict[str, Any] = {"__name__": "refresh", "__file__": str(path)}
    exec(compile(path.read_text("utf-8"), str(path), "exec"), names)
    return names


def test_the_refresh_keeps_figures_exact_and_never_takes_nothing_for_a_price() -> None:
    script = refresh()
    described = {
        "big-2026-01-01": {
            "limit": {"context": 100, "output": 10},
            "tool_call": True,
            "reasoning": False,
            "modalities": {"input": ["text", "image"], "output": ["text"]},
            "cost": {
                "input": 0.07, "output": 0.299999999999, "cache_read": 0.01,
                "tiers": [{"input": 1, "output": 2, "tier": {"size": 50, "type": "context"}}],
            },
        },
        "gift": {"cost": {"input": 0, "output": 0}},
        "gift:free": {"cost": {"input": 0, "output": 0}},
    }  # fmt: skip
    rows = script["rows"](described, None, None)
    prices = [[70_000, 300_000, 10_000], [[50, 1_000_000, 2_000_000]]]
    assert rows["big-2026-01-01"] == [100, None, 10, "yn?", "ti", "t", *prices]
    assert rows["gift"] == [None, None, None, "???"]
    assert rows["gift:free"] == [None, None, None, "???", "", "", [0, 0]]
    assert script["aliases"](rows, None) == {"big": "big-2026-01-01"}
