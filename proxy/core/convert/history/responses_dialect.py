"""How upstreams of the Responses API want a conversation, and what becomes of its pictures, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from proxy.core.content import image_data_url, image_url, omitted
from proxy.core.tools.read_tool import ReadOffsets

Item = dict[str, Any]

TOOL_ERROR = "[tool execution error]"


@dataclass(frozen=True, slots=True)
class ResponsesDialect:
    """How an upstream wants a conversation.

    system      the role of messages that speak for the system
    label       whose encrypted reasoning the upstream can read
    reasoning   how it is sent back: `bare`, or with the text that the client was shown as its `summary`; None drops it
    searches    earlier hosted searches are told as text; otherwise they are left out
    error_mark  what stands before the result of a call that failed, "" for nothing
    ordered     results stand directly behind their calls, no id is used twice, and a call that nothing follows may
                stay open
    odd         what no known client sends: `noted` as something that is missing; or `read` as what it can only mean,
                left out where it means nothing, and the caller's error where nothing can be made of it
    lines       a result of texts begins with an empty line for each empty text in front
    pdf         PDF documents are sent as files instead of a note
    offsets     remembered Read offsets; None turns all handling of the Read tool off
    """

    system: Literal["developer", "system"] = "developer"
    label: str = ""
    reasoning: Literal["bare", "summary"] | None = "bare"
    searches: bool = True
    error_mark: str = TOOL_ERROR
    ordered: bool = False
    odd: Literal["noted", "read"] = "noted"
    lines: bool = True
    pdf: bool = False
    offsets: ReadOffsets | None = None


class Images(Protocol):
    """What becomes of pictures."""

    def in_message(self, block: Mapping[str, Any]) -> Item:
        """The part for an `image` block that the user shows."""
        ...

    def in_result(self, block: Mapping[str, Any]) -> tuple[Item, Item | None]:
        """The part for an `image` block of a tool result, and the one for a message behind the result."""
        ...

    def in_words(self, block: Mapping[str, Any]) -> str:
        """What stands for an `image` block where only text may stand."""
        ...


class SentImages:
    """Pictures are sent where they are; a broken one would be refused, and with it every later turn."""

    def in_message(self, block: Mapping[str, Any]) -> Item:
        url = image_url(block.get("source"), default_type="image/png")
        return input_image(url) if url else input_text(omitted(block))

    def in_result(self, block: Mapping[str, Any]) -> tuple[Item, Item | None]:
        source = block.get("source")
        url = image_data_url(source)
        if url is not None:
            return input_image(url), None
        if isinstance(source, Mapping) and source.get("type") == "url" and isinstance(source.get("url"), str):
            return input_text("[image omitted: url]"), None
        return input_text(omitted(block)), None

    def in_words(self, block: Mapping[str, Any]) -> str:
        return omitted(block)


def message_item(role: str, content: list[Item]) -> Item:
    return {"type": "message", "role": role, "content": content}


def input_text(text: str) -> Item:
    return {"type": "input_text", "text": text}


def input_image(url: str) -> Item:
    return {"type": "input_image", "image_url": url}
