"""Tools whose provider lives and dies: listed, called, changed between turns, down, up again, gone."""

import asyncio
from threading import get_ident

import pytest

from antiphon import Agent, ToolContext, open_run, run_sync, tool
from antiphon.errors import DuplicateName, ToolDefinitionError, ToolsetUnavailable, UserError
from antiphon.host.host import Host
from antiphon.journal.memory import MemoryJournal
from antiphon.kernel.facts.events import ToolEffect, ToolsetOffered
from antiphon.kernel.run.toolsets.provider import close_unused
from antiphon.models.script import Script, call
from antiphon.testing.audit.ledger import AuditedActivation
from antiphon.testing.audit.permission import PermissionAudit
from antiphon.testing.provider import ScriptedProvider
from antiphon.values.agent import RequestOptions
from antiphon.values.tool import tool_from
from antiphon.values.tool.toolset import ProviderLost, Toolset


@tool(effect="read")
def find(what: str) -> str:
    """Find something."""
    return f"found {what}"


@tool(effect="read")
def fetch() -> str:
    """Fetch it."""
    return "fetched"


def names(model):
    return [[each.name for each in request.tools][2:] for request in model.requests]


def last(model):
    return model.requests[-1].messages[-1].content


def test_what_a_toolset_offers_is_listed_recorded_and_called():
    provider, model = ScriptedProvider(find), Script([call("find", what="x"), "done"])
    agent = Agent("a", tools=[provider.toolset("web")], model=model)
    result = run_sync(agent, "go")
    assert (result.output, last(model), names(model)) == ("done", "found x", [["find"], ["find"]])
    assert (provider.opened, provider.closed) == (1, 1)


def test_a_change_is_seen_at_the_next_turn_and_never_in_the_middle_of_one():
    provider = ScriptedProvider(find)

    @tool(effect="read")
    def change() -> str:
        """Another server's release."""
        provider.offer(fetch)
        return "changed"

    model = Script([[call("change"), call("find", what="x")], call("fetch"), "done"])
    agent = Agent("a", tools=[change, provider.toolset("web")], model=model, tool_execution="sequential")
    run_sync(agent, "go")
    shown = [each.content for each in model.requests[1].messages if each.role == "tool"]
    assert shown[0] == "changed"
    assert "no longer offered" in shown[1], "it was listed in this turn, and its provider has it no more"
    assert [each[-1] for each in names(model)] == ["find", "fetch", "fetch"]
    assert last(model) == "fetched"


def test_a_provider_that_dies_in_a_call_ends_it_with_the_reason_and_is_opened_again():
    provider = ScriptedProvider()

    @tool(effect="once")
    async def send() -> str:
        """Send it."""
        provider.die("connection reset")
        await asyncio.get_running_loop().create_future()

    provider.tools = (send, find)
    model = Script([call("send"), call("find", what="y"), "done"])
    run_sync(Agent("a", tools=[provider.toolset("web")], model=model), "go")
    told = [each.content for each in model.requests[2].messages if each.role == "tool"]
    assert "connection reset" in told[0]
    assert "may or may not have taken effect" in told[0]
    assert told[1] == "found y"
    assert provider.opened == 2


def test_a_call_that_says_its_provider_is_lost_has_it_opened_again():
    provider, asked = ScriptedProvider(), []

    @tool(effect="read")
    async def ask() -> str:
        """Ask."""
        asked.append(1)
        if len(asked) == 1:
            raise ProviderLost("the pipe is broken")
        return "answered"

    provider.tools = (ask,)
    model = Script([call("ask"), call("ask"), "done"])
    run_sync(Agent("a", tools=[provider.toolset("web")], model=model), "go")
    told = [each.content for each in model.requests[2].messages if each.role == "tool"]
    assert "the toolset web was lost: the pipe is broken" in told[0]
    assert (told[1], provider.opened) == ("answered", 2)


