"""Reading a run and a team: projections of records and of agents, for every reader alike.

`RunTree` is the read model of a run: activations, turns, effects, costs. `nodes` says what it is made of,
`changes` what one record does to it, `frames` the same as JSON for programs that draw it, `waiting` which
request waits for a person alone, `dialogue` a run as chat clients show it, `page` a run as one HTML file with
the program that draws it, `graph` who may reach whom in a team, `export_file` a run as a file, `notebook` a
run in a cell while it goes on, `connection` a run that somebody else drives, `stored_request` what a model
was asked, `traces` a run as spans. `standing_rules` and `keep_rule` are for what a journal keeps beside its
runs, `fork` makes a new run from the beginning of one.

May import: the kernel, `values`, journals. Never: styles, the command line; and it never appends to a run.
"""

from antiphon.kernel.run.forks.fork import ForkedRun, fork
from antiphon.kernel.run.standing import keep_rule, standing_rules
from antiphon.view.connection import OpenQuestion, RunConnection, connect
from antiphon.view.dialogue import Dialogue
from antiphon.view.stored_request import StoredRequest, request_of
from antiphon.view.tree import RunTree

__all__ = [
    "Dialogue",
    "ForkedRun",
    "OpenQuestion",
    "RunConnection",
    "RunTree",
    "StoredRequest",
    "connect",
    "fork",
    "keep_rule",
    "request_of",
    "standing_rules",
]
