"""Domains and addresses: two spellings of one place are equal, and nothing else is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from samples import rows

from proxy.core.search.domains import MAX_ADDRESS, domain_of, is_in, place_of


@rows(
    "domain, url, expected",
    [
        ("a.example", "https://a.example/x", True),
        ("a.example", "https://docs.a.example:8080/x", True),
        ("A.Example", "http://a.EXAMPLE", True),
        ("www.a.example", "https://a.example/x", True),
        ("a.example", "https://www.a.example/x", True),
        ("www.com", "https://a.com/", False),
        ("www.com", "https://www.com/", True),
        ("*.a.example", "https://docs.a.example/x", True),
        ("https://a.example/", "https://a.example/x", True),
        ("a.example/docs", "https://a.example/docs/x", True),
        ("a.example/docs", "https://a.example/docsy", False),
        ("a.example/docs/*", "https://a.example/docs", True),
        ("a.example/docs", "https://a.example//docs/x", True),
        ("a.example/docs", "https://a.example/%64ocs/x", True),
        ("a.example/docs", "https://a.example/b/../docs/x", True),
        ("a.example/docs", "https://a.example/docs/../x", False),
        ("a.example/docs", "https://a.example/docs/%2e%2e/x", False),
        ("a.example/*/blog", "https://a.example/en/blog/x", True),
        ("a.example/*/blog", "https://a.example/en/blogs", False),
        ("a.example/*/blog", "https://a.example/blog", False),
        ("a.example", "https://a.example./x", True),
        ("a.example", "https://ａ.example/x", True),
        ("a.example", "https://%61.example/x", True),
        ("a.example", "https://a。example/x", True),
        ("bücher.example", "https://xn--bcher-kva.example/", True),
        ("xn--bcher-kva.example", "https://BÜCHER.example/", True),
        (" a.example ", "https://a.example/", True),
        (".a.example", "https://a.example/", True),
        ("//a.example", "https://a.example/", True),
        ("a.example.", "https://a.example/", True),
        ("ａ.example", "https://a.example/", True),
        ("a.example:443", "https://a.example/", True),
        ("a.example", "https://a.example.evil/x", False),
        ("a.example", "https://evila.example/x", False),
        ("a.example", "https://evil.example/?a.example", False),
        ("a.example", "https://a.example@evil.example/", False),
    ],
)
def test_a_domain_covers_its_subdomains_and_nothing_else(domain: str, url: str, expected: bool) -> None:
    place, wanted = place_of(url), domain_of(domain)
    assert place is not None and wanted is not None and is_in(place, [wanted]) is expected


@rows(
    "domain",
    ["", " ", ".", "*", "http://[", "evil.*", "*evil.example", "a.example/*/b/*/c", "a..example", "a b", "a\\b"],
)
def test_what_is_no_domain_is_none(domain: str) -> None:
    assert domain_of(domain) is None


@rows(
    "url",
    [
        "https://",
        "https:///x",
        "https://.",
        "https://[evil.example",
        "https://evil.example\\@a.example/x",
        "https://a.example/x y",
        "https://a.example/\n",
        "https://a.example%2f.evil.example/",
        "ftp://a.example/",
        "a.example",
        f"https://a.example/{'x' * MAX_ADDRESS}",
    ],
)
def test_what_is_no_address_is_none(url: str) -> None:
    assert place_of(url) is None


@given(st.text(), st.text())
def test_any_spelling_is_read(domain: str, rest: str) -> None:
    place, wanted = place_of(f"https://{rest}"), domain_of(domain)
    if place is not None and wanted is not None:
        is_in(place, [wanted])
