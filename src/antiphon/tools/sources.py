"""Sources of knowledge that are no folders: from what they were added as to what is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from antiphon.errors import UnknownName
from antiphon.tools.knowledge.source import HeldSource
from antiphon.tools.knowledge.spec import SourceSpec
from antiphon.tools.mcp.servers import McpServer


def opened_elsewhere(
    servers: Callable[[], Mapping[str, McpServer]], env: Mapping[str, str]
) -> Callable[[SourceSpec], HeldSource]:
    """Opens what a source was added as: `KnowledgeStore(folder, elsewhere=opened_elsewhere(servers, env))`.

    servers: the MCP servers that are configured, asked for when a source is one. env: the settings, where
    whoever searches the web has a key. It raises UnknownName for a server that is not configured, ConfigError
    for a setting that is missing.
    """

    def opened(spec: SourceSpec) -> HeldSource:
        # Not at import: they take longer than all that a team without such a source needs.
        if spec.mcp is None:
            from antiphon.tools.web.search import provider_search
            from antiphon.tools.web.source import WebSource

            search = provider_search(spec.web, env)
            return WebSource(spec.name, search, description=spec.description)
        from antiphon.tools.mcp.source import McpSource

        known = servers()
        if spec.mcp.server not in known:
            raise UnknownName("MCP server", spec.mcp.server, known)
        return McpSource(
            known[spec.mcp.server], name=spec.name, search=spec.mcp.search, fetch=spec.mcp.fetch,
            description=spec.description,
        )  # fmt: skip

    return opened
