"""Snapshots: what a run is folded to, kept beside it, so that a long one opens in the time of its tail.

May import: facts, rows, the journal's port. Never: what performs effects.
"""
