"""expression: a condition of a profile, read once and evaluated over an agent's world as often as is asked.

`grammar` says what may be written, `meaning` what each part of it comes to. Nothing is ever run by Python.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import force_setattr

from antiphon.styles.profiles.conditions.evaluator import Meaning, meaning_of
from antiphon.styles.profiles.conditions.grammar import CONTEXT, VIEW, ExpressionError, parse, place, problems
from antiphon.styles.profiles.conditions.operations import MAX_STEPS, Evaluation

__all__ = ["MAX_STEPS", "Expression", "constant", "evaluate", "holds", "read_expression"]


class Expression(Struct, frozen=True, eq=False):
    """A condition that was read. Two are equal when they are written the same."""

    text: str
    tree: ast.expr
    meaning: Meaning | None = None
    parts: int = 0

    def __post_init__(self) -> None:
        force_setattr(self, "meaning", meaning_of(self.tree))
        force_setattr(self, "parts", sum(1 for _ in ast.walk(self.tree)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expression) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)


def read_expression(text: str) -> Expression:
    """The expression in a text. Raises ExpressionError: not in the grammar, or sure to fail."""
    tree = parse(text)
    for problem in problems(tree, text):
        raise problem
    return Expression(text, tree)


_FAILURES = (TypeError, ValueError, LookupError, ArithmeticError, RecursionError)


def evaluate(expression: Expression, world: Mapping[str, Any]) -> Any:
    """What an expression comes to in a world of JSON data, in at most MAX_STEPS steps.

    Raises ExpressionError: the data is not what the expression takes it for, or a bound was reached.
    """
    try:
        return expression.meaning(Evaluation(world, expression.parts))  # type: ignore[misc]
    except (ExpressionError, *_FAILURES):
        # What failed is evaluated once more, slowly, to say where.
        return _failed(expression, world)


def _failed(expression: Expression, world: Mapping[str, Any]) -> Any:
    run = Evaluation(world, expression.parts)
    try:
        return meaning_of(expression.tree, told=True)(run)
    except ExpressionError as error:
        said = str(error)
    except KeyError as error:
        said = f"there is no key {str(error)[:80]}"
    except ZeroDivisionError:
        said = "division by zero"
    except _FAILURES as error:
        said = str(error)[:200]
    raise ExpressionError(said, place(expression.text, run.node) if run.node is not None else 0)


def holds(expression: Expression, world: Mapping[str, Any]) -> bool:
    """Whether a condition is met. Raises ExpressionError as `evaluate`."""
    return bool(evaluate(expression, world))


def constant(expression: Expression) -> bool | None:
    """What a condition always comes to; None when that depends on the world.

    Raises ExpressionError for one that depends on nothing and fails.
    """
    names = {node.id for node in ast.walk(expression.tree) if isinstance(node, ast.Name)}
    return None if names & {VIEW, CONTEXT} else holds(expression, {})
