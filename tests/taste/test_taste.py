"""The project's own files keep the rules, and every rule bites."""

import ast
import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from scripts import house
from tests.taste import rules
from tests.taste.rules import Source

ROOT = Path(__file__).resolve().parents[2]
# In pieces, so that this file does not name what it looks for.
REGISTRIES = (
    "pypi" + ".org",
    "python" + "hosted.org",
    "npm" + "js.org",
    "npm" + "js.com",
    "yarn" + "pkg.com",
)
LOCATIONS = ("--index" + "-url", "--extra-index" + "-url", "--find" + "-links")


def tracked() -> list[str]:
    """Files git tracks or would; without git, all that are not in a dot or cache folder."""
    git = shutil.which("git")
    if git and (ROOT / ".git").exists():
        command = [git, "-C", os.fspath(ROOT), "ls-files", "-z", "-co", "--exclude-standard"]
        listed = subprocess.run(command, capture_output=True, check=True).stdout.decode().split("\0")
        return sorted(path for path in set(listed) if path and (ROOT / path).is_file())
    found = (path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file())
    return sorted(
        path.as_posix() for path in found if not path.as_posix().startswith(".") and path.suffix != ".pyc"
    )


FILES = tracked()
SOURCES = [path for path in FILES if path.endswith(".py")]


def broken(source: Source) -> list[str]:
    return [
        f"{source.path}:{line}: {what} - {(rule.__doc__ or rule.__name__).strip()}"
        for rule in rules.rules_for(source.path)
        for line, what in rule(source)
    ]


@cache
def read(path: str) -> Source:
    return Source.parse(path, (ROOT / path).read_text("utf-8"))


def test_every_file_keeps_the_rules() -> None:
    found = [line for path in SOURCES for line in broken(read(path))]
    assert not found, "\n" + "\n".join(found)


PACKAGE = [path for path in SOURCES if path.startswith("src/")]


def test_no_room_is_full() -> None:
    assert rules.full_rooms(PACKAGE) == {}, rules.full_rooms.__doc__


def test_no_class_name_is_used_twice_but_those_listed() -> None:
    found = rules.twin_classes(map(read, PACKAGE))
    more = {name: places for name, places in found.items() if len(places) > rules.TWIN_CLASSES.get(name, 1)}
    assert not more, f"{rules.twin_classes.__doc__}"
    assert rules.TWIN_CLASSES.keys() <= found.keys(), "take what is used once out of TWIN_CLASSES"


def test_the_list_of_large_structs_holds_large_ones_only() -> None:
    sizes = {
        node.name: len(house.fields(node))
        for path in PACKAGE
        for node in read(path).nodes
        if isinstance(node, ast.ClassDef)
    }
    small = [name for name in rules.LARGE_STRUCTS if sizes.get(name, 0) <= rules.MAX_FIELDS]
    assert not small, "take what is small enough out of LARGE_STRUCTS"


def test_no_registry_is_named() -> None:
    found = []
    for path in FILES:
        text = (ROOT / path).read_bytes().decode("utf-8", "ignore")
        for name in (*REGISTRIES, *LOCATIONS):
            if name in text:
                line = text[: text.index(name)].count("\n") + 1
                found.append(f"{path}:{line}: {name} - the user's own pip settings say where packages are")
    assert not found, "\n" + "\n".join(found)


def test_public_names_are_few_sorted_and_complete() -> None:
    face = read("src/antiphon/__init__.py")
    names = rules.public_names(face)
    assert 0 < len(names) <= rules.MAX_PUBLIC, f"{face.path}: {len(names)} public names"
    assert names == sorted(set(names)), f"{face.path}: __all__ is not sorted, or names something twice"
    assert not rules.unlisted_names(face), f"{face.path}: public but not in __all__"


LONG = "\n".join(["x = 1"] * 501) + "\n"
LARGE_STRUCT = "class Large(Struct):\n" + "".join(f"    x{n}: int = 0\n" for n in range(21))
LONG_FUNCTION = "def f():\n" + "    x = 1\n" * 60

