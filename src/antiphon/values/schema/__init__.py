"""From a Python signature to a JSON Schema, and from a model's JSON to checked arguments. Pure.

May import: `errors`. Never: the other values, nothing that knows what an agent is.
"""
