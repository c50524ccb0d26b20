"""What tests of agents stand on, shipped for users too: crashes, faults, power cuts, clocks, invariants.

May import everything; nothing of the product imports it.
"""
