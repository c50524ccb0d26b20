"""A run as one HTML file: what it holds, and that nothing in it can act."""

import asyncio
import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from antiphon import Agent, Attachment, UserError, open_journal, open_run
from antiphon.kernel.run.rows import read
from antiphon.models.script import Script
from antiphon.values.codec import HARMFUL
from antiphon.view import page as page_module
from antiphon.view.page import page, prefixes_of

ATTACK = "</script><script>alert(1)</script><!-- \u202e \x1b[31m & \u2028"


@pytest.fixture(autouse=True)
def program(monkeypatch):
    """A program that stands in for the built one."""
    monkeypatch.setattr(page_module, "_asset", {"file.js": "draw()", "file.css": "body{}"}.__getitem__)


def made(text="go", attachments=(), **options):
    """The page of a run in which everybody says `text`."""

    async def scenario():
        journal = open_journal(None)
        agent = Agent("a", text, model=Script([text]))
        async with open_run([agent], journal=journal, interactive=False) as run:
            await run.result(await run.post("a", text, attachments=attachments))
            records = await read(journal, run.run_id)
        prefixes = {name: await journal.blob(run.run_id, name) for name in prefixes_of(records)}
        return page(records, prefixes, **options).decode()

    return asyncio.run(scenario())


class Tags(HTMLParser):
    """The tags of a page, as a browser finds them, and what stands in its scripts."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.scripts = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data):
        if self.tags[-1:] == ["script"]:
            self.scripts[-1] += data


def data_of(text):
    return json.loads(Tags(text).scripts[0])


def test_the_file_holds_every_record_and_what_the_models_were_told():
    found = data_of(made("go", name="tides", made_at=7.0))
    assert (found["name"], found["made_at"]) == ("tides", 7.0)
    assert [each["seq"] for each in found["frames"]] == list(range(1, len(found["frames"]) + 1))
    named = {c["prefix"] for each in found["frames"] for c in each["changes"] if c.get("prefix")}
    assert set(found["prefixes"]) == named
    assert "go" in found["prefixes"][named.pop()]["system"]


def test_a_text_is_whole_however_long_it_is():
    found = data_of(made("x" * 300_000))
    texts = [c["reply"]["content"] for each in found["frames"] for c in each["changes"] if c.get("reply")]
    assert texts == [{"text": "x" * 300_000}]


def test_a_picture_is_in_the_file_and_only_what_is_in_it_may_be_painted():
    text = made(attachments=[Attachment("image/png", b"a picture", name="p.png")])
    opened = [
        c["callee"]["opening"] for each in data_of(text)["frames"] for c in each["changes"] if "callee" in c
    ]
    assert [each["data"] for each in opened[0]["files"]] == ["YSBwaWN0dXJl"]
    assert "img-src data:;" in re.findall(r'Content-Security-Policy" content="([^"]*)"', text)[0]


def test_what_is_written_is_data_and_never_markup():
    text = made(ATTACK, name=ATTACK)
    assert Tags(text).tags.count("script") == 2
    assert not HARMFUL.search(text)
    assert data_of(text)["name"] == ATTACK
    assert re.findall(r"<title>(.*)</title>", text)[0].startswith("&lt;/script&gt;")


def test_only_the_program_in_the_file_may_run():
    text = made()
    policy = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)[0]
    digest = base64.b64encode(hashlib.sha256(b"draw()").digest()).decode()
    assert policy.startswith("default-src 'none'; ")
    assert f"script-src 'sha256-{digest}'" in policy
    assert "unsafe" not in policy


def test_without_the_program_it_says_what_to_do(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(page_module, "files", lambda _: Path("/nowhere"))
    with pytest.raises(UserError, match="Node 20 or newer"):
        made()
