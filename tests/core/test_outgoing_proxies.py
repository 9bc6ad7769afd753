"""The variables of outgoing proxies: precedence, what is refused, and what NO_PROXY exempts."""

from __future__ import annotations

import base64

import pytest
from samples import rows

from proxy.core.outgoing_proxies import OutboundProxies, Proxy, UnusableProxy

#: One proxy for each variable, so that an answer tells which one was taken.
ALL = {
    "HTTP_PROXY": "http://upper-http:1",
    "http_proxy": "http://lower-http:2",
    "HTTPS_PROXY": "http://upper-https:3",
    "https_proxy": "http://lower-https:4",
    "ALL_PROXY": "http://upper-all:5",
    "all_proxy": "http://lower-all:6",
}


def of(*names: str, **more: str) -> OutboundProxies:
    return OutboundProxies.from_environment({**{name: ALL[name] for name in names}, **more})


def address(proxies: OutboundProxies, url: str) -> str | None:
    proxy = proxies.proxy_for(url)
    return None if proxy is None else proxy.address


@rows(
    "names, plain, tls",
    [
        ((), None, None),
        (("HTTP_PROXY",), "upper-http:1", None),
        (("HTTPS_PROXY",), None, "upper-https:3"),
        (("http_proxy", "https_proxy"), "lower-http:2", "lower-https:4"),
        (("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"), "upper-http:1", "upper-https:3"),
        (("ALL_PROXY",), "upper-all:5", "upper-all:5"),
        (("all_proxy", "ALL_PROXY"), "upper-all:5", "upper-all:5"),
        (("all_proxy", "HTTP_PROXY"), "upper-http:1", "lower-all:6"),
        (("https_proxy", "ALL_PROXY"), "upper-all:5", "lower-https:4"),
        (tuple(ALL), "upper-http:1", "upper-https:3"),
    ],
)
def test_which_variable_counts(names: tuple[str, ...], plain: str | None, tls: str | None) -> None:
    proxies = of(*names)
    for scheme in ("http", "ws"):
        assert address(proxies, f"{scheme}://up.test/x") == plain
    for scheme in ("https", "wss"):
        assert address(proxies, f"{scheme}://up.test/x") == tls
    shown = {"http": plain, "https": tls}
    assert proxies.addresses == {kind: found for kind, found in shown.items() if found is not None}


@pytest.mark.parametrize("empty", ["", "  "])
def test_an_empty_variable_is_not_set(empty: str) -> None:
    assert address(of("http_proxy", HTTP_PROXY=empty), "http://up.test") == "lower-http:2"
    assert address(of("ALL_PROXY", HTTPS_PROXY=empty), "wss://up.test") == "upper-all:5"
    assert of(HTTP_PROXY=empty, ALL_PROXY=empty) == OutboundProxies()


def test_a_cgi_program_believes_nothing() -> None:
    assert of(*ALL, REQUEST_METHOD="GET") == OutboundProxies()
    assert of(REQUEST_METHOD="", HTTPS_PROXY="ftp://x") == OutboundProxies()


@rows(
    "value, url, user",
    [
        ("http://p:3128", "http://p:3128", None),
        ("p:3128", "http://p:3128", None),
        ("p", "http://p:80", None),
        (" HTTP://Proxy.Corp/ ", "http://proxy.corp:80", None),
        ("https://p", "https://p:443", None),
        ("10.0.0.1:8080", "http://10.0.0.1:8080", None),
        ("http://[::1]:8080", "http://[::1]:8080", None),
        ("user:word@p:1", "http://p:1", "user:word"),
        ("http://user@p:1", "http://p:1", "user:"),
        ("http://:word@p:1", "http://p:1", ":word"),
        ("http://@p:1", "http://p:1", None),
        ("http://us%40er:p%3Aa%2Fs%C3%A9%25@p:1", "http://p:1", "us@er:p:a/sé%"),
        ("http://u:a:b@p:1", "http://p:1", "u:a:b"),
    ],
)
def test_proxy_urls(value: str, url: str, user: str | None) -> None:
    proxy = of(ALL_PROXY=value).http
    assert proxy is not None and proxy.url == url
    sent = proxy.authorization.reveal() if proxy.authorization else None
    assert sent == (None if user is None else "Basic " + base64.b64encode(user.encode()).decode())
    assert "word" not in repr(proxy) and "word" not in proxy.address + proxy.url


@rows(
    "value, why",
    [
        ("socks5://SECRET:SECRET@p:1080", "SOCKS proxies are not supported"),
        ("socks5h://SECRET", "SOCKS proxies are not supported"),
        ("SOCKS4://SECRET", "SOCKS proxies are not supported"),
        ("socks4a://SECRET", "SOCKS proxies are not supported"),
        ("ftp://SECRET", "begins with http:// or https://"),
        ("://SECRET", "begins with http:// or https://"),
        ("http://", "expected a host"),
        ("http://SECRET@", "expected a host"),
        ("http://SECRET@:8080", "expected a host"),
        ("http://SECRET@p:0", "port from 1 to 65535"),
        ("http://SECRET@p:65536", "expected a URL"),
        ("http://SECRET@p:x", "expected a URL"),
        ("http://[SECRET", "expected a URL"),
        ("http://SECRET..x", "expected a host"),
        ("http://SECRET!x", "expected a host"),
        ("http://user:12/SECRET@p:1", "percent-encode"),
        ("http://user:12?SECRET@p:1", "percent-encode"),
        ("http://user:12#SECRET@p:1", "percent-encode"),
        ("http://p:1/SECRET", "nothing may follow the port"),
        ("http://user:SE CRET@p:1", "percent-encode"),
        ("http://user:SE\nCRET@p:1", "percent-encode"),
        ("http://us%3Aer:SECRET@p:1", "colon"),
    ],
)
@rows("variable", ["HTTP_PROXY", "https_proxy", "ALL_PROXY"])
def test_unusable_proxies_name_the_variable_and_never_the_value(variable: str, value: str, why: str) -> None:
    with pytest.raises(UnusableProxy, match=f"^{variable} cannot be used: ") as caught:
        of(**{variable: value})
    assert why in str(caught.value) and "SECRET" not in str(caught.value)
    assert "CRET" not in str(caught.value) and "socks5" not in str(caught.value)


