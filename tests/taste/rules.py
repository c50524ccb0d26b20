"""The house's rules of taste and its bans, as functions from a parsed file to what breaks them."""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

from scripts.house import fields

MAX_FILE = 500
MAX_FUNCTION = 60
MAX_PUBLIC = 37
MAX_FIELDS = 20
MAX_ROOM = 14
# What is larger than it may be, and classes that share a name, each with its number. Nothing is added
# here, and what has become small enough is taken out.
LARGE_STRUCTS: Mapping[str, int] = {"AgentOptions": 29}
TWIN_CLASSES: Mapping[str, int] = {"Message": 2, "Task": 2, "Turn": 2}
BANNED_WORDS = {
    "abstract", "base", "handler", "helper", "helpers", "manager", "service", "util", "utils",
}  # fmt: skip
# Words of our own that no reader knows. A style keeps the words of its origin.
PRIVATE_WORDS = {
    "awake", "bury", "gist", "laps", "mail", "moment", "nudge", "nudges", "park", "parked", "wish",
}  # fmt: skip
# Names that a design document prescribes are exempt.
PRESCRIBED_NAMES: dict[str, str] = {"CostManager": "environment"}  # name: style
# Where tasks are born beside the runtime: a suite's racers, an environment's triggers, a host's runs and what
# they wait for, a server with its requests and followed runs, a federation's sources, the assistant's
# delegates, and one for each provider, connection, editor and command that a person runs.
TASK_MAKERS = (
    "src/antiphon/assistant/delegates.py",
    "src/antiphon/cli/screen/keys/editor.py", "src/antiphon/cli/session/own/command.py",
    "src/antiphon/host/host", "src/antiphon/server/serve.py", "src/antiphon/server/socket.py",
    "src/antiphon/kernel/run/runtime.py", "src/antiphon/kernel/run/toolsets/provider.py",
    "src/antiphon/tools/mcp/", "src/antiphon/server/mcp/", "src/antiphon/journal/check",
    "src/antiphon/styles/environment/metagpt/subscription.py", "src/antiphon/tools/knowledge/federation.py",
)  # fmt: skip
# Where a journal may be appended to, beside the runtime: the suite that tries journals out.
APPENDERS = ("src/antiphon/kernel/run/runtime.py", "src/antiphon/journal/", "src/antiphon/testing/")

# What writes to the terminal, as it is called.
WAYS_OUT = {
    "Console", "click.confirm", "click.echo", "click.echo_via_pager", "click.pause", "click.prompt",
    "click.secho", "input", "print", "rich.print", "sys.stderr.write", "sys.stdout.buffer.write",
    "sys.stdout.write", "traceback.print_exc", "traceback.print_exception",
}  # fmt: skip
MUTATORS = {
    "add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popitem",
    "popleft", "remove", "reverse", "setdefault", "sort", "update",
}  # fmt: skip
# Where user code is imported: what the command line names, and the module of a tool that the developer
# handed over, again in a process of its own.
IMPORTERS = ("src/antiphon/cli/target.py", "src/antiphon/kernel/run/tools/isolated_child.py")
UNSAFE_LOADERS = {"Loader", "CLoader", "FullLoader", "CFullLoader", "UnsafeLoader", "CUnsafeLoader"}
BANNED_MODULES = {
    "pickle", "cPickle", "cloudpickle", "dill", "marshal", "shelve", "runpy", "jinja2", "mako",
}  # fmt: skip

# Where no effect may be: the fold, the rule of what comes next and what they stand on.
PURE = (
    "src/antiphon/kernel/context/", "src/antiphon/kernel/facts/", "src/antiphon/kernel/rules/",
 "src/antiphon/view/graph.py",
)  # fmt: skip
IMPURE_MODULES = {
    "asyncio", "datetime", "io", "os", "pathlib", "random", "secrets", "socket", "subprocess", "threading",
    "time", "uuid",
}  # fmt: skip


