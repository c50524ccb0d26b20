"""One model server for all tests of a module."""

from collections.abc import Iterator

import pytest

from tests.acceptance.llmock import PYTHON, Server


@pytest.fixture(scope="module")
def running() -> Iterator[Server]:
    if not PYTHON.exists():
        pytest.skip("llmock is not installed: ./check installs it into .venv/llmock")
    server = Server()
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def server(running: Server) -> Iterator[Server]:
    """The server; afterwards it has done all it was told."""
    yield running
    assert running.left() == []