def test_a_word_of_an_opening_that_is_over_does_not_count():
    async def go():
        provider = ScriptedProvider(find)
        model = Script([call("find", what="x"), "done", "again"])
        async with open_run([Agent("a", tools=[provider.toolset("web")], model=model)]) as run:
            first = provider.link
            provider.die("gone")
            await run.result(await run.post("a", "go"))
            first.lost("late")
            first.offer([fetch])
            await run.result(await run.post("a", "go"))
            return provider.opened, names(model)

    assert asyncio.run(go()) == (2, [["find"]] * 3)


def test_what_a_thread_says_of_its_provider_counts():
    provider, said = ScriptedProvider(find), []

    @tool(effect="read")
    def change(what: str) -> str:
        """A callback in a thread of a client library."""
        said.append(get_ident())
        if what == "dies":
            provider.die("unplugged")
        else:
            provider.offer(fetch)
        return "said"

    model = Script(
        [call("change", what="offers"), call("fetch"), call("change", what="dies"), call("fetch"), "done"]
    )
    run_sync(Agent("a", tools=[change, provider.toolset("web")], model=model), "go")
    assert get_ident() not in said
    assert [each[-1] for each in names(model)] == ["find", *["fetch"] * 4]
    assert (last(model), provider.opened) == ("fetched", 2)


def test_what_is_offered_is_recorded_once_whatever_happens_to_its_provider():
    async def go():
        journal, provider = MemoryJournal(), ScriptedProvider(find)
        agent = Agent("a", tools=[provider.toolset("web")], context="continue")
        for _ in range(2):
            model = Script([call("find", what="x"), "one", "two"])
            async with open_run([agent], journal=journal, run_id="r", create=True, model=model) as run:
                await run.result(await run.post("a", "go"))
                provider.die("gone")
                await run.result(await run.post("a", "go"))
                found = [each.event for each in await run.records() if type(each.event) is ToolsetOffered]
        return [(each.tools is not None, each.reason) for each in found]

    found = asyncio.run(go())
    assert found[:2] == [(True, ""), (False, "gone")]
    assert not any(offered for offered, _ in found[1:])


def test_a_plain_function_of_a_toolset_asks_and_its_own_time_stands_still():
    @tool(effect="read", timeout=0.4)
    def sign(ctx: ToolContext) -> str:
        """Have somebody sign."""
        return ctx.wait(ctx.ask_user("Sign?"))

    @tool(effect="read", timeout=0.5)
    async def outlasts() -> str:
        """Take longer than the other may."""
        await asyncio.get_running_loop().create_future()

    async def go():
        model, question = Script([[call("sign"), call("outlasts")], "done"]), ""
        toolset = ScriptedProvider(sign, outlasts).toolset("web")
        async with open_run([Agent("a", tools=[toolset], model=model)]) as run:
            request = await run.post("a", "go")
            async for record in run.events(0, deltas=False):
                question = record.event.id if record.asks else question
                if "no result after 0.5 s" in str(record.event):
                    break
            await run.answer(question, "signed by Ann", by="ann")
            await run.result(request)
        return [each.content for each in model.requests[1].messages if each.role == "tool"]

    assert asyncio.run(go())[0] == "signed by Ann"


def test_a_provider_that_is_lost_while_its_tool_waits_for_a_person_does_not_end_that():
    @tool(effect="read")
    async def sign(ctx: ToolContext) -> str:
        """Have somebody sign."""
        return await ctx.ask_user("Sign?")

    async def go():
        provider, model = ScriptedProvider(sign), Script([call("sign"), "done"])
        async with open_run([Agent("a", tools=[provider.toolset("web")], model=model)]) as run:
            request = await run.post("a", "go")
            async for record in run.events(0, deltas=False):
                if record.asks:
                    break
            provider.die("unplugged")
            await run.answer(record.event.id, "signed by Ann", by="ann")
            await run.result(request)
        return last(model)

    assert asyncio.run(go()) == "signed by Ann"


def test_calls_of_a_provider_that_stays_down_fail_with_the_reason_and_its_tools_stay_listed():
    provider = ScriptedProvider(find)

    @tool(effect="read")
    def kill() -> str:
        """The cable is pulled."""
        provider.die("unplugged", *[OSError("refused")] * 9)
        return "pulled"

    model = Script([call("kill"), call("find", what="x"), "gave up"])
    toolset = provider.toolset("web", connect_timeout=0.05)
    result = run_sync(Agent("a", tools=[kill, toolset], model=model), "go")
    assert result.output == "gave up"
    assert "the toolset web is down" in last(model)
    assert all(each[-1] == "find" for each in names(model))


