"""Measures how much of the package a reader must hold in mind at once, and prints measure, value, bound.

    python scripts/house.py [--json] [--list MEASURE]

Exit code 1 when a bound is broken. `BOUNDS` says what each measure counts; everything is read off the
source tree, but for the walks, which `scripts/walks.py` counts in a process of its own.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src/antiphon"

# What may be named otherwise one day.
AGENT = "Agent"
EVENTS = "Event"
"""The union of all events; the module that defines it is found by it."""
KERNEL = ("kernel", "testing")
"""Rooms that may look at events as they like."""
HOUSE_CONTRACT = "The house"
"""How the name of the contract on layers begins, in pyproject.toml."""

EFFECT_KINDS = ("model", "tool", "call", "wait", "action", "step", "instructions")
EFFECT_PURPOSES = (
    "approval", "question", "retry", "result", "deadline", "compact", "final", "ask", "limit",
)  # fmt: skip
EFFECT_WORDS = frozenset((*EFFECT_KINDS, *EFFECT_PURPOSES))
FOLD = 3
"""Kinds of events that a module must tell apart to count as a fold of its own."""

BOUNDS: Mapping[str, tuple[int, str]] = {
    # measure: (bound, what is counted). A bound is lowered, or raised with its reason beside it.
    "top entries": (14, "modules and folders at the top of the package, without its __init__.py"),
    "room layers": (9, "longest chain of imports between entries at the top; a circle counts once"),
    # One more each since there is a host, and a server above it.
    "declared layers": (12, "layers of the import contract in pyproject.toml"),
    # One more since a command works with a journal or a server behind one face.
    "module layers": (41, "longest chain of imports between modules; a circle counts once"),
    "room circles": (0, "groups of entries at the top that import each other"),
    "module circles": (0, "groups of modules that import each other, in functions and for types too"),
    "largest struct": (29, "annotated fields of a class, without those it inherits"),
    "fields of Agent": (19, "annotated fields"),
    # One of them names a request in a trace that never became a call.
    "comparisons with kind or purpose": (38, "see `effect_comparisons`"),
    "folds over records": (1, f"modules outside the kernel that tell {FOLD} events or more apart"),
    "readers of records": (1, "modules outside the kernel that tell 2 events or more apart"),
    "largest room": (14, "modules in one folder, without its __init__.py"),
    "class names used twice": (3, "names of several classes, a leading underscore aside"),
    "moves of a tool turn": (55, "scripts/walks.py: from a model's reply over its tool to the next question"),
    "files of a tool turn": (21, "different files on that walk"),
    "calls of a tool turn": (80, "Python calls on that walk"),
    # One of them since the first event of a run is read as it will be where the run is opened; two since
    # rules beyond a run are looked up.
    "moves of a command": (94, "from `antiphon run … hello` to the agent's inbox"),
    "files of a command": (45, "different files on that walk"),
}  # fmt: skip
WALKS = {"turn": "tool turn", "command": "command"}


@dataclass(frozen=True)
class Measure:
    """One line of the table. `found`: what was counted, as far as it can be listed."""

    name: str
    value: int
    found: tuple[str, ...] = ()

    @property
    def bound(self) -> int:
        return BOUNDS[self.name][0]

    @property
    def broken(self) -> bool:
        return self.value > self.bound


Node = TypeVar("Node", bound=ast.AST)


@dataclass(frozen=True)
class Module:
    """One file of a package: its dotted name, its path from the package's folder, its tree."""

    name: str
    path: str
    tree: ast.Module

    @cached_property
    def _by_type(self) -> dict[type[ast.AST], list[Any]]:
        found = defaultdict(list)
        for node in ast.walk(self.tree):
            found[type(node)].append(node)
        return dict(found)

    def nodes(self, kind: type[Node]) -> list[Node]:
        """All nodes of a kind, wherever they stand."""
        return self._by_type.get(kind, [])

    @property
    def room(self) -> str:
        """The entry at the top that it belongs to; the package's name for its own __init__.py."""
        parts = self.name.split(".")
        return parts[1] if len(parts) > 1 else parts[0]


