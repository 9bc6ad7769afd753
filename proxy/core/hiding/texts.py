"""What credentials and data look like within texts, and texts without them.

What is taken away leaves a note: `[redacted]`, `[redacted len=N]`, `[redacted data-url len=N]`,
`[redacted base64 len=N]`, `[redacted token len=N]`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import unquote_plus

from proxy.core.hiding.encoded_data import without_data_urls, without_encoded, without_runs
from proxy.core.hiding.keys import is_quoted_secret, is_secret_key, is_secret_parameter
from proxy.core.hiding.secret import NOTE, blanked, blanked_beginning, blanked_bytes, length_note

#: Longer texts of a log are cut, in bytes of UTF-8.
MAX_TEXT_BYTES = 4_000
#: No character of UTF-8 takes more.
_CHAR_BYTES = 4
#: Longest words of an error that are searched; longer ones are cut first.
MAX_WORDS = 256 * 1024

#: What is looked at of a caller's query, in characters, and in parameters; those whose values are shown.
MAX_QUERY, MAX_PARAMETERS = 1_000, 20
SHOWN_PARAMETERS = frozenset({"beta", "limit", "after_id", "before_id", "provider", "client_version"})
_PLAIN_VALUE, _PLAIN_NAME = re.compile(r"[A-Za-z0-9._-]{0,40}"), re.compile(r"[a-z_]{1,24}")

_PARAMETER = re.compile(r"(?:^|[?&#;])([^\s?&#;=\"'<>]{1,64})=")
_PARAMETER_VALUE = re.compile(rf"(?P<value>(?:{NOTE.pattern.replace('?P<length>', '')}|[^&#\s\"'<>])*+)")
_URL_SIGN_IN = re.compile(r"(?<=://)[^/\s?#@]+@")

_TOKEN_MARKS = ("eyj", "k-", "xai-", "mp-")
#: Tokens in what a caller wrote: words such as `color-primary-background` are none.
_TOKEN = re.compile(
    r"(?<![A-Za-z0-9_-])(?:eyJ[A-Za-z0-9_-]{6,}+\.[A-Za-z0-9_-]{6,}+(?:\.[A-Za-z0-9_-]*+)*"
    r"|(?:sk|rk|pk|xai|gsk|mp)-[A-Za-z0-9_-]{20,}+)"
)
#: Tokens in an error, which quotes little else. A head that says who it is for has any length where a word begins, and
#: at most 500 signs within a word.
_QUOTED_TOKEN = re.compile(
    r"(?<![A-Za-z0-9_])(?:eyJ(?:(?<![\w-]eyJ)[\w-]{6,}+|(?:(?!-eyJ)[\w-]){6,500}+)\.[\w.-]++"
    r"|(?:sk|xai)-[\w-]{16,}+|(?:rk|pk|gsk|mp)-[\w-]{20,}+)",
    re.IGNORECASE | re.ASCII,
)
_BEARER = re.compile(r"\b(bearer\s{1,8}+)([\w.~+/=-]{8,}+)", re.IGNORECASE)
_BASIC = re.compile(r"\b(basic\s{1,8}+)([A-Za-z0-9._~+/-]{8,}+=*)", re.IGNORECASE)
#: A key in JSON that is quoted within a text, or in a text that is nearly JSON, and the quote before its value.
_QUOTED_KEY = re.compile(r"[\"']([A-Za-z][\w-]{1,63})\\{0,8}[\"']\s{0,8}:\s{0,8}(?=\\{0,8}[\"'])")
#: The value: up to its closing quote, or to the end of the line where a text was cut.
_QUOTED_VALUE = re.compile(r"(\\{0,8}[\"'])(?P<value>(?:(?!(?<!\\)\1)[^\n]){4,}+)")
#: Encoded data in such JSON, where something in the text says that it is some.
_QUOTED_DATA = re.compile(
    r"([\"'](?:data|blob|b64_json)\\{0,8}[\"']\s{0,8}:\s{0,8}\\{0,8}[\"'])([A-Za-z0-9+/=_-]{8,}+)(?=\\{0,8}[\"'])",
    re.IGNORECASE,
)


# -- a log


def log_text(text: str, most: int = MAX_TEXT_BYTES) -> str:
    """The text without secret parameters, cut to `most` bytes."""
    if len(text) * _CHAR_BYTES <= most and "=" not in text and "@" not in text:  # nothing to cut, nothing to hide
        return text
    # Cut first: what is thrown away needs no search. What remains of a secret is still found by its name.
    return without_parameters(cut_text(text, most))


def without_parameters(text: str, is_secret: Callable[[str], bool] = is_secret_key) -> str:
    """The text without the values of secret query parameters and without `user:password@` of URLs.

    is_secret  judges the name of a parameter

    >>> without_parameters("GET /callback?state=1&code=abc")
    'GET /callback?state=1&code=[redacted len=3]'
    """
    text = _without_sign_ins(text)
    # a text may also be a bare query, so its very beginning counts like the place after a `?`
    return _without_values(text, _PARAMETER, _PARAMETER_VALUE, is_secret) if "=" in text else text


def _without_values(
    text: str, names: re.Pattern[str], values: re.Pattern[str], is_secret: Callable[[str], bool]
) -> str:
    """The text with a note in place of each value after a secret name."""
    parts: list[str] = []
    done = 0
    for name in names.finditer(text):
        if name.start() < done or not is_secret(unquote_plus(name[1])):
            continue
        value = values.match(text, name.end())
        if value is not None:
            parts += text[done : value.start("value")], length_note(value["value"])
            done = value.end()
    return "".join(parts) + text[done:]


def _without_sign_ins(text: str) -> str:
    return _URL_SIGN_IN.sub("[redacted]@", text) if "@" in text and "://" in text else text


def cut_text(text: str, max_bytes: int) -> str:
    """The text, or as many whole characters as fit into `max_bytes` and a note of how many bytes are missing."""
    if len(text) * _CHAR_BYTES <= max_bytes:
        return text
    data = text.encode("utf-8", "replace")
    if len(data) <= max_bytes:
        return text
    # blanked before it is cut: half a secret is found no more
    kept = blanked_beginning(text, max_bytes).encode("utf-8", "replace")[:max_bytes].decode("utf-8", "ignore")
    return f"{kept}… [+{len(data) - len(kept.encode())} bytes]"


def shown_query(query: str) -> str:
    """The query of a caller, of which only parameters that are known are shown: clients put keys into it under many
    names, or none.

    >>> shown_query("beta=true&key=abc&sk-abc")
    'beta=true&key=[redacted len=3]&[redacted len=6]'
    """
    parts = query[:MAX_QUERY].split("&", MAX_PARAMETERS)
    return "&".join(_shown_parameter(part) for part in parts[:MAX_PARAMETERS] if part)


def _shown_parameter(part: str) -> str:
    name, separator, value = part.partition("=")
    if name in SHOWN_PARAMETERS and _PLAIN_VALUE.fullmatch(value):
        return part
    return f"{name}={length_note(value)}" if separator and _PLAIN_NAME.fullmatch(name) else length_note(part)


# -- a capture


def redacted_error(text: str) -> str:
    """An error text, a header or a URL without data, credentials, secret parameters and sign-ins.

    >>> redacted_error("GET /v1/messages?beta=true&token=abc")
    'GET /v1/messages?beta=true&token=[redacted len=3]'
    """
    return without_parameters(redacted_text(_without_sign_ins(text)), is_secret_parameter)


def redacted_text(text: str) -> str:
    """A text without what looks like encoded data or a credential.

    >>> redacted_text("see data:image/png;base64,iVBORw0KGgo= there")
    'see [redacted data-url len=34] there'
    """
    if len(text) < 8:
        return text
    lower = text.lower()  # most texts have nothing of it, which this tells at a tenth of the price
    if lower.startswith("data:image/") and ";base64," in lower:
        return f"[redacted data-url len={len(text)}]"
    text = without_data_urls(text)
    if "base64" in lower or "image/" in lower:
        text = _QUOTED_DATA.sub(_headed, text)
    text = without_runs(text)
    if "basic" in lower:
        text = _BASIC.sub(_headed, text)
    text = _without_tokens(text, lower, _TOKEN)
    if ":" not in text or not ('"' in text or "'" in text):
        return text
    return _without_values(text, _QUOTED_KEY, _QUOTED_VALUE, is_quoted_secret)


def _without_tokens(text: str, lower: str, tokens: re.Pattern[str]) -> str:
    if "bearer" in lower:
        text = _BEARER.sub(_headed, text)
    if any(mark in lower for mark in _TOKEN_MARKS):
        text = tokens.sub(lambda found: length_note(found[0], "token"), text)
    return text


def _headed(found: re.Match[str]) -> str:
    return found[1] + length_note(found[2])


# -- an error message


def masked(words: str) -> str:
    """The words without credentials, and without pictures and other data of the request. Cut them only after this: the
    half of a secret, or of a picture, is not found.

    >>> masked("no route to https://me:pw@box/v1, Bearer abcdefghij refused")
    'no route to https://[redacted]@box/v1, Bearer [redacted len=10] refused'
    """
    text = _without_sign_ins(without_encoded(blanked_beginning(words, MAX_WORDS)))
    return _without_tokens(text, text.lower(), _QUOTED_TOKEN)


def shown(text: str) -> str:
    """A text of an error as anybody may see it: without secrets of ours and without data."""
    return without_encoded(blanked(text))


def shown_bytes(data: bytes) -> bytes:
    """The bytes of an error that is passed on, without secrets of ours and without data; what is JSON stays JSON."""
    found = blanked_bytes(data)
    text = found.decode("utf-8", "surrogateescape")
    seen = without_encoded(text)
    return found if seen == text else seen.encode("utf-8", "surrogateescape")
