"""What the simulated P3 demands of request headers: a login, the kind of login, a client that is new enough."""

from __future__ import annotations

import re
from collections.abc import Mapping

from multidict import CIMultiDictProxy

from proxy.sandbox.p3.issuer import GrokTokens
from proxy.sandbox.p3.refusals import error_only, flat
from proxy.sandbox.p3.state import P3Options
from proxy.sandbox.wires.refusal import Refused

TOKEN_AUTH = "x-xai-token-auth"  # noqa: S105 - the name of a header
CLIENT = "x-grok-client-identifier"
VERSION = "x-grok-client-version"
CONVERSATION = "x-grok-conv-id"

_KIND = "xai-grok-cli"
_CLIENTS = ("grok-shell",)
_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)(?:[-+][0-9A-Za-z.+-]+)?")

BAD_TOKEN = "The OAuth2 access token could not be validated. [WKE=unauthenticated:bad-credentials]"  # noqa: S105
DENIED = "permission-denied"


def check_caller(headers: CIMultiDictProxy[str], tokens: GrokTokens, options: P3Options) -> None:
    """Of a request for an answer. Raises Refused."""
    access = check_bearer(headers, tokens)
    check_kind(headers)
    if headers.get(CLIENT) not in _CLIENTS:
        raise flat(403, DENIED, f"Unknown client: {headers.get(CLIENT) or '(none)'}")
    check_version(headers.get(VERSION), options.oldest_version)
    if options.gate:
        raise flat(403, DENIED, options.gate)
    if not tokens.permits(access):
        raise flat(403, DENIED, "Access to the chat endpoint is denied: the token lacks the scope grok-cli:access.")


def check_bearer(headers: Mapping[str, str], tokens: GrokTokens) -> str:
    """The access token. Raises Refused (401)."""
    scheme, _, access = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not tokens.accepts(access):
        raise flat(401, "unauthenticated:bad-credentials", BAD_TOKEN)
    return access


def check_kind(headers: CIMultiDictProxy[str]) -> None:
    """The bearer is said, once, to be that of a login. Raises Refused (401)."""
    kinds = headers.getall(TOKEN_AUTH, [])
    if kinds != [_KIND]:
        raise flat(401, "unauthenticated", f"Unknown auth kind: {', '.join(kinds) or '(none)'}")


def check_version(given: str | None, oldest: str) -> None:
    """Raises Refused (426) unless the version is as new as the oldest one that is served."""
    if given is None or (found := _numbers(given)) is None or found < (_numbers(oldest) or ()):
        raise outdated(given or "(none)", oldest)


def outdated(given: str, oldest: str) -> Refused:
    return error_only(
        426,
        f"Your Grok CLI version {given} is outdated. Please update to version {oldest} or later via `grok update` or "
        "the installation documentation.",
    )


def check_format(headers: Mapping[str, str]) -> None:
    """JSON in, a stream out. Raises Refused."""
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise error_only(415, "Expected request with `Content-Type: application/json`")
    accepted = [kind.partition(";")[0].strip() for kind in headers.get("accept", "*/*").split(",")]
    if not {"text/event-stream", "*/*"} & set(accepted):
        raise error_only(406, "Not Acceptable: the answer is text/event-stream")


def _numbers(version: str) -> tuple[int, ...] | None:
    found = _VERSION.fullmatch(version)
    return tuple(map(int, found.groups())) if found else None
