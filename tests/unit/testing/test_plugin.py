"""The pytest plugin, in the test runs of users; here it is loaded by name, from a wheel by itself."""

import tomllib
from pathlib import Path
from textwrap import dedent

import pytest

# Before the first test run of a user: pytester forgets modules that are first imported there.
import antiphon.testing.plugin

pytest_plugins = ["pytester"]
# The runs of users break what is watched here, on purpose.
pytestmark = pytest.mark.unwatched

HEAD = """
import pytest
from antiphon import Agent, Hooks, run_sync, tool
from antiphon.models.script import Script, call
"""


@pytest.fixture
def users(pytester, monkeypatch):
    """A test run of a user: the outcomes, and what was printed."""
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)

    def play(text, *arguments, **outcomes):
        pytester.makepyfile(HEAD + dedent(text))
        left_out = ("-p", "no:randomly", "-p", "no:cacheprovider", "-p", "no:antiphon")
        result = pytester.runpytest_inprocess(*left_out, "-p", "antiphon.testing.plugin", *arguments)
        result.assert_outcomes(**outcomes)
        return result.stdout.str()

    return play


def test_the_plugin_is_registered_where_pytest_looks_for_it():
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text("utf-8"))
    assert project["project"]["entry-points"]["pytest11"] == {"antiphon": antiphon.testing.plugin.__name__}
    assert not any("pytest" in each for each in project["project"]["dependencies"])


def test_a_script_says_what_the_test_tells_it(users):
    users(
        """
        def test_hello(script_model):
            model = script_model(["Hello."])
            assert run_sync(Agent("a", model=model), "Hi").output == "Hello."
            assert model.requests[0].messages[0].content == "Hi"
        """,
        passed=1,
    )


def test_lines_that_nobody_asked_for_fail_a_test_that_passed(users):
    said = users(
        """
        def test_ends_early(script_model):
            run_sync(Agent("a", model=script_model(["Hello.", "more", "and more"])), "Hi")

        def test_may(script_model):
            run_sync(Agent("a", model=script_model(["Hello.", "more"], all_said=False)), "Hi")

        def test_by_turn(script_model):
            run_sync(Agent("a", model=script_model({"a": ["Hello.", "more"]}, by="turn")), "Hi")

        def test_failed_anyway(script_model):
            script_model(["Hello."])
            assert 1 == 2
        """,
        passed=3,
        failed=1,
        errors=1,
    )
    assert "2 lines were never asked for" in said


REAL = """
from antiphon import ModelOptions, RetryPolicy
from antiphon.models.openai import OpenAIModel

def ask(url):
    model = OpenAIModel("gpt-x", base_url=url, api_key="sk-none", connect_timeout=1)
    asking = ModelOptions(retry=RetryPolicy(max_attempts=1))
    try:
        run_sync(Agent("a", model=model, asking=asking), "Hi")
    except Exception as error:
        return str(error)
"""


def test_a_model_behind_a_network_is_not_asked_even_if_the_test_swallows_the_error(users):
    said = users(
        REAL
        + """
def test_asks():
    assert "would have been asked in a test" in ask("https://api.example.invalid/v1")

@pytest.mark.parametrize("url", ["http://127.0.0.1:1/v1", "http://localhost:1/v1", "http://[::1]:1/v1"])
def test_this_machine_is_asked(url):
    assert "would have been asked" not in ask(url)

@pytest.mark.antiphon(real_models=True)
def test_is_meant():
    assert "would have been asked" not in ask("http://0.0.0.0:1/v1")
""",
        passed=5,
        errors=1,
    )
    assert "openai:gpt-x would have been asked in a test. Expected a model of the test's own" in said


def test_an_option_has_real_models_asked(users):
    text = (
        REAL
        + """
def test_is_meant():
    assert "would have been asked" not in ask("http://0.0.0.0:1/v1")
"""
    )
    users(text, "--real-models", passed=1)


BREAKS = """
from antiphon.kernel.run.runtime import Runtime
from msgspec.structs import replace

@pytest.fixture(autouse=True)
def broken(monkeypatch):
    start = Runtime.start

    def starting(runtime, first):
        start(runtime, first)
        runtime.state.options = replace(runtime.state.options, background=True)

    monkeypatch.setattr(Runtime, "start", starting)
"""


def test_a_run_that_breaks_an_invariant_fails_its_test(users):
    said = users(
        BREAKS
        + """
def test_passes_otherwise():
    assert run_sync(Agent("a", model=Script(["Hello."])), "Hi").output == "Hello."

@pytest.mark.antiphon(checked=False)
def test_is_left_alone():
    assert run_sync(Agent("a", model=Script(["Hello."])), "Hi").output == "Hello."
""",
        passed=2,
        errors=1,
    )
    assert "options.background was folded to False and is True" in said


def test_hooks_are_not_called_again_when_a_test_is_over(users):
    users(
        """
        CALLS = []

        def test_counts():
            hooks = Hooks(end_turn=lambda context: CALLS.append(1))
            run_sync(Agent("a", model=Script(["Hello."]), hooks=hooks), "Hi")
            assert len(CALLS) == 1

        def test_counted():
            assert len(CALLS) == 1
        """,
        passed=2,
    )


def test_a_marker_that_says_nothing_known_is_refused(users):
    said = users(
        """
        @pytest.mark.antiphon(real_model=True)
        def test_misspelt():
            pass
        """,
        errors=1,
    )
    assert "got ['real_model']" in said


def test_what_it_changes_is_undone(users):
    from antiphon.kernel.run.runtime import Runtime
    from antiphon.models.openai import OpenAIModel

    before = Runtime.__init__, OpenAIModel.complete
    users("def test_nothing():\n    pass", passed=1)
    assert (Runtime.__init__, OpenAIModel.complete) == before
