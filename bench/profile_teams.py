"""Antiphon's cells of teams in YAML (W11): reading their files, and a turn with observers and rules."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from antiphon import run
from antiphon.styles.profiles import ProfileTeam, load_profiles
from bench import workloads
from bench.cell import Go, Metrics, passes, per_unit
from bench.fake import AMPLE, Fake, turns

TURN = """
type: associate
tool_access_policy: {allowed_toolsets: [sums]}
system_prompt_construction:
  system_prompt_segments:
  - {id: who, type: static_text, content: You add.}
post_turn_observers:
"""
OBSERVER = """
- id: observer{0}
  condition: "len(v['state.messages']) > {0} and len(v['state.messages']) > 100000"
  action: {{type: update_state, updates: [{{operation: increment, path: flags.often}}]}}
"""
RULE = """
- id: rule{0}
  condition: "len(v['state.messages[-1].content'] or '') > 10000{0}"
  action: {{type: end_agent_turn, outcome: error}}
"""
LAST = """
- {id: done, condition: "not v['state.current_action']", action: {type: end_agent_turn, outcome: success}}
"""


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def load(profiles: int) -> Metrics:
    """W11.load: files that inherit from one another, ten deep."""
    with TemporaryDirectory(dir=workloads.scratch()) as folder:
        home = Path(folder) / "profiles"
        home.mkdir()
        for number in range(profiles):
            parent = f"base_profile: P{number - 1}\n" if number % 10 else ""
            (home / f"P{number}.yaml").write_text(f"name: P{number}\n{parent}{_profile(number % 10)}")

        def prepare() -> Go:
            async def go() -> None:
                found = load_profiles(folder)
                if len(found.profiles) != profiles:
                    raise RuntimeError(f"{len(found.profiles)} of {profiles} were read: {found.findings[:3]}")

            return go

        samples = await passes(prepare)
    return per_unit(samples, profiles, "profile") | {"load_s": min(each.wall for each in samples)}


async def turn(observers: int, n: int) -> Metrics:
    """W11.turn: `n` tool turns with so many observers and rules, beside those of a plain agent."""
    from bench.antiphon_cells import prepare_turns

    with TemporaryDirectory(dir=workloads.scratch()) as folder:
        home = Path(folder) / "profiles"
        home.mkdir()
        (home / "Worker.yaml").write_text("name: Worker\n" + _profile(observers))

        def prepare() -> Go:
            model = Fake(turns(n, "add", '{"a":1,"b":2}'))
            team = ProfileTeam(folder, tools={"sums": [add]}, models={"Worker": model})

            async def go() -> None:
                result = await run(team.entry, "go", agents=team.agents(), limits=AMPLE)
                if result.outcome != "completed" or result.output != "done":
                    raise RuntimeError(f"{result.outcome}: {result.reason}")

            return go

        await prepare()()
        found = per_unit(await passes(prepare), n, "turn")
    plain = per_unit(await passes(lambda: prepare_turns(n, None)), n, "turn")
    times = float(found["cpu_us_per_turn"]) / float(plain["cpu_us_per_turn"])
    return found | {"plain_us_per_turn": plain["us_per_turn"], "times_a_plain_turn": times}


def _profile(count: int) -> str:
    observers = "".join(OBSERVER.format(number) for number in range(count)) or "  []\n"
    rules = "".join(RULE.format(number) for number in range(count - 1)) + LAST
    return f"{TURN.rstrip()}{observers}flow_decider:{rules}"
