"""Reading a run and a team: projections of records and of agents, for every reader alike.

`RunTree` is the read model of a run: activations, turns, effects, costs. `nodes` says what it is made of,
`changes` what one record does to it, `frames` the same as JSON for programs that draw it, `page` a run as one
HTML file with such a program, `graph` who may reach whom in a team, `export_file` a run as a file, `notebook`
a run in a cell while it goes on, `connection` a run that somebody else drives.

May import: the kernel, `values`, journals. Never: styles, the command line; and it never appends.
"""

from antiphon.view.connection import OpenQuestion, RunConnection, connect
from antiphon.view.tree import RunTree

__all__ = ["OpenQuestion", "RunConnection", "RunTree", "connect"]
