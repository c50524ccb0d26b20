"""Addresses of the web as they are written. How one is spelled says little of where it leads: that is
judged by the number that is connected to, in `guard.py`."""

from __future__ import annotations

import re
from ipaddress import IPv4Address

import httpx2

from antiphon.errors import ToolError
from antiphon.values.secret import shown

MAX_URL = 4096
"""Characters of an address."""
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_HOST = re.compile(rf"(?=.{{1,254}}$){_LABEL}(?:\.{_LABEL})*\.?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


def web_url(text: str, within: httpx2.URL | None = None) -> httpx2.URL:
    """An address that can be visited: http or https, a host that is plainly spelled, no user, no fragment.

    within: the address of the page that names it, to which it may be relative. Raises ToolError.
    """
    text = text.strip(" ")
    if not text or len(text) > MAX_URL:
        raise ToolError(f"An address has 1 to {MAX_URL} characters")
    if any(each.isspace() or not each.isprintable() or each == "\\" for each in text):
        raise ToolError(f"{_told(text)} has characters that no address has")
    try:
        # Read once: what is judged here is what is connected to and what is sent.
        url = within.join(text) if within is not None else httpx2.URL(text)
    except (httpx2.InvalidURL, ValueError) as error:
        raise ToolError(f"{_told(text)} is no address: {shown(str(error))}") from error
    if url.scheme not in ("http", "https"):
        raise ToolError(f"{_told(text)}: give an address that begins with https:// or http://")
    if url.userinfo:
        raise ToolError(f"{_told(text)}: an address with a user or a password in it is not visited")
    _check_host(url, text)
    return url.copy_with(fragment=None)


def _check_host(url: httpx2.URL, text: str) -> None:
    host = url.raw_host.decode("ascii", "replace")
    if not host:
        raise ToolError(f"{_told(text)} names no host")
    if ":" in host:
        return  # IPv6, which has been read as such
    if _HOST.fullmatch(host) is None:
        raise ToolError(f"{_told(text)}: the host is spelled in a way that is not visited")
    if _NUMBER.fullmatch(host.rstrip(".").rpartition(".")[2]):
        try:
            IPv4Address(host)
        except ValueError:
            raise ToolError(
                f"{_told(text)}: an IPv4 address is visited as four decimal numbers only"
            ) from None


def port_of(url: httpx2.URL) -> int:
    """The port that is connected to."""
    return url.port if url.port is not None else 443 if url.scheme == "https" else 80


def _told(text: str) -> str:
    return shown(text, limit=200)
