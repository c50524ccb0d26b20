"""Prints the phases of an activation as a Mermaid state diagram, drawn from the code.

    python scripts/diagram.py

Three things are read, and nothing is written down twice. `RULES` in kernel/rules/step.py has the rule of
each phase, and its comments name what that emits, after `->`. The tables in kernel/facts/fold/apply.py
have what each event changes, and so which phase follows. A rule's docstring says what it does.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from typing import Any, get_args

from antiphon.kernel.facts import events
from antiphon.kernel.facts.activation import Activation
from antiphon.kernel.facts.fold import apply
from antiphon.kernel.rules import step

FOLD = "antiphon.kernel.facts.fold"
RETURN = "return"
"""In a comment of RULES: the rule may end the activation."""
_ENTRY = re.compile(r'^\s*"(?P<phase>\w+)": (?P<rule>[\w.]+),\s*#(?P<comment>.*)$', re.MULTILINE)
_NAME = re.compile(r"\b[A-Z]\w+")
_DETAILS = {kind.__name__: kind for kind in get_args(events.Detail)}
_EVENTS = {kind.__name__: kind for kind in get_args(events.Event)}

# -- what a rule emits, as the comments of RULES say ----------------------------------------------


def emitted(source: str) -> dict[str, tuple[list[str], bool]]:
    """Of each phase the events and effects that its rule emits, and whether it may return."""
    found = {}
    for entry in _ENTRY.finditer(source):
        _, _, after = entry["comment"].partition("->")
        names = [name for name in _NAME.findall(after) if name not in ("EffectStarted", "EffectFinished")]
        unknown = [name for name in names if name not in _DETAILS and name not in _EVENTS]
        if unknown:
            raise ValueError(
                f"RULES[{entry['phase']!r}] is said to emit {unknown[0]}; there is no such event"
            )
        found[entry["phase"]] = names, RETURN in after
    return found


# -- what an event changes, as the fold says ------------------------------------------------------


def phases(function: Callable[..., Any]) -> list[str]:
    """The phases into which a function of the fold may bring the activation that it is about."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    if not isinstance(tree, ast.FunctionDef):
        raise TypeError(f"{function} is no function of the fold")
    own = {
        arg.arg for arg in tree.args.args if arg.annotation and ast.unparse(arg.annotation) == "Activation"
    }
    for statement in tree.body if not own else ():
        # Of a plain event: the activation that it names.
        if isinstance(statement, ast.Assign) and ast.unparse(statement.value).startswith("run.activations["):
            own.add(ast.unparse(statement.targets[0]))
    found: list[str] = []
    for statement in tree.body:
        assigned = list(_assigned(statement, own))
        # What stands at the top of the function holds whatever came before it.
        found = assigned if isinstance(statement, ast.Assign) and assigned else found + assigned
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and own & {ast.unparse(argument) for argument in node.args}:
                called = function.__globals__.get(ast.unparse(node.func))
                if inspect.isfunction(called) and called.__module__.startswith(FOLD):
                    found += phases(called)
    return list(dict.fromkeys(found))


def _assigned(statement: ast.stmt, own: set[str]) -> Iterator[str]:
    for node in ast.walk(statement):
        if not isinstance(node, ast.Assign):
            continue
        target, value = node.targets[0], node.value
        pairs = [(target, value)]
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            pairs = list(zip(target.elts, value.elts, strict=True))
        for place, given in pairs:
            if isinstance(place, ast.Attribute) and place.attr == "phase" and ast.unparse(place.value) in own:
                chosen = [given.body, given.orelse] if isinstance(given, ast.IfExp) else [given]
                yield from (ast.literal_eval(each) for each in chosen)


# -- the diagram ----------------------------------------------------------------------------------


def edges() -> Mapping[tuple[str, str], list[str]]:
    """From phase to phase, by what."""
    rules = emitted(inspect.getsource(step))
    found: dict[tuple[str, str], list[str]] = {}

    def draw(start: str, ends: list[str], label: str) -> None:
        for end in ends:
            labels = found.setdefault((start, end), [])
            if label not in labels:
                labels.append(label)

    draw("[*]", [Activation(0, "").phase], "CallEffect of the caller")
    for phase, (names, returns) in rules.items():
        for name in names:
            if name in _EVENTS:
                draw(phase, phases(apply.APPLY[_EVENTS[name]]), name)
                continue
            begun, ended = (phases(table[_DETAILS[name]]) for table in (apply.STARTED, apply.FINISHED))
            draw(phase, begun, name)
            waits = [each for each in begun if not rules[each][0]]
            for start in waits or [phase]:
                draw(start, ended, f"{name} ended")
        if returns:
            draw(phase, ["[*]"], "return")
    return found


def diagram() -> str:
    """The diagram, as Mermaid text."""
    lines = ["stateDiagram-v2"]
    for phase, rule in step.RULES.items():
        room = rule.__module__.rpartition(".")[2]
        said = (inspect.getdoc(rule) or "").partition("\n")[0]
        lines += [f"    {phase} : {room}.{rule.__name__}", f"    {phase} : {_plain(said)}"]
    for (start, end), labels in edges().items():
        lines.append(f"    {start} --> {end} : {', '.join(labels)}")
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    """Without what ends a text in Mermaid."""
    return text.replace(":", " -").replace(";", ",")


if __name__ == "__main__":
    print(diagram(), end="")
