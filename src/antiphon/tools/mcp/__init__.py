"""MCP servers as toolsets (extra `mcp`).

`servers.py` says what a server is, `config.py` reads which ones there are. May import: `values`, `config`,
`schema`, `errors`. The SDK takes a second and a half to import, so only what connects does that.
"""

from antiphon.tools.mcp.config import McpConfigError, configured_servers, read_servers
from antiphon.tools.mcp.servers import McpServer

__all__ = ["McpConfigError", "McpServer", "configured_servers", "read_servers"]
