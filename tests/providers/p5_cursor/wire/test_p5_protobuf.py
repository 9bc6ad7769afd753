"""Messages between bytes and dicts: each row of `vectors.txt` is a name, a message, its value and its bytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from proxy.providers.p5_cursor.wire.protobuf import decode, encode, members


def bytes_of(value: dict[str, Any]) -> Any:
    return bytes.fromhex(value["$hex"]) if "$hex" in value else value


ROWS = (Path(__file__).parent / "vectors.txt").read_text("utf-8").splitlines()
VECTORS = {
    name: (message, json.loads(value, object_hook=bytes_of), bytes.fromhex(written))
    for name, message, value, written in (row.split("\t") for row in ROWS)
}


@pytest.mark.parametrize("name", VECTORS)
def test_a_message_is_written_and_read(name: str) -> None:
    message, value, written = VECTORS[name]
    assert encode(message, value).hex() == written.hex()
    assert decode(message, written) == value


#: Payloads that no writer makes.
PAYLOADS: dict[str, tuple[str, list[Any]]] = {
    "text and the end in one update": (
        "0a090a030a015872021004",
        [("interaction_update", [("text_delta", {"text": "X"}), ("turn_ended", {"output_tokens": 4})])],
    ),
    "an exec, then a heartbeat": (
        "120b08062a030a01717a0265360a026a00",
        [
            ("exec_server_message", {"id": 6, "grep_args": {"pattern": "q"}, "exec_id": "e6"}),
            ("interaction_update", [("heartbeat", {})]),
        ],
    ),
    "text, then an exec without id": (
        "0a050a030a0158120652007a026530",
        [
            ("interaction_update", [("text_delta", {"text": "X"})]),
            ("exec_server_message", {"request_context_args": {}, "exec_id": "e0"}),
        ],
    ),
    "an exec without arm": ("120608087a026538", [("exec_server_message", {"id": 8, "exec_id": "e8"})]),
    "an exec with an unknown arm": (
        "120f08087a026538ea02060a042f772f61",
        [("exec_server_message", {"id": 8, "exec_id": "e8"})],
    ),
    "a query with an unknown arm": ("3a05080c9a0600", [("interaction_query", {"id": 12})]),
}


@pytest.mark.parametrize("name", PAYLOADS)
def test_every_member_of_a_payload_counts(name: str) -> None:
    payload, expected = PAYLOADS[name]
    assert members("AgentServerMessage", bytes.fromhex(payload)) == expected
