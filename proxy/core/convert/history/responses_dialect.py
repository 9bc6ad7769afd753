"""The details in which upstreams of the Responses API want a conversation and its pictures, as data."""

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
    """The form of a conversation that an upstream wants.

    system      the role of system messages
    label       the provider whose encrypted reasoning the upstream can read
    reasoning   how it is sent back: `bare`, or with the text that the client was shown as its `summary`; None drops it
    searches    earlier hosted searches are sent as text; otherwise they are left out
    error_mark  text before the result of a call that failed, "" for none
    ordered     results come directly after their calls, no id is used twice, and a call that nothing follows may
                stay open
    odd         what no known client sends: `noted` replaces it by a note that it is missing; `read` sends its only
                possible meaning, leaves out what means nothing, and refuses the rest as the caller's error
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


class ImageConverter(Protocol):
    """Converts pictures."""

    def in_message(self, block: Mapping[str, Any]) -> Item:
        """The part for an `image` block of a user message."""
        ...

    def in_result(self, block: Mapping[str, Any]) -> tuple[Item, Item | None]:
        """The part for an `image` block of a tool result, and the one for a message after the result."""
        ...

    def in_words(self, block: Mapping[str, Any]) -> str:
        """The text for an `image` block where only text is allowed."""
        ...


class SentImages:
    """Sends pictures in their place, and a note for a broken one: it would be refused, and every later turn with it."""

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
