"""The simulated service of the toy provider, on the sandbox's chat wire."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from aiohttp import web

from proxy.sandbox.oauth.account import AccountUpstream
from proxy.sandbox.oauth.endpoint import TokenEndpoint, form_fields
from proxy.sandbox.oauth.tokens import LIVE, Tokens
from proxy.sandbox.play.http_faults import failure
from proxy.sandbox.play.script import Place, Tables
from proxy.sandbox.play.stream_faults import WHOLE_FAULTS
from proxy.sandbox.upstream import Host, Options, Prepared, ServedWire, Simulator
from proxy.sandbox.wires.chat.checks import ChatRules, check_chat
from proxy.sandbox.wires.chat.faults import CHAT_FAULTS
from proxy.sandbox.wires.chat.read import read_chat, write_chat
from proxy.sandbox.wires.refusal import invalid

PATH = "/toys/v1"
_FAULTS = {"overloaded": failure(503, {"error": {"message": "Too many toys.", "type": "server"}})}
STREAM = ServedWire(Place("p6", "chat"), _FAULTS, CHAT_FAULTS)
WHOLE = ServedWire(Place("p6", "chat", stream=False), _FAULTS, WHOLE_FAULTS)


class ToyUpstream(AccountUpstream):
    def __init__(self, host: Host, options: Options, tables: Tables) -> None:
        super().__init__(host, options, tables)
        self.tokens = Tokens(3600, host)
        self.issuer = TokenEndpoint()

    def settings(self) -> dict[str, str]:
        return {"PROXY_P6_BASE_URL": f"{self.host.origin}{PATH}"}

    def sign_in(self, lifetime_s: int | None) -> tuple[dict[str, Any], Mapping[str, Any]]:
        return self.tokens.new_pair(self.tokens.times(lifetime_s)), {}

    def rotate(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        if self.tokens.spend(str(fields.get("refresh_token")), unknown="unknown", used="used") != LIVE:
            raise invalid("Sign in again.", status=401)
        self.issuer.refreshes += 1
        return self.sign_in(None)[0]


async def _token(toys: ToyUpstream, request: web.Request) -> web.Response:
    grants = {"client_credentials": lambda _fields: toys.sign_in(None)[0], "refresh_token": toys.rotate}
    return await toys.issuer.serve_token(await form_fields(request), "toy-client", grants)


def _prepare(toys: ToyUpstream, request: web.Request, body: Any) -> Prepared:
    if not toys.tokens.accepts(request.headers.get("authorization", "").removeprefix("Bearer ")):
        raise invalid("Who are you?", status=401)
    check_chat(body, ChatRules())
    ask = read_chat(body, effort=None)
    answer = write_chat(toys, body, ask, new_id=_call_id)
    return Prepared(STREAM if body.get("stream") else WHOLE, answer)


def _call_id(tool: str, number: int) -> str:
    return f"{tool}:{number}"


def _routes(toys: ToyUpstream) -> list[web.RouteDef]:
    return [
        web.post(f"{PATH}/token", partial(_token, toys)),
        web.post(f"{PATH}/chat/completions", partial(toys.serve, partial(_prepare, toys))),
    ]


TOY_SIMULATOR = Simulator("p6", ToyUpstream, Options, (STREAM, WHOLE), _routes)
