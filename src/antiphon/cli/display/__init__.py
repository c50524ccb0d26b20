"""What a terminal shows of a run: trees, lines, replies; every foreign text made safe first."""
