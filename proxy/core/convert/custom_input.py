"""Extracts the text that a call of a custom tool carries.

Such a tool takes a text where others take JSON. The hub knows it as a function with one member `input`, so the text is
read from the arguments while they arrive.
"""

from __future__ import annotations

import re
from typing import Any

from proxy.core.sse import dump_json, load_json

#: The one member of the function that represents a custom tool.
CUSTOM_INPUT = "input"
#: What precedes the text in arguments of the usual form; the text of others is shown at their end.
_HEAD = re.compile(rf'\s*+\{{\s*+"{CUSTOM_INPUT}"\s*+:\s*+"')
_MAX_HEAD = 256
#: Whole characters of a JSON string. Half a surrogate pair waits for its other half.
_CHARACTERS = re.compile(
    r'(?:[^"\\]|\\[^u]|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[0-9a-fA-F]{4}|\\u(?![dD][89abAB])[0-9a-fA-F]{4})*+', re.DOTALL
)
#: Longest form of a character in a JSON string.
_LONGEST = 12


class CustomInput:
    """The arguments of one call.

    >>> text = CustomInput()
    >>> text.feed('{"input": "a'), text.feed('b\\\\'), text.feed('n"}'), text.end('{"input": "ab\\\\n"}')
    ('a', 'b', '\\n', ('ab\\n', ''))
    """

    def __init__(self) -> None:
        self._shown: list[str] = []
        self._held = ""
        self._begun = False
        self._over = False  # nothing more is read before the end

    def feed(self, piece: str) -> str:
        """The new text in this piece of the arguments."""
        if self._over:
            return ""
        self._held += piece
        if not self._begun and not self._begin():
            return ""
        whole = _CHARACTERS.match(self._held)
        end = whole.end() if whole else 0
        characters, self._held = self._held[:end], self._held[end:]
        self._over = self._held[:1] == '"' or len(self._held) > _LONGEST
        return self._decoded(characters)

    def _begin(self) -> bool:
        head = _HEAD.match(self._held)
        if head is None:
            self._over = len(self._held) > _MAX_HEAD
            return False
        self._held, self._begun = self._held[head.end() :], True
        return True

    def _decoded(self, characters: str) -> str:
        try:
            text: str = load_json(f'"{characters}"')
        except ValueError:  # the arguments are broken, which is reported once they are read whole
            self._over = True
            return ""
        self._shown.append(text)
        return text

    def end(self, arguments: str, *, cut: bool = False) -> tuple[str, str]:
        """The whole text, and the part of it that `feed` has not returned. Reads arguments of another form, too.

        cut  the arguments are only a beginning
        """
        shown = "".join(self._shown)
        if cut:
            return shown, ""
        text = _text_of(arguments)
        return (text, text[len(shown) :]) if text.startswith(shown) else (shown, "")


def _text_of(arguments: str) -> str:
    """The text in readable arguments: the member `input`, a bare text, or the only text among the members; else the
    arguments unchanged."""
    value: Any = (load_json(arguments) if arguments.strip() else None) or ""
    if isinstance(value, dict):
        texts = [member for member in value.values() if isinstance(member, str)]
        value = value.get(CUSTOM_INPUT, texts[0] if len(texts) == 1 else value)
    return value if isinstance(value, str) else dump_json(value)
