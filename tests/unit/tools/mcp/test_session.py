"""A server that means well: its tools are listed, called, looked up again when they change."""

import asyncio
import gc
import os
import select
import socket
import sys
import threading
from contextlib import AsyncExitStack

import msgspec
import pytest

from antiphon import Agent, open_run
from antiphon.errors import ToolError, ToolsetUnavailable
from antiphon.kernel.run.toolsets.provider import close_unused
from antiphon.models.script import Script, call
from antiphon.tools.mcp import McpServer, mcp_toolset
from antiphon.tools.mcp.visit import visited
from tests.unit.tools.mcp.conftest import FREE, PATIENCE, peer, play, shop


@pytest.mark.slow
def test_a_server_of_the_sdk_is_used_over_its_pipes():
    lines = [
        call("shop_price", item="tea", count=2), call("shop_reserve", item="x"), call("shop_buy", item="rum"),
        call("shop_buy", item="tea"), call("shop_picture"), call("shop_env_dump"), call("shop_die"),
        call("shop_price", item="tea"),
    ]  # fmt: skip
    played = play(shop(env={"TOKEN": "sk-secret-of-the-shop"}), *lines)
    price, reserved, failed, bought, _, environment, died, again = played.told
    assert (price, reserved, again) == ("6", "reserved x", "3")
    assert "Error executing tool buy" in failed
    assert msgspec.json.decode(bought) == {"item": "tea", "paid": True}
    assert [(each.media_type, each.data) for each in played.files[4]] == [("image/png", "iVBORw==")]
    given = set(environment.split())
    assert "TOKEN" in given
    assert given <= {"TOKEN", "PATH", "HOME", "LOGNAME", "SHELL", "TERM", "USER", "LC_CTYPE"}
    assert "it ended with exit code 3" in died
    assert "may or may not have taken effect" in died
    assert played.listed[0] == [
        "shop_price", "shop_reserve", "shop_buy", "shop_picture", "shop_env_dump", "shop_wait", "shop_die",
        "shop_rename", "shop_list_resources", "shop_read_resource", "shop_list_prompts", "shop_get_prompt",
    ]  # fmt: skip


@pytest.fixture
def address():
    """The shop over HTTP, served in the event loop of whoever enters it."""
    import uvicorn

    from tests.unit.tools.mcp.shop_server import shop as served

    class Serving:
        async def __aenter__(self):
            listening = socket.create_server(("127.0.0.1", 0))
            config = uvicorn.Config(served.streamable_http_app(), log_level="critical", lifespan="on")
            self.server = uvicorn.Server(config)
            self.server.install_signal_handlers = lambda: None
            self.task = asyncio.create_task(self.server.serve(sockets=[listening]))
            return f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"

        async def __aexit__(self, *error):
            self.server.should_exit = True
            await self.task

    return Serving


def test_a_server_is_used_over_http_and_its_headers_are_sent(address):
    async def go():
        model = Script([call("shop_price", item="tea", count=2), call("shop_buy", item="tea"), "done"])
        async with asyncio.timeout(PATIENCE), address() as url:
            toolset = mcp_toolset(McpServer("shop", url=url, headers={"X-Token": "t"}))
            async with open_run([Agent("a", tools=[toolset])], model=model, policy=FREE) as run:
                await run.result(await run.post("a", "go"))
            await close_unused()
        return [each.content for each in model.requests[-1].messages if each.role == "tool"]

    price, bought = asyncio.run(go())
    assert (price, msgspec.json.decode(bought)) == ("6", {"item": "tea", "paid": True})


@pytest.mark.slow
def test_its_resources_and_prompts_are_read_by_tools():
    played = play(
        shop(), call("shop_list_resources"), call("shop_read_resource", uri="shop://menu"),
        call("shop_read_resource", uri="shop://logo"), call("shop_read_resource", uri="shop://nothing"),
        call("shop_list_prompts"), call("shop_get_prompt", name="order", arguments={"item": "tea"}),
        call("shop_get_prompt", name="no"),
    )  # fmt: skip
    resources, menu, _, missing, prompts, filled, unknown = played.told
    assert resources.splitlines()[0] == "shop://menu, menu, text/plain, What there is."
    assert menu == "[resource: shop://menu]\ntea\nrum"
    assert [(each.media_type, each.data) for each in played.files[2]] == [("image/png", "iVBORw==")]
    assert missing.startswith("Error: [shop_read_resource] ")
    assert prompts.startswith("order, Ask for something.")
    assert filled == "Please order tea."
    assert unknown.startswith("Error: [shop_get_prompt] ")


def test_an_address_where_nobody_is_is_told_and_the_run_goes_on():
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    played = play(McpServer("p", url=f"http://127.0.0.1:{port}/mcp"))
    (told,) = [each.event.reason for each in played.records if each.type == "ToolsetOffered"]
    assert played.output == "done"
    assert "connect" in told.lower()


def test_a_program_that_is_not_there_is_named_and_stops_the_run_only_if_it_is_required():
    played = play(McpServer("p", "no-such-program"))
    (told,) = [each.event.reason for each in played.records if each.type == "ToolsetOffered"]
    assert told == "it was not reached: 'no-such-program' was not found"
    with pytest.raises(ToolsetUnavailable, match=r"'p' is required.*'no-such-program' was not found"):
        play(McpServer("p", "no-such-program", required=True))


