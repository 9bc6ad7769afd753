"""The tables themselves: every row is one that the codec can work with."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from samples import rows

from proxy.providers.p5_cursor.wire.scalars import SCALARS
from proxy.providers.p5_cursor.wire.schema import AGENT, Field, Schema

ROOT = Path(__file__).parents[4]
MESSAGES = AGENT.messages


def test_rows_become_fields() -> None:
    schema = Schema(
        "A = 1 a string, |2 b B,\n    |3 c enum(C)?, 5 d bytes(D)[]\nB = (empty)\n", "E = 7 e map<string,A>\n"
    )
    assert schema.messages == ("A", "B", "E")
    assert schema.fields("A") == (
        Field(1, "a", "string"),
        Field(2, "b", "B", explicit=True, oneof=True),
        Field(3, "c", "enum", explicit=True, oneof=True),
        Field(5, "d", "bytes", repeated=True, explicit=True),
    )
    assert schema.fields("B") == ()
    assert schema.fields("E") == (Field(7, "e", "map<string,A>"),)
    assert schema.fields("map<string,A>") == (
        Field(1, "key", "string", explicit=True),
        Field(2, "value", "A", explicit=True),
    )


def test_the_tables_are_whole() -> None:
    assert len(MESSAGES) == len(set(MESSAGES))
    assert {"AgentClientMessage", "AgentServerMessage", "BidiRequestId", "BidiAppendRequest"} <= set(MESSAGES)


@rows("message", MESSAGES)
def test_a_message_has_fields_in_order_of_types_that_exist(message: str) -> None:
    fields = AGENT.fields(message)
    numbers, names = [field.number for field in fields], [field.name for field in fields]
    assert numbers == sorted(set(numbers))
    assert len(set(names)) == len(names)
    for field in fields:
        kinds = [part.type for part in AGENT.fields(field.type)] if field.is_map else [field.type]
        assert all(kind in SCALARS or kind in MESSAGES for kind in kinds), field
        assert not (field.repeated and field.oneof)


@rows("row", ["A = a string", "A = 1 a", "A = 1 a string!", "A = 1 a string?[]"])
def test_a_row_that_is_none_is_an_error(row: str) -> None:
    with pytest.raises(ValueError, match="not a field"):
        Schema(row).fields("A")


def test_a_message_that_is_in_no_table_is_an_error() -> None:
    with pytest.raises(KeyError):
        AGENT.fields("Nothing")


def test_the_program_starts_without_the_tables() -> None:
    check = "import sys, proxy.providers.registry; print(*(name for name in sys.modules if 'p5_cursor.' in name))"
    names = subprocess.run([sys.executable, "-c", check], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "p5_cursor.catalog" in names
    assert "p5_cursor.wire" not in names
