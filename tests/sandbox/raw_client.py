"""A raw client of a simulated upstream: requests as a correct proxy would send them, to be spoilt by a test."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from proxy.sandbox import Sandbox
from proxy.sandbox.wires.refusal import Refused


@dataclass
class Reply:
    """`broken` is the error with which the body ended, if it did not end well.

    The first properties read any wire; the others what their wire alone has.
    """

    status: int
    headers: Any
    data: bytes
    broken: Exception | None = None
    events: list[dict[str, Any]] = field(default_factory=list)

    @property
    def json(self) -> Any:
        return json.loads(self.data)

    @property
    def types(self) -> list[str]:
        return [event["type"] for event in self.events]

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event.get("type") == kind]

    @property
    def pieces(self) -> list[tuple[str, str]]:
        """Every delta of thinking, text or a call, and what it says."""
        found = []
        for event in self.events:
            for delta in [choice["delta"] for choice in event.get("choices") or ()]:
                found += [(kind, delta[name]) for name, kind in CHAT_DELTAS.items() if delta.get(name)]
                fragments = [one["function"].get("arguments") for one in delta.get("tool_calls") or ()]
                found += [("call", arguments) for arguments in fragments if arguments]
            if event.get("type") in RESPONSES_DELTAS:
                found.append((RESPONSES_DELTAS[event["type"]], event["delta"]))
        for delta in self.block_deltas:
            found += [(kind, delta[name]) for name, kind in MESSAGES_DELTAS.items() if name in delta]
        return found

    def _said(self, kind: str) -> str:
        return "".join(piece for one, piece in self.pieces if one == kind)

    @property
    def text(self) -> str:
        return self._said("text")

    @property
    def thought(self) -> str:
        return self._said("thinking")

    @property
    def calls(self) -> list[tuple[str, Any]]:
        """Name and arguments of each, put together as a client does."""
        slots: dict[int, list[str]] = {}
        for fragment in self.fragments:
            slot = slots.setdefault(fragment["index"], ["", ""])
            slot[0] += fragment["function"].get("name", "")
            slot[1] += fragment["function"].get("arguments", "")
        items = [(item["name"], item["arguments"]) for item in self.items if "arguments" in item]
        blocks = [(block["name"], block["input"]) for block in self.blocks if block["type"] == "tool_use"]
        return [*blocks, *((name, json.loads(arguments)) for name, arguments in (*items, *slots.values()))]

    @property
    def ids(self) -> list[str]:
        """Those of the calls."""
        items = [item["call_id"] for item in self.items if "call_id" in item]
        return [*items, *(one["id"] for one in (*self.blocks, *self.fragments) if "id" in one)]

    @property
    def ended(self) -> bool:
        """Whether the answer came to a good end."""
        last = {"message_stop", "response.completed", "response.incomplete"}
        return self.done or any(event.get("type") in last for event in self.events)

    # Responses

    @property
    def final(self) -> dict[str, Any]:
        return self.events[-1]["response"]

    @property
    def items(self) -> list[dict[str, Any]]:
        return [event["item"] for event in self.of("response.output_item.done")]

    # chat completions

    @property
    def deltas(self) -> list[dict[str, Any]]:
        return [event["choices"][0]["delta"] for event in self.events if event.get("choices")]

    @property
    def fragments(self) -> list[dict[str, Any]]:
        return [fragment for delta in self.deltas for fragment in delta.get("tool_calls") or ()]

    @property
    def finish(self) -> list[str]:
        choices = [choice for event in self.events for choice in event.get("choices") or ()]
        return [choice["finish_reason"] for choice in choices if choice.get("finish_reason")]

    @property
    def done(self) -> bool:
        return b"data: [DONE]\n\n" in self.data.replace(b"\r", b"")

    # Messages

    @property
    def block_deltas(self) -> list[dict[str, Any]]:
        return [event["delta"] for event in self.of("content_block_delta")]

    @property
    def blocks(self) -> list[dict[str, Any]]:
        """The content blocks, put together as a client does."""
        blocks = {event["index"]: dict(event["content_block"]) for event in self.of("content_block_start")}
        inputs: dict[int, str] = {}
        for event in self.of("content_block_delta"):
            delta, index = event["delta"], event["index"]
            for name in {"text", "thinking", "signature"} & delta.keys():
                blocks[index][name] += delta[name]
            if "partial_json" in delta:
                inputs[index] = inputs.get(index, "") + delta["partial_json"]
        for index, text in inputs.items():
            blocks[index]["input"] = json.loads(text)
        return list(blocks.values())


CHAT_DELTAS = {"reasoning_content": "thinking", "content": "text"}

MESSAGES_DELTAS = {"thinking": "thinking", "text": "text", "partial_json": "call"}

RESPONSES_DELTAS = {
    "response.reasoning_summary_text.delta": "thinking",
    "response.output_text.delta": "text",
    "response.function_call_arguments.delta": "call",
}


class RawClient:
    """One session, one address."""

    def __init__(self, sandbox: Sandbox, session: aiohttp.ClientSession, url: str) -> None:
        self.sandbox = sandbox
        self.session = session
        self.url = url

    def headers(self, body: Any = None) -> dict[str, str]:
        raise NotImplementedError

    def address(self, body: Any) -> str:
        return self.url

    def post(self, body: Any, headers: dict[str, str | None] | None = None) -> Any:
        """The request as a context manager. A header of None is left out."""
        merged = {**self.headers(body), **(headers or {})}
        sent = {name: value for name, value in merged.items() if value is not None}
        left_out = [name for name, value in merged.items() if value is None]
        data = body if isinstance(body, bytes) else json.dumps(body)
        return self.session.post(
            self.address(body), data=data, headers=sent, skip_auto_headers=left_out, allow_redirects=False
        )

    async def ask(self, body: Any, headers: dict[str, str | None] | None = None) -> Reply:
        """The whole answer, however it ends."""
        async with self.post(body, headers) as response:
            data, broken = b"", None
            try:
                async for chunk in response.content.iter_any():
                    data += chunk
            except (aiohttp.ClientError, ConnectionError) as error:
                broken = error
            reply = Reply(response.status, response.headers, data, broken)
        if response.content_type == "text/event-stream":
            reply.events = list(parse(data))
        return reply


def parse(data: bytes) -> Iterator[dict[str, Any]]:
    """The events of whole, well-formed frames."""
    for block in data.replace(b"\r\n", b"\n").split(b"\n\n")[:-1]:
        fields = dict(line.split(b": ", 1) for line in block.split(b"\n") if b": " in line)
        try:
            event = json.loads(fields[b"data"])
        except (KeyError, ValueError):
            continue
            assert fields.get(b"event", b"").decode() in (event.get("type", ""), "", "error")
        yield event


#: The way to a member of a body.
Path = tuple[Any, ...]

ABSENT = object()

JUNK: list[Any] = [None, True, 1, "x", "", [], {}, [1], [None], {"type": "x"}, {"type": []}, [[]], [{}]]


def never_crashes(
    body: dict[str, Any], serve: Callable[[dict[str, Any]], object], paths: Iterable[Path] | None = None
) -> None:
    """Junk in any place of the body, or in these, is refused or served."""
    for path, junk in itertools.product(places(body) if paths is None else paths, JUNK):
        try:
            assert serve(spoilt(body, path, junk)), (path, junk)
        except Refused:
            continue


def form_of(body: Any, path: Path) -> tuple[Any, ...]:
    """What a place has in common with others like it: names of members on the way, kinds of the objects around it."""
    form: list[Any] = []
    for step in path:
        form.append(None if isinstance(step, int) else step)
        body = body[step]
        form += [repr(body.get("type")), body.get("role")] if isinstance(body, dict) else []
    return (*form, type(body))


def places(value: Any, path: Path = ()) -> Iterator[Path]:
    """The path of everything inside of `value`."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, one in inner:
        yield (*path, step)
        yield from places(one, (*path, step))


def spoilt(body: Any, path: Path, junk: Any) -> Any:
    """A copy with junk there, or with nothing. What is not on the way is shared: nobody changes a body."""
    if not isinstance(body, dict | list):
        raise TypeError
    copy: Any = body.copy()
    step, *rest = path
    if junk is ABSENT and not rest:
        del copy[step]
    else:
        copy[step] = spoilt(body[step], tuple(rest), junk) if rest else junk
    return copy
