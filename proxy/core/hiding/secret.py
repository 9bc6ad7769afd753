"""A string that must not reach a log, an error text or a terminal by accident, and texts of others without any of them.

`blanked` knows the secrets that are alive in this process, so that an upstream that quotes one back tells nobody.
"""

from __future__ import annotations

import base64
import json
import re
import weakref
from collections.abc import Iterator
from itertools import count
from typing import final
from urllib.parse import quote

#: What is shown in place of a secret, and what finds any such note: captures are replayed by them.
BLANK = "[redacted]"
NOTE = re.compile(r"\[(?:redacted|bytes)(?: [a-z0-9-]+)?(?: len=(?P<length>\d+))?\]")
#: Secrets that are looked for, the youngest: a process has some for each account, and those of its settings.
MAX_LIVE = 256
#: Shorter secrets stand in texts by chance: they are taken out as whole words, and only where they have a digit; below
#: the second length not at all.
MIN_ANYWHERE = 8
MIN_WORD = 5
#: Shorter ones of digits alone are not looked for: JSON has them as times and counts, and with a hole is no JSON.
MIN_DIGITS = 20
#: What is looked at behind the end of a beginning, in characters: tokens have some thousand.
MAX_FORM = 16 * 1024
#: The scheme before a credential in a header.
_SCHEME = re.compile(r"(basic|bearer) +(?=\S)", re.IGNORECASE)

_PERCENT = re.compile("%..")
_URL_ALPHABET = str.maketrans("+/", "-_")


@final
class Secret:
    """Holds a credential; only `reveal()` gives it back.

    `repr`, `str` and `format` show the length alone, and the object refuses to be pickled or put into JSON,
    so that a log call or an f-string cannot leak it. As long as it lives, `blanked` finds what it holds.
    """

    __slots__ = ("__weakref__", "_value")

    def __init__(self, value: str) -> None:
        self._value = value
        if _is_told_apart(value):
            _LIVE.add(self)

    def reveal(self) -> str:
        """The credential itself: for the header or the file that needs it, nothing else."""
        return self._value

    def __bool__(self) -> bool:
        return bool(self._value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(("Secret", self._value))

    def __repr__(self) -> str:
        return length_note(self._value)

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("a Secret is not serialised")


def length_note(hidden: str, kind: str = "") -> str:
    """The note in place of a text, of a kind that has a name.

    >>> length_note("abc"), length_note("iVBORw0KGgo", "base64")
    ('[redacted len=3]', '[redacted base64 len=11]')
    """
    return f"[redacted {kind} len={len(hidden)}]" if kind else f"[redacted len={len(hidden)}]"


class _Live:
    """The secrets that are alive, and all their forms. Each step is one that threads cannot divide."""

    def __init__(self) -> None:
        self._refs: dict[int, weakref.ref[Secret]] = {}
        self._numbers = count(1)
        self._newest = 0
        self._forms: tuple[int, tuple[str, ...]] = (0, ())

    def add(self, secret: Secret) -> None:
        number = next(self._numbers)
        self._refs[number] = weakref.ref(secret, lambda _ref: self._refs.pop(number, None))
        self._newest = number
        if len(self._refs) > MAX_LIVE:
            self._refs.pop(next(iter(self._refs.copy())), None)

    def forms(self) -> tuple[str, ...]:
        """All forms, the longest first; made anew when there is a new secret. No pattern is made of them: tokens are
        long, and compiling one takes longer than all searches in an hour."""
        newest, forms = self._forms
        if newest != self._newest:
            newest = self._newest
            living = [secret.reveal() for ref in self._refs.copy().values() if (secret := ref()) is not None]
            found = {form for value in living for form in _forms(value) if _is_told_apart(form)}
            forms = tuple(sorted(found, key=len, reverse=True))
            self._forms = newest, forms
        return forms


def _is_told_apart(form: str) -> bool:
    """Whether it is no word, and no number, that any text may have."""
    if form.isdigit():
        return len(form) >= MIN_DIGITS
    return len(form) >= MIN_ANYWHERE or (len(form) >= MIN_WORD and any(map(str.isdigit, form)))


def _forms(value: str) -> Iterator[str]:
    """How a secret may be written: as it is, without its scheme, in a URL, in JSON, encoded once more."""
    plain = _SCHEME.sub("", value, count=1)
    words = {value, plain}
    if plain != value and value[:5].lower() == "basic":
        try:
            decoded = base64.b64decode(plain).decode()
        except ValueError:
            decoded = ""
        words |= {decoded, decoded.partition(":")[2]}
    for word in words:
        yield word
        yield from _in_urls(word)
        yield from _in_json(word)
        yield from _in_base64(word.encode("utf-8", "replace"))


def _in_urls(word: str) -> Iterator[str]:
    """In a query or in a path, with digits of either case."""
    for safe in ("", "/"):
        form = quote(word, safe=safe, errors="replace")
        yield form
        yield _PERCENT.sub(lambda found: found[0].lower(), form)


def _in_json(word: str) -> Iterator[str]:
    """With and without characters beyond ASCII; some writers put a backslash before each slash."""
    for ascii_only in (True, False):
        form = json.dumps(word, ensure_ascii=ascii_only)[1:-1]
        yield form
        yield form.replace("/", "\\/")


def _in_base64(data: bytes) -> Iterator[str]:
    """In both alphabets, alone and within something longer, such as `user:password`: it begins at one of three places
    of a group, and what it shares with its neighbours is left out."""
    for before, shared in enumerate((0, 2, 3)):
        whole = base64.b64encode(bytes(before) + data).decode().rstrip("=")[shared:]
        for form in (whole, whole[:-1] if (before + len(data)) % 3 else whole):
            yield form
            yield form.translate(_URL_ALPHABET)


def _without(text: str, form: str) -> str:
    if len(form) >= MIN_ANYWHERE:
        return text.replace(form, BLANK)
    return re.sub(rf"(?<!\w){re.escape(form)}(?!\w)", BLANK, text)


_LIVE = _Live()


def blanked(text: str) -> str:
    """A text of somebody else without the secrets of this process.

    >>> key = Secret("k3y-of-mine")
    >>> blanked('{"error": "k3y-of-mine is no key, nor is k3y%2Dof"}')
    '{"error": "[redacted] is no key, nor is k3y%2Dof"}'
    """
    for form in _LIVE.forms():
        if form in text:
            text = _without(text, form)
    return text


def blanked_beginning(text: str, most: int) -> str:
    """The first `most` characters of a text, and no part of a secret in them: one that is cut in two is found no more.

    >>> key = Secret("k3y-of-mine")
    >>> blanked_beginning("not k3y-of-mine, but another", 8)
    'not [red'
    """
    window, longest = text[: most + MAX_FORM], len(next(iter(_LIVE.forms()), ""))
    found = blanked(window)
    if longest and len(window) < len(text):  # its own end may divide one, which moves ahead when others are blanked
        found = found[:-longest]
    return found[:most]


def blanked_bytes(data: bytes) -> bytes:
    """The same of bytes in UTF-8; others are kept as they are where nothing is found."""
    if not any(form.encode("utf-8", "replace") in data for form in _LIVE.forms()):
        return data
    return blanked(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
