"""Agents that write for the assistant, each in a git worktree; what they changed comes back as a patch.

`slots.py` keeps the worktrees, `patches.py` is the tool that applies a patch, `workers.py` holds the agents.
"""
