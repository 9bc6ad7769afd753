"""Texts for a bug report: without credentials, persons, this machine's name and the place of the home folder.

What is secret here is known: the variables, the settings, the files of the credentials and the claims in their tokens
are read, and whatever stands in them is taken out of every text. What only looks like a credential or an address goes
as well.
"""

from __future__ import annotations

import base64
import json
import re
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from proxy.auth.jwt import claims
from proxy.auth.store import MAX_FILE_BYTES
from proxy.cli.doctor.finding import Setup
from proxy.cli.launch.own_files import claude_files
from proxy.core.hiding.keys import Level
from proxy.core.hiding.secret import BLANK, Secret, length_note
from proxy.core.hiding.texts import redacted_error
from proxy.core.hiding.walk import redacted
from proxy.loading import settings_of

#: Shorter values are words that stand in every text.
MIN_SECRET = 5
#: Shorter numbers are sizes and ports.
MIN_NUMBER = 8
#: Variables whose values are secret, by name.
_SECRET_NAME = re.compile(r"key|token|secret|passw|auth|cookie|credential|session", re.IGNORECASE)
#: Members of a credential's file, and claims, that tell nothing of a person.
_HARMLESS = frozenset({"issuer", "iss", "scope", "scp", "token_type", "type", "aud", "expires", "expires_at"})
_PLAIN = frozenset({"unused", "dummy", "false", "true"})
_EMAIL = re.compile(r"[\w.+%-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}")
#: A word with small and capital letters and digits that is this long is no word.
_OPAQUE = re.compile(r"(?<![\w+/=-])(?=[\w+/=-]*[a-z])(?=[\w+/=-]*[A-Z])(?=[\w+/=-]*[0-9])[\w+=-]{20,}")
#: What an upstream quotes in an error may be a part of a prompt; an apostrophe inside of a word ends nothing.
_QUOTED = re.compile(r"(?<!\w)(['\"`])((?:(?!\1)[^\n]|(?<=\w)\1(?=\w))+)\1")
#: A name of a field or a model has no blank, and is no longer.
MAX_QUOTED_NAME = 64
#: Longest text that is shown whole; a longer one shows its beginning.
MAX_MESSAGE = 500


class Scrubber:
    """What is known of this set-up is collected once."""

    def __init__(self, setup: Setup) -> None:
        found = {text.strip() for text in _secrets(setup)}
        known = sorted((text for text in found if _counts(text)), key=len, reverse=True)
        self._secrets = re.compile("|".join(map(re.escape, known))) if known else None
        host = socket.gethostname()
        self._host = re.compile(rf"\b{re.escape(host)}\b") if len(host) > 2 and host != "localhost" else None
        self._home = str(setup.home) if setup.home != Path("/") else ""

    def text(self, text: str) -> str:
        """A text with all of it taken out."""
        if self._secrets is not None:
            text = self._secrets.sub(BLANK, text)
        if self._home:
            text = text.replace(self._home, "~")
        if self._host is not None:
            text = self._host.sub("[host]", text)
        text = _EMAIL.sub("[e-mail]", redacted_error(text))
        return _OPAQUE.sub(lambda found: length_note(found[0]), text)

    def value(self, value: Any) -> Any:
        """The same of all texts in a value, its keys included; what is credential or person by its key, too."""
        return redacted(value, Level.REPORT, self.text)

    def record(self, value: Any) -> Any:
        """The same of a record of the log, or of a failed answer: also without what somebody wrote to a model."""
        return redacted(value, Level.RECORD, self._message)

    def _message(self, text: str) -> str:
        shown = self.text(_QUOTED.sub(_quoted, redacted_error(text)))
        return shown if len(shown) <= MAX_MESSAGE else f"{shown[:MAX_MESSAGE]}… [+{len(shown) - MAX_MESSAGE}]"


def _counts(text: str) -> bool:
    return len(text) >= MIN_SECRET and text.lower() not in _PLAIN and not (text.isdigit() and len(text) < MIN_NUMBER)


def _quoted(found: re.Match[str]) -> str:
    is_name = len(found[2]) <= MAX_QUOTED_NAME and not any(char.isspace() for char in found[2])
    return found[0] if is_name else f"[text len={len(found[2])}]"


# -- what is secret here


def _secrets(setup: Setup) -> Iterator[str]:
    yield from _of_variables(setup.environment)
    for file in claude_files(setup.environment):
        block = file.content.get("env")
        yield from _of_variables(block if isinstance(block, dict) else {})
    for setting in settings_of(setup.context.providers):
        value = getattr(setup.config.section(setting.section), setting.field)
        if isinstance(value, Secret):
            yield value.reveal()
    for entry in setup.context.providers:
        for path in _files(setup.config_root / entry.label):
            yield from _of_file(path)


def _of_variables(environment: Mapping[str, Any]) -> Iterator[str]:
    for name, value in environment.items():
        text = str(value)
        if name.lower().endswith("_proxy") and name.lower() != "no_proxy":
            yield from _of_proxy(text)
        elif _SECRET_NAME.search(name) and not text.startswith(("/", "http://", "https://")):
            yield from _with_claims(text)


def _of_proxy(value: str) -> Iterator[str]:
    """User and password, as written, unquoted, and as they travel."""
    try:
        parts = urlsplit(value if "://" in value else f"http://{value}")
        user, password = parts.username or "", parts.password or ""
    except ValueError:
        yield value
        return
    plain = f"{unquote(user)}:{unquote(password)}"
    yield from (user, password, unquote(user), unquote(password), f"{user}:{password}")
    if plain != ":":
        yield base64.b64encode(plain.encode()).decode()


def _files(folder: Path) -> list[Path]:
    try:
        return [path for path in folder.iterdir() if path.is_file()]
    except OSError:
        return []


def _of_file(path: Path) -> Iterator[str]:
    """Every text in a credential's file; a file that is no JSON is one text."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES).decode("utf-8", "replace")
    except OSError:
        return
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        yield from data.split()
        return
    yield from _texts(content)


def _texts(value: Any, name: str = "") -> Iterator[str]:
    if isinstance(value, str) and name not in _HARMLESS:
        yield from _with_claims(value)
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _texts(inner, str(key))
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one, name)


def _with_claims(text: str) -> Iterator[str]:
    """A token, its parts, and what it says of its owner."""
    yield text
    if text.count(".") == 2 and (told := claims(text)):
        yield from text.split(".")
        yield from _texts(told)
