"""A document's text: its lines, the passages it is cut into, and the terms that are compared. Pure."""
