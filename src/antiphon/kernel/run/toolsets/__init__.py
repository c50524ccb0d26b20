"""Toolsets while runs go on: their providers are opened, watched and closed here.

`provider.py` keeps one provider alive in a task of its own; `uses.py` is what one run has of its toolsets: it
counts as a use, records what they offer, and calls their tools.
"""
