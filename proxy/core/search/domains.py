"""Domains that a search is limited to, and the addresses within them. Both are read in one normal form, in which two
spellings of one place are equal."""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Iterable
from urllib.parse import unquote, urlsplit

#: Longest address, in characters.
MAX_ADDRESS = 2_000

_SCHEME = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?//", re.IGNORECASE)
#: Characters that programs read differently in an address.
_AMBIGUOUS = frozenset("\\ ")
#: What no host has once it is in the normal form.
_NO_HOST = re.compile(r"[^a-z0-9._:-]")


def place_of(address: str) -> tuple[str, str] | None:
    """The host and the path of an http(s) address in the normal form; None for what is no such address, or is read as
    different ones by different programs.

    >>> place_of("https://WWW.A.example./x/%2e%2e//y?q")
    ('a.example', '/y')
    >>> place_of(r"https://evil.example\\@a.example/")
    """
    if not address.lower().startswith(("http://", "https://")) or len(address) > MAX_ADDRESS:
        return None
    return _place(address) if address.isprintable() and not _AMBIGUOUS.intersection(address) else None


def domain_of(spelled: str) -> tuple[str, str] | None:
    """The host and the path of a domain as callers write it: `a.example`, `*.a.example`, `https://a.example/docs/*`.
    The path may have one `*`, for any text. None if it is no domain.

    >>> domain_of(" //.A.example./docs/*"), domain_of("a.example/*/blog"), domain_of("a.*")
    (('a.example', '/docs'), ('a.example', '/*/blog'), None)
    """
    text = _SCHEME.sub("", spelled.strip(), count=1).removeprefix("*.").lstrip(".")
    found = None if len(text) > MAX_ADDRESS or _AMBIGUOUS.intersection(text) else _place(f"https://{text}")
    if found is None:
        return None
    host, path = found[0], found[1].rstrip("/*")
    return (host, path) if path.count("*") < 2 else None


def _place(address: str) -> tuple[str, str] | None:
    try:
        parts = urlsplit(address)
        host = unicodedata.normalize("NFKC", unquote(parts.hostname or ""))
        host = host.encode("idna").decode().lower().strip(".")
    except ValueError:  # of a label that is empty or too long, too
        return None
    rest = host.removeprefix("www.")
    if not host or _NO_HOST.search(host):
        return None
    path = posixpath.normpath(f"/{unquote(parts.path)}").lstrip("/")
    return rest if "." in rest else host, f"/{path}" if path not in ("", ".") else ""


def is_in(address: tuple[str, str], domains: Iterable[tuple[str, str]]) -> bool:
    """Whether an address is in one of the domains, in a subdomain, or below the path that is named with it."""
    return any(_covers(domain, address) for domain in domains)


def _covers(domain: tuple[str, str], address: tuple[str, str]) -> bool:
    (wanted, below), (host, path) = domain, address
    if host != wanted and not host.endswith(f".{wanted}"):
        return False
    if "*" not in below:
        return not below or path == below or path.startswith(f"{below}/")
    head, _, tail = below.partition("*")
    return path.startswith(head) and f"{path}/".find(f"{tail}/", len(head)) >= 0
