"""Tools that run commands: programs by an allowlist, and lines for bash, each under a keeper and confined.

`words.py` and `hazards.py` say what a line starts, from its text alone.
"""
