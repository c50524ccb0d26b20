"""What happens next: `step` and the rules it calls. Pure, and the heart: start with `step.py`.

Rules read the folded state and emit events; they change nothing themselves. May import: `kernel.facts`,
`kernel.context`, `values`, `errors`. Never: `kernel.run`, clocks, I/O, randomness.
"""
