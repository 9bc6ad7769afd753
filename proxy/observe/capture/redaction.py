"""What no capture may hold: credentials, who somebody is, pictures and other encoded data.

Pure. Values are judged by the key they stand under, by what stands beside them, and texts by what they look like.
Prompts, tool results and the words of a model stay: a capture is there to show them.

What is taken away leaves a note of its length: `[redacted len=N]`, `[redacted data-url len=N]`,
`[redacted base64 len=N]`, `[redacted token len=N]`, `[bytes len=N]`, `[depth-limit]`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from proxy.core.auto_mode.policy import FIELD as SAFEGUARDS
from proxy.core.media.encoded_data import without_data_urls, without_runs
from proxy.core.sse import dump_json, load_json
from proxy.observe.log.redact import SECRET_KEYS, redact_text

#: Deeper values are left out.
MAX_DEPTH = 100

#: Keys of credentials and persons at any depth, beyond those of the log. Compared without case, `-` and `_`.
_PERSONAL_KEYS = (
    *("token", "bearer_token", "oauth_token", "oauth_access_token", "oauth_refresh_token", "authorization_token"),
    *("client_secret", "secret", "password", "email", "user_id", "account_id"),
    *("identity", "identity_id", "subject", "sub"),
)
#: Keys whose texts are encoded data, whatever stands beside them.
_DATA_KEYS = (
    *("b64_json", "partial_image_b64", "encrypted_content", "file_data", "image_data", "image_base64"),
    *("thought_signature", "base64"),
)
#: Longer names of members are no keys of ours; they are shown like any text.
_MAX_KEY = 128
#: What holds schemas by name: one called `email` is no address.
_SCHEMAS = frozenset({"properties", "patternproperties", "$defs", "definitions"})
#: The code of an error, which is no authorization code: it has a message beside it.
_ERROR_CODE = re.compile(r"[a-z][a-z0-9_.-]{0,63}\Z")


def _folded(name: str) -> str:
    return name.strip().lower().replace("-", "").replace("_", "")


_SECRETS = frozenset(map(_folded, (*SECRET_KEYS, *_PERSONAL_KEYS)))
_DATA = frozenset(map(_folded, _DATA_KEYS))
#: Other keys that end like a credential: `page_token`, `db_password`. Not `max_tokens`.
_SECRET_ENDING = re.compile(r"(?:token|secret|password|passwd|apikey|authorization|credentials?|cookies?|privatekey)\Z")
#: Headers whose values are looked for everywhere, and how long these must be: `unused` is a word.
_SIGN_IN_HEADERS = frozenset(map(_folded, ("authorization", "proxy-authorization", "x-api-key", "api-key")))
MIN_SECRET = 12
#: Headers. `-tokens` are rate limits, `-authenticate` says what is wanted.
_SECRET_HEADER = re.compile(
    r"auth(?!enticate|ority)|token(?!s)|secret|passw|cookie|credential|(?<!cache-)(?<!idempotency-)key\Z|api-?key|jwt"
    r"|signature|account|organization|agent-id|device-id|device-name|installation|machine-id|user-id|email|identity"
)

#: value of `type` -> the member beside it that holds encoded data. None of them is text.
_ENCODED_MEMBERS = {
    "base64": "data",
    "image": "data",
    "file": "data",
    "document": "data",
    "video": "data",
    "input_image": "data",
    "audio": "data",
    "input_audio": "data",
    "redacted_thinking": "data",
    "reasoning.encrypted": "data",
    "image_generation_call": "result",
    "thinking": "signature",
    "reasoning.text": "signature",
    "signature_delta": "signature",
}
#: Those beside a media type, whatever the type.
_MEDIA_MEMBERS = frozenset({"data", "blob"})
_MEMBERS = _MEDIA_MEMBERS | frozenset(_ENCODED_MEMBERS.values())
#: Keys of objects whose `data` is encoded, folded.
_DATA_HOLDERS = ("inputaudio", "inlinedata", "audio")
_MEDIA_TYPES = ("mediatype", "mimetype", "contenttype")
_PLAIN_MEDIA = ("text/", "application/json")

_TOKEN_MARKS = ("eyj", "sk-", "rk-", "pk-", "xai-", "mp-")
_TOKEN = re.compile(
    r"(?<![A-Za-z0-9_-])(?:eyJ[A-Za-z0-9_-]{6,}+\.[A-Za-z0-9_-]{6,}+(?:\.[A-Za-z0-9_-]*+)*"
    r"|(?:sk|rk|pk|xai|gsk|mp)-[A-Za-z0-9_-]{20,}+)"
)
_SIGN_IN = re.compile(r"\b(bearer|basic)(\s{1,8}+)([A-Za-z0-9._~+/-]{8,}+=*)", re.IGNORECASE)
#: A credential or a person in JSON that stands in a text, or in a text that is nearly JSON. Up to its closing quote, or
#: to the end of the line where a text was cut.
_QUOTED_MARKS = ("token", "key", "secret", "authorization", "password", "cookie", "email", "_id", "verifier")
_QUOTED_SECRET = re.compile(
    r"([\"'](?:(?:[a-z]{1,16}[_-]?){0,2}token|(?:x[_-])?api[_-]?key|(?:client[_-]?)?secret|(?:proxy-)?authorization"
    r"|password|(?:set-)?cookie|email|user_?id|(?:chatgpt-)?account[_-]?id|identity_id|code_verifier)\\{0,8}[\"'])"
    r"(\s{0,8}:\s{0,8}(\\{0,8}[\"']))((?:(?!(?<!\\)\3)[^\n]){4,}+)",
    re.IGNORECASE,
)
#: Encoded data in such JSON, where something in the text says that it is some.
_QUOTED_DATA = re.compile(
    r"([\"'](?:data|blob|b64_json)\\{0,8}[\"'])(\s{0,8}:\s{0,8}\\{0,8}[\"'])([A-Za-z0-9+/=_-]{8,}+)(?=\\{0,8}[\"'])",
    re.IGNORECASE,
)
#: A member whose text is JSON: the input of a tool on the wires of OpenAI.
_JSON_TEXT = "arguments"


def redacted(value: Any) -> Any:
    """A copy of dicts, lists, texts, numbers, booleans and None only.

    >>> redacted({"image_url": {"url": "DATA:IMAGE/PNG;base64,AAAA"}})
    {'image_url': {'url': '[redacted data-url len=26]'}}
    >>> redacted({"source": {"type": "BASE64", "data": "QUJD"}, "data": "plain"})
    {'source': {'type': 'BASE64', 'data': '[redacted len=4]'}, 'data': 'plain'}
    """
    return _value(value, 0, "")


def redacted_headers(headers: Iterable[tuple[str, str]]) -> dict[str, str | list[str]]:
    """Headers by name; a list where one came more than once.

    >>> redacted_headers([("X-Api-Key", "abc"), ("x-claude-code-session-id", "s")])
    {'X-Api-Key': '[redacted len=3]', 'x-claude-code-session-id': 's'}
    """
    result: dict[str, str | list[str]] = {}
    for name, value in headers:
        shown = _hidden(value) if _is_secret_header(name) else redacted_error(value)
        known = result.get(name)
        if known is None:
            result[name] = shown
        else:
            result[name] = [*(known if isinstance(known, list) else [known]), shown]
    return result


def secrets_of(headers: Iterable[tuple[str, str]]) -> list[str]:
    """The credentials in headers by which a caller or we ourselves sign in, without the word before them.

    >>> secrets_of([("Authorization", "Bearer abcdefghijkl"), ("x-api-key", "unused"), ("a", "b")])
    ['abcdefghijkl']
    """
    values = (value.split()[-1:] for name, value in headers if _folded(name) in _SIGN_IN_HEADERS)
    return [secret for found in values for secret in found if len(secret) >= MIN_SECRET]


def redacted_error(text: str) -> str:
    """An error text, a header, a URL: also without the secret parameters and sign-ins of URLs.

    >>> redacted_error("GET /v1/messages?beta=true&token=abc")
    'GET /v1/messages?beta=true&token=[redacted len=3]'
    """
    return redact_text(redacted_text(text), _is_secret_parameter)


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
        text = _QUOTED_DATA.sub(_length_of_last, text)
    text = without_runs(text)
    if any(mark in lower for mark in _TOKEN_MARKS):
        text = _TOKEN.sub(_noted("token"), text)
    if "bearer" in lower or "basic" in lower:
        text = _SIGN_IN.sub(_length_of_last, text)
    if any(mark in lower for mark in _QUOTED_MARKS):
        text = _QUOTED_SECRET.sub(_length_of_last, text)
    return text


def _length_of_last(found: re.Match[str]) -> str:
    secret = found[found.re.groups]
    return f"{found[1]}{found[2]}[redacted len={len(secret)}]"


def _noted(what: str) -> Any:
    return lambda found: f"[redacted {what} len={len(found[0])}]"


def _value(value: Any, depth: int, key: str) -> Any:
    """`key` is what it stands under, folded."""
    if isinstance(value, str):
        return _json_text(value, depth) if key == _JSON_TEXT else redacted_text(value)
    if isinstance(value, dict | list | tuple | Mapping):
        if depth >= MAX_DEPTH:
            return "[depth-limit]"
        if isinstance(value, Mapping):
            return _mapping(value, depth, key)
        return [_value(one, depth + 1, key) for one in value]
    return _leaf(value)


def _json_text(text: str, depth: int) -> str:
    """As it was, where there is nothing to hide in what it says."""
    try:
        said = load_json(text)
    except (ValueError, RecursionError):
        return redacted_text(text)  # a part of it, or none
    shown = _value(said, depth, "")
    return text if shown == said else dump_json(shown)


def _mapping(value: Mapping[Any, Any], depth: int, key: str) -> dict[str, Any]:
    result = {}
    encoded: frozenset[str] | None = None
    for member, inner in value.items():
        name, folded, rule = _rule(str(member))
        if rule == "member" and encoded is None:
            encoded = _encoded_members(value, key)
        if rule == "whole" and isinstance(inner, list):
            result[name] = "[redacted]"
        elif rule and _is_hidden(rule, folded, inner, key, encoded, value):
            result[name] = _hidden(inner, depth + 1)
        else:
            result[name] = _value(inner, depth + 1, folded)
    return result


def _rule(name: str) -> tuple[str, str, str]:
    """A key as it is shown, folded, and what holds for the values under it: whole (a list, not even whose form is
    shown), secret (whatever they are), ending (texts and lists), data (a text), member (a text, if what stands beside
    it says so)."""
    return _rule_of_key(name) if len(name) <= _MAX_KEY else (redacted_text(name), "", "")


@lru_cache(4096)
def _rule_of_key(name: str) -> tuple[str, str, str]:
    shown, folded = redacted_text(name), _folded(name)
    if folded in _SECRETS:
        return shown, folded, "secret"
    if folded == SAFEGUARDS:  # what a client in auto mode tells of its user's machine; paths are keys in it, too
        return shown, folded, "whole"
    if folded in _DATA or folded == "imageurl":
        return shown, folded, "data"
    if folded in _MEMBERS:
        return shown, folded, "member"
    return shown, folded, "ending" if _SECRET_ENDING.search(folded) else ""


def _is_hidden(
    rule: str, name: str, inner: Any, key: str, encoded: frozenset[str] | None, beside: Mapping[Any, Any]
) -> bool:
    if rule == "secret":
        of_schema = key in _SCHEMAS and isinstance(inner, Mapping)
        return not (of_schema or (name == "code" and _is_error_code(inner, beside)))
    if rule == "ending":
        return isinstance(inner, str | list)
    return isinstance(inner, str) and (rule == "data" or name in (encoded or ()))


def _is_error_code(value: Any, beside: Mapping[Any, Any]) -> bool:
    return isinstance(value, str) and isinstance(beside.get("message"), str) and bool(_ERROR_CODE.match(value))


def _is_secret_parameter(name: str) -> bool:
    """Of a URL."""
    return _rule(name)[2] in ("secret", "ending") or _is_secret_header(name)


@lru_cache(4096)
def _is_secret_header(name: str) -> bool:
    return bool(_SECRET_HEADER.search(name.strip().lower().replace("_", "-"))) or _folded(name) in _SECRETS


def _encoded_members(value: Mapping[Any, Any], key: str) -> frozenset[str]:
    """The members of an object that hold encoded data, folded."""
    names = {_rule(str(name))[1]: inner for name, inner in value.items()}
    media_type = next((names[name] for name in _MEDIA_TYPES if isinstance(names.get(name), str)), None)
    if media_type is not None and not names.keys().isdisjoint(_MEDIA_MEMBERS):
        return frozenset() if media_type.lower().startswith(_PLAIN_MEDIA) else _MEDIA_MEMBERS
    if key in _DATA_HOLDERS:
        return frozenset({"data"})
    kind = names.get("type")
    member = _ENCODED_MEMBERS.get(kind.lower()) if isinstance(kind, str) else None
    return frozenset({member} if member else ())


def _hidden(value: Any, depth: int = 0) -> Any:
    """A value under a secret key. Objects and lists keep their shape: what reads them again needs it."""
    if isinstance(value, str):
        return f"[redacted len={len(value)}]"
    if value is None or isinstance(value, bool):
        return value
    if depth < MAX_DEPTH:
        if isinstance(value, Mapping):
            return {_rule(str(name))[0]: _hidden(inner, depth + 1) for name, inner in value.items()}
        if isinstance(value, list | tuple):
            return [_hidden(inner, depth + 1) for inner in value]
    return "[redacted]"


def _leaf(value: Any) -> Any:
    if isinstance(value, bytes | bytearray | memoryview):
        return f"[bytes len={memoryview(value).nbytes}]"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, bool | int | float) else f"[{type(value).__name__}]"
