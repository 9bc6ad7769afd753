"""The account that serves one request, and the one that goes on with it where a window turns out to be spent."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any

from proxy.core.convert.responses.signatures import is_ours
from proxy.core.messages import Event
from proxy.errors import ProxyError, UpstreamError
from proxy.observe.lifecycle import ProviderSelected
from proxy.providers.contract import Call, NativeAnswer, NativeResponses, Provider, Remembering
from proxy.server.accounts.pool import Serving
from proxy.server.allowances import explained
from proxy.server.exchange import Exchange

#: Events that show a reader nothing.
_UNSEEN = frozenset({"message_start", "ping"})


def served_by(exchange: Exchange, label: str, session: str | None, model: str = "", *, stays: bool = False) -> Provider:
    """A provider, made for the account that serves this session; the answer's head, the log and the monitor name it.

    stays  the request carries what only the account can read that answered before: no other one goes on with it
    """
    state = exchange.state
    exchange.session = session
    exchange.accounts = state.accounts.choose(
        label, state.config(), session=session, caller=exchange.caller_name, stays=stays, model=model
    )
    exchange.account = exchange.accounts[0].name
    return exchange.accounts[0].provider


def carries_state(body: Mapping[str, Any]) -> bool:
    """Whether a body of the Responses API holds what belongs to the account that answered before."""
    given = body.get("input")
    items = given if isinstance(given, list) else []
    found = (item.get("encrypted_content") for item in items if isinstance(item, Mapping))
    sealed = any(isinstance(content, str) and content and not is_ours(content) for content in found)
    return sealed or bool(body.get("previous_response_id"))


def answered(exchange: Exchange, provider: Provider, call: Call) -> AsyncGenerator[list[Event], None]:
    """The answer to a call, of the account that was chosen or of the next."""
    return provider.stream(call) if len(exchange.accounts) < 2 else _across(exchange, call)


async def _across(exchange: Exchange, call: Call) -> AsyncGenerator[list[Event], None]:
    begun = seen = False
    for place, serving in enumerate(exchange.accounts):
        try:
            async with aclosing(serving.provider.stream(call)) as batches:
                async for batch in batches:
                    seen = seen or any(event["type"] not in _UNSEEN for event in batch)
                    # one answer has one beginning, whoever goes on with it
                    events = [event for event in batch if event["type"] != "message_start"] if begun else batch
                    begun = True
                    if events:
                        yield events
            return
        except ProxyError as error:
            following = exchange.accounts[place + 1 :]
            if seen or not following or not _is_spent(exchange, serving, error, call):
                raise
            _go_on(exchange, serving, following[0], error, call)


@asynccontextmanager
async def native_answer(exchange: Exchange, provider: NativeResponses, call: Call) -> AsyncIterator[NativeAnswer]:
    """The same for an answer that is passed on as it is."""
    for serving, following in zip(exchange.accounts, exchange.accounts[1:], strict=False):
        if not isinstance(serving.provider, NativeResponses):
            break
        provider, error = serving.provider, UpstreamError("the allowance is used up", kind="usage_limit")
        told = False  # then what is raised comes from whoever was told
        try:
            async with provider.native(call) as answer:
                refused = answer.end.failure if answer.status == 429 else None
                if refused is None or not _is_spent(exchange, serving, refused, call):
                    told = True
                    yield answer
                    return
                error = error.replaced(message=refused.message)
        except ProxyError as failed:
            if told or not _is_spent(exchange, serving, failed, call):
                raise
            error = error.replaced(message=failed.message)
        _go_on(exchange, serving, following, error, call)
        if isinstance(following.provider, NativeResponses):
            provider = following.provider
    async with provider.native(call) as answer:
        yield answer


def now_serving(exchange: Exchange, provider: Provider) -> Provider:
    """For a request on the side: the same provider, made for the account that serves after all."""
    served = {one.name: one.provider for one in exchange.accounts}
    return served.get(exchange.account, provider) if provider in served.values() else provider


def _is_spent(exchange: Exchange, serving: Serving, error: ProxyError, call: Call) -> bool:
    """Whether the account's allowance refuses the request, and nothing that passes by itself."""
    if error.kind == "rate_limit":
        return exchange.state.accounts.is_spent(serving, call.model)
    return error.kind == "usage_limit"


def _go_on(exchange: Exchange, old: Serving, new: Serving, error: ProxyError, call: Call) -> None:
    """Another account goes on with the request; everybody who watches is told, and who served before."""
    state = exchange.state
    known = explained(state, error.replaced(provider=old.provider.label), old.name, call.model)
    exchange.account = new.name
    state.accounts.moved(new, exchange.session, exchange.caller_name)
    if call.owner is not None and isinstance(old.provider, Remembering):
        old.provider.served_elsewhere(call.owner, call.request, call.request_id)
    if exchange.cache is not None:
        exchange.cache.moved(new.provider)
    exchange.log("warn", "account_moved", before=old.name, reason=known.message)
    exchange.record(ProviderSelected(exchange.account_key, call.model, call.target.effort))
    words = f"{old.key} is spent; {new.key} serves instead of it"
    state.monitor.notice("warn", words, provider=old.provider.label, session=exchange.session)
