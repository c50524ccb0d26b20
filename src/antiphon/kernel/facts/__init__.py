"""What happened: events, the ledger, the state they fold into. Pure.

The fold records and never decides. May import: `values`, `errors`, `kernel.context`. Never:
rules, clocks, I/O.
"""
