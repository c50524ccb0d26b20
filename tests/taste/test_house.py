"""The package fits in a reader's head: every measure of scripts/house.py is within its bound, and bites."""

import ast
import json
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from antiphon import Message
from scripts import house, walks
from scripts.house import Module


def modules(files: Mapping[str, str]) -> list[Module]:
    """A package `app` that is never written down."""
    found = []
    for path, text in files.items():
        name = ".".join(("app", *Path(path).with_suffix("").parts)).removesuffix(".__init__")
        found.append(Module(name, path, ast.parse(text)))
    return found


@pytest.mark.slow
def test_every_measure_is_within_its_bound() -> None:
    found = house.measures()
    broken = [each for each in found if each.broken]
    assert not broken, f"\n{house.table(found)}\n" + "\n".join(
        f"\n{each.name}:\n  " + "\n  ".join(each.found) for each in broken
    )


def test_a_measure_above_its_bound_is_broken(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bound = house.BOUNDS["largest room"][0]
    over = [house.Measure("largest room", bound + 1)]
    monkeypatch.setattr(house, "measures", lambda: over)
    monkeypatch.setattr(sys, "argv", ["house.py"])
    assert house.main() == 1
    assert "BROKEN" in capsys.readouterr().out
    over[0] = house.Measure("largest room", bound)
    monkeypatch.setattr(sys, "argv", ["house.py", "--json"])
    assert house.main() == 0
    (shown,) = json.loads(capsys.readouterr().out)
    assert (shown["name"], shown["value"], shown["bound"]) == ("largest room", bound, bound)


def test_entries_are_modules_and_folders_with_modules(tmp_path: Path) -> None:
    for path in ("__init__.py", "py.typed", "a.py", "b/__init__.py", "__pycache__/a.pyc", "c/data.json"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).touch()
    assert house.top_entries(tmp_path) == ["a.py", "b"]


def test_imports_count_wherever_they_stand() -> None:
    graph = house.imports(
        modules(
            {
                "__init__.py": "from app.a import x",
                "a.py": "def f():\n from app.b import c, y",
                "b/__init__.py": "",
                "b/c.py": "if TYPE_CHECKING:\n import app.a\nfrom json import app",
            }
        )
    )
    assert graph == {"app": {"app.a"}, "app.a": {"app.b", "app.b.c"}, "app.b": set(), "app.b.c": {"app.a"}}


def test_a_circle_is_one_step_of_the_longest_chain() -> None:
    graph = {"a": {"b"}, "b": {"c", "e"}, "c": {"d"}, "d": {"b"}, "e": set()}
    assert house.layers(graph) == [["e"], ["b", "c", "d"], ["a"]]
    assert house.circles(graph) == [["b", "c", "d"]]


def test_rooms_are_the_entries_at_the_top() -> None:
    found = modules({"__init__.py": "", "x/a.py": "import app.x.b, app.y", "x/b.py": "", "y.py": ""})
    assert house.room_imports(found, house.imports(found)) == {"app": set(), "x": {"y"}, "y": set()}


def test_own_annotated_fields_count() -> None:
    (node,) = ast.parse("class A(B):\n x: int\n y: int = 0\n Z: ClassVar[int] = 0\n w = 1").body
    assert isinstance(node, ast.ClassDef)
    assert house.fields(node) == ["x", "y"]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("x.purpose == y", 1),
        ("x.purpose not in ASKING", 1),
        ("'model' == kind", 1),
        ("x.kind in ('tool', 'number')", 1),
        ("KINDS = {'call'}\nx.kind in KINDS", 1),
        ("x.kind == 'number'", 0),
        ("x.kind == y", 0),
        ("x.outcome == 'model'", 0),
        ("match x.kind:\n case 'model': f()\n case 'number': g()\n case _: h()", 1),
        ("match x.kind, x.purpose:\n case 'model', '': f()\n case 'wait', 'retry': g()", 2),
        ("match x:\n case 'model': f()", 0),
    ],
)
def test_comparisons_that_tell_effects_apart_count(text: str, count: int) -> None:
    assert len(house.effect_comparisons(modules({"a.py": text}))) == count


@pytest.mark.parametrize(
    "text",
    [
        "isinstance(x, Started)\nisinstance(x, Ended | int)",
        "type(x) is event.Started or type(x) in (Ended, Posted)",
        "match x:\n case Started(): f()\n case Ended(why=w): g()",
        "TABLE = {Started: f, Ended: g}",
    ],
)
def test_who_tells_events_apart_reads_records(text: str) -> None:
    events = {"event.py": "Event = Started | Ended | Posted"}
    found = house.readers(modules({**events, "a.py": text, "kernel/b.py": text, "c.py": "Started(Ended())"}))
    assert list(found) == ["a.py"]
    assert {"Started", "Ended"} <= set(found["a.py"])


def test_the_events_must_be_found() -> None:
    with pytest.raises(LookupError, match=r"house\.EVENTS"):
        house.event_classes(modules({"a.py": "Other = A | B"}))


def test_rooms_and_class_names_are_counted() -> None:
    found = modules({"a/__init__.py": "", "a/b.py": "class Row: ...", "a/c.py": "class _Row: ..."})
    assert house.room_sizes(found) == {"a": 2}
    assert house.class_names(found) == {"Row": ["a/b.py", "a/c.py"]}


def test_a_walk_is_its_moves_files_and_calls() -> None:
    steps = [("a.py", "f"), ("a.py", "g"), ("b.py", "h"), ("a.py", "f")]
    assert walks.counted(steps) == {"moves": 3, "files": 2, "calls": 4}


def test_the_message_is_found_in_any_inbox() -> None:
    from msgspec import Struct, defstruct

    message = Message("forward", "user", walks.AGENT, walks.TEXT)
    inner, outer = defstruct("Inner", ["waiting"]), defstruct("Outer", ["name", "inner"])
    box: Struct = inner([message])
    assert walks.holds_message(box)
    assert walks.holds_message(outer("x", box))
    assert walks.holds_message(inner({"1": message}))
    assert not walks.holds_message(inner(message))
    assert not walks.holds_message([message])
    assert not walks.holds_message(inner([Message("forward", "user", "other", walks.TEXT)]))
