"""Reading a run and a team: projections of records and of agents, for every reader alike.

May import: the kernel, `values`, the journal's port. Never: styles, the command line; and it never appends.
"""
