"""The web: pages visited by their address, and searched for.

    Agent("reader", tools=web_tools())                                    visit_url
    Agent("reader", tools=web_tools(search=HttpWebSearch("brave", key)))  web_search too

`address.py` reads addresses, `networks.py` and `guard.py` judge what is connected to, `client.py` asks
for pages, `robots.py` and `courtesy.py` keep it a good guest, `pages.py` reads what came, `tools.py`
offers it to agents, `search/` searches.
"""

from antiphon.tools.web.options import WebOptions
from antiphon.tools.web.tools import web_tools

__all__ = ["WebOptions", "web_tools"]
