"""The five ways to wire a team: delegation, loop, environment, tasks, profiles.

Each is data and pure hooks on the public face. May import: `antiphon`, `values`, `view`, `config`. Never:
each other, or the kernel's rules and run.
"""
