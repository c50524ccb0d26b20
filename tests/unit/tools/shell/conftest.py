"""A folder in which commands run, and that of what is kept of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from antiphon.tools.shell import Workspace


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.delenv("ANTIPHON_HOME", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("ANTIPHON_TEST_SECRET", "sk-secret")
    (tmp_path / "place").mkdir()
    return Workspace(tmp_path / "place")
