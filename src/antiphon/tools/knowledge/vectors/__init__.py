"""Passages compared by meaning: a small model makes vectors of texts, numpy compares them.

`model.py` makes them, `matrix.py` holds those of an index and searches them.
"""
