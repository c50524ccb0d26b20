"""`antiphon mcp`: which MCP servers there are, what they offer, and calls of their tools by hand."""
