"""Files with something wrong in them, and exactly what is said of each: bad_files.txt holds them.

A case begins with `###`, its kind and what it is; the file follows, and then, after `>>>` each, the findings
without the path of the file.
"""

import re
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from antiphon.config.yaml import MAX_BYTES, MAX_EVENTS
from antiphon.styles.profiles import load_profiles

FOLDERS = {"profile": "profiles", "llm_config": "llm_configs", "handover_protocol": "handover_protocols"}
CASE = re.compile(r"### (\w+): (.*)\n((?:(?!###|>>>).*\n)*)((?:>>> .*\n)+)")
CASES = CASE.findall((Path(__file__).parent / "bad_files.txt").read_text("utf-8"))


@pytest.fixture
def load(tmp_path):
    """Loads one file among good ones; what is said of it."""

    def loaded(kind, text):
        for folder in FOLDERS.values():
            (tmp_path / folder).mkdir()
        (tmp_path / "profiles/Base.yaml").write_text("type: base")
        (tmp_path / "llm_configs/local_llm.yaml").write_text("config: {model: m}")
        path = tmp_path / FOLDERS[kind] / "bad.yaml"
        path.write_bytes(text) if isinstance(text, bytes) else path.write_text(text, "utf-8")
        library = load_profiles(tmp_path)
        assert "Base" in library.profiles
        assert "local_llm" in library.llm_configs
        return [str(finding).removeprefix(f"{path}:").strip() for finding in library.findings]

    return loaded


def test_there_are_many():
    assert len(CASES) >= 200
    assert len({(kind, title) for kind, title, _, _ in CASES}) == len(CASES)


@pytest.mark.parametrize(
    ("kind", "title", "text", "expected"), CASES, ids=[f"{case[0]}-{case[1]}" for case in CASES]
)
def test_what_is_said_of(load, kind, title, text, expected):
    assert load(kind, text) == [line.removeprefix(">>> ") for line in expected.splitlines()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"type: base\nname: \xff", "2: is not UTF-8"),
        (
            b"type: base\nname: a\x00b",
            "is not YAML: unacceptable character #x0000: special characters are not allowed",
        ),
        (b"\xff\xfet\x00y\x00", "1: is not UTF-8"),
    ],
)
def test_bytes_that_are_no_text(load, text, expected):
    assert [line.partition(" in ")[0] for line in load("profile", text)] == [expected]


def test_a_mark_at_the_beginning_of_a_file_is_no_mistake(load):
    assert load("profile", b"\xef\xbb\xbftype: base") == []


BOMB = "a: &a [x, x]\n" + "".join(f"{b}: &{b} [*{a}, *{a}, *{a}]\n" for a, b in pairwise("abcdefghi"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "expected", "events"),
    [
        (BOMB, "2:8: aliases (*name) are not allowed here; write it out", 12),
        ("a: " + "[" * 100_000, "1:43: nested deeper than 40", 44),
        ("{a: " * 100_000, "1:161: nested deeper than 40", 84),
        (
            "a: !!python/name:os.system",
            "1:4: the tag tag:yaml.org,2002:python/name:os.system is not allowed here",
            5,
        ),
        ("--- a\n" * 100_000, "2:1: another document begins here; a file holds one", 5),
        ("- []\n" * 300_000, "100000:3: holds more than 200,000 values", MAX_EVENTS + 2),
        ("a: " + "x" * MAX_BYTES, "is larger than 4 MB", 0),
        ("a: " + "x" * 50_000_000, "is larger than 4 MB", 0),
    ],
    ids=["aliases", "lists", "mappings", "tag", "documents", "values", "scalar", "long scalar"],
)
def test_a_hostile_file_costs_no_more_than_what_is_read_of_it(load, monkeypatch, text, expected, events):
    parse, compose = yaml.parse, yaml.compose
    seen, composed = [], []

    def counted(given, **options):
        watched = given == text
        for event in parse(given, **options):
            seen.extend([event] if watched else [])
            yield event

    monkeypatch.setattr(yaml, "parse", counted)
    monkeypatch.setattr(
        yaml, "compose", lambda given, **options: composed.append(given) or compose(given, **options)
    )
    assert load("profile", text) == [expected]
    assert text not in composed
    assert len(seen) <= events


def test_a_long_file_that_cannot_be_parsed_is_not_read_a_second_time_by_the_slow_parser(load, monkeypatch):
    parse, loaders = yaml.parse, []

    def noted(given, **options):
        loaders.append(options["Loader"])
        return parse(given, **options)

    monkeypatch.setattr(yaml, "parse", noted)
    assert load("profile", "name: " + "x " * 50_000 + "\nrev: [") == [
        "3:1: is not YAML: did not find expected node content"
    ]
    assert loaders.count(yaml.SafeLoader) == 0


@pytest.mark.slow
def test_of_a_file_with_everything_wrong_a_hundred_mistakes_are_told(load):
    said = load("profile", "type: base\n" + "".join(f"key{number}: x\n" for number in range(50_000)))
    assert len(said) == 101
    assert said[0] == "more is wrong; the rest of the file is not read"


def test_what_is_told_is_never_long(load):
    said = load("profile", f"type: base\nrev: {'x' * 1_000_000}\n? {'y' * 1_000_000}\n: 1")
    assert len(said) == 2
    assert max(map(len, said)) < 1_000
