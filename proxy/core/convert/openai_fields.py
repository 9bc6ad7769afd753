"""What the parsers of both OpenAI-style bodies share: members of the body, content parts, pictures, and the
conversation that becomes Messages. What becomes of members that cannot be honoured: see `openai_mode`.

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

#: The entries of one list of a body. Several items become one message, so there may be more of them than messages; and
#: reading them holds the event loop, so that it must be known before how many there are.
MAX_ENTRIES = 16 * MAX_MESSAGES
#: The argument text of one call, in bytes: what a tool could take is far below it.
MAX_ARGUMENTS = 1024 * 1024
#: The base64 text of one picture of 12 MiB, in characters.
MAX_IMAGE = 12 * 1024 * 1024 * 4 // 3 + 4


# -- single members


def optional_flag(value: Any, path: str) -> bool | None:
    """True, False, or None when it is not given."""
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
    """A member that must be a text with something in it; `path` is that of the object."""
    value = members.get(name)
    if not isinstance(value, str) or not value:
        raise invalid(f"{path}.{name}", "must be a non-empty string")
    return value


def check_length(entries: list[Any], path: str) -> None:
    if len(entries) > MAX_ENTRIES:
        raise invalid(path, f"has {len(entries)} entries; the limit is {MAX_ENTRIES}")


def objects_of(value: Any, path: str) -> Iterator[tuple[str, Members]]:
    """The entries of a list of objects, each with its path."""
    if not isinstance(value, list):
        raise invalid(path, "must be a list of objects")
    check_length(value, path)
    for index, entry in enumerate(value):
        if not isinstance(entry, dict):
            raise invalid(f"{path}[{index}]", "must be an object")
        yield f"{path}[{index}]", entry


def call_input(arguments: Any, path: str) -> Any:
    """The input of an earlier call from its argument text, of whatever kind: what was handed out is taken back. {} for
    an empty text, and for an object that does not end. The token limit cut such a call: it never ran, and without its
    arguments the conversation can go on."""
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
    """What the content parts of a message may be.

    texts  types of parts that are text
    image  type of parts that are pictures, None where none may stand
    empty  whether a text without content is left out in strict mode too; else that refuses it
    refusals  whether the model's own words against a request may stand among them
    """

    texts: frozenset[str]
    image: str | None = None
    empty: bool = True
    refusals: bool = False


#: Both families' words for a text: clients mix them.
TEXTS = frozenset({"text", "input_text", "output_text"})


def text_block(text: str) -> Block:
    return {"type": "text", "text": text}


def joined(texts: Iterable[str]) -> str:
    """Neighbouring texts as one, none running into the next.

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
    """The blocks, neighbouring texts as one: what becomes of them upstream may have nothing in between."""
    if not any(one["type"] == other["type"] == "text" for one, other in itertools.pairwise(blocks)):
        return blocks
    result: list[Block] = []
    for kind, group in itertools.groupby(blocks, key=itemgetter("type")):
        neighbours = list(group)
        result += neighbours if kind != "text" else [text_block(joined(block["text"] for block in neighbours))]
    return result


def spoken(text: Any, path: str, *, empty: bool) -> str:
    """What somebody says; `empty`: that may be nothing."""
    if not isinstance(text, str) or not (text or empty):
        raise invalid(path, "must be a string" if empty else "must be a non-empty string")
    return text


def _image_address(part: Members, path: str) -> tuple[Any, str]:
    """The URL of a picture part and where it stands. The chat form wraps it in an object."""
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
    """A message and, when it made calls, their results."""

    role: str
    content: Any  # a text or blocks; always blocks when the assistant speaks
    results: list[Block] = field(default_factory=list)


class Conversation:
    """Collects what both bodies say, in their order, as a Messages conversation.

    - What the assistant says in a row is one message: callers split it into items, and upstreams want all calls that
      are answered together in one message.
    - Results stand in one user message directly behind the message of their calls, wherever they were given.
    - A call id is open from its call to its result. It may come again after that, not before.
    - System texts are gathered apart, wherever they stood.
    """

    def __init__(self, mode: Mode) -> None:
        self.mode = mode
        self.system: list[Block] = []
        self.linked_image: str | None = None  # path of the first picture that is named by an address
        self._turns: list[_MessageWithResults] = []
        self._open: dict[str, tuple[str, _MessageWithResults]] = {}  # call id -> its tool, and the message of the call
        #: Tool -> ids of its open calls; the first is found at once.
        self._waiting: dict[str, OrderedDict[str, None]] = {}

    def instruct(self, text: str) -> None:
        if text:
            self.system.append(text_block(text))

    def user(self, content: str | list[Block]) -> None:
        """A message of the user; one without content says nothing."""
        if content:
            self._turns.append(_MessageWithResults("user", content))

    def assistant(self, blocks: list[Block]) -> None:
        if blocks:
            self._content().extend(blocks)

    def call(self, call_id: str, name: str, value: Any, id_path: str) -> Block:
        """A tool call of the assistant; returns its block."""
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
        """The id of the earliest call of a tool that has no result yet."""
        return next(iter(self._waiting.get(name, ())), None)

    def _content(self) -> list[Block]:
        """The blocks of the assistant's message under way, of a new one behind anything else."""
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
        """The Messages conversation. `param` is the member that gave it, for the errors."""
        messages: list[Block] = []
        for turn in self._turns:
            content = merged(turn.content) if turn.role == "assistant" else turn.content
            messages.append({"role": turn.role, "content": content})
            if turn.results:
                messages.append({"role": "user", "content": turn.results})
        if not messages and self.system and self.mode.lenient:  # somebody has to speak
            messages = [{"role": "user", "content": [self.system.pop()]}]
        if not messages:
            raise invalid(param, "must contain at least one message")
        if len(messages) > MAX_MESSAGES:
            raise invalid(param, f"has {len(messages)} messages; the limit is {MAX_MESSAGES}")
        return messages


# -- the result


def hub_request(model: str, conversation: Conversation, messages: list[Block], asked: Members) -> Block:
    """The Messages request; what was not asked for is absent. Always streamed: a JSON answer is the folded stream.

    asked  `max_tokens`, `tools`, `tool_choice`, `effort`; None or empty when not asked for
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
    return request | {name: value for name, value in optional.items() if value} | mode.wishes  # a 0 there is a wish
