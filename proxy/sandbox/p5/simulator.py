"""The simulated P5: its routes, `BidiAppend` (the client's half of a run) and the list of models."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from typing import Any, NamedTuple

from aiohttp import web

from proxy.core.sse import dump_json
from proxy.sandbox.p5.failures import JSON_TYPE, PROTO_TYPE, blame_headers, check_bearer, check_type, check_version
from proxy.sandbox.p5.options import P5Options
from proxy.sandbox.p5.state import P5
from proxy.sandbox.p5.stream import AGENT, serve_run, set_course
from proxy.sandbox.play.json_faults import serve_list
from proxy.sandbox.play.player import cut
from proxy.sandbox.upstream import Simulator, receive
from proxy.sandbox.wires.connect.envelopes import FailedCall
from proxy.sandbox.wires.connect.protobuf import Malformed, Message, write
from proxy.sandbox.wires.refusal import plain_reply


class Append(NamedTuple):
    """One append: a message of the run with that id."""

    request_id: str
    number: int
    data: bytes


async def serve_append(p5: P5, request: web.Request) -> web.Response:
    data = await request.read()
    with p5.at_work():
        check_bearer(request.headers, p5.tokens)
        kind = check_type(request.headers, PROTO_TYPE, JSON_TYPE)
        try:
            check_version(request.headers)
            append = _from_json(data) if kind == JSON_TYPE else _from_proto(data)
        except FailedCall as failed:
            p5.blame(f"an append was refused: {failed}")
            raise failed.refused() from None
        blame_headers(request.headers, p5.blame, append.request_id)
        return await _take(p5, request, append, kind)


async def _take(p5: P5, request: web.Request, append: Append, kind: str) -> web.Response:
    run = p5.runs.claim(append.request_id)
    if run.answering:
        run.blame(f"append {append.number} came while another was not answered")
    run.answering += 1
    try:
        run.accept(append.number, append.data)
        if run.opened:
            set_course(p5, run)
        wait_s = run.waits.get(append.number, 0.0)
        if wait_s:
            await asyncio.sleep(wait_s)
    finally:
        run.answering -= 1
    if append.number in run.cuts:
        await cut(request, reset=run.cuts[append.number])
    reply = run.replies.get(append.number)
    if reply is not None:
        return plain_reply(reply.status, reply.body, dict(reply.headers or {}))
    return web.Response(body=b"{}" if kind == JSON_TYPE else b"", content_type=kind)


def _from_proto(data: bytes) -> Append:
    try:
        message = Message(data)
        if 4 in message:
            raise FailedCall("invalid_argument", "data_binary is not enabled")
        return _append(message.text(1), message.text(2, 1), message.number(3))
    except Malformed as problem:
        raise FailedCall("invalid_argument", f"parse binary: {problem}") from None


def _from_json(data: bytes) -> Append:
    """Reads an append from JSON. int64 is a text there; a number is accepted as well."""
    try:
        body: Any = json.loads(data)
        return _append(body.get("data", ""), body["requestId"]["requestId"], int(body.get("appendSeqno", 0)))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise FailedCall("invalid_argument", "cannot decode message aiserver.v1.BidiAppendRequest from JSON") from None


def _append(text: str, request_id: str, number: int) -> Append:
    message = _from_hex(text)
    if not request_id or message is None:
        raise FailedCall("invalid_argument", "data is no hexadecimal text, or the request id is missing")
    return Append(request_id, number, message)


def _from_hex(text: str) -> bytes | None:
    """The bytes of lower-case hexadecimal text; None for any other text. A pattern takes seconds for a picture."""
    try:
        message = bytes.fromhex(text)
    except ValueError:
        return None
    return message if message.hex() == text else None


async def serve_models(p5: P5, request: web.Request) -> web.StreamResponse:
    seen = await receive(request)
    p5.model_requests.append(seen)
    check_bearer(request.headers, p5.tokens)
    kind = check_type(request.headers, PROTO_TYPE, JSON_TYPE)
    blame_headers(request.headers, p5.blame)
    if kind == JSON_TYPE:
        if not isinstance(seen.body, dict):
            words = "cannot decode message agent.v1.GetUsableModelsRequest from JSON"
            raise FailedCall("invalid_argument", words).refused()
        listed = {"models": [_listed(name, p5.options.models[name]) for name in p5.options.models]}
        return await serve_list(p5.options, request, dump_json(listed).encode(), {})
    try:
        Message(await request.read())
    except Malformed as problem:
        raise FailedCall("invalid_argument", f"parse binary: {problem}").refused() from None
    rows = [{1: name, 3: name, 4: title, 5: title} for name, title in p5.options.models.items()]
    return await serve_list(p5.options, request, write({1: rows}), {}, PROTO_TYPE)


def _listed(name: str, title: str) -> dict[str, Any]:
    return {"modelId": name, "displayModelId": name, "displayName": title, "displayNameShort": title, "aliases": []}


_AGENT_PATH = "/agent.v1.AgentService"


async def _only_http2(_request: web.Request) -> web.Response:
    """The load balancer's answer to `Run`, which needs both directions at once."""
    return web.Response(status=464, headers={"server": "awselb/2.0"})


def _routes(p5: P5) -> list[web.RouteDef]:
    return [
        web.post(f"{_AGENT_PATH}/RunSSE", partial(serve_run, p5)),
        web.post("/aiserver.v1.BidiService/BidiAppend", partial(serve_append, p5)),
        web.post(f"{_AGENT_PATH}/Run", _only_http2),
        web.post(f"{_AGENT_PATH}/GetUsableModels", partial(serve_models, p5)),
        *p5.issuer.routes(),
    ]


P5_SIMULATOR = Simulator("p5", P5, P5Options, (AGENT,), _routes)
