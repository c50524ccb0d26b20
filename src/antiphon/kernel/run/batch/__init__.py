"""Many items for one agent: `map`, and the bar that says how far it is. Stands on open runs only."""
