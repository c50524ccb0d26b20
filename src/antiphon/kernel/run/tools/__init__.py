"""What using a tool takes: the token to begin, threads of the event loop, processes of isolated tools."""
