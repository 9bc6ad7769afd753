"""Asks what the official Python SDK leaves unasked."""

from __future__ import annotations

import ssl
from typing import Any

import openai
import pydantic

#: class of an error in either SDK -> a step of a script that leads to it
STEPS: dict[str, dict[str, Any]] = {
    "PermissionDeniedError": {"fault": "forbidden"},
    "RateLimitError": {"fault": "usage_limit"},
    "InternalServerError": {"fault": "overloaded", "times": None},
    "AuthenticationError": {"fault": "unauthorized", "times": None},
    "BadRequestError": {"status": 400, "body": {"error": {"message": "no"}}},
}


def validate(answer: pydantic.BaseModel) -> None:
    """The SDK itself parses without looking; this looks."""
    members: Any = answer.to_dict(mode="json")  # type: ignore[attr-defined]
    type(answer).model_validate(members)


def tls() -> ssl.SSLContext:
    """For the `verify` of a client: an SDK's own client reads the certificates of all authorities, which takes longer
    than a turn, and the proxy has no TLS."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def openai_client(url: str) -> openai.AsyncOpenAI:
    """Asks the OpenAI routes of a proxy, each request once."""
    http = openai.DefaultAsyncHttpxClient(verify=tls())
    return openai.AsyncOpenAI(api_key="unused", base_url=f"{url}/v1", max_retries=0, http_client=http)