def read(package: Path) -> list[Module]:
    """All modules of a package, in the order of their paths."""
    found = []
    for file in sorted(package.rglob("*.py")):
        path = file.relative_to(package)
        parts = (package.name, *path.with_suffix("").parts)
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found.append(Module(name, path.as_posix(), ast.parse(file.read_text("utf-8"))))
    return found


# -- entries, imports -----------------------------------------------------------------------------


def top_entries(package: Path) -> list[str]:
    """Modules, and folders with modules, at the top."""
    return sorted(
        entry.name
        for entry in package.iterdir()
        if entry.name != "__init__.py" and (entry.suffix == ".py" or any(entry.rglob("*.py")))
    )


Graph = dict[str, set[str]]


def imports(modules: Iterable[Module]) -> Graph:
    """Which module names which other in an import, wherever in the file it stands.

    That a package's __init__.py runs before its modules is no import: nobody reads it so.
    """
    by_name = {module.name: module for module in modules}
    graph: Graph = {name: set() for name in by_name}
    for name, module in by_name.items():
        for plain in module.nodes(ast.Import):
            graph[name] |= {alias.name for alias in plain.names} & by_name.keys()
        for node in module.nodes(ast.ImportFrom):
            if node.module in by_name:
                inner = {f"{node.module}.{alias.name}" for alias in node.names}
                graph[name] |= inner & by_name.keys()
                if inner - by_name.keys():
                    graph[name].add(node.module)
        graph[name].discard(name)
    return graph


def room_imports(modules: Iterable[Module], within: Graph) -> Graph:
    """The same between entries at the top; `within`: between modules."""
    rooms = {module.name: module.room for module in modules}
    graph: Graph = {room: set() for room in rooms.values()}
    for name, others in within.items():
        graph[rooms[name]] |= {rooms[other] for other in others} - {rooms[name]}
    return graph


def groups(graph: Graph) -> list[list[str]]:
    """Strongly connected components, those that import nothing else first (Tarjan)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        order[node] = low[node] = len(order)
        stack.append(node)
        for other in sorted(graph[node]):
            if other not in order:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], order[other])
        if low[node] == order[node]:
            place = stack.index(node)
            found.append(sorted(stack[place:]))
            del stack[place:]

    for node in sorted(graph):
        if node not in order:
            visit(node)
    return found


def circles(graph: Graph) -> list[list[str]]:
    return [group for group in groups(graph) if len(group) > 1]


def layers(graph: Graph) -> list[list[str]]:
    """The nodes by the longest chain of imports below them, the lowest first."""
    level: dict[str, int] = {}
    for group in groups(graph):
        below = [level[other] for node in group for other in graph[node] if other not in group]
        level |= dict.fromkeys(group, max(below, default=-1) + 1)
    return [sorted(node for node in level if level[node] == n) for n in range(max(level.values()) + 1)]


def declared_layers(pyproject: Path) -> list[str]:
    """The layers of the contract that the import linter checks."""
    contracts = tomllib.loads(pyproject.read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    (house,) = (each for each in contracts if each["name"].startswith(HOUSE_CONTRACT))
    return list(house["layers"])


# -- classes, rooms --------------------------------------------------------------------------------


def fields(node: ast.ClassDef) -> list[str]:
    """A class's own annotated fields: of a Struct, a dataclass or any other."""
    return [
        line.target.id
        for line in chain(node.body, *(each.body for each in node.body if isinstance(each, ast.If)))
        if isinstance(line, ast.AnnAssign)
        and isinstance(line.target, ast.Name)
        and "ClassVar" not in ast.unparse(line.annotation)
    ]


def classes(modules: Iterable[Module]) -> Iterator[tuple[Module, ast.ClassDef]]:
    for module in modules:
        for node in module.nodes(ast.ClassDef):
            yield module, node


