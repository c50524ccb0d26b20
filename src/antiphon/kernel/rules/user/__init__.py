"""Rules of what the user does beside asking: conversations that go on, and calls of tools of his own."""
