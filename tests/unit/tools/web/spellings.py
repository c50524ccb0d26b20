"""Addresses as those write them who want to be let in: each leads, or would lead, to what is not public."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Sequence

INSIDE = (
    "127.0.0.1", "10.0.0.5", "172.16.4.4", "192.168.1.1", "169.254.169.254", "100.100.100.200", "0.0.0.0",
    "168.63.129.16", "192.0.0.192", "198.18.0.1",
)  # fmt: skip
NAMES = {
    "localhost": ["127.0.0.1"],
    "localhost.": ["127.0.0.1"],
    "localtest.me": ["127.0.0.1"],
    "127.0.0.1.nip.io": ["127.0.0.1"],
    "metadata.google.internal": ["169.254.169.254"],
    "intranet": ["10.0.0.5"],
    "six.test": ["::1"],
    "mixed.test": ["93.184.216.34", "10.0.0.5"],
    "mixed-six.test": ["2606:2800:220:1::1", "fd00::1"],
    "scoped.test": ["fe80::1%eth0"],
    "odd.test": ["not an address"],
    "wide.test": ["::ffff:a9fe:a9fe"],
    "nothing.test": [],
}


def _numbers(address: str) -> list[str]:
    """The ways of writing an IPv4 address that libraries of C understand."""
    a, b, c, d = map(int, address.split("."))
    whole = (a << 24) | (b << 16) | (c << 8) | d
    return [
        f"{whole}", f"0x{whole:x}", f"0{whole:o}", f"0x{a:x}.0x{b:x}.0x{c:x}.0x{d:x}",
        f"0{a:o}.0{b:o}.0{c:o}.0{d:o}", f"{a}.{(b << 16) | (c << 8) | d}", f"{a}.{b}.{(c << 8) | d}",
        f"{a}.{b}.{c}.{d}.",
    ]  # fmt: skip


def _six(address: str) -> list[str]:
    """Addresses of IPv6 that hold one of IPv4."""
    a, b, c, d = map(int, address.split("."))
    high, low = f"{(a << 8) | b:x}", f"{(c << 8) | d:x}"
    return [f"[::ffff:{address}]", f"[64:ff9b::{high}:{low}]", f"[2002:{high}:{low}::1]", f"[::{address}]"]


def _others() -> list[str]:
    return [
        "http://[::1]/", "http://[::]/", "http://[0:0:0:0:0:0:0:1]/", "http://[fe80::1]/", "http://[fe80::1%25lo]/",
        "http://[fc00::1]/", "http://[fd00:ec2::254]/", "http://[fec0::1]/", "http://[ff02::1]/",
        "http://[2001:db8::1]/", "http://[2001:0:7f00:1::]/", "http://[3fff::1]/", "http://[64:ff9b:1::1]/",
        "http://[5f00::1]/", "http://[100::1]/", "http://[::ffff:0:127.0.0.1]/",
        "http://224.0.0.1/", "http://255.255.255.255/", "http://240.0.0.1/", "http://192.0.2.1/",
        "http://192.88.99.1/", "http://203.0.113.9/", "http://198.51.100.7/",
        # Names for digits that some parsers fold, and dots that are none.
        "http://１２７.０.０.１/", "http://①②⑦.⓪.⓪.①/", "http://127。0。0。1/", "http://127．0．0．1/",
        "http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ/", "http://loc\u00adalhost/", "http://local\u200bhost/",
        "http://%31%32%37.0.0.1/", "http://127.0.0.1%00.example.test/", "http://127.0.0.1%2f@example.test/",
        # Who is the host?
        "http://example.test@127.0.0.1/", "http://user:word@example.test/", "http://127.0.0.1:80@example.test/",
        "http://example.test:80@10.0.0.5/", "http://@10.0.0.5/", "http://10.0.0.5#@example.test/",
        "http://10.0.0.5?@example.test/", "http://10.0.0.5\\@example.test/", "http:\\\\10.0.0.5\\",
        "http://example.test\\@10.0.0.5/", "http:///10.0.0.5/", "http:10.0.0.5/", "http:/10.0.0.5/",
        "//10.0.0.5/", "10.0.0.5", "http://", "https://", "http://./", "http://../", "http://.10.0.0.5/",
        # White space and lines in between.
        "http://127.0.0.1\t/", "http://10.0.0.5\r\nHost: example.test/", "http://exa\nmple.test/",
        "http://example.test /", "\x00http://10.0.0.5/", "http://10.0.0.5\x00.example.test/",
        # Ports.
        "http://example.test:0/", "http://example.test:22/", "http://example.test:25/", "http://example.test:6379/",
        "http://example.test:65536/", "http://example.test:-1/", "http://example.test:8o/", "http://example.test:99999999999/",
        "https://example.test:11211/", "http://10.0.0.5:8080/", "https://127.0.0.1:8443/",
        # Schemes.
        "file:///etc/passwd", "ftp://example.test/", "gopher://127.0.0.1:6379/_INFO", "dict://127.0.0.1:11211/",
        "data:text/html,hello", "javascript:alert(1)", "ldap://10.0.0.5/", "jar:http://10.0.0.5!/", "ws://10.0.0.5/",
        "unix:///var/run/docker.sock", "view-source:http://10.0.0.5/", "http+unix://%2Fvar%2Frun/", "HTTPS+FILE:///x",
        "about:blank", "blob:http://10.0.0.5/", "mailto:root@localhost",
        *(f"http://{name}/" for name in NAMES),
        f"http://{'a' * 64}.test/", f"http://{'a.' * 130}test/", "http://-a.test/", "http://a..test/",
        "http://example.test/" + "a" * 5000, "", "   ",
    ]  # fmt: skip


def spellings() -> list[str]:
    """All of them, each once."""
    found = [
        f"http://{each}/" for address in INSIDE for each in (address, *_numbers(address), *_six(address))
    ]
    return list(dict.fromkeys([*found, *_others()]))


async def looked_up(host: str, port: int) -> Sequence[str]:
    """As a system does that is generous: numbers in every form, and names that lead inside."""
    if host in NAMES:
        return NAMES[host]
    try:
        return [str(ipaddress.IPv4Address(socket.inet_aton(host)))]
    except OSError:
        return ["93.184.216.34"]