BAD = [
    (rules.file_length, LONG),
    (rules.function_length, LONG_FUNCTION),
    (rules.struct_size, LARGE_STRUCT),
    (rules.empty_words, "class RunManager: pass"),
    (rules.empty_words, "class HTTPBase: pass"),
    (rules.private_words, "def bury(agent): ..."),
    (rules.private_words, "nudges = 3"),
    (rules.tasks_elsewhere, "async def f(): asyncio.create_task(g())"),
    (rules.tasks_elsewhere, "async def f():\n async with asyncio.TaskGroup() as g: ..."),
    (rules.tasks_elsewhere, "async def f(): await gather(g())"),
    (rules.tasks_elsewhere, "asyncio.ensure_future(g())"),
    (rules.appends_elsewhere, "async def f(self): await self._journal.append(1)"),
    (rules.code_from_data, "eval('1')"),
    (rules.code_from_data, "exec('1')"),
    (rules.code_from_data, "compile('1', '', 'eval')"),
    (rules.code_from_data, "import pickle"),
    (rules.code_from_data, "from marshal import loads"),
    (rules.code_from_data, "import jinja2"),
    (rules.code_from_data, "yaml.load(text)"),
    (rules.code_from_data, "yaml.load(text, Loader=yaml.FullLoader)"),
    (rules.code_from_data, "yaml.load(text, yaml.Loader)"),
    (rules.code_from_data, "yaml.unsafe_load(text)"),
    (rules.imports_from_data, "import importlib"),
    (rules.imports_from_data, "from importlib import import_module"),
    (rules.imports_from_data, "import importlib.util"),
    (rules.imports_from_data, "__import__('x')"),
    (rules.shells, "subprocess.run(x, shell=True)"),
    (rules.shells, "os.system('x')"),
    (rules.shells, "asyncio.create_subprocess_shell('x')"),
    (rules.foreign_templates, "text.format(x=1)"),
    (rules.foreign_templates, "text.format_map(x)"),
    (rules.foreign_templates, "from string import Template"),
    (rules.asserts, "def f(x): assert x"),
    (rules.swallowed_errors, "try: f()\nexcept: raise"),
    (rules.swallowed_errors, "try: f()\nexcept ValueError: pass"),
    (rules.swallowed_errors, "try: f()\nexcept Exception: ..."),
    (rules.swallowed_errors, "with contextlib.suppress(Exception): f()"),
    (rules.built_sql, "db.execute(f'select {x}')"),
    (rules.built_sql, "db.execute('select ' + x)"),
    (rules.built_sql, "db.executemany('select %s' % x)"),
    (rules.built_sql, "db.execute('select {}'.format(x))"),
    (rules.built_sql, "def f():\n sql = f'select {x}'\n db.execute(sql)"),
    (rules.ambient_state, "from contextvars import ContextVar"),
    (rules.ambient_state, "def f():\n global x\n x = 1"),
    (rules.ambient_state, "print('hello')"),
    (rules.ambient_state, "X = {}\nX['a'] = 1"),
    (rules.ambient_state, "for x in y: z(x)"),
    (rules.ambient_state, "X = []\ndef f(): X.append(1)"),
    (rules.ambient_state, "X: dict[str, int] = {}\ndef f(): X['a'] = 1"),
    (rules.impurity, "import time"),
    (rules.impurity, "from datetime import datetime"),
    (rules.impurity, "async def f(): ..."),
    (rules.impurity, "def f(): return open('x')"),
    (rules.prints, "def f(): print(1)"),
    (rules.prints, "def f(): click.echo('x')"),
    (rules.prints, "def f(): sys.stderr.write('x')"),
    (rules.prints, "def f(console): console.file.write('x')"),
    (rules.prints, "from rich.console import Console\ndef f(): Console()"),
    (rules.sleeps, "def f(): time.sleep(0)"),
    (rules.sleeps, "async def f(): await asyncio.sleep(0.01)"),
    (rules.sleeps, "async def f(): await asyncio.sleep(delay)"),
    (rules.silent_skips, "@pytest.mark.skip\ndef test(): ..."),
    (rules.silent_skips, "@pytest.mark.skipif(x, reason='no')\ndef test(): ..."),
    (rules.silent_skips, "def test(): pytest.skip('later')"),
    (rules.silent_skips, "x = pytest.importorskip('numpy')"),
]


