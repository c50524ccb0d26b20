"""`antiphon graph`: who reaches whom, as text, Mermaid and SVG; and what looks wrong."""

import xml.etree.ElementTree as Xml

TEAM = """
from antiphon import Agent
from antiphon.styles.environment import Action, Environment, Role, UserRequirement


class Write(Action):
    async def run(self, with_messages=None, **kwargs):
        return "draft"


class Review(Action):
    async def run(self, with_messages=None, **kwargs):
        return "again"


def roles():
    writer = Role(name="writer", actions=[Write], watch=[UserRequirement, Review])
    reviewer = Role(name="reviewer", actions=[Review], watch=[Write])
    return [writer, reviewer]


env = Environment(roles=roles())
endless = Environment(roles=roles(), laps=None)
lonely = Environment(roles=[Role(name="hermit", actions=[Write], watch=["silence"])])
team = [Agent("desk", can_call=["clerk"]), Agent("clerk <&>", can_call=[]), Agent("clerk", can_call=[])]
"""


def test_topics_are_drawn_as_text(shell):
    shell.write("house.py", TEAM)
    said = shell("graph", "house.py:env")
    assert said.code == 0
    assert said.out.splitlines() == [
        "user",
        "  asks -> environment",
        "environment",
        "  UserRequirement -> writer",
        "writer",
        "  Write -> reviewer",
        "reviewer",
        "  Review -> writer",
    ]
    assert said.err == ""


def test_calls_are_drawn_too(shell):
    shell.write("house.py", TEAM)
    assert "  may call -> clerk" in shell("graph", "house.py:team").out.splitlines()


def test_mermaid(shell):
    shell.write("house.py", TEAM)
    lines = shell("graph", "house.py:team", "--format", "mermaid").out.splitlines()
    assert lines[0] == "flowchart LR"
    assert '  n2["clerk &lt;&amp;&gt;"]' in lines
    assert '  n1 -- "may call" --> n3' in lines


def test_svg_is_well_formed_and_has_every_member_and_way(shell):
    shell.write("house.py", TEAM)
    root = Xml.fromstring(shell("graph", "house.py:env", "--format", "svg").out)
    space = "{http://www.w3.org/2000/svg}"
    texts = [each.text for each in root.iter(f"{space}text")]
    for name in ("user", "environment", "writer", "reviewer", "UserRequirement", "Write", "Review"):
        assert texts.count(name) == 1
    assert len(list(root.iter(f"{space}rect"))) == 4


def test_a_circle_without_a_limit_is_named(shell):
    shell.write("house.py", TEAM)
    said = shell("graph", "house.py:endless")
    assert said.code == 0
    assert "note: writer -> reviewer -> writer goes round without a limit of laps" in said.err


def test_what_nobody_watches_and_whom_nothing_reaches_is_named(shell):
    shell.write("house.py", TEAM)
    notes = shell("graph", "house.py:lonely").err.splitlines()
    assert notes == [
        "note: nobody watches UserRequirement, which environment publishes",
        "note: nobody watches Write, which hermit publishes",
        "note: nothing reaches hermit: it watches silence, which nobody publishes",
    ]
