"""Which task begins when, what tasks are, how far they are."""
