"""The monitor as a web page: what a browser is given at `/monitor`, and the few files that it then asks for.

They lie beside the data that they draw (`observe/monitor/page`) and travel as they are: no build, nothing from
elsewhere.
"""

from __future__ import annotations

import asyncio
import importlib.resources
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from aiohttp import web

#: Where the files stand, beside `/monitor`: the page names them relative to itself, so that it works under any prefix.
FILES = "/monitor/page/{id}"

_INDEX = "index.html"

_KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}

#: The page holds names and messages of others. Whatever they are, the browser runs only our files, sends nothing
#: anywhere else, and makes no element out of text.
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
_HEADERS = {"Content-Security-Policy": _POLICY, "Cross-Origin-Opener-Policy": "same-origin"}


@dataclass(frozen=True, slots=True)
class _File:
    body: bytes
    kind: str


def wants_html(request: web.BaseRequest) -> bool:
    """Whether a person asks with a browser: programs take what they get, or name JSON."""
    accepted = ",".join(request.headers.getall("Accept", ()))
    return any(one.partition(";")[0].strip().lower() == "text/html" for one in accepted.split(","))


async def index(_request: web.Request) -> web.StreamResponse:
    """The page itself."""
    return _answer((await _files())[_INDEX])


async def get_page_file(request: web.Request) -> web.StreamResponse:
    """A file that the page asks for. The name is looked up among those that there are: it is never part of a path.
    Raises HTTPNotFound."""
    found = (await _files()).get(request.match_info["id"])
    if found is None:
        raise web.HTTPNotFound
    return _answer(found)


def _answer(file: _File) -> web.Response:
    return web.Response(body=file.body, content_type=file.kind, charset="utf-8", headers=_HEADERS)


async def _files() -> Mapping[str, _File]:
    """By name. They are read once, and not on the loop."""
    return await asyncio.to_thread(_read)


@cache
def _read() -> Mapping[str, _File]:
    folder = importlib.resources.files("proxy.observe.monitor") / "page"
    return {
        each.name: _File(each.read_bytes(), kind)
        for each in folder.iterdir()
        if (kind := _KINDS.get("." + each.name.rpartition(".")[2])) is not None
    }
