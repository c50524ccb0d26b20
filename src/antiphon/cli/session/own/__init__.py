"""What is the person's own in a conversation: `command` (those they run), `editor` (what it works with)."""
