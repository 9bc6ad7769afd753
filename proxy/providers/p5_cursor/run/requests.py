"""Answers to requests of the service that need no tool of the client; it waits for each of them for ever. Blobs are
what it stores with us during a run, and reads back. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from proxy.core.content import texts_of
from proxy.core.sse import load_json
from proxy.providers.p5_cursor.bridge.calls import ExecRequest
from proxy.providers.p5_cursor.bridge.steps import Workplace
from proxy.providers.p5_cursor.run.replies import (
    Message,
    context_answer,
    denial,
    exec_heartbeat,
    numbered,
    plan_of,
    query_answer,
)

MAX_BLOB_BYTES = 32 * 1024 * 1024
MAX_RUN_BYTES = 64 * 1024 * 1024
MAX_BLOBS = 4096

#: Ids are SHA-256 digests, or content to be confirmed.
DIGEST_BYTES = 32

#: Bytes that are searched for an answer that came as a blob. No answer is longer, and a run also stores other blobs.
MAX_PARKED_BYTES = 1024 * 1024
MAX_PARKED = 64


class Blobs:
    """The blobs of one run.

    missed  whether the service asked for a blob that only it could have: it may then end with an internal error
    """

    def __init__(self) -> None:
        self.missed = False
        self._blobs: dict[bytes, bytes] = {}
        self._size = 0

    def answer(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """The client message for a `kv_server_message`.

        >>> Blobs().answer({"id": 4, "get_blob_args": {"blob_id": b"x" * 32}})
        {'kv_client_message': {'id': 4, 'get_blob_result': {}}}
        """
        result: dict[str, Any] = {}
        if (stored := message.get("set_blob_args")) is not None:
            result = {"set_blob_result": self._set(stored.get("blob_id", b""), stored.get("blob_data", b""))}
        elif (asked := message.get("get_blob_args")) is not None:
            result = {"get_blob_result": self._get(asked.get("blob_id", b""))}
        return {"kv_client_message": numbered(message.get("id") or 0, result)}

    def _set(self, blob_id: bytes, data: bytes) -> dict[str, Any]:
        before = self._blobs.get(blob_id)
        size = self._size + len(data) - len(before or b"")
        if len(data) > MAX_BLOB_BYTES or size > MAX_RUN_BYTES or (before is None and len(self._blobs) >= MAX_BLOBS):
            return {"error": {"message": "This client stores no more: the blob or the run is too large."}}
        self._blobs[blob_id] = data
        self._size = size
        return {}

    def _get(self, blob_id: bytes) -> dict[str, bytes]:
        """The blob of an id. An id that is not a digest is content itself, which the service wants confirmed."""
        data = self._blobs.get(blob_id)
        if data is None and len(blob_id) == DIGEST_BYTES:
            self.missed = True
            return {}
        return {"blob_data": blob_id if data is None else data}

    def parked_text(self) -> str:
        """The answer that came only as blobs, in the order in which they were stored; "" when there is none."""
        texts: list[str] = []
        for text in self._answers():
            if texts and text.startswith(texts[-1]):  # a later state of that answer
                texts.pop()
            if text and not (texts and texts[-1].startswith(text)):
                texts.append(text)
        return "\n\n".join(texts)

    def _answers(self) -> Iterator[str]:
        """The texts of the last blobs that look like a message of the assistant."""
        likely = [data for data in self._blobs.values() if _may_be_answer(data)]
        left = MAX_PARKED_BYTES
        kept = []
        for data in reversed(likely[-MAX_PARKED:]):
            left -= len(data)
            if left < 0:
                break
            kept.append(data)
        return map(_answer_text, reversed(kept))


def _may_be_answer(data: bytes) -> bool:
    return len(data) <= MAX_PARKED_BYTES and data[:1] == b"{" and b'"assistant"' in data


def _answer_text(data: bytes) -> str:
    """The text of `{"role": "assistant", "content": "…" or [{"type": "text", "text": "…"}]}`; "" for anything else."""
    try:
        message = load_json(data.decode("utf-8"))
    except (ValueError, RecursionError):
        return ""
    if not isinstance(message, dict) or message.get("role") != "assistant":
        return ""
    return "".join(texts_of(message.get("content")))


class ServiceRequests:
    """The requests of one run.

    put        sends a message
    context    the description of this machine; `workspace` is its directory
    renamed    receives the id of a conversation that the service prefers
    note       writes to the log: (level, what, details)
    """

    def __init__(
        self,
        put: Callable[[Message], None],
        context: Mapping[str, Any],
        workspace: str,
        renamed: Callable[[str], None],
        note: Callable[..., None],
    ) -> None:
        self.blobs = Blobs()
        self._put = put
        self._context = context
        self._workspace = workspace
        self._renamed = renamed
        self._note = note
        self._greeted = False

    def greet(self) -> None:
        """Sends the greeting once, before the first answer of this kind."""
        if not self._greeted:
            self._greeted = True
            self._put(exec_heartbeat(0))

    def tell_context(self, request: ExecRequest) -> None:
        name = request.args.get("notes_session_id")
        if name:
            self._renamed(name)
        self._say(context_answer(request, self._context))

    def deny(self, request: ExecRequest, place: Workplace, *, full: bool = False) -> None:
        self._note("info", "cursor_exec_denied", kind=request.kind or "unknown")
        self._say(denial(request, place.tools, self._workspace, full=full, posix=place.posix))

    def answer_kv(self, message: Mapping[str, Any]) -> None:
        self._put(self.blobs.answer(message))

    def answer_query(self, query: Mapping[str, Any]) -> str:
        """Answers a query. Returns the text that it asks the user to read, "" for none."""
        self._put(query_answer(query))
        return plan_of(query)

    def _say(self, messages: Iterable[Message]) -> None:
        for message in messages:
            self._put(message)
