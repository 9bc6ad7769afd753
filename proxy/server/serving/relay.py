"""Passes on the answer of a provider that speaks the Responses API itself, unchanged."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import cast

from aiohttp import web

from proxy.core.responses_events import visible_after
from proxy.core.sse import FrameTooLarge, SSEDecoder
from proxy.core.upstream_failures import kind_of_status
from proxy.core.visible import Visible
from proxy.errors import ProxyError, UpstreamError
from proxy.providers.contract import Call, NativeAnswer, NativeResponses
from proxy.server.request.candidates import Candidates
from proxy.server.request.ledger import Ledger
from proxy.server.serving.stream import AnswerWriter
from proxy.server.serving.watch import watched


class RelayWriter(AnswerWriter):
    """Writes the bytes of one answer unchanged. Adds nothing once the head was sent."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(ledger)
        self._answer: NativeAnswer
        self._held: list[bytes] = []
        self._decoder: SSEDecoder | None = None
        self._streams = self._generating = False

    async def open(self, answer: NativeAnswer, *, streams: bool, held_until: float | None) -> None:
        """Takes the head of an answer. Sends it at once; or, if another model may still answer, with the first visible
        data, or at `held_until`."""
        self._answer, self._streams = answer, streams
        if held_until is None:
            await self._write_data(b"", 0)
            return
        self._held_until, self._decoder = held_until, SSEDecoder()

    def _head(self) -> web.StreamResponse:
        return web.StreamResponse(status=self._answer.status, headers={**self._ledger.head, **self._answer.headers})

    async def send(self, chunk: bytes) -> None:
        """Passes a piece of the body on."""
        if not self.begun:
            self._held.append(chunk)
            if self._answer.end.failure is None and not self._shows(chunk):
                return
            chunk = self._taken()
        await self._pass_on(chunk)

    async def fill(self) -> None:
        if self.silent:
            await self._pass_on(self._taken())

    async def flush(self) -> None:
        """Sends what is held, at the end of the body."""
        if not self.begun:
            await self._pass_on(self._taken())

    def give_up(self) -> None:
        """Never sends what is held, since the answer broke and another model may answer."""
        self._held_until = float("inf")

    def _taken(self) -> bytes:
        held, self._held = self._held, []
        return b"".join(held)

    async def _pass_on(self, data: bytes) -> None:
        if data and not self._generating and self._answer.status == 200:
            self._generating = True
            self._ledger.generating()
        await self._write_data(data, 1)

    def _shows(self, chunk: bytes) -> bool:
        """Whether a client sees something of the complete frames so far. True if they cannot be read."""
        if self._decoder is None:
            return True
        try:
            return any(visible_after(name, data) > Visible.FRAMING for name, data in self._decoder.feed(chunk))
        except FrameTooLarge:
            return True

    def _keep(self, data: bytes) -> None:
        keep = self._ledger.capture.streamed if self._streams else self._ledger.capture.replied
        keep(data)


class RelayedAnswer:
    """An answer that is passed on byte by byte. Nothing is added once its head was sent, so a body that breaks has no
    end."""

    def __init__(self, ledger: Ledger, call: Call) -> None:
        self.call = call
        self._ledger = ledger

    @property
    def visible(self) -> Visible:
        return Visible.NOTHING if self._ledger.response is None else Visible.CONTENT

    async def of(self, candidates: Candidates) -> web.StreamResponse:
        ledger, call = self._ledger, self.call
        provider = cast(NativeResponses, candidates.current.provider)  # like all accounts of the provider
        writer = RelayWriter(ledger)
        async with watched(ledger, writer), provider.native(call) as answer, aclosing(answer.chunks) as chunks:
            check(answer, candidates)
            streams = answer.status == 200 and call.request.get("stream") is True
            waits = streams and candidates.others
            now = asyncio.get_running_loop().time()
            until = candidates.held_until(now, 0.0) if waits else None
            await writer.open(answer, streams=streams, held_until=until)
            try:
                async for chunk in chunks:
                    _check_body(writer, answer, candidates)
                    await writer.send(chunk)
                _check_body(writer, answer, candidates)
            except Exception:
                writer.give_up()
                raise
            await writer.flush()
            self._note_end(answer)
            return await writer.end()

    def _note_end(self, answer: NativeAnswer) -> None:
        if answer.end.usage is not None:
            self._ledger.used({"type": "message_delta", "usage": answer.end.usage})
        if answer.status >= 400:
            message = f"the upstream answered with status {answer.status}"
            self._ledger.failed(UpstreamError(message, kind="upstream", status=answer.status))
        elif answer.end.failure is not None:
            self._ledger.failed(answer.end.failure, in_band=True)
        else:
            self._ledger.completed(answer.status)

    async def fail(self, error: ProxyError) -> web.StreamResponse:
        raise error


def _check_body(writer: RelayWriter, answer: NativeAnswer, candidates: Candidates) -> None:
    """Raises a failure in the body that leads to another model, if nothing was sent."""
    failure = answer.end.failure
    if not writer.begun and failure is not None and candidates.model_follows(failure, Visible.NOTHING):
        raise failure


def check(answer: NativeAnswer, candidates: Candidates) -> None:
    """Raises the error of a refusal, instead of passing it on, if another candidate follows, or if the model that was
    asked for is not the one that refuses."""
    if answer.status < 400:
        return
    error, candidate = answer.end.failure, candidates.current
    if error is None:
        message, kind = f"{candidate.label} answered with status {answer.status}", kind_of_status(answer.status)
        error = UpstreamError(message, kind=kind, status=answer.status, provider=candidate.label)
    refused = answer.status == 429 and candidates.account_follows(error, Visible.NOTHING)
    if refused or candidates.failures or candidates.model_follows(error, Visible.NOTHING):
        raise error
