"""The web page of the monitor: its files, and who gets them."""

from __future__ import annotations

import base64
import importlib.resources
import re
from typing import Any
from unittest import mock

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from harness import Live, with_live
from samples import rows

from proxy.observe.monitor import sheet
from proxy.server.routes.watching import _answer, _files, _wants_html, get_page_file

ON = with_live(monitor_page=True)
FOLDER = importlib.resources.files("proxy.observe.monitor") / "page"
NAMES = sorted(["sheet.js", *(each.name for each in FOLDER.iterdir() if each.is_file())])


def text_of(name: str) -> str:
    return sheet.as_module() if name == "sheet.js" else (FOLDER / name).read_text("utf-8")


@ON
async def test_files_are_served_under_a_strict_policy(live: Live) -> None:
    answer = await live.get("/monitor/page/main.js")
    assert answer.status == 200 and answer.raw.decode() == text_of("main.js")
    assert answer.headers["Content-Type"] == "text/javascript; charset=utf-8"
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert answer.headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert "Access-Control-Allow-Origin" not in answer.headers
    policy = dict(rule.partition(" ")[::2] for rule in answer.headers["Content-Security-Policy"].split("; "))
    own = {"script-src", "style-src", "connect-src", "img-src"}
    none = {"default-src", "base-uri", "form-action", "frame-ancestors", "trusted-types"}
    assert {name: policy[name] for name in own | none} == dict.fromkeys(own, "'self'") | dict.fromkeys(none, "'none'")


@ON
async def test_every_file_has_its_kind_and_head_works(live: Live) -> None:
    kinds = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
    for name in NAMES:
        answer = await live.request("HEAD", f"/monitor/page/{name}")
        assert answer.status == 200 and answer.raw == b"", name
        assert answer.headers["Content-Type"] == f"{kinds[name.rpartition('.')[2]]}; charset=utf-8"
        assert int(answer.headers["Content-Length"]) == len(text_of(name).encode())


@ON
@pytest.mark.parametrize(
    "name", ["nothing.js", "../snapshot.py", "%2e%2e%2fsnapshot.py", "a/main.js", "main.js%00", "."]
)
async def test_a_name_is_no_path(live: Live, name: str) -> None:
    raw = await live.raw(f"GET /monitor/page/{name} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    assert raw.startswith(b"HTTP/1.1 404 ") and b"VERSION" not in raw


async def test_off_nothing_of_it_is_served(live: Live) -> None:
    assert (await live.get("/monitor/page/main.js")).status == 404


@ON
@pytest.mark.parametrize(
    ("headers", "told"),
    [
        ({"Host": "rebound.example"}, "Host rebound.example is not allowed"),
        ({"Origin": "http://127.0.0.1:1"}, "Origin http://127.0.0.1:1 is not allowed"),
        ({"Sec-Fetch-Site": "cross-site"}, "requests from other web sites are not served"),
        ({"Sec-Fetch-Site": "same-site"}, "requests from other web sites are not served"),
    ],
)
async def test_other_web_sites_get_nothing(live: Live, headers: dict[str, str], told: str) -> None:
    answer = await live.get("/monitor/page/main.js", **headers)
    assert answer.status == 403 and told in answer.error["message"]
    assert "WWW-Authenticate" not in answer.headers


@with_live(monitor_page=True, allow_remote_unauthenticated=True)
async def test_another_machine_needs_the_key(live: Live) -> None:
    with mock.patch("proxy.server.request.guard._is_local", return_value=False):
        answer = await live.get("/monitor/page/main.js")
    assert answer.status == 403 and "this machine only" in answer.error["message"]


@with_live(monitor_page=True, api_key="the-key-of-callers")
async def test_a_browser_is_asked_for_the_key(live: Live) -> None:
    refused = await live.get("/monitor/page/main.js")
    assert refused.status == 401
    assert refused.headers["WWW-Authenticate"] == 'Basic realm="model-proxy", charset="UTF-8"'
    for name in ("", "anybody"):
        key = base64.b64encode(f"{name}:the-key-of-callers".encode()).decode()
        assert (await live.get("/monitor/page/main.js", Authorization=f"Basic {key}")).status == 200
    elsewhere = await live.get("/v1/models")
    assert elsewhere.status == 401 and "WWW-Authenticate" not in elsewhere.headers


@rows(
    "accept, wanted",
    [
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", True),
        ("application/json, TEXT/HTML ; q=0.5", True),
        ("*/*", False),
        ("application/json", False),
        ("text/html2", False),
        (None, False),
    ],
)
def test_who_wants_a_page(accept: str | None, wanted: bool) -> None:
    request = make_mocked_request("GET", "/monitor", {} if accept is None else {"Accept": accept})
    assert _wants_html(request) is wanted


async def test_the_page_names_its_files_relative_to_itself() -> None:
    """So that it works under any prefix: `/monitor` has no slash behind it."""
    answer = _answer((await _files())["index.html"])
    assert isinstance(answer, web.Response) and answer.content_type == "text/html"
    page = answer.text or ""
    named = re.findall(r'(?:src|href)="([^"#]+)"', page)
    assert named and all(name.startswith("monitor/page/") for name in named)
    assert {name.removeprefix("monitor/page/") for name in named} <= set(NAMES)


async def test_what_is_no_file_is_no_route() -> None:
    with pytest.raises(web.HTTPNotFound):
        await get_page_file(make_mocked_request("GET", "/monitor/page/x", match_info={"id": "x"}))


def test_the_page_knows_every_kind_of_value_of_the_sheet() -> None:
    used = set(re.findall(r":(\w+)\}", text_of("sheet.js")))
    known = text_of("details.js").partition("const KINDS = {")[2].partition("\n};")[0]
    assert used and used <= set(re.findall(r"^  (\w+)[:,]", known, re.MULTILINE))


SCRIPTS = [name for name in NAMES if name.endswith(".js")]


@rows("name", SCRIPTS)
def test_scripts_are_small_and_make_no_elements_of_text(name: str) -> None:
    text = text_of(name)
    assert len(text.splitlines()) < 450
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|https?://(?!www\.w3\.org)", text
    )
    imported: list[Any] = re.findall(r'from "\./([^"]+)"', text)
    assert set(imported) <= set(SCRIPTS)
