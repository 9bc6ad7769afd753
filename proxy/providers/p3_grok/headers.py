"""The headers of requests to P3: those of the vendor's own client, as which the service knows us."""

from __future__ import annotations

import platform

from proxy.core.identity import fits_header


def client_headers(version: str) -> dict[str, str]:
    """Who asks, whatever the question. The service wants the kind of login exactly once."""
    return {
        "user-agent": f"grok-shell/{version} ({platform.system().lower()}; {platform.machine()})",
        "x-xai-token-auth": "xai-grok-cli",
        "x-grok-client-identifier": "grok-shell",
        "x-grok-client-version": version,
    }


def answer_headers(version: str, session: str | None, turn: str) -> dict[str, str]:
    """Those of a request for an answer, but its credential. Without a session nothing is said of one: a made-up one
    would lead every request to another server, whose prompt cache is empty."""
    known = {
        "accept": "text/event-stream",
        "accept-encoding": "identity",
        "content-type": "application/json",
        **client_headers(version),
    }
    if session is None or not fits_header(session) or " " in session:
        return known
    return {**known, "x-grok-conv-id": session, "x-grok-session-id": session, "x-grok-req-id": turn}
