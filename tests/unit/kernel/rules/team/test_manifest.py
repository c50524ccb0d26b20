"""The manifest: what a team is made of, so that two manifests tell what changed between them."""

import functools
import json
import subprocess
import sys
from hashlib import blake2b

import msgspec
import pytest

from antiphon import Agent, Hooks, ModelOptions, tool
from antiphon.kernel.facts.options import Options
from antiphon.kernel.rules.team.compile import make_team
from antiphon.kernel.rules.team.compiled import ModelOption
from antiphon.kernel.rules.team.manifest import code_digest, manifest_of
from antiphon.models.script import Script


@tool
def pay(to: str) -> str:
    """Pay."""
    return to


def manifest(*agents, window=None, price=None, name="script"):
    option = ModelOption(Script([], name=name), window, price, price)
    return manifest_of(make_team(agents, Options(), lambda agent: (option,)))


def told(*agents, **known):
    return json.loads(manifest(*agents, **known).data)


def test_a_manifest_names_its_format_agents_and_models():
    found = told(Agent("a", "Be brief.", tools=[pay]), window=100, price=5.0)
    assert (found["format"], found["rules"], list(found["agents"])) == (3, 7, ["a"])
    assert found["agents"]["a"]["instructions"] == "Be brief."
    assert found["agents"]["a"]["tools"]["pay"]["digest"] == pay.digest
    assert found["models"] == {"a": [["script", "antiphon.models.script.Script", 100, 5.0, 5.0, ""]]}


def test_it_is_stored_under_the_digest_of_its_bytes():
    found = manifest(Agent("a"))
    assert found.digest == blake2b(found.data, digest_size=32).hexdigest()


def test_the_same_team_has_the_same_manifest():
    assert manifest(Agent("a", tools=[pay])) == manifest(Agent("a", tools=[pay]))


def test_objects_that_only_live_in_memory_are_left_out():
    """A model, a fallback and a type are named by what they decide, never by an address."""
    asking = ModelOptions(fallback_models=(Script([], name="b"),))
    found = told(Agent("a", model=Script([]), output_type=dict, asking=asking))["agents"]["a"]
    assert not {"model", "output_type"} & found.keys()
    assert found["asking"]["fallback_models"] == 1


def decide(context):
    return None


def authorize(context, call):
    return None


@pytest.mark.parametrize(
    "other",
    [
        Agent("a", "Be long.", tools=[pay]),
        Agent("a", tools=[]),
        Agent("a", tools=[tool(effect="read", name="pay")(pay.function)]),
        Agent("a", tools=[msgspec.structs.replace(pay, function=decide)]),
        Agent("a", tools=[pay], hooks=Hooks(end_turn=decide)),
        Agent("a", tools=[pay], asking=ModelOptions(max_output_tokens=7)),
        Agent("b", tools=[pay]),
    ],
)
def test_what_a_developer_changes_is_seen(other):
    assert manifest(other) != manifest(Agent("a", tools=[pay]))


@pytest.mark.parametrize("known", [{"window": 5}, {"price": 5.0}, {"name": "other"}])
def test_what_is_known_of_a_model_is_seen(known):
    assert manifest(Agent("a"), **known) != manifest(Agent("a"))


def test_a_hook_is_named_by_its_code():
    hooks = told(Agent("a", hooks=Hooks(end_turn=decide, authorize=authorize)))["agents"]["a"]["hooks"]
    assert hooks == {"end_turn": code_digest(decide), "authorize": code_digest(authorize)}


# -- the digest of a function's code -------------------------------------------------------------


def made(text, name="f"):
    """A function from its source."""
    names = {}
    exec(text, names)
    return names[name]


SOURCE = "def f(x):\n    return g(x) + 1\n"


def test_the_digest_of_a_function_does_not_depend_on_where_it_stands():
    assert code_digest(made("\n\n" + SOURCE)) == code_digest(made(SOURCE))
    assert len(code_digest(made(SOURCE))) == 32


@pytest.mark.parametrize(
    "text",
    [
        "def f(x):\n    return g(x) + 2\n",
        "def f(x):\n    return h(x) + 1\n",
        "def f(y):\n    return g(y) + 1\n",
        "def f(x):\n    return g(x) - 1\n",
        "def f(x):\n    return (lambda: g(x) + 1)()\n",
    ],
)
def test_another_constant_name_or_step_is_another_digest(text):
    assert code_digest(made(text)) != code_digest(made(SOURCE))


def test_what_an_inner_function_does_counts():
    outer = "def f():\n    def inner():\n        return {}\n    return inner\n"
    assert code_digest(made(outer.format(1))) != code_digest(made(outer.format(2)))
    assert code_digest(made(outer.format(1))) == code_digest(made("\n" + outer.format(1)))


class Calls:
    def __call__(self):
        return 1

    def method(self):
        return 1


def test_methods_partials_and_objects_are_known_by_their_code():
    assert code_digest(Calls()) == code_digest(Calls())
    assert code_digest(Calls().method) == code_digest(Calls.method)
    assert code_digest(functools.partial(decide, 1)) == code_digest(decide)
    assert len({code_digest(each) for each in (Calls(), Calls().method, decide, print, len)}) == 5


def test_an_object_is_known_by_what_calling_it_does():
    def made(text):
        return type("Calls", (), {"__qualname__": "Calls", "__call__": eval(text)})()

    assert code_digest(made("lambda self: 1")) == code_digest(made("lambda self: 1"))
    assert code_digest(made("lambda self: 1")) != code_digest(made("lambda self: 2"))


def test_a_set_of_constants_has_one_digest_in_every_process():
    program = (
        "from antiphon.kernel.rules.team.manifest import code_digest\n"
        "def f(x): return x in {'a', 'b', 'c', 'd', 'e'}\n"
        "print(code_digest(f))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in "12"
    }
    assert len(found) == 1
