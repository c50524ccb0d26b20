"""What the invariants are checked with: books of their own, and nothing of the fold that they judge."""
