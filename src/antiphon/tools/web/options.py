"""How the web is visited."""

from __future__ import annotations

from msgspec import Struct

from antiphon.errors import UserError
from antiphon.tools.web.networks import Network, network_of
from antiphon.values.fields import check_fields, shown


class WebOptions(Struct, frozen=True):
    """How the web is visited. Raises UserError for what is none."""

    hosts: tuple[str, ...] = ()
    """Only these are visited, and what is below them: `python.org` means `docs.python.org` too. Empty:
    all."""
    networks: tuple[str, ...] = ()
    """Networks that are visited although they are not public, at any port, such as `10.1.0.0/16`."""
    ports: tuple[int, ...] = (80, 443, 8080, 8443)
    """Ports of public addresses that are visited."""
    obey_robots: bool = True
    """Whether a page is left alone when its host's robots.txt asks for that."""
    user_agent: str = "Antiphon"
    """What we say that we are: a product's name, by which robots.txt knows us, and what else is wanted after
    a blank or a slash."""
    pause: float = 1.0
    """Seconds between two requests to one host."""
    seconds: float = 30.0
    """Seconds that a visit may take, waiting for a host's turn not counted."""
    max_bytes: int = 5_000_000
    """Bytes of what is visited, unpacked."""

    def __post_init__(self) -> None:
        check_fields(self)
        for each in self.networks:
            try:
                network_of(each)
            except ValueError as error:
                raise UserError(f"WebOptions(networks=...): {error}; give one as 10.1.0.0/16") from error
        for name, least in (("pause", 0.0), ("seconds", 0.001), ("max_bytes", 1)):
            if not least <= getattr(self, name) <= 10**9:
                raise UserError(f"WebOptions({name}=...) is at least {least:g}; got {getattr(self, name)!r}")
        if not self.user_agent.isprintable() or not self.user_agent.isascii() or not self.product:
            raise UserError(
                f"WebOptions(user_agent=...) begins with a name of letters; got {shown(self.user_agent)}"
            )

    @property
    def known_networks(self) -> tuple[Network, ...]:
        """`networks`, read."""
        return tuple([network_of(each) for each in self.networks])

    @property
    def product(self) -> str:
        """The name by which robots.txt knows us."""
        return self.user_agent.replace("/", " ").partition(" ")[0]
