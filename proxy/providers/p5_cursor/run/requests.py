"""Answers to what the service asks of a run, as far as no tool of the client is needed: it waits for each of them for
ever."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from proxy.providers.p5_cursor.bridge.calls import ExecRequest
from proxy.providers.p5_cursor.run.blobs import Blobs
from proxy.providers.p5_cursor.run.replies import Message, context_answer, denial, exec_heartbeat, plan_of, query_answer


class ServiceRequests:
    """Those of one run.

    put        sends a message
    context    what the service is told of this machine; `workspace` the directory among it
    renamed    is told the id of a conversation that the service prefers
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
        """Said once, before the first answer of this kind."""
        if not self._greeted:
            self._greeted = True
            self._put(exec_heartbeat(0))

    def tell_context(self, request: ExecRequest) -> None:
        name = request.args.get("notes_session_id")
        if name:
            self._renamed(name)
        self._say(context_answer(request, self._context))

    def deny(self, request: ExecRequest, bridged: Collection[str]) -> None:
        self._note("info", "cursor_exec_denied", kind=request.kind or "unknown")
        self._say(denial(request, bridged, self._workspace))

    def answer_kv(self, message: Mapping[str, Any]) -> None:
        self._put(self.blobs.answer(message))

    def answer_query(self, query: Mapping[str, Any]) -> str:
        """The text that the query asks the user to read, "" for none."""
        self._put(query_answer(query))
        return plan_of(query)

    def _say(self, messages: Iterable[Message]) -> None:
        for message in messages:
            self._put(message)
