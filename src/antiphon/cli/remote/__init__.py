"""A server in a journal's place: its address and token, requests, a run's stream, the list of its runs."""
