"""An SQLite journal's files for those who open them: whole, private, the same, not set back, not forged."""