@dataclass(frozen=True)
class Source:
    """One file: its path from the root of the project, its text and its tree."""

    path: str
    text: str
    tree: ast.Module

    @classmethod
    def parse(cls, path: str, text: str) -> "Source":
        return cls(path, text, ast.parse(text))

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All of the tree, walked once."""
        return walk(self.tree)

    def calls(self) -> Iterator[tuple[ast.Call, str]]:
        """Every call with the last name of what is called."""
        for node in self.nodes:
            if isinstance(node, ast.Call):
                yield node, last_name(node.func)

    def inside(self, *places: str) -> bool:
        return self.path.startswith(places)


Finding = tuple[int, str]
Rule = Callable[[Source], Iterator[Finding]]


def walk(tree: ast.AST) -> list[ast.AST]:
    """All nodes of a tree, as `ast.walk` gives them, in a third of the time."""
    found = [tree]
    for node in found:
        for name in node._fields:
            value = getattr(node, name, None)
            if type(value) is list:
                found.extend(each for each in value if isinstance(each, ast.AST))
            elif isinstance(value, ast.AST):
                found.append(value)
    return found


def last_name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def words(name: str) -> set[str]:
    return {part.lower() for part in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}


def literal(node: ast.AST | None) -> object:
    return node.value if isinstance(node, ast.Constant) else None


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((given.value for given in call.keywords if given.arg == name), None)


def file_length(source: Source) -> Iterator[Finding]:
    """A file has at most 500 lines."""
    lines = source.text.count("\n")
    if lines > MAX_FILE:
        yield lines, f"{lines} lines"


def function_length(source: Source) -> Iterator[Finding]:
    """A function has at most 60 lines."""
    for node in source.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > MAX_FUNCTION:
                yield node.lineno, f"{node.name} has {lines} lines"


def struct_size(source: Source) -> Iterator[Finding]:
    """A struct has at most 20 fields."""
    for node in source.nodes:
        if isinstance(node, ast.ClassDef):
            size = len(fields(node))
            if size > LARGE_STRUCTS.get(node.name, MAX_FIELDS):
                yield node.lineno, f"{node.name} has {size} fields"


def full_rooms(paths: Iterable[str]) -> dict[str, int]:
    """A room has at most 14 modules: the folders with more, with how many.

    A package's __init__.py and __main__.py are its door, not modules in it.
    """
    places = map(PurePosixPath, paths)
    sizes = Counter(str(place.parent) for place in places if not place.name.startswith("__"))
    return {room: size for room, size in sizes.items() if size > MAX_ROOM}


def twin_classes(sources: Iterable[Source]) -> dict[str, list[str]]:
    """A class name occurs once per package: those that do not, with where they do.

    A leading underscore makes no other name.
    """
    found = defaultdict(list)
    for source in sources:
        for node in source.nodes:
            if isinstance(node, ast.ClassDef):
                found[node.name.lstrip("_")].append(f"{source.path}:{node.lineno}")
    return {name: places for name, places in found.items() if len(places) > 1}


def empty_words(source: Source) -> Iterator[Finding]:
    """A module or class is named for what it is, not manager, helper, base and the like."""
    path = PurePosixPath(source.path)
    names = [(1, part) for part in (*path.parts[:-1], path.stem)]
    names += [(node.lineno, node.name) for node in source.nodes if isinstance(node, ast.ClassDef)]
    for line, name in names:
        if name not in PRESCRIBED_NAMES and (found := words(name) & BANNED_WORDS):
            yield line, f"{name} holds {', '.join(sorted(found))}"


def private_words(source: Source) -> Iterator[Finding]:
    """A name says what it is in words of the field."""
    if source.inside("src/antiphon/styles/"):
        return
    for node in source.nodes:
        name = ""
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = node.name
        elif isinstance(node, ast.arg):
            name = node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            name = node.id
        if name and (found := words(name) & PRIVATE_WORDS):
            yield node.lineno, f"{name} holds {', '.join(sorted(found))}"


def tasks_elsewhere(source: Source) -> Iterator[Finding]:
    """Tasks are created in runtime.py only."""
    for call, name in source.calls():
        if name in {"create_task", "TaskGroup", "ensure_future", "gather"} and not source.inside(
            *TASK_MAKERS
        ):
            yield call.lineno, f"{name}()"


def appends_elsewhere(source: Source) -> Iterator[Finding]:
    """The runtime alone appends to a journal."""
    for call, name in source.calls():
        if name == "append" and isinstance(call.func, ast.Attribute) and not source.inside(*APPENDERS):
            owner = last_name(call.func.value).lower()
            if owner.endswith("journal"):
                yield call.lineno, f"{owner}.append()"


def code_from_data(source: Source) -> Iterator[Finding]:
    """Nothing that runs code from data: eval, exec, compile, pickle, marshal, an unsafe YAML loader."""
    for module, line in imported(source):
        if module.split(".")[0] in BANNED_MODULES:
            yield line, f"import {module}"
    for call, name in source.calls():
        if isinstance(call.func, ast.Name) and name in {"eval", "exec", "compile"}:
            yield call.lineno, f"{name}()"
        elif name in {"unsafe_load", "unsafe_load_all", "full_load", "full_load_all"}:
            yield call.lineno, f"yaml.{name}()"
        elif name in {"load", "load_all"} and ast.unparse(call.func).startswith("yaml."):
            loader = keyword(call, "Loader") or (call.args[1] if len(call.args) > 1 else None)
            if loader is None or last_name(loader) in UNSAFE_LOADERS:
                yield call.lineno, "yaml.load() without a safe loader"


def imports_from_data(source: Source) -> Iterator[Finding]:
    """User code is imported in cli/target.py, and in the process of an isolated tool, only."""
    if source.path in IMPORTERS:
        return
    for module, line in imported(source):
        if module in {"importlib", "imp"} or module.startswith(
            ("importlib.util", "importlib.machinery", "importlib.import_module", "importlib.reload")
        ):
            yield line, f"import {module}"
    for call, name in source.calls():
        if name in {"__import__", "import_module", "spec_from_file_location"}:
            yield call.lineno, f"{name}()"


def imported(source: Source) -> Iterator[tuple[str, int]]:
    for node in source.nodes:
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)


def shells(source: Source) -> Iterator[Finding]:
    """No shell stands between us and a program."""
    for call, name in source.calls():
        if name in {"create_subprocess_shell", "getoutput", "getstatusoutput"}:
            yield call.lineno, f"{name}()"
        elif ast.unparse(call.func) in {"os.system", "os.popen"}:
            yield call.lineno, f"os.{name}()"
        elif (shell := keyword(call, "shell")) is not None and literal(shell) is not False:
            yield call.lineno, "shell="


def foreign_templates(source: Source) -> Iterator[Finding]:
    """No template and no str.format over text that is not a literal."""
    for module, line in imported(source):
        if module == "string.Template":
            yield line, "string.Template"
    for call, name in source.calls():
        if name in {"format", "format_map"} and isinstance(call.func, ast.Attribute):
            if not isinstance(literal(call.func.value), str):
                yield call.lineno, f"{ast.unparse(call.func)}()"
        elif ast.unparse(call.func) == "string.Template":
            yield call.lineno, "string.Template()"


def asserts(source: Source) -> Iterator[Finding]:
    """No assert in the product: it vanishes under -O, and an input check deserves a message."""
    for node in source.nodes:
        if isinstance(node, ast.Assert):
            yield node.lineno, "assert"


def swallowed_errors(source: Source) -> Iterator[Finding]:
    """No bare except, and none that drops what it caught."""
    for node in source.nodes:
        if isinstance(node, ast.ExceptHandler):
            if node.type is None:
                yield node.lineno, "bare except"
            elif all(isinstance(line, ast.Pass) or is_ellipsis(line) for line in node.body):
                yield node.lineno, "except …: pass"
    for call, name in source.calls():
        if name == "suppress" and {"Exception", "BaseException"} & set(map(last_name, call.args)):
            yield call.lineno, "suppress(Exception)"


def is_ellipsis(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and literal(node.value) is ...


def built_sql(source: Source) -> Iterator[Finding]:
    """Every SQL statement is a constant."""
    built = {
        target.id
        for node in source.nodes
        if isinstance(node, ast.Assign) and is_built(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for call, name in source.calls():
        if name in {"execute", "executemany", "executescript"} and call.args:
            statement = call.args[0]
            if is_built(statement) or (isinstance(statement, ast.Name) and statement.id in built):
                yield call.lineno, ast.unparse(statement)


def is_built(node: ast.expr) -> bool:
    """Text put together: an f-string, + or %, format, join, replace."""
    if isinstance(node, ast.IfExp):
        return is_built(node.body) or is_built(node.orelse)
    return isinstance(node, ast.JoinedStr | ast.BinOp) or (
        isinstance(node, ast.Call) and last_name(node.func) in {"format", "format_map", "join", "replace"}
    )


def ambient_state(source: Source) -> Iterator[Finding]:
    """No context variable, no global statement, nothing mutated or run at import.

    Those of the caller go along into a thread of ours.
    """
    for module, line in imported(source):
        if module.split(".")[0] == "contextvars" and not source.inside("src/antiphon/kernel/run/blocking.py"):
            yield line, "contextvars"
    for node in source.nodes:
        if isinstance(node, ast.Global):
            yield node.lineno, f"global {', '.join(node.names)}"
    for statement in source.tree.body:
        if not is_declaration(statement):
            yield statement.lineno, f"runs at import: {ast.unparse(statement).splitlines()[0]}"
    yield from mutated_globals(source)


def is_declaration(node: ast.stmt) -> bool:
    match node:
        case ast.If():
            return all(map(is_declaration, [*node.body, *node.orelse])) or "__main__" in ast.unparse(
                node.test
            )
        case ast.Try():
            return all(map(is_declaration, [*node.body, *node.orelse, *node.finalbody]))
        case ast.Assign():
            return not any(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets)
        case ast.Expr():
            return isinstance(node.value, ast.Constant)
    return isinstance(
        node,
        ast.Import | ast.ImportFrom | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.AnnAssign
        | ast.Pass | ast.Raise,
    )  # fmt: skip


def mutated_globals(source: Source) -> Iterator[Finding]:
    shared = {
        target.id
        for node in source.tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    for function in source.nodes:
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        nodes = walk(function)
        own = {node.arg for node in nodes if isinstance(node, ast.arg)}
        own |= {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        for line, name in mutations(nodes):
            if name in shared - own:
                yield line, f"{name} is shared by all and changed here"


def mutations(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    for node in nodes:
        changed: ast.AST | None = None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MUTATORS:
            changed = node.func.value
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
            changed = node.value
        if isinstance(changed, ast.Name):
            yield node.lineno, changed.id


def impurity(source: Source) -> Iterator[Finding]:
    """The kernel's rules are pure: no await, clock, input, output or randomness."""
    if not source.inside(*PURE):
        return
    for module, line in imported(source):
        if module.split(".")[0] in IMPURE_MODULES:
            yield line, f"import {module}"
    for node in source.nodes:
        if isinstance(node, ast.AsyncFunctionDef | ast.Await):
            yield node.lineno, "async"
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in {"open", "input"}
        ):
            yield node.lineno, f"{node.func.id}()"


