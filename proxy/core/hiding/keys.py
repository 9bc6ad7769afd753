"""Names of what is secret: one table of keys for all levels, and the patterns of other names and of headers.

Names are compared folded: without case, `-` and `_`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum, IntEnum, auto
from functools import lru_cache, partial
from typing import Any, NamedTuple

from proxy.core.auto_mode.policy import FIELD as SAFEGUARDS


class Level(IntEnum):
    """Where a value will be shown. Each level hides what those before it hide."""

    LOG = auto()
    CAPTURE = auto()
    #: What a user attaches to a bug report.
    REPORT = auto()
    #: A record of the log or a failed answer within such a report.
    RECORD = auto()


class Hides(Enum):
    """Which values under a key are hidden."""

    GONE = auto()  #: all, and nothing of their shape is shown
    SECRET = auto()  #: all, but objects and lists keep their shape: what replays a capture needs it
    ENDING = auto()  #: texts and lists
    LIST = auto()  #: lists, and nothing of their shape is shown
    DATA = auto()  #: texts
    MEMBER = auto()  #: texts, when their neighbours say that they are encoded data
    CONTENT = auto()  #: all but numbers; their length is shown


class Row(NamedTuple):
    """Some keys of the table.

    level  the first that hides them
    why    what is under them
    names  with blanks between them
    """

    rule: Hides
    level: Level
    why: str
    names: str


#: Headers that sign a request in. Their values are looked for everywhere, see `secrets_of`.
_SIGN_IN = "authorization proxy_authorization x_api_key api_key"
_CREDENTIALS = "token bearer_token oauth_token oauth_access_token oauth_refresh_token authorization_token"
_BASE64 = "b64_json partial_image_b64 image_base64 base64 encrypted_content thought_signature"
_ASKED = "prompt prompts messages input content text system instructions arguments body request tools query"
_ANSWERED = "output delta thinking summary title description partial_json"

TABLE = (
    Row(Hides.SECRET, Level.LOG, "signs a request in", f"{_SIGN_IN} cookie set_cookie"),
    Row(Hides.SECRET, Level.LOG, "a sign-in", "access_token refresh_token id_token code_verifier access refresh code"),
    Row(Hides.SECRET, Level.LOG, "an account", "chatgpt_account_id"),
    Row(Hides.SECRET, Level.CAPTURE, "signs in at any service", f"{_CREDENTIALS} client_secret secret password"),
    Row(Hides.SECRET, Level.CAPTURE, "a person", "email user_id account_id identity_id identity subject sub"),
    Row(Hides.LIST, Level.CAPTURE, "the user's machine, in auto mode; paths are keys in it", SAFEGUARDS),
    Row(Hides.DATA, Level.CAPTURE, "a picture or file", "image_url file_data image_data"),
    Row(Hides.DATA, Level.CAPTURE, "base64", _BASE64),
    Row(Hides.MEMBER, Level.CAPTURE, "often data", "data blob result signature"),
    Row(Hides.CONTENT, Level.RECORD, "what somebody wrote, or a model answered", f"{_ASKED} {_ANSWERED}"),
)
#: Names of secrets that are common words: JSON that is quoted within a text may have them for anything.
COMMON_WORDS = frozenset({"access", "refresh", "code", "identity", "subject", "sub"})

#: Other keys that end like a credential: `page_token`, `db_password`. Not `max_tokens`.
_ENDING = re.compile(r"(?:token|secret|password|passwd|apikey|authorization|credentials?|cookies?|privatekey)\Z")
#: Headers. `-tokens` are rate limits, `-authenticate` says what is wanted.
_HEADER = re.compile(
    r"auth(?!enticate|ority)|token(?!s)|secret|passw|cookie|credential|(?<!cache-)(?<!idempotency-)key\Z|api-?key|jwt"
    r"|signature|account|organization|agent-id|device-id|device-name|installation|machine-id|user-id|email|identity"
)
#: Longer names are no keys of ours; they are shown like any text.
MAX_NAME = 128

#: value of `type` -> the member beside it that holds encoded data. None of them is text.
_ENCODED = {
    **dict.fromkeys(("base64", "image", "file", "document", "video"), "data"),
    **dict.fromkeys(("input_image", "audio", "input_audio", "redacted_thinking", "reasoning.encrypted"), "data"),
    "image_generation_call": "result",
    **dict.fromkeys(("thinking", "reasoning.text", "signature_delta"), "signature"),
}
#: Those beside a media type, whatever the type.
_MEDIA_MEMBERS = frozenset({"data", "blob"})
_MEDIA_TYPES = ("mediatype", "mimetype", "contenttype")
_PLAIN_MEDIA = ("text/", "application/json")
#: Keys of objects whose `data` is encoded, folded.
_DATA_HOLDERS = frozenset({"inputaudio", "inlinedata", "audio"})


def folded(name: str) -> str:
    """The name as the table is searched for it."""
    return name.strip().lower().replace("-", "").replace("_", "")


_ROWS = {folded(name): row for row in TABLE for name in row.names.split()}
_SIGN_IN_NAMES = frozenset(map(folded, _SIGN_IN.split()))


def _rule_of(level: Level, name: str) -> tuple[str, Hides | None]:
    key = folded(name)
    row = _ROWS.get(key)
    if row is None or row.level > level:
        return key, Hides.ENDING if level > Level.LOG and _ENDING.search(key) else None
    is_gone = row.rule is Hides.SECRET and row.level is Level.LOG and level is not Level.CAPTURE
    return key, Hides.GONE if is_gone else row.rule


#: Level -> `rule_of` for names of up to MAX_NAME characters. Those of fields are always the same.
KNOWN_RULES = {level: lru_cache(4096)(partial(_rule_of, level)) for level in Level}


def rule_of(name: str, level: Level) -> tuple[str, Hides | None]:
    """The name folded, and what is hidden under it at this level.

    >>> rule_of("Set-Cookie", Level.LOG), rule_of("max_tokens", Level.REPORT)
    (('setcookie', <Hides.GONE: 1>), ('maxtokens', None))
    """
    if len(name) > MAX_NAME:
        name = name.strip()
    return KNOWN_RULES[level](name) if len(name) <= MAX_NAME else ("", None)


def is_secret_key(name: str) -> bool:
    """Whether even a log shows no value under this name."""
    return rule_of(name, Level.LOG)[1] is not None


def is_secret_parameter(name: str) -> bool:
    """Whether a capture shows no value of this parameter of a URL."""
    return rule_of(name, Level.CAPTURE)[1] in (Hides.SECRET, Hides.ENDING) or is_secret_header(name)


@lru_cache(4096)
def is_secret_header(name: str) -> bool:
    """Whether a capture shows no value of this header."""
    return bool(_HEADER.search(name.strip().lower().replace("_", "-"))) or _is_secret(folded(name))


def is_sign_in_header(name: str) -> bool:
    """Whether a caller, or we ourselves, sign in by this header."""
    return folded(name) in _SIGN_IN_NAMES


@lru_cache(4096)
def is_quoted_secret(name: str) -> bool:
    """Whether a value under this name is hidden in JSON within a text."""
    key = folded(name)
    return (_is_secret(key) and key not in COMMON_WORDS) or key.endswith("token")


def _is_secret(key: str) -> bool:
    return key in _ROWS and _ROWS[key].rule is Hides.SECRET


def media_type(members: Mapping[str, Any]) -> str | None:
    """The media type that an object names beside its data. `members` has folded names."""
    return next((members[name] for name in _MEDIA_TYPES if isinstance(members.get(name), str)), None)


def encoded_members(members: Mapping[str, Any], holder: str) -> frozenset[str]:
    """Which members of an object hold encoded data. All names are folded; `holder` is the key of the object."""
    beside = media_type(members)
    if beside is not None and not members.keys().isdisjoint(_MEDIA_MEMBERS):
        return frozenset() if beside.lower().startswith(_PLAIN_MEDIA) else _MEDIA_MEMBERS
    if holder in _DATA_HOLDERS:
        return frozenset({"data"})
    kind = members.get("type")
    member = _ENCODED.get(kind.lower()) if isinstance(kind, str) else None
    return frozenset({member} if member else ())
