"""How the simulated P3 words a refusal: flat for most, in the model service's form where it speaks of pictures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proxy.sandbox.wires.refusal import Refusal, Refused, invalid

INVALID_ARGUMENT = "Client specified an invalid argument"
BAD_IMAGE = "invalid_image"

#: Codes of the tables that the service finds while it reads the body into its types.
_UNREADABLE = ("missing_required_parameter", "invalid_type")


def flat(status: int, code: str | int, message: str, headers: Mapping[str, str] | None = None) -> Refused:
    """`{"code","error"}`"""
    return Refused(status, {"code": code, "error": message}, headers)


def error_only(status: int, message: str) -> Refused:
    """`{"error": text}`"""
    return Refused(status, {"error": message})


def argument(words: str) -> Refusal:
    """A refusal of what can be read and is not wanted."""
    return Refusal(words, "invalid_value")


def image_refused(words: str) -> Refused:
    return invalid(words, code=BAD_IMAGE)


def reworded(refused: Refused) -> Refused:
    """A refusal of the tables in the words of this backend."""
    error: dict[str, Any] = refused.body["error"]
    if error["code"] == BAD_IMAGE:
        return refused
    if error["code"] in _UNREADABLE:
        return error_only(422, f"Failed to deserialize the JSON body into the target type: {error['message']}")
    return flat(400, INVALID_ARGUMENT, error["message"])
