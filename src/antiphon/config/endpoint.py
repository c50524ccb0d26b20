"""Which key may go to which address.

A key is sent only to an address that comes from the same layer as the key or from one that is trusted
more: a folder that somebody else has written can name a server, and then gets no key of the shell's.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from msgspec import Struct

from antiphon.config.dotenv import Layer, LayeredSettings, layered
from antiphon.errors import ConfigError

TRUSTED_URLS = "ANTIPHON_TRUSTED_URLS"
"""Addresses, apart by spaces or commas, where keys of the same layer and of lower ones may go."""


class Endpoint(Struct, frozen=True):
    """What leads to one provider, by the names of its settings.

    text: what it is called in errors. keys: each may be sent there. urls: the first that is set says where.
    home: the provider's own addresses, where every key may go. sent: variables of the process that
    a provider's SDK sends along by itself. ambient: whether it finds credentials outside of all settings.
    """

    text: str
    keys: tuple[str, ...]
    urls: tuple[str, ...]
    home: tuple[str, ...] = ()
    sent: tuple[str, ...] = ()
    ambient: bool = False


def paired(env: Mapping[str, str], endpoint: Endpoint) -> dict[str, str]:
    """The settings with only those keys that may go to the address among them.

    A key from a layer above the address's gives way to one from the address's own layer or below.
    Raises ConfigError when there is none there: it names both places.
    """
    settings = layered(env)
    found = dict(settings)
    named = next((name for name in endpoint.urls if found.get(name, "").strip()), "")
    if not named or _plain(found[named]) in endpoint.home:
        return found
    rank, address = settings.rank(named), _plain(found[named])
    strangers = [
        name
        for name in endpoint.keys
        if found.get(name, "").strip()
        and settings.rank(name) < rank
        and not _vouched(settings.layers[: settings.rank(name) + 1], endpoint.urls, address)
    ]
    below = [layer.values for layer in settings.layers[rank:]]
    own = {name: layer[name] for layer in reversed(below) for name in endpoint.keys if layer.get(name)}
    for name in strangers:
        del found[name]
    found.update({name: value for name, value in own.items() if name in strangers})
    kept = any(found.get(name, "").strip() for name in endpoint.keys)
    if strangers and not kept:
        raise _refused(endpoint, settings, named, strangers[0], settings.layers[settings.rank(strangers[0])])
    if rank and not _vouched(settings.layers[:1], endpoint.urls, address):
        sent = next((name for name in endpoint.sent if os.environ.get(name)), "")
        if sent or (endpoint.ambient and not kept):
            what = sent or "a credential that is not in the settings"
            raise _refused(endpoint, settings, named, what, settings.layers[0])
    return found


def _vouched(layers: Iterable[Layer], urls: tuple[str, ...], address: str) -> bool:
    """Whether one of these layers names the address too."""
    for layer in layers:
        listed = layer.values.get(TRUSTED_URLS, "").replace(",", " ").split()
        if address in {_plain(each) for each in (*listed, *(layer.values.get(url, "") for url in urls))}:
            return True
    return False


def _plain(address: str) -> str:
    return address.strip().rstrip("/")


def _refused(endpoint: Endpoint, settings: LayeredSettings, url: str, key: str, holder: Layer) -> ConfigError:
    place = settings.layers[settings.rank(url)].place
    parts = urlsplit(settings[url].strip())
    shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}" if parts.netloc else url
    return ConfigError(
        f"{endpoint.text}: {key} comes from {holder.place}, but its address {shown} ({url}) from {place}. "
        "A key is sent only to an address of its own place or of one that is trusted more. If you trust the "
        f"address, set {url} or {TRUSTED_URLS} to it in {holder.place}; else give a key of its own beside it "
        f"in {place}, or take the address out"
    )