def prints(source: Source) -> Iterator[Finding]:
    """Only the command line writes to the terminal, and only cli/display/output.py, which cleans it.

    The bar that a program asks `map` for holds numbers and a checked name.
    """
    if source.path in ("src/antiphon/cli/display/output.py", "src/antiphon/kernel/run/batch/progress.py"):
        return
    for call, _ in source.calls():
        name = ast.unparse(call.func)
        if name in WAYS_OUT or name.endswith(".file.write"):
            yield call.lineno, f"{name}()"


def sleeps(source: Source) -> Iterator[Finding]:
    """A test never sleeps; asyncio.sleep(0) only lets others go first."""
    for call, name in source.calls():
        if name == "sleep" and (ast.unparse(call.func) == "time.sleep" or literal(first(call)) != 0):
            yield call.lineno, f"{ast.unparse(call)}"


def first(call: ast.Call) -> ast.expr | None:
    return call.args[0] if call.args else None


def silent_skips(source: Source) -> Iterator[Finding]:
    """A skipped test says why, in at least 20 characters."""
    marks = {"pytest.mark.skip", "pytest.mark.skipif", "pytest.mark.xfail"}
    calls = {"pytest.skip", "pytest.xfail", "pytest.importorskip"}
    called = {id(call.func) for call, _ in source.calls()}
    for node in source.nodes:
        if isinstance(node, ast.Attribute) and ast.unparse(node) in marks and id(node) not in called:
            yield node.lineno, f"{ast.unparse(node)} without a reason"
    for call, _ in source.calls():
        name = ast.unparse(call.func)
        if name in marks | calls:
            reason = keyword(call, "reason") or (first(call) if name != "pytest.mark.skipif" else None)
            text = literal(reason)
            if not isinstance(reason, ast.JoinedStr) and not (isinstance(text, str) and len(text) >= 20):
                yield call.lineno, f"{name} without a reason"


