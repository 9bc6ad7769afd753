"""The adapters that run an attempt: that of an upstream, and in it that of its wire.

An upstream differs in sign-in, address and the meaning of its failures; a wire in how requests are written and answers
are read. A provider brings an `UpstreamAdapter`; the three wires are `chat_wire`, `responses_wire` and `messages_wire`.
What their adapters share is here too: the body of a request, its credential, and translation in a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import aclosing
from typing import Any, Protocol, TypeVar

from proxy.auth.store import Credential, CredentialSource
from proxy.core.invalid import cut
from proxy.core.long_json import object_json
from proxy.core.messages import Event, MessageStream
from proxy.core.reducer import AnswerPolicy
from proxy.core.visible import Visible
from proxy.errors import UpstreamError
from proxy.observe.timings import Timings
from proxy.off_loop import in_thread_if
from proxy.providers.contract import Call, Services
from proxy.providers.upstream.event_reader import Batches, next_batch
from proxy.providers.upstream.transport import Service


class AnswerReducer(Protocol):
    """Reduces upstream events to Messages events."""

    produced: bool
    finished: bool
    incomplete: bool  # the answer ended at a limit or by a filter

    def feed(self, event: Mapping[str, Any]) -> list[Event]: ...

    def interrupt(self) -> list[Event]: ...


class WireAdapter(Protocol):
    """One request on a wire: writes its body, and reads the answer."""

    @property
    def after_tool_result(self) -> bool:
        """Whether the request ends with the result of a tool: an empty answer to it may be intended."""
        ...

    def reducer(self, stream: MessageStream) -> AnswerReducer:
        """A fresh reducer for one attempt."""
        ...

    @property
    def estimates_at_once(self) -> bool:
        """Whether `estimate` is so quick that nothing else needs to run meanwhile."""
        ...

    async def estimate(self) -> int:
        """Input tokens, for `message_start`. May raise BusyError."""
        ...

    def rough_estimate(self) -> int:
        """Input tokens when counting is too busy."""
        ...

    def raise_for_event(self, event: Mapping[str, Any]) -> None:
        """Raises UpstreamError when an event reports a failure."""
        ...

    def recover(self, error: UpstreamError) -> bool:
        """Writes another body after a refusal of this one; False when there is none."""
        ...

    def let_go(self) -> None:
        """Releases what only another attempt would need, once some of the answer was read."""
        ...


class UpstreamAdapter(Protocol):
    """One request to a service. Use once."""

    @property
    def profile(self) -> Service: ...

    @property
    def wire(self) -> WireAdapter: ...

    async def sign_in(self) -> None:
        """Gets the credential. Raises ProxyError."""
        ...

    def contact(self, number: int) -> Batches:
        """Sends the request, for the `number`th time; yields batches of upstream events. Raises UpstreamError."""
        ...

    def contextualise(self, error: UpstreamError, visible: Visible) -> UpstreamError:
        """Adjusts a failure to the events before it, and to what the client has seen."""
        ...

    async def recover(self, error: UpstreamError) -> bool:
        """Removes a cause outside the body, such as an expired token; True when the request should be sent again at
        once. Each recovery may be tried once."""
        ...

    def client_error(self, error: UpstreamError) -> UpstreamError:
        """The error for the client."""
        ...


#: Members that hold the conversation, whose items were mostly sent the turn before.
_HISTORIES = frozenset({"messages", "input"})


class RequestBody:
    """The body of a request. Its bytes are written when first needed, since P1 may send only a part.

    large  whether they are written in a thread
    """

    def __init__(self, members: dict[str, Any], *, large: bool = False) -> None:
        self._payload: bytes | None = None
        self.members = members
        self.large = large

    @property
    def payload(self) -> bytes:
        """All bytes of the body. The loop uses `written` for a large one."""
        if self._payload is None:
            self._payload = self._write()
        return self._payload

    def _write(self) -> bytes:
        return b"{" + object_json(self.members, _HISTORIES, large=self.large) + b"}"

    async def written(self) -> bytes:
        """The bytes for an `UpstreamRequest`, which then holds none of its own."""
        return await in_thread_if(self.large and self._payload is None, lambda: self.payload)

    def replace(self, members: dict[str, Any]) -> None:
        """Replaces the body from the next attempt on."""
        self.members, self._payload = members, None

    def let_go(self) -> None:
        """Drops the body, which will not be sent again."""
        self.replace({})


#: Names of tools in one note of the log.
MAX_NAMED = 10


def note_simplified(call: Call, services: Services, service: Service) -> None:
    """Logs which tools are not sent in full."""
    if call.simplified:
        fields = {"count": len(call.simplified), "tools": [cut(name) for name in call.simplified[:MAX_NAMED]]}
        msg = f"{service.service}_tools_simplified"
        services.log.write("warn", service.label, msg, reqId=call.request_id, **fields)


def let_go(call: Call, policy: AnswerPolicy | None, body: RequestBody) -> None:
    """Releases what only another attempt would need; common to all wires."""
    if policy is not None:
        policy.keep_ids()
    body.let_go()
    call.let_go()


T = TypeVar("T")


def translated(call: Call, translate: Callable[[], T], answer: Callable[[T], Batches]) -> Batches:
    """The answer to a call. Raises what `translate` raises; for a large request only when the answer is read.

    translate  the request in the upstream's form: pure, since it may run in a thread
    answer     asks the upstream with that
    """
    # a small one gets no generator of its own: each layer between an upstream and the writer costs every event
    return _in_thread(translate, answer) if call.large else answer(translate())


async def _in_thread(translate: Callable[[], T], answer: Callable[[T], Batches]) -> Batches:
    async with aclosing(answer(await asyncio.to_thread(translate))) as batches:
        batch = await anext(batches, None)
        while batch is not None:
            batch = await next_batch(batches, (yield batch))


class RequestCredential:
    """The credential of one request. `renewed`: whether it was renewed; `timings` learn how long the request waited."""

    def __init__(self, credentials: CredentialSource, timings: Timings | None = None) -> None:
        self._credentials = credentials
        self._timings = timings or Timings()
        self._current: Credential | None = None
        self.renewed = False

    @property
    def current(self) -> Credential:
        """The credential to send. Only after `get`."""
        if self._current is None:
            raise RuntimeError("used before sign-in")
        return self._current

    @property
    def account_id(self) -> str | None:
        """The id of the account, if known."""
        return self._current.account_id if self._current is not None else None

    async def get(self) -> Credential:
        """Loads the credential. Raises ProxyError."""
        if self._current is not None:  # an earlier failure no longer matters
            self._current = await self._credentials.get()
            return self._current
        self._timings.signing_in()
        self._current = await self._credentials.get()
        self._timings.signed_in()
        return self._current

    async def renew(self) -> bool:
        """Renews a refused credential; False when that was done before. Raises ProxyError."""
        if self.renewed or self._current is None:
            return False
        self.renewed = True
        self._current = await self._credentials.renew(self._current.access)
        return True
