"""What an SQLite journal's files are to those who open them: whole, private, the same, and not set back."""
