"""Shared by the parsers of both OpenAI-style bodies: members of the body, content parts, pictures, and the conversation
that becomes Messages. For members that cannot be honoured see `openai_mode`.

Every error is an InvalidRequest with the full path of the member in `param`, e.g. `messages[2].content[0].text`.
"""

from __future__ import annotations

import itertools
import json
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from proxy.core.bodies.decode import decode_value
from proxy.core.content import IMAGE_TYPES, media_type_of, picture_type
from proxy.core.convert.openai_mode import Mode, invalid, unsupported
from proxy.core.invalid import InvalidRequest, shown
from proxy.core.messages import MAX_MESSAGES, MAX_U32

Block = dict[str, Any]
Members = Mapping[str, Any]

#: Maximum number of entries of one list. Several items become one message, so there may be more of them than messages.
#: Checked first, since reading them holds the event loop.
MAX_ENTRIES = 16 * MAX_MESSAGES
#: Longest argument text of one call, in bytes: no tool takes nearly as much.
MAX_ARGUMENTS = 1024 * 1024
#: Longest base64 text of one picture (12 MiB), in characters.
MAX_IMAGE = 12 * 1024 * 1024 * 4 // 3 + 4


# -- single members


def optional_flag(value: Any, path: str) -> bool | None:
    """True, False, or None if it is missing."""
    if value is not None and not isinstance(value, bool):
        raise invalid(path, "must be true or false")
    return value


def token_limit(body: Members, name: str) -> int | None:
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise invalid(name, "must be a positive whole number")
    if value > MAX_U32:
        raise invalid(name, f"is too large: the limit is {MAX_U32}")
    return value


def is_no_stream_option(value: Any) -> bool:
    """Whether the `stream_options` of a Responses body ask for nothing."""
    return isinstance(value, dict) and not any(
        member not in (None, False) or name != "include_obfuscation" for name, member in value.items()
    )


def needed_text(members: Members, name: str, path: str) -> str:
    """A member that must be a non-empty text; `path` is that of the object."""
    value = members.get(name)
    if not isinstance(value, str) or not value:
        raise invalid(f"{path}.{name}", "must be a non-empty string")
    return value


def check_length(entries: list[Any], path: str) -> None:
    if len(entries) > MAX_ENTRIES:
        raise invalid(path, f"has {len(entries)} entries; the limit is {MAX_ENTRIES}")


def objects_of(value: Any, path: str) -> Iterator[tuple[str, Members]]:
    """Yields the entries of a list of objects, each with its path."""
    if not isinstance(value, list):
        raise invalid(path, "must be a list of objects")
    check_length(value, path)
    for index, entry in enumerate(value):
        if not isinstance(entry, dict):
            raise invalid(f"{path}[{index}]", "must be an object")
        yield f"{path}[{index}]", entry


def call_input(arguments: Any, path: str) -> Any:
    """The input of an earlier call from its argument text, of any JSON type: what we sent is accepted back. {} for an
    empty text, and for an unfinished object. The token limit cut such a call: it never ran, and without its arguments
    the conversation can continue."""
    if not isinstance(arguments, str):
        raise invalid(path, "must be a string that holds JSON")
    raw = arguments.encode("utf-8", "surrogatepass")
    if len(raw) > MAX_ARGUMENTS:
        raise invalid(path, f"is longer than {MAX_ARGUMENTS} bytes")
    if not raw.strip():
        return {}
    try:
        value = decode_value(raw)
    except InvalidRequest as error:
        if _is_broken(arguments):
            return {}
        raise invalid(path, f"must hold JSON. {error.message}") from None
    return {} if value is None else value


def _is_broken(arguments: str) -> bool:
    try:
        json.loads(arguments)
    except ValueError:
        return arguments.lstrip().startswith("{")
    except RecursionError:
        pass
    return False


# -- content parts


@dataclass(frozen=True, slots=True)
class PartRules:
    """The allowed content parts of a message.

    texts  types of parts that are text
    image  type of parts that are pictures, None if none are allowed
    empty  whether strict mode leaves out an empty text, too; else it refuses it
    refusals  whether refusals of the model are allowed
    """

    texts: frozenset[str]
    image: str | None = None
    empty: bool = True
    refusals: bool = False


