"""A raw client of the simulated P3: requests as a correct proxy would send them, to be spoilt by a test."""

from __future__ import annotations

from typing import Any

import aiohttp
from p1_sandbox_client import user
from raw_client import RawClient

from proxy.sandbox import Sandbox


def grok(*items: dict[str, Any], **members: Any) -> dict[str, Any]:
    """A body for grok-4.6."""
    return {
        "model": "grok-4.6",
        "instructions": "Be brief.",
        "input": list(items) or [user("hello")],
        "store": False,
        "stream": True,
        "max_output_tokens": 32_000,
        **members,
    }


class P3Client(RawClient):
    """One session and one signed-in account."""

    def __init__(self, sandbox: Sandbox, session: aiohttp.ClientSession) -> None:
        super().__init__(sandbox, session, f"{sandbox.settings()['PROXY_P3_BASE_URL']}/responses")
        self.credential = sandbox.p3.stored_credential()

    def headers(self, body: Any = None) -> dict[str, str]:
        return {
            "authorization": f"Bearer {self.credential['access']}",
            "content-type": "application/json",
            "accept": "text/event-stream",
            "x-xai-token-auth": "xai-grok-cli",
            "x-grok-client-identifier": "grok-shell",
            "x-grok-client-version": "0.2.93",
        }
