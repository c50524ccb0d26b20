"""What users write and what they get: agents, tools, messages, limits, policies, results, hooks.

Frozen data and ports (`Model`); nothing here acts. The everyday names are importable from `antiphon`;
`hooks`, `actions`, `policy` and `model` have their place here; `schema/` reads signatures and arguments. May
import: `errors`. Never: the kernel, adapters, styles.
"""