#: The types of text parts in both APIs: clients mix them.
TEXTS = frozenset({"text", "input_text", "output_text"})


def text_block(text: str) -> Block:
    return {"type": "text", "text": text}


def joined(texts: Iterable[str]) -> str:
    """Neighbouring texts as one, separated by blanks.

    >>> joined(["Be brief.", "Be kind.\\n", "Rest."])
    'Be brief.\\n\\nBe kind.\\nRest.'
    """
    pieces: list[str] = []
    for text in filter(None, texts):
        if pieces and not (pieces[-1][-1].isspace() or text[0].isspace()):
            pieces.append("\n\n")
        pieces.append(text)
    return "".join(pieces)


def merged(blocks: list[Block]) -> list[Block]:
    """The blocks, with neighbouring texts joined: an upstream may put nothing between them."""
    if not any(one["type"] == other["type"] == "text" for one, other in itertools.pairwise(blocks)):
        return blocks
    result: list[Block] = []
    for kind, group in itertools.groupby(blocks, key=itemgetter("type")):
        neighbours = list(group)
        result += neighbours if kind != "text" else [text_block(joined(block["text"] for block in neighbours))]
    return result


def spoken(text: Any, path: str, *, empty: bool) -> str:
    """The text of a part; `empty`: whether it may be empty."""
    if not isinstance(text, str) or not (text or empty):
        raise invalid(path, "must be a string" if empty else "must be a non-empty string")
    return text


def _image_address(part: Members, path: str) -> tuple[Any, str]:
    """The URL of a picture part and its path. The chat form wraps it in an object."""
    if part["type"] == "image_url":
        image = part.get("image_url")
        if not isinstance(image, dict):
            raise invalid(f"{path}.image_url", "must be an object with a `url`")
        return image.get("url"), f"{path}.image_url.url"
    url = part.get("image_url")
    return part.get("url") if url is None else url, f"{path}.image_url"


def image_block(url: Any, path: str) -> Block:
    """A picture by data URL or address. The data is not decoded, the address not fetched."""
    if not isinstance(url, str):
        raise invalid(path, "must be a string: a data URL, or an http(s) address")
    if url[:8].lower().startswith(("http://", "https://")):
        return {"type": "image", "source": {"type": "url", "url": url}}
    head, comma, data = url.partition(",")
    words = head.lower().split(";") if head[:5].lower() == "data:" else []
    if not comma or len(words) < 2 or words[-1].strip() != "base64":
        raise invalid(path, "must be an http(s) address or a data URL in base64")
    media_type = media_type_of(words[0].removeprefix("data:"))
    if media_type not in IMAGE_TYPES:
        media_type = picture_type(data) or media_type
    if media_type not in IMAGE_TYPES:
        raise invalid(path, f"must be a picture of type {', '.join(sorted(IMAGE_TYPES))}, not {shown(media_type)}")
    if not 0 < len(data) <= MAX_IMAGE:
        raise invalid(path, f"must hold between 1 and {MAX_IMAGE} characters of base64")
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}


# -- the conversation


@dataclass(slots=True)
class _MessageWithResults:
    """A message and, if it made calls, their results."""

    role: str
    content: Any  # a text or blocks; always blocks when the assistant speaks
    results: list[Block] = field(default_factory=list)


