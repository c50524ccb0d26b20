"""docs/profiles.md explains every key of profile files, in the words of the loader's tables."""

import re
from pathlib import Path

from antiphon.styles.profiles.conditions.grammar import FUNCTIONS, METHODS
from antiphon.styles.profiles.conditions.path import PREFIXES
from antiphon.styles.profiles.files.fields import SHAPES, Each, Many, MappingShape, Variants
from antiphon.styles.profiles.files.loader import load_profiles
from antiphon.styles.profiles.files.vocabulary import INGESTORS, SOURCES, TOOLSETS

DOCUMENT = (Path(__file__).parents[2] / "docs/profiles.md").read_text("utf-8")


def shapes(kind):
    """Every mapping with known keys that a kind of value may hold."""
    if isinstance(kind, MappingShape):
        yield kind
        for field in kind.fields.values():
            yield from shapes(field.kind)
    elif isinstance(kind, Variants):
        for shape in kind.of.values():
            yield from shapes(shape)
    elif isinstance(kind, Many | Each):
        yield from shapes(kind.of)


def rows(shape):
    for name, field in shape.fields.items():
        if field.ignored:
            yield f"| `{name}` | Passed over, with a warning: {field.ignored}. {field.says} |"
        else:
            yield f"| `{name}` | {field.says}{' **Needed.**' if field.required else ''} |"


def test_every_key_is_explained():
    told = dict(re.findall(r"<!-- keys: (.*?) -->\n\n\|.*\n\|.*\n((?:\|.*\n)+)", DOCUMENT))
    known = {shape.what: list(rows(shape)) for top in SHAPES.values() for shape in shapes(top)}
    assert {what: text.splitlines() for what, text in told.items()} == known


def test_every_word_is_told():
    words = [*SOURCES, *INGESTORS, *TOOLSETS, *FUNCTIONS, *PREFIXES]
    words += [method for methods in METHODS.values() for method in methods]
    words += [tool for tools in TOOLSETS.values() for tool in tools]
    assert [word for word in words if f"`{word}`" not in DOCUMENT] == []


def test_the_files_in_it_load(tmp_path):
    files = re.findall(r"<!-- file: (\S+) -->\n\n```yaml\n(.*?)```", DOCUMENT, re.DOTALL)
    assert len(files) >= 4
    for name, text in files:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    library = load_profiles(tmp_path)
    assert library.findings == ()
    assert set(library.profiles) == {"Base_Agent", "Researcher"}
