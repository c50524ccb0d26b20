"""A user's mistakes, and behind each what mypy and pyright must say of it, see test_types.py."""

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


seller = Agent("seller", greet)
run_sync(seller, "x", deps=3)  # Cannot infer value of type parameter "Deps"  # "Literal[3]" is not
Agent("seller", lambda: "x")  # Cannot infer type of lambda  # is not assignable to
run_sync(shop, "x", modle="y")  # did you mean "model"  # No overloads for "run_sync"
run_sync(shop, "x", deps=3)  # Cannot infer value of type parameter "Deps"  # "Literal[3]" is not
run_sync(shop, "x", limits=7)  # No overload variant of "run_sync"  # "limits" of type "Limits | None"
map_sync(shop, [1], message=str.upper)  # "message" to "map_sync" has incompatible type  # type "(int) -> str"
Agent("x", tols=[])  # did you mean "tools"  # No parameter named "tols"
look("one")  # Argument 1 to "__call__" of "Tool" has  # "Literal['one']" is not assignable to "int"
run_sync(shop, "x", deps=Shop({})).value.upper()  # "None" of "str | None" has no  # attribute of "None"
