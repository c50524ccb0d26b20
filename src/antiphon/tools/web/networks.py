"""Networks that are public, and those that are not."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Network = IPv4Network | IPv6Network
_PRIVATE = "a private network"
_HERE = "this machine"
_LINK = "the link this machine is on"
_RESERVED = "an address that is reserved"
_METADATA = "a service of the cloud that this machine may be in"
_V4: Sequence[tuple[IPv4Network, str]] = tuple(
    (IPv4Network(network), why)
    for network, why in (
        ("0.0.0.0/8", _HERE),
        ("10.0.0.0/8", _PRIVATE),
        ("100.64.0.0/10", _PRIVATE),
        ("127.0.0.0/8", _HERE),
        ("168.63.129.16/32", _METADATA),
        ("169.254.0.0/16", _LINK),
        ("172.16.0.0/12", _PRIVATE),
        ("192.0.0.0/24", _RESERVED),
        ("192.0.2.0/24", _RESERVED),
        ("192.88.99.0/24", _RESERVED),
        ("192.168.0.0/16", _PRIVATE),
        ("198.18.0.0/15", _PRIVATE),
        ("198.51.100.0/24", _RESERVED),
        ("203.0.113.0/24", _RESERVED),
        ("224.0.0.0/4", "a group of machines"),
        ("240.0.0.0/4", _RESERVED),
    )
)
_V6: Sequence[tuple[IPv6Network, str]] = tuple(
    (IPv6Network(network), why)
    for network, why in (
        ("::/127", _HERE),
        ("fc00::/7", _PRIVATE),
        ("fec0::/10", _PRIVATE),
        ("fe80::/10", _LINK),
        ("ff00::/8", "a group of machines"),
        ("2001::/23", _RESERVED),  # Teredo, which holds another address, among them
        ("2001:db8::/32", _RESERVED),
        ("2002::/16", _RESERVED),  # 6to4, which holds another address
        ("3fff::/20", _RESERVED),
    )
)
_GLOBAL = IPv6Network("2000::/3")
_MAPPED = (IPv6Network("::ffff:0:0/96"), IPv6Network("64:ff9b::/96"))
"""Where the last 32 bits are the IPv4 address that is connected to: mapped ones, and those of a NAT64."""


def why_not_public(address: str) -> str:
    """What an address is instead of a public one, as `leads to ...` goes on; empty for a public one.

    Whatever is not known to be public is not.
    """
    try:
        found = ip_address(address)
    except ValueError:
        return "what is no address"
    if isinstance(found, IPv6Address):
        if found.scope_id is not None:
            return _LINK
        if any(found in network for network in _MAPPED):
            return _why_v4(IPv4Address(int(found) & 0xFFFFFFFF))
        why = next((why for network, why in _V6 if found in network), "")
        return why or ("" if found in _GLOBAL else _RESERVED)
    return _why_v4(found)


def _why_v4(address: IPv4Address) -> str:
    return next((why for network, why in _V4 if address in network), "")


def is_address(text: str) -> bool:
    """Whether a text is the number of an address, plainly written."""
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def is_inside(address: str, networks: Sequence[Network]) -> bool:
    """Whether an address belongs to one of the networks."""
    try:
        found = ip_address(address)
    except ValueError:
        return False
    return any(found.version == network.version and found in network for network in networks)


def network_of(text: str) -> Network:
    """A network as it is written, `10.1.0.0/16`, or a single address. Raises ValueError."""
    return ip_network(text)
