"""What a program that draws runs asks for beside frames: whole texts, requests, rulings, activity."""

import asyncio
import json
from decimal import Decimal

from antiphon import Agent, Limits, ModelOptions, Policy, ToolContext, tool
from antiphon.host import HostedTeam
from antiphon.models.catalog import Prices, Tier
from antiphon.models.script import call
from antiphon.testing.provider import ScriptedProvider
from antiphon.values.progress import FileDiff, FileLocation
from antiphon.view.frames import TEXT
from tests.unit.server.teams import desk, in_time, payer, served, started, until_asked, until_done
from tests.unit.server.test_socket import talk

HOSTILE = "'; rm -rf / #\n$(id) `id` \\ \x1b[2J\u202e é"


def test_a_long_text_comes_whole_with_its_own_frame():
    async def work():
        async with served({"desk": desk("y" * (TEXT + 1))}) as (client, _):
            run_id = await started(client)
            await until_done(client, run_id)
            cut = (await client("GET", f"/runs/{run_id}/frames")).json["frames"]
            replies = [
                (frame["seq"], each["reply"]["content"])
                for frame in cut
                for each in frame["changes"]
                if each.get("reply")
            ]
            ((seq, content),) = replies
            assert (len(content["text"]), content["length"]) == (TEXT, TEXT + 1)
            page = await client("GET", f"/runs/{run_id}/frames?after={seq - 1}&limit=1&whole=true")
            (frame,) = page.json["frames"]
            (ended,) = [each for each in frame["changes"] if each.get("reply")]
            assert ended["reply"]["content"] == {"text": "y" * (TEXT + 1)}
            for more in ("whole=true", "files=true"):
                refused = await client("GET", f"/runs/{run_id}/frames?{more}")
                assert (refused.status, refused.json["detail"]) == (400, "Ask with limit=1")

    in_time(work)


def test_a_request_is_given_as_the_body_that_an_endpoint_takes():
    @tool(effect="read")
    async def look(where: str) -> str:
        """Look somewhere."""
        return where

    async def work():
        async with served({"desk": desk("Seen.", tools=[look])}) as (client, _):
            run_id = await started(client, message=HOSTILE)
            await until_done(client, run_id)
            stored = (await client("GET", f"/runs/{run_id}/requests/1/1.m1")).json
            assert stored["request"]["messages"][0]["content"] == HOSTILE
            assert (stored["previous"], stored["removed"], stored["verified"]) == ("", [], True)
            reply = await client("GET", f"/runs/{run_id}/chat-completions/1/1.m1")
            assert reply.headers["content-disposition"] == "attachment"
            body = json.loads(reply.body)
            assert body["messages"][-1] == {"role": "user", "content": HOSTILE}
            assert "look" in [each["function"]["name"] for each in body["tools"]]
            assert body["stream"] is False
            assert set(body) == {"model", "messages", "tools", "max_completion_tokens", "stream"}
            assert (await client("GET", f"/runs/{run_id}/chat-completions/9/9.m9")).status == 404

    in_time(work)


def test_each_tool_says_what_becomes_of_its_calls_under_each_policy():
    @tool(effect="read", kind="read", title="Look around")
    async def look() -> str:
        """Look."""
        return ""

    @tool
    async def write() -> str:
        """Write."""
        return ""

    careful = Agent("careful", tools=[write], policy="guarded")
    team = HostedTeam(
        (Agent("free", tools=[look, write]), careful), policy=Policy("guarded", allow=("write",))
    )

    async def work():
        async with served({"desk": team}) as (client, _):
            found = (await client("GET", "/teams/desk")).json
            free, held = found["agents"]
            assert [(each["kind"], each["title"]) for each in free["tools"]] == [
                ("read", "Look around"), ("other", "Write")
            ]  # fmt: skip
            look, write = (each["rulings"] for each in free["tools"])
            assert look == {"": "allow", "open": "allow", "guarded": "allow", "strict": "deny"}
            assert write == {"": "allow", "open": "allow", "guarded": "allow", "strict": "allow"}
            assert set(held["tools"][0]["rulings"].values()) == {"ask"}
            assert found["policy"] == "guarded"

    in_time(work)


def test_the_tools_of_a_toolset_are_shown_once_a_run_has_had_it_opened():
    @tool(effect="read")
    def find() -> str:
        """Find."""
        return ""

    provider = ScriptedProvider(find)
    agent = desk("done", tools=[provider.toolset("web")])

    async def work():
        async with served({"desk": agent}) as (client, _):
            found = (await client("GET", "/teams/desk")).json["agents"][0]
            assert found["tools"] == []
            assert found["toolsets"] == [{"name": "web", "required": False, "tools": None, "reason": ""}]
            assert provider.opened == 0, "to look at a team opens nothing"
            await until_done(client, await started(client))
            (shown,) = (await client("GET", "/teams/desk")).json["agents"][0]["toolsets"]
            assert [(each["name"], each["rulings"][""]) for each in shown["tools"]] == [("find", "allow")]
            provider.die("unplugged", "hang")
            (shown,) = (await client("GET", "/teams/desk")).json["agents"][0]["toolsets"]
            assert (len(shown["tools"]), shown["reason"]) == (1, "unplugged")

    in_time(work)


