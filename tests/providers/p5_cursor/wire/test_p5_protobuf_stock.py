"""The codec and the stock `protobuf` package, on the same tables: names, numbers, wire types, bytes."""

from __future__ import annotations

from typing import Any

import p5_toy
from google.protobuf.message import DecodeError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from p5_stock import has_map, stock_classes, unknown_numbers
from p5_values import CHANGES, damaged, value_of
from samples import examples, rows

from proxy.providers.p5_cursor.wire import protobuf
from proxy.providers.p5_cursor.wire.protobuf import WireError
from proxy.providers.p5_cursor.wire.scalars import varint
from proxy.providers.p5_cursor.wire.schema import AGENT, TABLES, Schema

OFTEN = settings(max_examples=examples(100), deadline=None, suppress_health_check=list(HealthCheck))

STOCK = stock_classes(AGENT, "agent")
TOY = stock_classes(p5_toy.TOY, "toy")
MESSAGES = {table: Schema(rows).messages for table, rows in TABLES.items()}


def agrees(codec: Any, schema: Schema, stock: dict[str, Any], message: str, value: Any) -> None:
    written = codec.encode(message, value)
    assert codec.decode(message, written) == value
    read = stock[message].FromString(written)
    assert list(unknown_numbers(read)) == []
    again = read.SerializeToString(deterministic=True)
    assert codec.decode(message, again) == value
    assert again == written or has_map(schema, message, value)


@rows("table", MESSAGES)
def test_the_stock_package_reads_and_writes_the_same(table: str) -> None:
    @settings(max_examples=examples(5 * len(MESSAGES[table])), deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.data(), st.sampled_from(MESSAGES[table]))
    def check(data: st.DataObject, message: str) -> None:
        agrees(protobuf, AGENT, STOCK, message, data.draw(value_of(AGENT, message)))

    check()


@OFTEN
@given(value_of(p5_toy.TOY, "Toy"))
def test_the_stock_package_reads_and_writes_every_kind_of_field_the_same(value: Any) -> None:
    agrees(p5_toy.CODEC, p5_toy.TOY, TOY, "Toy", value)


def accepted(read: Any, *arguments: Any) -> Any:
    try:
        return read(*arguments)
    except (WireError, DecodeError) as error:
        return error


@OFTEN
@given(value_of(p5_toy.TOY, "Toy"), CHANGES)
def test_the_stock_package_refuses_the_same_bytes(value: Any, changes: Any) -> None:
    data = damaged(p5_toy.encode("Toy", value), changes)
    ours, stock = accepted(p5_toy.decode, "Toy", data), accepted(TOY["Toy"].FromString, data)
    if isinstance(stock, DecodeError):
        assert isinstance(ours, WireError) or "\ufffd" in repr(ours)  # it refuses what is no UTF-8
    else:
        assert not isinstance(ours, WireError) or "group" in str(ours)  # it skips groups


@rows("number", [0, 1, -1, 2**31, 2**32 - 1, 2**32, 2**32 + 5, -(2**31) - 1, 2**63 - 1, -(2**63)])
@rows("field", ["i32", "u32", "kind", "flag", "i64", "u64", "numbers"])
def test_the_stock_package_reads_the_same_number(field: str, number: int) -> None:
    tag = next(row.number for row in p5_toy.TOY.fields("Toy") if row.name == field) << 3
    data = varint(tag) + varint(number)
    assert p5_toy.decode("Toy", data)[field] == getattr(TOY["Toy"].FromString(data), field)
