"""The text that a call of a custom tool carries.

Such a tool takes a text where others take JSON. The hub knows it as a function with one member `input`, so the text has
to be read out of the arguments while they come.
"""

from __future__ import annotations

import re
from typing import Any

from proxy.core.sse import dump_json, load_json

#: The one member of a function that stands for a custom tool.
CUSTOM_INPUT = "input"
#: What stands before the text in arguments of the usual form; others are told at their end.
_HEAD = re.compile(rf'\s*+\{{\s*+"{CUSTOM_INPUT}"\s*+:\s*+"')
_MAX_HEAD = 256
#: Whole characters of a JSON string. Half a surrogate pair waits for its other half.
_CHARACTERS = re.compile(
    r'(?:[^"\\]|\\[^u]|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[0-9a-fA-F]{4}|\\u(?![dD][89abAB])[0-9a-fA-F]{4})*+', re.DOTALL
)
#: No character of a JSON string is longer, as it is written.
_LONGEST = 12


class CustomInput:
    """The arguments of one call.

    >>> text = CustomInput()
    >>> text.feed('{"input": "a'), text.feed('b\\\\'), text.feed('n"}'), text.end('{"input": "ab\\\\n"}')
    ('a', 'b', '\\n', ('ab\\n', ''))
    """

    def __init__(self) -> None:
        self._told: list[str] = []
        self._held = ""
        self._begun = False
        self._over = False  # nothing more is read before the end

    def feed(self, piece: str) -> str:
        """What is known of the text by this piece of the arguments."""
        if self._over:
            return ""
        self._held += piece
        if not self._begun and not self._begin():
            return ""
        whole = _CHARACTERS.match(self._held)
        end = whole.end() if whole else 0
        characters, self._held = self._held[:end], self._held[end:]
        self._over = self._held[:1] == '"' or len(self._held) > _LONGEST
        return self._tell(characters)

    def _begin(self) -> bool:
        head = _HEAD.match(self._held)
        if head is None:
            self._over = len(self._held) > _MAX_HEAD
            return False
        self._held, self._begun = self._held[head.end() :], True
        return True

    def _tell(self, characters: str) -> str:
        try:
            text: str = load_json(f'"{characters}"')
        except ValueError:  # the arguments are broken: so says whoever reads them whole
            self._over = True
            return ""
        self._told.append(text)
        return text

    def end(self, arguments: str, *, cut: bool = False) -> tuple[str, str]:
        """The whole text, and what of it was not told yet. Arguments of another form are taken for what they can mean.

        cut  the arguments are only a beginning
        """
        told = "".join(self._told)
        if cut:
            return told, ""
        text = _text_of(arguments)
        return (text, text[len(told) :]) if text.startswith(told) else (told, "")


def _text_of(arguments: str) -> str:
    """The text that readable arguments mean: the member, a text in its place, or the only text among the members; else
    the arguments as they are."""
    value: Any = (load_json(arguments) if arguments.strip() else None) or ""
    if isinstance(value, dict):
        texts = [member for member in value.values() if isinstance(member, str)]
        value = value.get(CUSTOM_INPUT, texts[0] if len(texts) == 1 else value)
    return value if isinstance(value, str) else dump_json(value)
