"""As whom the service knows us."""

from __future__ import annotations

from proxy.providers.p5_cursor.headers import call_headers


def test_the_headers_of_every_call() -> None:
    assert call_headers("t", "cli-2026.10.01-e373342", "call", "run", "application/proto") == {
        "authorization": "Bearer t",
        "connect-protocol-version": "1",
        "content-type": "application/proto",
        "user-agent": "connect-es/1.6.1",
        "x-cursor-client-type": "cli",
        "x-cursor-client-version": "cli-2026.10.01-e373342",
        "x-ghost-mode": "true",
        "x-cursor-streaming": "true",
        "x-request-id": "call",
        "x-original-request-id": "run",
    }
