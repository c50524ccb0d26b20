"""One conversation or request at the terminal: drive it, ask the person, read lines."""
