"""The simulated service of the toy provider, on the sandbox's chat wire."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from aiohttp import web

from proxy.sandbox.oauth.issuer import AccountUpstream, TokenEndpoint, form_fields
from proxy.sandbox.oauth.tokens import Tokens
from proxy.sandbox.play.actions import failure
from proxy.sandbox.play.script import Place, Tables
from proxy.sandbox.play.stream_faults import WHOLE_FAULTS
from proxy.sandbox.upstream import CheckedRequest, Host, Options, ServedWire, Simulator
from proxy.sandbox.wires.chat.checks import ChatRules, check_chat
from proxy.sandbox.wires.chat.faults import CHAT_FAULTS
from proxy.sandbox.wires.chat.read import read_chat, write_chat
from proxy.sandbox.wires.refusal import Refused, invalid

PATH = "/toys/v1"
_FAULTS = {"overloaded": failure(503, {"error": {"message": "Too many toys.", "type": "server"}})}
STREAM = ServedWire(Place("p6", "chat"), _FAULTS, CHAT_FAULTS)
WHOLE = ServedWire(Place("p6", "chat", stream=False), _FAULTS, WHOLE_FAULTS)


class ToyTokens(Tokens):
    def issue(self, lifetime_s: int | None = None, holder: str = "") -> dict[str, Any]:
        return self.new_pair(self.times(lifetime_s))

    def refused(self, state: str) -> Refused:
        return invalid("Sign in again.", status=401)


class ToyUpstream(AccountUpstream):
    def __init__(self, host: Host, options: Options, tables: Tables) -> None:
        super().__init__(host, options, tables)
        self.tokens = ToyTokens(3600, host)
        self.issuer = TokenEndpoint()

    def settings(self) -> dict[str, str]:
        return {"PROXY_P6_BASE_URL": f"{self.host.origin}{PATH}"}

    def rotate(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        rotated = self.tokens.rotate(str(fields.get("refresh_token")))
        self.issuer.refreshes += 1
        return rotated


async def _token(toys: ToyUpstream, request: web.Request) -> web.Response:
    grants = {"client_credentials": lambda _fields: toys.tokens.issue(), "refresh_token": toys.rotate}
    return await toys.issuer.serve_token(await form_fields(request), "toy-client", grants)


def _prepare(toys: ToyUpstream, request: web.Request, body: Any) -> CheckedRequest:
    if not toys.tokens.accepts(request.headers.get("authorization", "").removeprefix("Bearer ")):
        raise invalid("Who are you?", status=401)
    check_chat(body, ChatRules())
    ask = read_chat(body, effort=None)
    answer = write_chat(toys, body, ask, new_id=_call_id)
    return CheckedRequest(STREAM if body.get("stream") else WHOLE, answer)


def _call_id(tool: str, number: int) -> str:
    return f"{tool}:{number}"


def _routes(toys: ToyUpstream) -> list[web.RouteDef]:
    return [
        web.post(f"{PATH}/token", partial(_token, toys)),
        web.post(f"{PATH}/chat/completions", partial(toys.serve, partial(_prepare, toys))),
    ]


TOY_SIMULATOR = Simulator("p6", ToyUpstream, Options, (STREAM, WHOLE), _routes)