def test_one_that_never_came_up_is_told_at_the_start_and_the_run_goes_on():
    async def go():
        provider, model = ScriptedProvider(find, opens=("hang",) * 9), Script(["alone"])
        toolset = provider.toolset("web", connect_timeout=0.01)
        async with open_run([Agent("a", tools=[toolset], model=model)]) as run:
            result = await run.result(await run.post("a", "go"))
            return result.output, [each.event for each in await run.records()][1], names(model)

    output, told, listed = asyncio.run(go())
    assert (output, told.name, told.tools, listed) == ("alone", "web", None, [[]])
    assert "not reached within 0.01 s" in told.reason


def test_a_required_one_that_is_down_stops_the_run_before_anything_is_recorded():
    provider = ScriptedProvider(find, opens=(OSError("refused"),))
    agent = Agent("a", tools=[provider.toolset("web", required=True)], model=Script(["x"]))
    with pytest.raises(ToolsetUnavailable, match=r"'web' is required.*refused"):
        run_sync(agent, "go")


def test_a_run_is_resumed_where_the_provider_is_gone_with_the_tools_that_it_had():
    async def go():
        journal, provider = MemoryJournal(), ScriptedProvider(find)
        first, second = Script(["one"]), Script([call("find", what="x"), "two"])
        toolset = provider.toolset("web", idle_seconds=0.0, connect_timeout=0.05)
        agent = Agent("a", tools=[toolset], context="continue")
        async with open_run([agent], journal=journal, run_id="r", create=True, model=first) as run:
            await run.result(await run.post("a", "go"))
        await asyncio.sleep(0)
        provider.die("gone", *[OSError("refused")] * 9)
        async with open_run([agent], journal=journal, run_id="r", model=second) as run:
            await run.result(await run.post("a", "on"))
        return first, second

    first, second = asyncio.run(go())
    assert names(second) == [["find"], ["find"]]
    assert second.requests[0].system == first.requests[0].system
    assert "the toolset web is down" in last(second)


def test_runs_share_a_provider_and_the_last_one_leaves_it_to_be_closed():
    async def go():
        provider = ScriptedProvider(find)
        agent = Agent("a", tools=[provider.toolset("web", idle_seconds=0.0)], model=Script(["x"]))
        async with open_run([agent]), open_run([agent]):
            assert (provider.opened, provider.closed) == (1, 0)
        for _ in range(5):
            await asyncio.sleep(0)
        return provider.opened, provider.closed

    assert asyncio.run(go()) == (1, 1)


def test_two_providers_of_one_name_and_two_tools_of_one_name_are_refused():
    one, other = ScriptedProvider(find).toolset("web"), ScriptedProvider(find).toolset("web")
    model = Script(["x"])
    with pytest.raises(DuplicateName, match="'web'"):
        run_sync(Agent("a", tools=[one, other], model=model), "go")
    both = [Agent("a", tools=[one], model=model), Agent("b", tools=[other], model=model)]
    with pytest.raises(UserError, match="not the one that another agent has"):
        run_sync(both[0], "go", agents=both)
    with pytest.raises(UserError, match=r"two tools named 'find': one of the agent's own.*toolset web"):
        run_sync(Agent("a", tools=[find, one], model=model), "go")


def test_an_opening_that_ignores_its_end_keeps_nobody_waiting(monkeypatch):
    monkeypatch.setattr("antiphon.kernel.run.toolsets.provider.GRACE", 0.0)

    async def go():
        over, begun = asyncio.Event(), []

        async def deaf(link):
            begun.append(link)
            while not over.is_set():
                try:
                    await over.wait()
                except asyncio.CancelledError:
                    continue
            return [find]

        agent = Agent("a", tools=[Toolset("web", deaf, connect_timeout=0.01)], model=Script(["alone"]))
        async with open_run([agent]) as run:
            output = (await run.result(await run.post("a", "go"))).output
        over.set()
        return output, len(begun)

    assert asyncio.run(go()) == ("alone", 1)


