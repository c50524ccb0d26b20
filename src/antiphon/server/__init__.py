"""Runs over HTTP and WebSocket: a host, behind permissions. Needs the extra `server`.

`app` puts it together; `gate` decides who comes in, `permissions` what each route lets them do, `problems`
how a refusal reads. `runs`, `reading`, `teams` and `events` are the routes, `socket` the WebSocket with its
`messages`, `serve` the process. May import: `host`, `view`, the styles' readers. Never: the command line.
"""
