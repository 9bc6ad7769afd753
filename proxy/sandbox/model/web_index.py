"""A web of invented pages, so that a search has results without leaving the machine."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

#: Domains that are reserved for examples.
DOMAINS = ("docs.example.org", "news.example.com", "www.example.net")


class Page(NamedTuple):
    url: str
    title: str
    snippet: str


def find_pages(query: str, allowed: Sequence[str] = (), blocked: Sequence[str] = ()) -> list[Page]:
    """The pages for a query: one per domain, only within `allowed` when given, never within `blocked`.

    A listed domain covers its subdomains; case does not matter."""
    slug = re.sub(r"[^a-z0-9]+", "-", query.lower()).strip("-")[:60] or "page"
    domains = [domain.lower() for domain in allowed] or list(DOMAINS)
    return [
        Page(f"https://{domain}/{slug}", f"{query[:80]} ({domain})", f"What {domain} says about {query[:80]}.")
        for domain in domains
        if not any(_within(domain, other) for other in blocked)
    ]


def _within(domain: str, other: str) -> bool:
    other = other.lower()
    return domain == other or domain.endswith("." + other)