@pytest.mark.parametrize(("rule", "text"), BAD, ids=lambda value: getattr(value, "__name__", None))
def test_a_rule_bites(rule: rules.Rule, text: str) -> None:
    assert list(rule(Source.parse("src/antiphon/kernel/rules/step.py", text)))


GOOD = [
    "import re\nPATTERN = re.compile('x')",
    "import yaml\ndef f(t): return yaml.load(t, Loader=StrictLoader)",
    "from importlib.metadata import version",
    "LIMIT = 3\ndef f(x):\n x['a'] = 1\n return 'a {}'.format(x)",
    "X = []\ndef f():\n X = []\n X.append(1)",
    "def f():\n try: g()\n except ValueError as error: return str(error)",
    "SQL = 'select ?'\ndef f(db): db.execute(SQL, (1,))",
    "if TYPE_CHECKING:\n from x import y",
    "A, B = 1, 2",
    "class Based: pass",
    LARGE_STRUCT.replace("    x20: int = 0\n", "    x20: ClassVar[int] = 0\n"),
]


@pytest.mark.parametrize("text", GOOD)
def test_a_rule_leaves_good_code_alone(text: str) -> None:
    assert broken(Source.parse("src/antiphon/kernel/rules/step.py", text)) == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("src/antiphon/kernel/run/runtime.py", "def f(): asyncio.create_task(g())"),
        ("src/antiphon/cli/target.py", "import importlib"),
        ("src/antiphon/cli/display/output.py", "def f(): print(1)"),
        ("tests/test_x.py", "async def f():\n await asyncio.sleep(0)\n assert 1"),
        ("tests/test_x.py", "def f(): pytest.skip('this machine has no second filesystem')"),
    ],
)
def test_an_exemption_holds(path: str, text: str) -> None:
    assert broken(Source.parse(path, text)) == []


def test_a_room_is_full_with_fifteen_modules() -> None:
    doors = ["src/antiphon/tools/__init__.py", "src/antiphon/tools/__main__.py"]
    modules = [f"src/antiphon/tools/m{n}.py" for n in range(15)]
    assert rules.full_rooms([*doors, *modules]) == {"src/antiphon/tools": 15}
    assert rules.full_rooms([*doors, *modules[:14]]) == {}


def test_a_class_name_is_found_twice() -> None:
    one = Source.parse("src/antiphon/a.py", "class Row: ...\nclass Column: ...")
    other = Source.parse("src/antiphon/b/c.py", "def f():\n class _Row: ...")
    assert rules.twin_classes([one, other]) == {"Row": ["src/antiphon/a.py:1", "src/antiphon/b/c.py:2"]}
    assert rules.twin_classes([one]) == {}


def test_a_module_name_is_judged() -> None:
    assert broken(Source.parse("src/antiphon/utils.py", ""))


@pytest.mark.parametrize(
    ("text", "names", "unlisted"),
    [
        ("from antiphon.kernel.run.runtime import run\n__all__ = ['run']", ["run"], set()),
        ("from antiphon.kernel.run.runtime import run, stream\n__all__ = ['run']", ["run"], {"stream"}),
        ("_x = 1\ndef f(): ...", [], {"f"}),
    ],
)
def test_public_names_are_read(text: str, names: list[str], unlisted: set[str]) -> None:
    source = Source.parse("src/antiphon/__init__.py", text)
    assert (rules.public_names(source), rules.unlisted_names(source)) == (names, unlisted)


# What is looked at once after a click is there on a quick machine, and not yet on a busy one.
LOOKED_ONCE = re.compile(r"expect\(\s*await |waitForSelector|Date\.now\(\) - ")


@pytest.mark.parametrize("path", sorted((ROOT / "ui/browser").glob("*.test.ts")), ids=lambda path: path.name)
def test_what_a_page_shows_is_waited_for_and_never_timed(path: Path) -> None:
    found = [
        f"{path.name}:{n}"
        for n, line in enumerate(path.read_text().splitlines(), 1)
        if LOOKED_ONCE.search(line)
    ]
    assert found == [], "use `await expect.poll(() => …)`"
