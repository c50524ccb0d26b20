"""How often the local model picks the right colleague and the right tool.

    python -m bench.local_routing [LIST.yaml ...] [--limit N] [--show]

Each request goes to the front desk of examples/frontdesk and then to the expected specialist, as two
model calls; nothing is executed. Prints both figures, and the seconds a decision took.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import runpy
import time
from pathlib import Path
from typing import Any

import yaml

from antiphon.kernel.context.prompt import write_prompt
from antiphon.kernel.rules.builtins import BUILTINS
from antiphon.models.local import LocalModel
from antiphon.values.agent import Agent
from antiphon.values.model import ChatMessage, Example, ModelRequest, Reply
from antiphon.values.tool import as_tool

ROOT = Path(__file__).resolve().parent.parent
LISTS = [ROOT / "tests/unit/models/local" / f"{name}_60.yaml" for name in ("routing", "heldout", "third")]
OFFERED = (BUILTINS["call_agent"], BUILTINS["finish"])
"""What every agent can do beside its tools."""


def front_desk() -> tuple[Agent, dict[str, Agent]]:
    """The entry agent and all agents by name."""
    made = runpy.run_path(str(ROOT / "examples/frontdesk/team.py"))
    entry, agents = made["team"](ROOT)
    return entry, {agent.name: agent for agent in agents}


def request_for(agent: Agent, agents: dict[str, Agent], asked: str) -> ModelRequest:
    """What the kernel would ask a model when `agent` is given `asked`."""
    known = [f"- {name}: {other.about}" for name, other in agents.items() if name in agent.can_call]
    rules = [each.prompt for each in OFFERED]
    tools = [as_tool(each) for each in agent.tools]
    examples: tuple[Example, ...] = (*agent.examples, *(each for tool in tools for each in tool.examples))
    return ModelRequest(
        model="local:smollm2",
        system=write_prompt(agent.name, str(agent.instructions), known, True, rules),
        messages=[ChatMessage("user", asked)],
        tools=(*(tool.spec for tool in tools), *(each.spec for each in OFFERED)),
        examples=examples,
    )


def chosen(reply: Reply) -> tuple[str, dict[str, Any]]:
    """The one call of a reply, a colleague by name."""
    call = reply.calls[0]
    arguments = json.loads(call.arguments)
    return (arguments["agent_name"] if call.name == "call_agent" else call.name), arguments


def rows_of(path: Path, entry: Agent) -> list[dict[str, str]]:
    """The requests of a list; exits when one of them is an example."""
    rows: list[dict[str, str]] = yaml.safe_load(path.read_text(encoding="utf-8"))
    known = {example.request.casefold() for example in entry.examples}
    doubled = [row["request"] for row in rows if row["request"].casefold() in known]
    if doubled:
        raise SystemExit(f"{path.name} repeats examples: {doubled}")
    return rows


async def measure(model: LocalModel, path: Path, limit: int, show: bool) -> tuple[int, int, int]:
    """(right colleagues, right tools, requests) of one list."""
    entry, agents = front_desk()
    rows = rows_of(path, entry)[: limit or None]
    right = tools = 0
    for row in rows:
        desk, _ = chosen(await model.complete(request_for(entry, agents, row["request"]), lambda delta: None))
        asked = request_for(agents[row["agent"]], agents, row["request"])
        tool, arguments = chosen(await model.complete(asked, lambda delta: None))
        right += desk == row["agent"]
        tools += tool == row["tool"]
        if show or desk != row["agent"] or tool != row["tool"]:
            print(f"  {row['request']}\n    {row['agent']}/{row['tool']}: got {desk}/{tool} {arguments}")
    return right, tools, len(rows)


async def main() -> None:
    """Measure every list named, or both that are shipped."""
    parser = argparse.ArgumentParser(prog="bench.local_routing", description=__doc__)
    parser.add_argument("lists", nargs="*", type=Path)
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    async with LocalModel() as model:
        for path in options.lists or [path for path in LISTS if path.exists()]:
            start = time.perf_counter()
            right, tools, count = await measure(model, path, options.limit, options.show)
            took = (time.perf_counter() - start) / (2 * count)
            print(f"{path.name}: colleague {right}/{count}, tool {tools}/{count}, {took:.2f} s a decision")


if __name__ == "__main__":
    asyncio.run(main())
