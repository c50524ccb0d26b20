"""Routes on projects and their files."""
