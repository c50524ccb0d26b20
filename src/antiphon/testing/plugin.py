"""The pytest plugin: no model is asked by accident, and every run of a test is checked.

Loaded by itself where Antiphon is installed; `-p no:antiphon` leaves it out. What each test gets: the runs
in it are folded twice and held to the invariants (`antiphon.testing.invariants`), and a model behind a
network is refused (`@pytest.mark.antiphon(real_models=True)`, or `--real-models`, has it asked). The fixture
`script_model` makes models that say what the test tells them to. `docs/testing.md` shows all of it.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from antiphon.errors import ModelError
from antiphon.models.openai import OpenAIModel
from antiphon.models.providers import ProviderModel
from antiphon.models.script import Lines, Script
from antiphon.testing.witness import watching
from antiphon.values.model import Emit, ModelRequest, Reply

_FAKES = ("test", "function")
"""Models of pydantic_ai that are none: they answer in this process."""
_OPTIONS = {"checked": True, "real_models": False}
"""What the marker may say, and what holds without it."""
MARKER = (
    "antiphon(checked=True, real_models=False): whether the runs of a test are held to the invariants, and "
    "whether models behind a network may be asked"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option `--real-models`."""
    parser.getgroup("antiphon").addoption(
        "--real-models", action="store_true", help="Let tests ask models behind a network, and pay for it."
    )


def pytest_configure(config: pytest.Config) -> None:
    """The marker `antiphon`."""
    config.addinivalue_line("markers", MARKER)


@pytest.fixture(autouse=True)
def _antiphon_runs(request: pytest.FixtureRequest) -> Iterator[None]:
    """Guard and check the runs of one test."""
    said = _said(request)
    asked: list[str] = []
    with ExitStack() as stack:
        if not (said["real_models"] or request.config.getoption("--real-models")):
            asked = stack.enter_context(no_real_models())
        witness = stack.enter_context(watching()) if said["checked"] else None
        yield
    if witness is not None:
        witness.verdict(replay=False)
    if asked:
        pytest.fail(asked[0], pytrace=False)


@pytest.fixture
def script_model(request: pytest.FixtureRequest) -> Iterator[Callable[..., Script]]:
    """Make a model that says what it is told: `script_model(["Hello."])`; options are those of `Script`.

    A test that passes and leaves lines unsaid fails: its run ended before it was meant to. `all_said=False`
    lets it.
    """
    made: list[Script] = []

    def make(replies: Lines | Mapping[str, Lines], *, all_said: bool = True, **options: Any) -> Script:
        model = Script(replies, **options)
        if all_said:
            made.append(model)
        return model

    failed = request.session.testsfailed
    yield make
    if request.session.testsfailed > failed:
        return
    for model in made:
        if model.unsaid:
            lines = "1 line was" if model.unsaid == 1 else f"{model.unsaid} lines were"
            pytest.fail(
                f"{lines} never asked for: the run ended before {model!r} had said all; "
                "script_model(..., all_said=False) lets it",
                pytrace=False,
            )


@contextmanager
def no_real_models() -> Iterator[list[str]]:
    """Refuse calls of models behind a network, as errors that are not tried again; a list of them.

    Models in this process and endpoints of this machine are asked. An adapter of one's own is not known.
    """
    asked: list[str] = []
    places = [(kind, kind.complete) for kind in (OpenAIModel, ProviderModel)]

    def guarded(complete: Callable[..., Any]) -> Callable[..., Any]:
        async def completing(model: Any, request: ModelRequest, emit: Emit) -> Reply:
            if _is_real(model):
                asked.append(
                    f"{model.name} would have been asked in a test. Expected a model of the test's own, such "
                    "as script_model([...]); @pytest.mark.antiphon(real_models=True) has it asked"
                )
                raise ModelError("validation", asked[-1])
            reply: Reply = await complete(model, request, emit)
            return reply

        return completing

    # At class level, because models are made from strings anywhere; undone when the block is left.
    for kind, complete in places:
        kind.complete = guarded(complete)  # type: ignore[method-assign]
    try:
        yield asked
    finally:
        for kind, complete in places:
            kind.complete = complete  # type: ignore[method-assign]


def _is_real(model: OpenAIModel | ProviderModel) -> bool:
    """Whether asking it leaves this machine."""
    if isinstance(model, ProviderModel):
        return model.name.partition(":")[0] not in _FAKES
    host = urlsplit(model.base_url).hostname or ""
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host != "localhost"


def _said(request: pytest.FixtureRequest) -> dict[str, bool]:
    """What the markers of a test say, the nearest first."""
    said = dict(_OPTIONS)
    for marker in reversed(list(request.node.iter_markers("antiphon"))):
        unknown = sorted(marker.kwargs.keys() - _OPTIONS.keys())
        if marker.args or unknown:
            raise pytest.UsageError(f"expected {MARKER.partition(':')[0]}; got {unknown or marker.args}")
        said.update(marker.kwargs)
    return said
