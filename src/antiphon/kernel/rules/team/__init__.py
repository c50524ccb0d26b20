"""The agents of one run: compiled, and described in a manifest."""