def test_a_run_says_how_busy_it_was():
    async def work():
        async with served({"desk": payer()}) as (client, _):
            run_id = await started(client)
            await until_asked(client, run_id)
            line = (await client("GET", f"/runs/{run_id}")).json
            assert sum(line["summary"]["activity"]) == line["records"]
            assert line["summary"]["activity_span"] > 0

    in_time(work)


def test_a_tool_says_where_it_works():
    async def work():
        gate = asyncio.Event()

        @tool(effect="read")
        async def change(ctx: ToolContext) -> str:
            """Change a file."""
            ctx.report_progress(
                "half", locations=[FileLocation("a.py", 3)], diffs=[FileDiff("a.py", None, "x")]
            )
            await gate.wait()
            return "done"

        async with (
            served({"desk": desk(call("change"), "done", tools=[change])}) as (client, _),
            client.as_("").socket() as socket,
        ):
            await talk(client, socket)
            found = {}
            while found.get("type") != "progress":
                found = await socket.receive()
            gate.set()
            assert (found["kind"], found["text"]) == ("tool", "half")
            assert found["locations"] == [{"path": "a.py", "line": 3}]
            assert found["diffs"] == [{"path": "a.py", "before": None, "after": "x", "cut": False}]

    in_time(work)


def test_what_a_file_holds_comes_with_its_own_frame_and_texts_stay_cut():
    async def work():
        async with served({"desk": desk("y" * (TEXT + 1))}) as (client, _):
            sent = [{"media_type": "image/png", "data": "YSBwaWN0dXJl", "name": "p.png"}]
            run_id = await started(client, message="x" * (TEXT + 1), attachments=sent)
            await until_done(client, run_id)

            async def opening(more):
                found = (await client("GET", f"/runs/{run_id}/frames?after=3&limit=1{more}")).json["frames"]
                return found[0]["changes"][0]["callee"]["opening"]

            known = {"media_type": "image/png", "name": "p.png", "bytes": 9}
            for more in ("", "&whole=true"):
                assert (await opening(more))["files"] == [known]
            found = await opening("&files=true")
            assert (found["files"], found["content"]["length"]) == (
                [known | {"data": "YSBwaWN0dXJl"}],
                TEXT + 1,
            )

    in_time(work)


def test_a_team_says_what_its_tokens_cost_at_most_and_how_many_a_request_may_use():
    class Own:
        name = "own"
        prices = Prices(Decimal(1), Decimal(3), tiers=(Tier(1000, output=Decimal(5)),))

        async def complete(self, request, emit):
            raise NotImplementedError

    agents = (
        Agent("free", model="script:x"),
        Agent("dear", model="openai:gpt-4.1", asking=ModelOptions(fallback_models=("openai:gpt-4.1-mini",))),
        Agent("own", model=Own()),
        Agent("unknown", model="openai:never-heard-of"),
        Agent(
            "falls back", model="script:x", asking=ModelOptions(fallback_models=("openai:never-heard-of",))
        ),
        Agent("idle"),
    )
    limits = Limits(tokens=500, usd=2.5, on_breach="degrade", breach_target="openai:gpt-4.1-nano")
    limited = HostedTeam(agents[:2], model="openai:gpt-4.1-mini", limits=limits)
    shared = HostedTeam(agents[:1], limits=Limits(cached_share=0.1))

    async def work():
        models = ["openai:gpt-4.1", "openai:never-heard-of"]
        teams = {"desk": HostedTeam(agents), "limited": limited, "shared": shared}
        async with served(teams, models=models) as (client, _):
            found = (await client("GET", "/teams/desk")).json
            prices = {each["name"]: each["usd_per_token"] for each in found["agents"]}
            assert prices == {
                "free": 0, "dear": 8e-6, "own": 5e-6, "unknown": None, "falls back": None, "idle": 0,
            }  # fmt: skip
            assert (found["tokens"], found["usd"], found["on_breach"]) == (2_000_000, None, "stop")
            found = (await client("GET", "/teams/limited")).json
            assert [each["usd_per_token"] for each in found["agents"]] == [1.6e-6, 1.6e-6]
            assert (found["tokens"], found["usd"]) == (500, 2.5)
            assert (found["on_breach"], found["breach_target"]) == ("degrade", "openai:gpt-4.1-nano")
            assert (await client("GET", "/teams/shared")).json["tokens"] is None
            assert (await client("GET", "/models")).json == {
                "models": models, "usd_per_token": {"openai:gpt-4.1": 8e-6, "openai:never-heard-of": None},
            }  # fmt: skip

    in_time(work)