def class_names(modules: Iterable[Module]) -> dict[str, list[str]]:
    """Where each class is, by name; a leading underscore makes no other name."""
    found = defaultdict(list)
    for module, node in classes(modules):
        found[node.name.lstrip("_")].append(module.path)
    return dict(found)


def room_sizes(modules: Iterable[Module]) -> Counter[str]:
    """Modules in each folder, without __init__.py and __main__.py."""
    paths = (Path(module.path) for module in modules)
    return Counter(path.parent.as_posix() for path in paths if not path.name.startswith("__"))


# -- records ---------------------------------------------------------------------------------------


def last_name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def texts(node: ast.AST) -> set[str]:
    """The string constants in an expression."""
    return {
        part.value
        for part in ast.walk(node)
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    }


def constants(modules: Iterable[Module]) -> dict[str, set[str]]:
    """The strings in what is assigned to a name at the top of some module."""
    found: dict[str, set[str]] = defaultdict(set)
    for module in modules:
        for line in module.tree.body:
            if isinstance(line, ast.Assign):
                for target in line.targets:
                    for each in target.elts if isinstance(target, ast.Tuple) else [target]:
                        found[last_name(each)] |= texts(line.value)
    return found


def effect_comparisons(modules: Iterable[Module]) -> list[str]:
    """Places that tell effects apart by their kind or purpose.

    A comparison (==, !=, in, not in, is) counts when one side is a name or an attribute called
    `purpose`; or called `kind`, with a kind or purpose of effects on the other side: as text, or in a
    constant of the package. So the kinds of tokens, of pieces of a reply, of parameters do not count.
    A `match` on either counts once for each case that names a kind or purpose.
    """
    modules = list(modules)
    known = constants(modules)

    def about_effects(sides: Iterable[ast.AST]) -> bool:
        sides = list(sides)
        names = {last_name(side) for side in sides}
        said = set[str]().union(*map(texts, sides), *(known.get(name, set()) for name in names))
        return "purpose" in names or ("kind" in names and bool(said & EFFECT_WORDS))

    found = []
    for module in modules:
        for node in module.nodes(ast.Compare):
            if about_effects([node.left, *node.comparators]):
                found.append(f"{module.path}:{node.lineno}: {ast.unparse(node)}")
        for match in module.nodes(ast.Match):
            found += [
                f"{module.path}:{case.pattern.lineno}: case {ast.unparse(case.pattern)}"
                for case in match.cases
                if texts(case.pattern) and about_effects([*_parts(match.subject), case.pattern])
            ]
    return found


def _parts(subject: ast.expr) -> list[ast.expr]:
    return list(subject.elts) if isinstance(subject, ast.Tuple) else [subject]


def event_classes(modules: Iterable[Module]) -> set[str]:
    """The names in the union of all events."""
    for module in modules:
        for line in module.tree.body:
            if isinstance(line, ast.Assign) and list(map(last_name, line.targets)) == [EVENTS]:
                return {last_name(node) for node in ast.walk(line.value)} - {""}
    raise LookupError(f"no module defines the union {EVENTS}: house.EVENTS must learn its name")


def told_apart(module: Module, names: set[str]) -> set[str]:
    """Which of the classes a module asks for: isinstance, `type(x) is`, match, or keys of a table."""
    asked: list[ast.AST | None] = [node.cls for node in module.nodes(ast.MatchClass)]
    for node in module.nodes(ast.Call):
        if last_name(node.func) == "isinstance":
            asked += node.args[1:]
    for compared in module.nodes(ast.Compare):
        asked += [compared.left, *compared.comparators]
    for mapping in module.nodes(ast.Dict):
        asked += mapping.keys
    return {last_name(part) for each in asked if each is not None for part in ast.walk(each)} & names


def readers(modules: Iterable[Module]) -> dict[str, list[str]]:
    """Modules outside the kernel by path, with the events that they tell apart, if two or more."""
    modules = list(modules)
    names = event_classes(modules)
    found = {
        module.path: sorted(told_apart(module, names)) for module in modules if module.room not in KERNEL
    }
    return {path: told for path, told in found.items() if len(told) > 1}


