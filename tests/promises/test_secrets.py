"""A canary in every place a secret is kept never shows in any place that is read."""

import asyncio
import logging
import traceback

import msgspec
import pytest

from antiphon import Agent, ModelError, RunFailed, ToolContext, open_run, run, tool
from antiphon.journal.sqlite import SqliteJournal
from antiphon.models.script import Script, call
from antiphon.values.secret import Secret

CANARY = "sk-canary-5f0e1d7c"


class Deps:
    """What an application hands to its tools."""

    def __init__(self):
        self.token = Secret(CANARY)

    def __repr__(self):
        return f"Deps({self.token!r})"


class Keyed:
    """A model that holds a key, and fails once."""

    name = "keyed"

    def __init__(self, lines):
        self.key, self.script = Secret(CANARY), Script(lines, by="turn")

    async def complete(self, request, emit):
        assert self.key.reveal() == CANARY
        return await self.script.complete(request, emit)


def everything(folder):
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_a_secret_shows_in_no_sink(tmp_path, caplog, capfd, monkeypatch):
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    seen = []

    @tool(effect="read")
    async def use(ctx: ToolContext) -> object:
        "Uses a secret and returns it in every careless way."
        deps = ctx.deps
        seen.append(deps.token.reveal())
        return {"token": deps.token, "text": f"{deps} {deps.token}", "list": [deps.token]}

    @tool(effect="read")
    async def fail(ctx: ToolContext) -> str:
        "Fails with the secret at hand."
        raise ValueError(f"cannot use {ctx.deps.token} of {ctx.deps!r}")

    model = Keyed([[call("use"), call("fail")], ModelError("overloaded", "busy", retry_after=0.0), "done"])

    async def main():
        journal = SqliteJournal(tmp_path / "runs.db", "process")
        options = {"journal": journal, "model": model, "deps": Deps(), "env": {"OPENAI_API_KEY": CANARY}}
        pieces = []
        async with open_run([Agent("a", tools=[use, fail])], data={"owner": "me"}, **options) as opened:
            call_id = await opened.post("a", "go")
            async for item in opened.events():
                pieces.append(repr(item))
                if (
                    item.__class__.__name__ == "Record"
                    and item.type == "EffectFinished"
                    and item.event.id == call_id
                ):
                    break
            result = await opened.result(call_id)
            records = await opened.records()
            await opened.close()
        broken = Keyed([ModelError("auth", "the key was refused")])
        with pytest.raises(RunFailed) as failed:
            await run(Agent("b"), "go", journal=journal, model=broken, deps=Deps(), env={})
        text = "".join(traceback.format_exception(failed.value)) + repr(failed.value.result)
        await journal.close()
        return [repr(result), str(records), msgspec.json.encode(records).decode(), text, *pieces]

    sinks = asyncio.run(main())
    assert seen == [CANARY]
    assert "***" in sinks[1]
    sinks += [
        caplog.text,
        *capfd.readouterr(),
        repr(Deps()),
        repr(model.key),
        str(vars(Deps())),
        f"{model.key}",
    ]
    for sink in sinks:
        assert CANARY not in sink
    assert CANARY.encode() not in everything(tmp_path)
    assert b"***" in everything(tmp_path)


def test_the_canary_would_be_found(tmp_path):
    """The sweep above is no formality: the same text in the open does reach the file."""

    async def main():
        journal = SqliteJournal(tmp_path / "runs.db", "process")
        await run(Agent("a"), CANARY, journal=journal, model=Script(["done"]), env={})
        await journal.close()

    asyncio.run(main())
    assert CANARY.encode() in everything(tmp_path)
