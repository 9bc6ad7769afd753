"""`GetUsableModels`: the models of the account."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from proxy.sandbox.p5.headers import JSON_TYPE, PROTO_TYPE, blame_headers, check_bearer, check_type
from proxy.sandbox.p5.state import P5
from proxy.sandbox.recorder import receive
from proxy.sandbox.wires.connect.errors import Failed
from proxy.sandbox.wires.connect.protobuf import Malformed, Message, write


async def serve_models(p5: P5, request: web.Request) -> web.Response:
    seen = await receive(request)
    p5.model_requests.append(seen)
    check_bearer(request.headers, p5.tokens)
    kind = check_type(request.headers, PROTO_TYPE, JSON_TYPE)
    blame_headers(request.headers, p5.blame)
    if kind == JSON_TYPE:
        if not isinstance(seen.body, dict):
            words = "cannot decode message agent.v1.GetUsableModelsRequest from JSON"
            raise Failed("invalid_argument", words).refused()
        return web.json_response({"models": [_listed(name, p5.options.models[name]) for name in p5.options.models]})
    try:
        Message(await request.read())
    except Malformed as problem:
        raise Failed("invalid_argument", f"parse binary: {problem}").refused() from None
    rows = [{1: name, 3: name, 4: title, 5: title} for name, title in p5.options.models.items()]
    return web.Response(body=write({1: rows}), content_type=PROTO_TYPE)


def _listed(name: str, title: str) -> dict[str, Any]:
    return {"modelId": name, "displayModelId": name, "displayName": title, "displayNameShort": title, "aliases": []}
