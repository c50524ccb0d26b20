"""Searching the web: `port.py` says what a search is, `providers.py` knows who offers one, `http.py`
asks them, `scripted.py` is a search for tests.

    ANTIPHON_WEB_SEARCH=brave  BRAVE_API_KEY=...     in the environment, or in .env
    HttpWebSearch("searxng", address="https://search.example.org")     in code
"""

from antiphon.tools.web.search.http import HttpWebSearch, configured_search, provider_search
from antiphon.tools.web.search.port import WebHit, WebSearch
from antiphon.tools.web.search.providers import PROVIDERS, SearchProvider
from antiphon.tools.web.search.scripted import ScriptedWebSearch

__all__ = [
    "PROVIDERS",
    "HttpWebSearch",
    "ScriptedWebSearch",
    "SearchProvider",
    "WebHit",
    "WebSearch",
    "configured_search",
    "provider_search",
]
