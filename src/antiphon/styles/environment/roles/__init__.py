"""A role: what it observes, remembers, thinks and does."""
