"""The fold: what each fact changes. `apply` has the tables; it records and never decides.

May import: the rest of `kernel.facts`, `kernel.context`, `values`. Never: the rules.
"""
