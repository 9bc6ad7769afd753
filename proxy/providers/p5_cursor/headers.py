"""The headers of calls to P5: those of the vendor's command line, as which the service knows us."""

from __future__ import annotations


def call_headers(token: str, version: str, request_id: str, run_id: str, content_type: str) -> dict[str, str]:
    """Those of every call.

    version     build that we say to be, `cli-…`; the service refuses others
    request_id  of this call
    run_id      of the run that it belongs to; of a call that belongs to none, its own
    """
    return {
        "authorization": f"Bearer {token}",
        "connect-protocol-version": "1",
        "content-type": content_type,
        "user-agent": "connect-es/1.6.1",
        "x-cursor-client-type": "cli",
        "x-cursor-client-version": version,
        "x-ghost-mode": "true",
        # without it an answer may come in blobs and not as text
        "x-cursor-streaming": "true",
        "x-request-id": request_id,
        "x-original-request-id": run_id,
    }