EVERYWHERE: tuple[Rule, ...] = (file_length, function_length, empty_words)
IN_SRC: tuple[Rule, ...] = (
    tasks_elsewhere, appends_elsewhere, code_from_data, imports_from_data, shells, foreign_templates,
    asserts, swallowed_errors, built_sql, ambient_state, impurity, prints, struct_size, private_words,
)  # fmt: skip
IN_TESTS: tuple[Rule, ...] = (sleeps, silent_skips)


def rules_for(path: str) -> tuple[Rule, ...]:
    if path.startswith("src/"):
        return EVERYWHERE + IN_SRC
    return EVERYWHERE + IN_TESTS if path.startswith("tests/") else EVERYWHERE


def public_names(source: Source) -> list[str]:
    """The names in __all__, as written."""
    for node in source.tree.body:
        if isinstance(node, ast.Assign) and [last_name(target) for target in node.targets] == ["__all__"]:
            return list(ast.literal_eval(node.value))
    return []


def unlisted_names(source: Source) -> set[str]:
    """What a reader could import without a leading underscore, but __all__ does not list."""
    bound: set[str] = set()
    for node in source.tree.body:
        if isinstance(node, ast.ImportFrom | ast.Import):
            bound |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            bound.add(node.name)
        elif isinstance(node, ast.Assign):
            bound |= {last_name(target) for target in node.targets}
    return {name for name in bound if not name.startswith("_")} - set(public_names(source))
