"""What the program's log is told: `records` by runs, for who operates them, `failures` of user code.

May import: facts, values, the journal's port. Never: what performs effects, which it is told by.
"""
