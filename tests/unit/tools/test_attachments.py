"""Files are handed on as they are: pictures to the agent's own model, any file to whoever asked."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from antiphon import Agent, run_sync
from antiphon.errors import ToolError
from antiphon.models.script import Script, call
from antiphon.tools import folder_tools
from antiphon.tools.folder import attachments

PICTURES = {
    "a.png": (b"\x89PNG\r\n\x1a\n....", "image/png"),
    "a.jpg": (b"\xff\xd8\xff....", "image/jpeg"),
    "a.gif": (b"GIF89a....", "image/gif"),
    "a.bin": (b"RIFF....WEBP", "image/webp"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, (data, _) in PICTURES.items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "prices.csv").write_text("tea,3\n")
    (tmp_path / "odd.thing").write_text("?")
    return tmp_path


def tools(folder: Path) -> dict[str, Any]:
    return {tool.name: tool for tool in folder_tools(folder)}


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_shown_to_the_model(folder: Path, name: str) -> None:
    shown: list[Any] = []

    def look(request: Any) -> Any:
        shown.append(request.messages[-1])
        return call("view_image", path=name) if len(shown) == 1 else "seen"

    result = run_sync(Agent("a", tools=[tools(folder)["view_image"]], model=Script(look)), "Look")
    data, kind = PICTURES[name]
    (file,) = shown[1].attachments
    assert (file.media_type, base64.b64decode(file.data), file.name) == (kind, data, name)
    assert shown[1].content == f"{name} ({len(data)} bytes, {kind})"
    assert result.attachments == ()


@pytest.mark.parametrize(
    ("path", "kind"),
    [("prices.csv", "text/csv"), ("odd.thing", "application/octet-stream"), ("a.png", "image/png")],
)
def test_a_file_goes_to_whoever_asked(folder: Path, path: str, kind: str) -> None:
    lines = [call("attach_file", path=path), "There it is."]
    result = run_sync(Agent("a", tools=[tools(folder)["attach_file"]], model=Script(lines)), "Send it")
    (file,) = result.attachments
    assert (file.media_type, file.name) == (kind, path)
    assert base64.b64decode(file.data) == (folder / path).read_bytes()


def test_what_is_no_picture_or_too_large_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ToolError, match=r"prices\.csv is no picture"):
        tools(folder)["view_image"]("prices.csv")
    monkeypatch.setattr(attachments, "MAX_PICTURE", 5)
    with pytest.raises(ToolError, match="at most 5 are read"):
        tools(folder)["view_image"]("a.png")
