"""How a run is read while it goes on: its events as they come, and what they add up to, folded once."""
