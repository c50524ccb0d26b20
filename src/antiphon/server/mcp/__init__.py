"""A team as an MCP server. Needs the extra `mcp`; over HTTP the extra `server` too.

`team_server.py` is what a client calls, `following.py` how far a request has come, `forms.py` what people are
asked and what they say, `shown.py` what a client is told; `pipes.py` and `http.py` are the two ways in. May
import: `host`, `view`, the rest of the server (`http.py` alone). Never: the command line.
"""