def test_a_folder_that_is_not_there_is_named():
    played = play(McpServer("p", sys.executable, cwd="/no/such/folder"))
    (told,) = [each.event.reason for each in played.records if each.type == "ToolsetOffered"]
    assert told == "it was not reached: '/no/such/folder' was not found"


def test_only_the_tools_that_are_named_are_taken():
    played = play(peer("honest", tools=("act",)), call("p_act"))
    assert played.listed[0] == ["p_act"]
    assert played.told == ["act"]


def test_what_a_server_offers_otherwise_is_seen_at_the_next_turn():
    def again(request):
        """Call on until it is seen: when the server's word comes, nobody knows."""
        offered = [each.name for each in request.tools]
        return call("p_echo", text="x") if "p_act" in offered else "seen"

    played = play(peer("changes its list"), *[again] * 500)
    assert played.listed[0] == ["p_echo", "p_act"]
    assert played.listed[-1] == ["p_echo"]


def test_runs_with_one_server_share_its_program(tmp_path):
    async def go():
        lives, model = tmp_path / "lives", Script([call("p_echo", text="x"), "done"] * 2)
        agent = Agent("a", tools=[mcp_toolset(peer("honest", lives))])
        other = Agent("b", tools=[mcp_toolset(peer("honest", lives, required=True))])
        async with (
            asyncio.timeout(PATIENCE),
            open_run([agent], model=model, policy=FREE) as one,
            open_run([other], model=model, policy=FREE) as two,
        ):
            await one.result(await one.post("a", "go"))
            await two.result(await two.post("b", "go"))
        await close_unused()
        return lives.read_text()

    assert len(asyncio.run(go()).split()) == 1, "one process serves both"


def test_a_program_ends_with_all_that_it_started():
    played = play(peer("grandchild"), call("p_echo", text="x"))
    assert ends(int(played.told[0]))


def ends(pid):
    """Whether a process that was killed is gone; only the system needs a moment for that."""
    try:
        known = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([known], [], [], PATIENCE)[0])
    finally:
        os.close(known)


def test_a_run_that_is_called_off_in_a_call_leaves_no_program():
    async def go():
        async with asyncio.timeout(PATIENCE):
            model = Script([call("p_echo", text="x"), "never"])
            agent = Agent("a", tools=[mcp_toolset(peer("deaf"))])
            async with open_run([agent], model=model, policy=FREE) as run:
                await run.post("a", "go")
                async for record in run.events(0, deltas=False):
                    if (
                        record.type == "EffectStarted"
                        and getattr(record.event.detail, "name", "") == "p_echo"
                    ):
                        break
            await close_unused()
            return run.run_id

    asyncio.run(go())


@pytest.mark.unwatched
def test_an_event_loop_that_ends_ends_its_programs():
    async def go():
        async with asyncio.timeout(PATIENCE):
            model = Script([call("p_echo", text="x"), "done"])
            agent = Agent("a", tools=[mcp_toolset(peer("grandchild"))])
            async with open_run([agent], model=model, policy=FREE) as run:
                await run.result(await run.post("a", "go"))
            return int(model.requests[-1].messages[-1].content)

    pid = asyncio.run(go())
    assert ends(pid)


class Nobody:
    """Stands for the provider of a toolset."""

    def offer(self, tools):
        """Nobody asks."""

    def lost(self, reason):
        """Nobody is told."""


@pytest.mark.unwatched
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("steps", [1, 2, 3, 5, 8])
def test_an_event_loop_that_ends_while_a_program_is_being_started_waits_for_nothing(steps):
    from antiphon.tools.mcp.session import McpSession

    async def go():
        starting = asyncio.ensure_future(McpSession(peer("honest"), Nobody()).start())
        for _ in range(steps):
            await asyncio.sleep(0)
        starting.add_done_callback(lambda task: task.cancelled() or task.exception())

    ending = threading.Thread(target=asyncio.run, args=(go(),), daemon=True)
    ending.start()
    ending.join(PATIENCE)
    assert not ending.is_alive()
    # asyncio lets go of the pipes of a start that was called off twice, and Python warns when it closes them.
    gc.collect()


def test_nothing_of_the_sdk_is_imported_before_a_server_is_connected():
    code = (
        "import sys; from antiphon.tools.mcp import McpServer, mcp_toolset\n"
        "mcp_toolset(McpServer('a', 'x')); sys.exit(bool({'mcp', 'pydantic', 'anyio'} & sys.modules.keys()))"
    )
    assert os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-c", code]) == 0


@pytest.mark.slow
def test_so_many_connections_to_one_server_are_open_and_no_more():
    """Each with credentials of its own; another server has connections of its own."""
    from antiphon.tools.mcp.session import MAX_SESSIONS

    def user(number, how="honest"):
        return visited(peer(how, env={"TOKEN": f"t{number}"}))

    async def work():
        async with AsyncExitStack() as stack:
            first = user(0)
            await first.__aenter__()
            for number in range(1, MAX_SESSIONS):
                await stack.enter_async_context(user(number))
            with pytest.raises(ToolError, match="8 connections to it are open, with other credentials"):
                await stack.enter_async_context(user(MAX_SESSIONS))
            await stack.enter_async_context(user(MAX_SESSIONS, "another"))
            await first.__aexit__(None, None, None)
            assert len(await stack.enter_async_context(user(MAX_SESSIONS))) == 2

    asyncio.run(work())