def test_a_fallback_that_is_not_needed_is_not_looked_at() -> None:
    proxies = of("HTTP_PROXY", "https_proxy", ALL_PROXY="socks5://127.0.0.1:7890")
    assert address(proxies, "https://up.test") == "lower-https:4"
    with pytest.raises(UnusableProxy, match="ALL_PROXY"):
        of("HTTP_PROXY", ALL_PROXY="socks5://127.0.0.1:7890")


@rows(
    "exempt, direct, through",
    [
        ("", [], ["https://chatgpt.com", "https://127.0.0.1", "https://localhost"]),
        ("*", ["https://chatgpt.com", "wss://10.1.2.3", "https://[::1]"], []),
        ("x.test,*", ["https://chatgpt.com"], []),
        (
            "chatgpt.com,10.0.0.0/8",
            ["wss://chatgpt.com", "wss://ws.chatgpt.com", "https://10.1.2.3", "https://CHATGPT.com:8443/x"],
            ["https://notchatgpt.com", "https://chatgpt.com.evil.test", "https://11.1.2.3", "https://com"],
        ),
        (".chatgpt.com", ["https://chatgpt.com", "https://a.b.chatgpt.com"], ["https://notchatgpt.com"]),
        (" ChatGPT.com. , ,, ", ["https://chatgpt.com", "https://ws.chatgpt.com."], ["https://x.test"]),
        ("10.1.2.3", ["https://10.1.2.3", "https://10.1.2.3:444"], ["https://10.1.2.4", "https://x.10.1.2.3.test"]),
        ("10.1.2.3/8", ["https://10.9.9.9"], ["https://11.1.2.3"]),
        ("::1,fd00::/8", ["https://[::1]", "https://[fd12::1]:8443"], ["https://[::2]", "https://[fe80::1]"]),
        ("[::1],[fd00::]/8", ["https://[::1]", "https://[0:0:0:0:0:0:0:1]", "https://[fd12::1]"], ["https://[::2]"]),
        ("2.3", [], ["https://10.1.2.3"]),
        (
            "chatgpt.com:443,10.0.0.1:80,[::1]:443,*.x.test:8080,fd00::/8,[fd01::]/16:8443",
            ["https://chatgpt.com", "wss://a.chatgpt.com:443/x", "https://[::1]", "https://a.x.test:8080"],
            [
                "https://chatgpt.com:8443",
                "https://10.0.0.1",
                "https://[::1]:444",
                "https://a.x.test",
                "https://[fc00::1]:1",
            ],
        ),
        ("*:8443,h.test:x,i.test:,j.test:123456", ["https://any.test:8443"], ["https://h.test", "https://i.test"]),
        ("*.chatgpt.com", ["https://ws.chatgpt.com"], ["https://notchatgpt.com"]),
        ("127.0.0.0/8", ["https://127.0.0.1"], ["https://localhost", "https://[::1]"]),
        ("localhost", ["https://localhost", "https://a.localhost"], ["https://127.0.0.1"]),
        ("10.0.0.0/33", [], ["https://10.0.0.1"]),
    ],
)
def test_exemptions(exempt: str, direct: list[str], through: list[str]) -> None:
    for variable in ("NO_PROXY", "no_proxy"):
        proxies = of(HTTPS_PROXY="http://p:1", **{variable: exempt})
        assert [url for url in direct if address(proxies, url) is not None] == []
        assert [url for url in through if address(proxies, url) != "p:1"] == []


def test_exemptions_hold_for_all_schemes_and_upper_case_wins() -> None:
    proxies = of("ALL_PROXY", NO_PROXY="up.test", no_proxy="other.test")
    for scheme in ("http", "https", "ws", "wss"):
        assert address(proxies, f"{scheme}://up.test") is None
        assert address(proxies, f"{scheme}://other.test") == "upper-all:5"


def test_a_proxy_of_ones_own_making() -> None:
    proxy = Proxy("proxy", "http", "fd00::1", 3128)
    assert OutboundProxies(https=proxy).proxy_for("wss://up.test") is proxy and proxy.address == "[fd00::1]:3128"


def test_a_list_of_exemptions_may_have_blanks_for_commas() -> None:
    proxies = of("HTTPS_PROXY", NO_PROXY="a.test b.test:443\t10.0.0.0/8, c.test ,")
    for host in ("a.test", "b.test", "10.1.1.1", "c.test"):
        assert address(proxies, f"https://{host}/x") is None
    assert address(proxies, "https://d.test/x") and address(proxies, "https://b.test:444/x")


@pytest.mark.parametrize("password", ["pa55\udcffword", "pa55\ud800"])
def test_a_password_that_is_no_utf8_is_refused_without_a_part_of_it(password: str) -> None:
    with pytest.raises(UnusableProxy) as refused:
        of(HTTPS_PROXY=f"http://me:{password}@proxy.test:1")
    assert str(refused.value) == "HTTPS_PROXY cannot be used: user and password must be UTF-8"
