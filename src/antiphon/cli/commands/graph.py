"""`antiphon graph`: who reaches whom in a team, as text, Mermaid or SVG."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

import click

from antiphon.cli import exit_codes
from antiphon.cli.display import output, terminal_escape
from antiphon.cli.target import load_target
from antiphon.values.message import USER
from antiphon.view.graph import Edge, Graph, graph_of, short

WIDTH, HEIGHT, GAP, ROOM = 150, 36, 70, 24
"""Of a box, of the way between columns, and of the way between rows; in pixels."""


@click.command(short_help="Draw who reaches whom in a team.")
@click.argument("target")
@click.option("--format", "form", type=click.Choice(["text", "mermaid", "svg"]), default="text")
@click.option("--folder", metavar="DIR", help="What a team's file tools may read.")
def graph(target: str, form: str, folder: str | None) -> int:
    """Print the graph of a team: topics that are published and watched, agents that may be called.

    What looks wrong is said on standard error, and the exit code is 0 all the same: messages that
    nobody watches, members that nothing reaches, circles without a limit.
    """
    found = load_target(target, folder)
    drawn = found.graph or graph_of(found.agents, found.entry)
    output.say({"text": text, "mermaid": mermaid, "svg": svg}[form](drawn))
    for finding in drawn.findings:
        output.tell(f"note: {terminal_escape.line(finding, 300)}")
    return exit_codes.COMPLETED


def text(graph: Graph) -> str:
    """One line for each member, one for each way from it."""
    lines = []
    for name in graph.members:
        ways = [edge for edge in graph.edges if edge.source == name]
        lines.append(terminal_escape.line(name, 80))
        lines += [f"  {_label(edge)} -> {terminal_escape.line(edge.target, 80)}" for edge in ways]
    return "\n".join(lines)


def mermaid(graph: Graph) -> str:
    """A Mermaid flowchart."""
    numbers = {name: f"n{number}" for number, name in enumerate(graph.members)}
    lines = ["flowchart LR"]
    lines += [f'  {number}["{escape(terminal_escape.line(name, 80))}"]' for name, number in numbers.items()]
    for edge in graph.edges:
        arrow = f'-- "{escape(_label(edge))}" -->'
        lines.append(f"  {numbers[edge.source]} {arrow} {numbers[edge.target]}")
    return "\n".join(lines)


def svg(graph: Graph) -> str:
    """An SVG picture: a column for each step from the user."""
    columns = _columns(graph)
    spots = {
        name: (20 + column * (WIDTH + GAP), 20 + row * (HEIGHT + ROOM))
        for column, names in enumerate(columns)
        for row, name in enumerate(names)
    }
    width = 20 + len(columns) * (WIDTH + GAP)
    height = 40 + max(map(len, columns)) * (HEIGHT + ROOM)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        'font-size="12">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#555"/></marker></defs>',
        *(_arrow(edge, *spots[edge.source], *spots[edge.target]) for edge in graph.edges),
        *(_box(name, *spot) for name, spot in spots.items()),
        "</svg>",
    ]
    return "\n".join(parts)


def _label(edge: Edge) -> str:
    if edge.topic:
        return terminal_escape.line(short(edge.topic), 60)
    return "asks" if edge.source == USER else "may call"


def _columns(graph: Graph) -> list[list[str]]:
    """Members by their distance from the user; those that nothing reaches stand last."""
    columns, placed = [[graph.members[0]]], {graph.members[0]}
    while True:
        following = _after(graph.edges, columns[-1], placed)
        if not following:
            break
        columns.append(following)
        placed.update(following)
    rest = [name for name in graph.members if name not in placed]
    while rest:
        columns.append(rest[:1])
        placed.update(rest[:1])
        while following := _after(graph.edges, columns[-1], placed):
            columns.append(following)
            placed.update(following)
        rest = [name for name in graph.members if name not in placed]
    return columns


def _after(edges: Iterable[Edge], names: Sequence[str], placed: set[str]) -> list[str]:
    found = dict.fromkeys(edge.target for edge in edges if edge.source in names and edge.target not in placed)
    return list(found)


def _box(name: str, x: int, y: int) -> str:
    said = escape(terminal_escape.line(name, 20))
    return (
        f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="6" fill="#eef3fb" stroke="#456"/>'
        f'<text x="{x + WIDTH // 2}" y="{y + HEIGHT // 2 + 4}" text-anchor="middle">{said}</text>'
    )


def _arrow(edge: Edge, x: int, y: int, to_x: int, to_y: int) -> str:
    middle, to_middle = y + HEIGHT // 2, to_y + HEIGHT // 2
    if to_x > x:
        start, end, bend = x + WIDTH, to_x, 0
    else:
        # A way back goes below the boxes.
        start, end, bend = x + WIDTH // 2, to_x + WIDTH // 2, HEIGHT + ROOM // 2
        middle, to_middle = y + HEIGHT, to_y + HEIGHT
    lowest = max(middle, to_middle) + bend
    path = f"M{start},{middle} C{(start + end) // 2},{lowest} {(start + end) // 2},{lowest} {end},{to_middle}"
    said = escape(_label(edge))
    at = (start + end) // 2, (middle + to_middle) // 2 - 4 + bend * 3 // 4
    return (
        f'<path d="{path}" fill="none" stroke="#555" marker-end="url(#tip)"/>'
        f'<text x="{at[0]}" y="{at[1]}" text-anchor="middle" fill="#333">{said}</text>'
    )