def test_a_run_that_is_called_off_while_it_opens_leaves_nothing():
    async def go():
        begun, closed = asyncio.Event(), []

        async def hangs(link):
            begun.set()
            await asyncio.get_running_loop().create_future()

        async def close(link):
            closed.append(link)

        agent = Agent("a", tools=[Toolset("web", hangs, close)], model=Script(["x"]))

        async def start():
            async with open_run([agent]):
                raise AssertionError("it hangs")

        task = asyncio.create_task(start())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await close_unused()
        return len(closed)

    assert asyncio.run(go()) == 1


def test_a_close_that_is_under_way_is_not_cut_short():
    async def go():
        begun, over, closed = asyncio.Event(), asyncio.Event(), []

        async def refused(link):
            raise OSError("refused")

        async def close(link):
            begun.set()
            await over.wait()
            closed.append(link)

        async with open_run([Agent("a", tools=[Toolset("web", refused, close)], model=Script(["x"]))]):
            await begun.wait()
        asyncio.get_running_loop().call_soon(over.set)
        await close_unused()
        return len(closed)

    assert asyncio.run(go()) == 1


def test_a_flood_of_offers_is_recorded_as_what_it_came_to():
    async def go():
        provider = ScriptedProvider(find)

        @tool(effect="read")
        def flood() -> str:
            """Offer this and that."""
            for _ in range(1_000):
                provider.offer(find, fetch)
                provider.offer(fetch)
            return "done"

        flood_agent = Agent(
            "a", tools=[flood, provider.toolset("web")], model=Script([call("flood"), "over"])
        )
        async with open_run([flood_agent]) as run:
            await run.result(await run.post("a", "go"))
            found = [each.event for each in await run.records() if type(each.event) is ToolsetOffered]
            return [[one.name for one in each.tools] for each in found]

    assert asyncio.run(go()) == [["find"], ["fetch"]]


def test_an_offer_that_cannot_be_is_refused_and_the_last_one_stays():
    async def go():
        provider = ScriptedProvider(find)
        agent = Agent("a", tools=[provider.toolset("web")], model=Script(["x"]))
        async with open_run([agent]) as run:
            with pytest.raises(DuplicateName):
                provider.link.offer([find, find])
            outside = tool_from("mine", "Done by others.", {"type": "object", "properties": {}})
            with pytest.raises(ToolDefinitionError, match="its provider does"):
                provider.link.offer([outside])
            await run.result(await run.post("a", "go"))
            return names(agent.model)

    assert asyncio.run(go()) == [["find"]]


def test_a_host_that_is_left_closes_what_no_run_uses():
    async def go():
        provider = ScriptedProvider(find)
        agent = Agent("a", tools=[provider.toolset("web")], model=Script(["x"]))
        async with Host(MemoryJournal(), {"team": [agent]}) as host:
            await host.start("team", "go")
        return provider.opened, provider.closed

    assert asyncio.run(go()) == (1, 1)


def test_a_request_may_leave_out_what_a_toolset_offers():
    provider, model = ScriptedProvider(find, fetch), Script(["one", "two", "three"])
    agent = Agent("a", tools=[provider.toolset("web")], model=model)

    async def go():
        async with open_run([agent]) as run:
            for own in (("find",), ("web",), ()):
                await run.result(await run.post("a", "go", options=RequestOptions(own_tools=own)))

    asyncio.run(go())
    assert names(model) == [["find"], ["find", "fetch"], []]


def test_the_audit_tells_a_tool_that_nobody_offered():
    audit, seat = PermissionAudit(None), AuditedActivation("a", offered={"e": False})
    assert audit.started("1/1.c1", ToolEffect("find", "e"), seat, "{}", 1)[2] == ""
    _, which, wrong = audit.started("1/1.c1", ToolEffect("find", "d"), seat, "{}", 1)
    assert (which, wrong) == ("offered", "1/1.c1: nobody offered this find when its turn began")
