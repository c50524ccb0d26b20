"""Scenarios: tools whose provider lives and dies."""

from antiphon import tool
from antiphon.models.script import call
from antiphon.testing.provider import ScriptedProvider
from tests.oracle.stage import scenario
from tests.oracle.tools import agent


@tool(effect="read")
def find(what: str) -> str:
    """Find something."""
    return f"found {what}"


@tool(effect="read")
def fetch() -> str:
    """Fetch it."""
    return "fetched"


def _doing(provider, does):
    """An agent's own tool that makes the provider do something."""

    @tool(effect="read")
    def wait() -> str:
        """Wait for what happens."""
        does(provider)
        return "it happened"

    return wait


@scenario
async def a_toolset_changes_between_turns(stage):
    """What it offers now is seen at the next turn; a call of what is gone fails."""
    provider = ScriptedProvider(find)
    wait = _doing(provider, lambda one: one.offer(fetch))
    replies = [[call("wait"), call("find", what="x")], call("fetch"), "done"]
    await stage.ask(
        agent("a", tools=[wait, provider.toolset("web")], model=stage.script(replies),
              tool_execution="sequential"),
    )  # fmt: skip


@scenario
async def a_toolset_dies_and_comes_back(stage):
    """A call wants it, so it is opened again; what it offers was never another."""
    provider = ScriptedProvider(find)
    wait = _doing(provider, lambda one: one.die("unplugged"))
    replies = [call("wait"), call("find", what="x"), "done"]
    await stage.ask(agent("a", tools=[wait, provider.toolset("web")], model=stage.script(replies)))


@scenario
async def a_toolset_never_comes_up(stage):
    """It is told at the start, and the run goes on without its tools."""
    provider = ScriptedProvider(find, opens=(OSError("refused"),) * 9)
    replies = [call("find", what="x"), "done"]
    await stage.ask(agent("a", tools=[provider.toolset("web")], model=stage.script(replies)))


@scenario
async def a_run_goes_on_where_its_toolset_is_gone(stage):
    """Its tools stay listed, and calls of them fail with the reason."""
    provider = ScriptedProvider(find)
    model = stage.script([call("find", what="x"), "one", call("find", what="y"), "two"])
    team = agent("a", tools=[provider.toolset("web", idle_seconds=0.0)], model=model, context="continue")
    async with stage.open(team) as run:
        await stage.ended(run, await run.post("a", "go"))
    provider.die("gone", *[OSError("refused")] * 9)
    async with stage.open(team, run_id=run.run_id) as again:
        await stage.ended(again, await again.post("a", "on"))
