"""Messages between bytes and dicts: each row of `vectors.txt` is a name, a message, its value and its bytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from samples import rows

from proxy.providers.p5_cursor.wire.protobuf import WireError, decode, encode, members
from proxy.providers.p5_cursor.wire.scalars import varint


def bytes_of(value: dict[str, Any]) -> Any:
    return bytes.fromhex(value["$hex"]) if "$hex" in value else value


ROWS = (Path(__file__).parent / "vectors.txt").read_text("utf-8").splitlines()
VECTORS = {
    name: (message, json.loads(value, object_hook=bytes_of), bytes.fromhex(written))
    for name, message, value, written in (row.split("\t") for row in ROWS)
}


@rows("name", VECTORS)
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
    "two requests of one kind": (
        "2204080112002204080212002208080312040a020102",
        [
            ("kv_server_message", {"id": 1, "get_blob_args": {}}),
            ("kv_server_message", {"id": 2, "get_blob_args": {}}),
            ("kv_server_message", {"id": 3, "get_blob_args": {"blob_id": b"\x01\x02"}}),
        ],
    ),
    "a checkpoint is not looked into": ("1a0c0a0201022a06087810c09a0c", [("conversation_checkpoint_update", {})]),
    "members that nobody knows": ("320208014200480149000000000000000055000000009a0600", []),
    "a member of another wire type": ("08010a02 6a00", [("interaction_update", [("heartbeat", {})])]),
    "an update that nobody knows": ("0a039a0600", [("interaction_update", [])]),
    "nothing": ("", []),
}


@rows("name", PAYLOADS)
def test_a_request_next_to_a_text_update_is_lost__every_member_of_a_payload_counts(name: str) -> None:
    payload, expected = PAYLOADS[name]
    assert members("AgentServerMessage", bytes.fromhex(payload)) == expected


@rows("number", [2, 3, 6, 7, 12, 15, 19, 20, 21])
@rows("content", ["", "0a0763616c6c2d3737", "ff"])
def test_call_ids_in_the_answer_text__display_records_are_not_looked_into(number: int, content: str) -> None:
    update = varint(number << 3 | 2) + varint(len(content) // 2) + bytes.fromhex(content)
    payload = b"\x0a" + varint(len(update)) + update + bytes.fromhex("0a060a040a024869")
    records, text = members("AgentServerMessage", payload)
    assert [value for _, value in records[1]] == [{}]
    assert text == ("interaction_update", [("text_delta", {"text": "Hi"})])


@rows("payload", ["0a05", "0a0541", "0a040a020a05", "1204080a3a05", "0b0c", "22021a01", "3a0208"])
def test_a_member_that_breaks_off_is_an_error(payload: str) -> None:
    with pytest.raises(WireError):
        members("AgentServerMessage", bytes.fromhex(payload))


def test_conversation_state_is_required__an_empty_message_is_written() -> None:
    assert encode("AgentRunRequest", {"conversation_state": {}, "mcp_tools": {}}).hex() == "0a002200"


def test_invalid_end_group_tag__a_schema_is_a_value_and_no_struct() -> None:
    written = encode("McpToolDefinition", {"input_schema": {"type": "object"}})
    assert written.hex() == "1a142a120a100a047479706512081a066f626a656374"  # 2a: the Value's struct


def test_a_default_that_another_client_writes_is_read() -> None:
    assert decode("AgentRunRequest", bytes.fromhex("6000")) == {"exclude_workspace_context": False}
