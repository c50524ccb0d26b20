"""A user's mistakes, and behind each what a type checker must say of it, see test_types.py."""

from dataclasses import dataclass

from antiphon import Agent, map_sync, run_sync, tool
from antiphon.values.hooks import InstructionsContext


@dataclass
class Shop:
    prices: dict[str, float]


@tool
def look(page: int) -> str:
    """Look."""
    return str(page)


shop: Agent[Shop, str] = Agent("shop")


def greet(ctx: InstructionsContext[Shop]) -> str:
    return str(ctx.deps.prices)


run_sync(Agent("seller", greet), "x", deps=3)  # Cannot infer value of type parameter "Deps" of "run_sync"
Agent("seller", lambda: "x")  # Cannot infer type of lambda
run_sync(shop, "x", modle="y")  # did you mean "model"
run_sync(shop, "x", deps=3)  # Cannot infer value of type parameter "Deps" of "run_sync"
run_sync(shop, "x", limits=7)  # No overload variant of "run_sync"
map_sync(shop, [1], message=str.upper)  # Argument "message" to "map_sync" has incompatible type
Agent("x", tols=[])  # did you mean "tools"
look("one")  # Argument 1 to "__call__" of "Tool" has incompatible type "str"
run_sync(shop, "x", deps=Shop({})).value.upper()  # Item "None" of "str | None" has no attribute "upper"