# -- the table --------------------------------------------------------------------------------------


def static_measures(package: Path = PACKAGE) -> list[Measure]:
    """All but the walks."""
    modules = read(package)
    within = imports(modules)
    between = room_imports(modules, within)
    sizes = {
        f"{module.path}:{node.lineno}: {node.name}": len(fields(node)) for module, node in classes(modules)
    }
    twins = {name: paths for name, paths in class_names(modules).items() if len(paths) > 1}
    (agent,) = (size for name, size in sizes.items() if name.endswith(f": {AGENT}"))
    declared = declared_layers(package.parents[1] / "pyproject.toml")
    told = readers(modules)
    reading = {path: f"{path}: {', '.join(names)}" for path, names in told.items()}
    folds = [reading[path] for path, names in told.items() if len(names) >= FOLD]
    return [
        counted("top entries", top_entries(package)),
        counted("room layers", map(", ".join, layers(between))),
        counted("declared layers", declared),
        counted("module layers", map(", ".join, layers(within))),
        counted("room circles", map(", ".join, circles(between))),
        counted("module circles", map(", ".join, circles(within))),
        largest("largest struct", sizes),
        Measure("fields of Agent", agent),
        counted("comparisons with kind or purpose", effect_comparisons(modules)),
        counted("folds over records", folds),
        counted("readers of records", reading.values()),
        largest("largest room", room_sizes(modules)),
        counted("class names used twice", (f"{name}: {', '.join(twins[name])}" for name in sorted(twins))),
    ]


def counted(name: str, found: Iterable[str]) -> Measure:
    listed = tuple(found)
    return Measure(name, len(listed), listed)


def largest(name: str, sizes: Mapping[str, int]) -> Measure:
    ranked = sorted(sizes.items(), key=lambda item: (-item[1], item[0]))
    return Measure(name, ranked[0][1], tuple(f"{size} {what}" for what, size in ranked[:20]))


def walk_measures(package: Path = PACKAGE) -> list[Measure]:
    """The walks, counted in a process of its own, so that nothing of this one is in them."""
    kept = {name: value for name, value in os.environ.items() if name in ("HOME", "PATH", "SYSTEMROOT")}
    environment = {**kept, "PYTHONPATH": os.fspath(package.parent), "PYTHONHASHSEED": "0"}
    command = [sys.executable, os.fspath(Path(__file__).with_name("walks.py"))]
    done = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"scripts/walks.py failed:\n{done.stdout}{done.stderr}")
    walks = json.loads(done.stdout)
    names = (name for name in BOUNDS if name.partition(" of a ")[2] in WALKS.values())
    return [Measure(name, _walked(walks, *name.split(" of a "))) for name in names]


def _walked(walks: Mapping[str, Mapping[str, int]], what: str, walk: str) -> int:
    (key,) = (key for key, name in WALKS.items() if name == walk)
    return walks[key][what]


def measures() -> list[Measure]:
    """The whole table, in the order of BOUNDS."""
    found = {measure.name: measure for measure in (*static_measures(), *walk_measures())}
    return [found[name] for name in BOUNDS]


def table(found: Iterable[Measure]) -> str:
    """The table as text."""
    lines = [f"{'measure':34}{'value':>6}{'bound':>7}  counted"]
    for each in found:
        mark = "  BROKEN" if each.broken else ""
        lines.append(f"{each.name:34}{each.value:6}{each.bound:7}  {BOUNDS[each.name][1]}{mark}")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="everything that was found, as JSON")
    parser.add_argument("--list", metavar="MEASURE", choices=list(BOUNDS), help="what one measure counted")
    given = parser.parse_args()
    found = measures()
    if given.list:
        print("\n".join(line for each in found if each.name == given.list for line in each.found))
    elif given.json:
        print(json.dumps([{**asdict(each), "bound": each.bound} for each in found], indent=1))
    else:
        print(table(found))
    return 1 if any(each.broken for each in found) else 0


if __name__ == "__main__":
    sys.exit(main())
