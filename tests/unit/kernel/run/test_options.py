"""Options are typed once: what `run`, `stream` and `map` pass on is what `open_run` takes."""

import inspect
from typing import Any, get_overloads, get_type_hints

import pytest

from antiphon import map_sync, open_run, run, run_sync, stream
from antiphon.kernel.run.api import run as run_function
from antiphon.kernel.run.batch.map import map as map_function
from antiphon.kernel.run.options import MapOptions, OpenOptions, RunOptions, StreamOptions

OWN = {"agents", "deps", "interactive"}
"""What `open_run` takes and each of the others says itself."""


def arguments(function: Any) -> dict[str, Any]:
    """Types of the arguments that a function takes by name."""
    function = inspect.unwrap(function)
    hints = get_type_hints(function)
    kinds = inspect.signature(function).parameters.values()
    return {each.name: hints[each.name] for each in kinds if each.kind is each.KEYWORD_ONLY}


def test_what_is_passed_on_is_what_open_run_takes() -> None:
    taken = {name: hint for name, hint in arguments(open_run).items() if name not in OWN}
    assert get_type_hints(OpenOptions) == taken


@pytest.mark.parametrize(
    ("function", "options"),
    [(run_function, RunOptions), (stream, StreamOptions), (map_function, MapOptions)],
)
def test_an_overload_takes_what_its_function_takes(function: Any, options: Any) -> None:
    own = {name: hint for name, hint in arguments(function).items() if name != "deps"}
    assert get_type_hints(options) == get_type_hints(OpenOptions) | own


@pytest.mark.parametrize("function", [run, run_sync, stream, map_sync])
def test_an_agent_and_a_name_have_an_overload_each(function: Any) -> None:
    assert len(get_overloads(inspect.unwrap(function))) == 2
