"""A run of profiles read back as turns."""
