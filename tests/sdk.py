"""Asks what the official Python SDK leaves unasked."""

from __future__ import annotations

from typing import Any

import pydantic


def validate(answer: pydantic.BaseModel) -> None:
    """The SDK itself parses without looking; this looks."""
    members: Any = answer.to_dict(mode="json")  # type: ignore[attr-defined]
    type(answer).model_validate(members)