class Conversation:
    """Collects the contents of a body, in order, as a Messages conversation.

    - Consecutive blocks of the assistant become one message: callers split it into items, and upstreams want all calls
      that are answered together in one message.
    - Results become one user message directly after the message of their calls, wherever they were given.
    - A call id is open from its call to its result. It may be used again after that, not before.
    - System texts are collected separately, wherever they were.
    """

    def __init__(self, mode: Mode) -> None:
        self.mode = mode
        self.system: list[Block] = []
        self.linked_image: str | None = None  # path of the first picture that is named by an address
        self._turns: list[_MessageWithResults] = []
        self._open: dict[str, tuple[str, _MessageWithResults]] = {}  # call id -> its tool, and the message of the call
        #: tool -> ids of its open calls, in order
        self._waiting: dict[str, OrderedDict[str, None]] = {}

    def instruct(self, text: str) -> None:
        if text:
            self.system.append(text_block(text))

    def user(self, content: str | list[Block]) -> None:
        """Adds a message of the user, unless it is empty."""
        if content:
            self._turns.append(_MessageWithResults("user", content))

    def assistant(self, blocks: list[Block]) -> None:
        if blocks:
            self._content().extend(blocks)

    def call(self, call_id: str, name: str, value: Any, id_path: str) -> Block:
        """Adds a tool call of the assistant and returns its block."""
        if call_id in self._open:
            raise invalid(id_path, f"is a duplicate: the call {shown(call_id)} has no result yet")
        block = {"type": "tool_use", "id": call_id, "name": name, "input": value}
        self._content().append(block)
        self._open[call_id] = name, self._turns[-1]
        self._waiting.setdefault(name, OrderedDict())[call_id] = None
        return block

    def result(self, call_id: Any, content: str | list[Block], id_path: str) -> None:
        found = self._open.pop(call_id, None) if isinstance(call_id, str) else None
        if found is None:
            raise invalid(id_path, f"must name an earlier call that has no result yet, not {shown(call_id)}")
        name, turn = found
        del self._waiting[name][call_id]
        turn.results.append({"type": "tool_result", "tool_use_id": call_id, "content": content})

    def waiting(self, name: str) -> str | None:
        """The id of the earliest call of a tool without a result, None if there is none."""
        return next(iter(self._waiting.get(name, ())), None)

    def _content(self) -> list[Block]:
        """The blocks of the assistant's last message, or of a new one if others came after it."""
        last = self._turns[-1] if self._turns else None
        if last is None or last.results or last.role != "assistant":
            last = _MessageWithResults("assistant", [])
            self._turns.append(last)
        blocks: list[Block] = last.content
        return blocks

    def parts(self, content: list[Any], path: str, rules: PartRules) -> list[Block]:
        """The blocks of a list of content parts."""
        blocks: list[Block] = []
        lenient = self.mode.lenient
        for at, part in objects_of(content, path):
            kind = part.get("type")
            if isinstance(kind, str) and kind in rules.texts:
                text = spoken(part.get("text"), f"{at}.text", empty=rules.empty or lenient)
                if text:
                    blocks.append(text_block(text))
            elif kind == "refusal" and rules.refusals:
                text = spoken(part.get("refusal"), f"{at}.refusal", empty=lenient)
                if text:
                    blocks.append(text_block(text))
            elif isinstance(kind, str) and kind == rules.image:
                blocks.append(self.image(part, at))
            else:
                raise unsupported(f"{at}.type", kind)
        return merged(blocks)

    def image(self, part: Members, path: str) -> Block:
        """The block of a picture part."""
        url, url_path = _image_address(part, path)
        block = image_block(url, url_path)
        if self.linked_image is None and block["source"]["type"] == "url":
            self.linked_image = url_path
        return block

    def messages(self, param: str) -> list[Block]:
        """The Messages conversation. `param` names its member of the body in errors."""
        messages: list[Block] = []
        for turn in self._turns:
            content = merged(turn.content) if turn.role == "assistant" else turn.content
            messages.append({"role": turn.role, "content": content})
            if turn.results:
                messages.append({"role": "user", "content": turn.results})
        if not messages and self.system and self.mode.lenient:  # there must be a message
            messages = [{"role": "user", "content": [self.system.pop()]}]
        if not messages:
            raise invalid(param, "must contain at least one message")
        if len(messages) > MAX_MESSAGES:
            raise invalid(param, f"has {len(messages)} messages; the limit is {MAX_MESSAGES}")
        return messages


# -- the result


def hub_request(model: str, conversation: Conversation, messages: list[Block], asked: Members) -> Block:
    """The Messages request, without what was not asked for. Always streamed: a JSON answer is the folded stream.

    asked  `max_tokens`, `tools`, `tool_choice`, `effort`; None or empty if not asked for
    """
    mode, effort = conversation.mode, asked["effort"]
    request: Block = {"model": model, "stream": True, "messages": messages}
    optional = {
        "system": conversation.system,
        "max_tokens": asked["max_tokens"],
        "tools": asked["tools"],
        "tool_choice": asked["tool_choice"],
        "output_config": ({"effort": effort} if effort and effort != mode.rules.unsent else {}) | mode.config,
    }
    return request | {name: value for name, value in optional.items() if value} | mode.wishes  # a wish may be 0
