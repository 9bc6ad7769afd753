"""Who may call the simulated P5, and in which form."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from proxy.sandbox.oauth.tokens import Tokens
from proxy.sandbox.p5.failures import debug, update_required
from proxy.sandbox.wires.connect.envelopes import Failed
from proxy.sandbox.wires.refusal import Refused

STREAM_TYPE = "application/connect+proto"
PROTO_TYPE, JSON_TYPE = "application/proto", "application/json"

_VERSION = re.compile(r"cli-\d{4}\.\d{2}\.\d{2}-[0-9a-f]{7}")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def check_bearer(headers: Mapping[str, str], tokens: Tokens) -> None:
    """Raises Refused."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme != "Bearer" or not tokens.accepts(token):
        words = "Error" if token else "missing authorization header"
        raise Failed("unauthenticated", words, debug("ERROR_NOT_LOGGED_IN", "Not logged in")).refused()


def check_type(headers: Mapping[str, str], *known: str) -> str:
    """The content type of a body. Raises Refused."""
    found = headers.get("content-type", "").partition(";")[0].strip().lower()
    if found not in known:
        raise Refused(415, "", {"accept-post": ", ".join(known), "content-type": "text/plain"})
    if headers.get("connect-protocol-version", "") not in ("1",) and found == STREAM_TYPE:
        words = 'missing required header: set Connect-Protocol-Version to "1"'
        raise Failed("invalid_argument", words).refused()
    return found


def check_version(headers: Mapping[str, str]) -> None:
    """Raises Failed for a client that is not the command line's, or an unknown build of it."""
    version = headers.get("x-cursor-client-version", "")
    if headers.get("x-cursor-client-type") != "cli" or not version.startswith("cli-"):
        raise Failed("resource_exhausted", "Error", update_required())


def blame_headers(headers: Mapping[str, str], blame: Callable[[str], None], run_id: str | None = None) -> None:
    """Tells what the service lets pass and a good client does not send. `run_id` is that of a run's calls."""
    for words in _odd(headers, run_id):
        blame(f"headers: {words}")


def _odd(headers: Mapping[str, str], run_id: str | None) -> Iterator[str]:
    if headers.get("connect-protocol-version") != "1":
        yield "no connect-protocol-version"
    if not _VERSION.fullmatch(headers.get("x-cursor-client-version", "")):
        yield "x-cursor-client-version is no build"
    if headers.get("x-ghost-mode") not in ("true", "false"):
        yield "no x-ghost-mode"
    if not _UUID.fullmatch(headers.get("x-request-id", "")):
        yield "x-request-id is no uuid"
    if run_id is not None and headers.get("x-original-request-id") != run_id:
        yield "x-original-request-id is not that of the run"
    if "x-cursor-checksum" in headers:
        yield "a checksum, which belongs to another client"
    accepted = headers.get("connect-accept-encoding", "gzip")
    if accepted.replace(" ", "") not in ("gzip", "identity", "gzip,identity"):
        yield f"connect-accept-encoding {accepted}"
