"""Requests of any shape: translated for every upstream, or refused as the caller's fault, never anything else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import examples

from core.convert import test_messages_to_chat, test_messages_to_messages, test_messages_to_responses
from core.strategies import json_values, requests
from proxy.core.invalid import InvalidRequest
from proxy.errors import RequestError

MEMBERS = ["model", "messages", "system", "tools", "tool_choice", "thread"]
WIRES = (test_messages_to_chat, test_messages_to_messages, test_messages_to_responses)
wires = pytest.mark.parametrize("everything", [wire.everything for wire in WIRES])


@wires
@settings(max_examples=examples(200))
@given(request=requests)
def test_any_request_is_translated_or_refused(everything: Callable[[Any], None], request: dict[str, Any]) -> None:
    try:
        everything(request)
    except (InvalidRequest, RequestError):
        pass


@wires
@given(request=st.dictionaries(st.sampled_from(MEMBERS), json_values))
def test_any_object_is_translated_or_refused(everything: Callable[[Any], None], request: dict[str, Any]) -> None:
    try:
        everything(request)
    except (InvalidRequest, RequestError):
        pass
