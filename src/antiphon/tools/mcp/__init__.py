"""MCP servers as toolsets (extra `mcp`).

`servers.py` says what a server is, `config.py` reads which ones there are, `toolset.py` makes a toolset of
one. `session.py` is a connection, over `child.py` or `remote.py`; `offers.py` makes tools of definitions. May
import: `values`, `config`, `errors`. The SDK takes a second to import, so only what connects does.
"""

from antiphon.tools.mcp.config import McpConfigError, configured_servers, read_servers
from antiphon.tools.mcp.servers import McpServer
from antiphon.tools.mcp.toolset import mcp_toolset, named_toolsets, server_of

__all__ = [
    "McpConfigError",
    "McpServer",
    "configured_servers",
    "mcp_toolset",
    "named_toolsets",
    "read_servers",
    "server_of",
]
