"""The one place that awaits: performs effects, appends to the journal, creates tasks.

Also the public calls `run`, `stream` and `open_run`. May import: all of the kernel, the journal's port,
and, to turn a string into one, journals and models. Never: styles, the command line.
"""
