"""The language of conditions: grammar, paths, an interpreter with bounds. A security boundary.

`Expression` in `expression` is the door; text from a file never reaches Python's own evaluation.
"""
