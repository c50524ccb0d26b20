"""Endpoints in one line, and layers over one another."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon import RetryPolicy
from antiphon.errors import ConfigError
from antiphon.models.endpoints import EndpointOptions, options_for, read_endpoints
from antiphon.models.endpoints.choice import above
from antiphon.models.model_string import parse


def read(*texts, models=()):
    return read_endpoints(texts, models, "--endpoint")


def test_everything_that_can_be_said():
    found = read(
        "openai concurrency=8 requests_per_minute=500  tokens_per_minute=90000 ; ;",
        "openai:gpt-x connect_timeout=1.5 first_timeout=2 idle_timeout=3 total_timeout=4",
        "* retry.max_attempts=5 retry.initial_delay=0.5 retry.statuses=429,503; openai idle_timeout=9",
        "",
    )
    assert found == {
        "openai": EndpointOptions(
            concurrency=8, requests_per_minute=500, tokens_per_minute=90_000, idle_timeout=9
        ),
        "openai:gpt-x": EndpointOptions(
            connect_timeout=1.5, first_timeout=2, idle_timeout=3, total_timeout=4
        ),
        "*": EndpointOptions(retry=RetryPolicy(max_attempts=5, initial_delay=0.5, statuses=(429, 503))),
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("concurrency=8", "'concurrency=8' stands where a provider, a model string or * was expected"),
        ("openai", "'openai' says nothing; expected fields"),
        ("openai concurrency", "'concurrency' after openai: expected FIELD=VALUE"),
        ("openai concurrency 8", "expected FIELD=VALUE"),
        ("openai concurrency=", "concurrency of openai is a whole number; got ''"),
        ("openai concurrency=eight", "is a whole number; got 'eight'"),
        ("openai concurrency=8.5", "is a whole number"),
        ("openai idle_timeout=30s", "idle_timeout of openai is a number; got '30s'"),
        ("openai idle_timeout=nan", "idle_timeout"),
        ("openai idle_timeout=inf", "idle_timeout"),
        ("openai idle_timeout=-1", "more than 0"),
        ("openai concurrency=0", "at least 1"),
        ("openai retry=5", "retry.max_attempts"),
        ("openai retry.max_attempts=0", "at least 1"),
        ("openai retry.statuses=x", "whole numbers with commas"),
        ("openai concurrency=1 concurrency=2", "concurrency is given twice for openai"),
        ("openai concurrency=1; OpenAI concurrency=2", "concurrency is given twice"),
        ("openia concurrency=1", "did you mean 'openai'?"),
        ("gpt-x concurrency=1", "'gpt-x' names no provider and no model that is asked here"),
        ("script:a.yaml concurrency=1", "runs in this process"),
        ("openai concurrency=" + "9" * 5_000, "--endpoint"),
    ],
)
def test_what_cannot_be_read_says_whose_it_is_and_what_was_expected(text, words):
    with pytest.raises(ConfigError) as caught:
        read(text)
    assert words in str(caught.value)
    assert str(caught.value).startswith("--endpoint: ")


WORDS = st.lists(st.sampled_from(["openai", "*", "=", ";", " ", "concurrency", "retry", "8", "."]))


@given(st.text(max_size=40) | WORDS.map("".join))
def test_no_text_does_anything_but_be_read_or_refused(text):
    with suppress(ConfigError):
        read(text)


KEYS = ("*", "openai", "openai:a", "openai:b", "ollama", "ollama:a")
OPTIONS = st.builds(
    EndpointOptions,
    concurrency=st.none() | st.integers(1, 3),
    idle_timeout=st.none() | st.floats(1, 3),
)
LAYERS = st.dictionaries(st.sampled_from(KEYS), OPTIONS)


@given(LAYERS, LAYERS, st.sampled_from(["openai:a", "b", "openai:c", "ollama:a", "ollama:z", "groq:a"]))
def test_two_layers_as_one_say_of_every_model_what_they_say_one_over_the_other(over, under, text):
    model = parse(text)
    one_over_the_other = options_for(model, over).over(options_for(model, under))
    assert options_for(model, above(over, under)) == one_over_the_other


@pytest.mark.parametrize(
    ("text", "full", "plain"),
    [
        ("gpt-x", "openai:gpt-x", True),
        ("openai/gpt-x", "openai:gpt-x", False),
        ("ft:gpt-x:org", "openai:ft:gpt-x:org", True),
        ("Claude:x", "anthropic:x", False),
        ("ollama/llama3", "ollama:llama3", False),
        ("llama3:8b", "openai:llama3:8b", True),
        ("vendor/model", "openai:vendor/model", True),
    ],
)
def test_a_model_has_one_name_however_it_is_written(text, full, plain):
    assert (parse(text).text, parse(text).plain) == (full, plain)
