"""The rules of the codec, one row each, on a message that has every kind of field."""

from __future__ import annotations

import math
from typing import Any

import pytest
from p5_toy import decode, encode, members
from samples import rows

from proxy.providers.p5_cursor.wire.protobuf import WireError
from proxy.providers.p5_cursor.wire.reading import MAX_FIELDS
from proxy.providers.p5_cursor.wire.scalars import MAX_DEPTH, varint

MINUS_ONE = "ffffffffffffffffff01"

#: Both ways: the value and its bytes.
FORMS: dict[str, tuple[dict[str, Any], str]] = {
    "nothing": ({}, ""),
    "a negative int32 has ten bytes": ({"i32": -1}, "08" + MINUS_ONE),
    "a negative int64 has ten bytes": ({"i64": -1}, "10" + MINUS_ONE),
    "a negative enum has ten bytes": ({"kind": -1}, "30" + MINUS_ONE),
    "the least int32": ({"i32": -(2**31)}, "0880808080f8ffffffff01"),
    "the least int64": ({"i64": -(2**63)}, "1080808080808080808001"),
    "the greatest int64": ({"i64": 2**63 - 1}, "10ffffffffffffffff7f"),
    "the greatest uint32": ({"u32": 2**32 - 1}, "18ffffffff0f"),
    "the greatest uint64": ({"u64": 2**64 - 1}, "20" + MINUS_ONE),
    "true": ({"flag": True}, "2801"),
    "a number at the edge of one byte": ({"u32": 127}, "187f"),
    "a number behind it": ({"u32": 128}, "188001"),
    "text": ({"text": "é"}, "3a02c3a9"),
    "bytes": ({"raw": b"\x00\xff"}, "420200ff"),
    "an opaque message is there even when it is empty": ({"opaque": b""}, "4a00"),
    "a double": ({"number": 1.5}, "51000000000000f83f"),
    "an optional default is there": ({"maybe": 0, "maybe_text": ""}, "5800ca0100"),
    "an empty message is there": ({"toy": {}, "empty": {}}, "6200e20100"),
    "numbers are packed": ({"numbers": [1, -1, 300]}, "6a0d01" + MINUS_ONE + "ac02"),
    "doubles are packed": ({"doubles": [1.5, 0.0]}, "7210000000000000f83f0000000000000000"),
    "bools are packed": ({"flags": [True, False]}, "aa01020100"),
    "texts have a key each, empty ones too": ({"texts": ["a", ""]}, "7a01617a00"),
    "messages have a key each, empty ones too": ({"toys": [{}, {"i32": 1}]}, "8201008201020801"),
    "opaque messages have a key each": ({"blobs": [b"a", b""]}, "da010161da0100"),
    "a map of messages": ({"by_name": {"a": {"i32": 1}}}, "8a01070a016112020801"),
    "a map's empty key and value are there": ({"by_number": {0: ""}}, "92010408001200"),
    "a member of a oneof is there even when it is empty": ({"left": ""}, "9a0100"),
    "JSON null": ({"json": None}, "b201020800"),
    "JSON true": ({"json": True}, "b201022001"),
    "JSON false": ({"json": False}, "b201022000"),
    "JSON zero": ({"json": 0}, "b20109110000000000000000"),
    "JSON text": ({"json": ""}, "b201021a00"),
    "a JSON object is a Value around a Struct": ({"json": {"a": True}}, "b2010b2a090a070a016112022001"),
    "an empty JSON object": ({"json": {}}, "b201022a00"),
    "a JSON array": ({"json": [None, []]}, "b2010a32080a0208000a023200"),
    "a Struct by itself": ({"struct": {"a": None}}, "ba01090a070a016112020800"),
    "a ListValue by itself": ({"list": ["a"]}, "c201050a031a0161"),
    "a map of JSON": ({"jsons": {"a": None}}, "d201070a016112020800"),
    "ascending numbers": ({"text": "a", "i32": 1}, "08013a0161"),
}


@rows("name", FORMS)
def test_a_value_has_one_form(name: str) -> None:
    value, written = FORMS[name]
    assert encode("Toy", value).hex() == written
    assert decode("Toy", bytes.fromhex(written)) == value
    assert dict(members("Toy", bytes.fromhex(written))).keys() == value.keys()


#: One way: what is written for a value that reads back as another.
WRITTEN: dict[str, tuple[dict[str, Any], str]] = {
    "defaults are left out": (
        {"i32": 0, "i64": 0, "u32": 0, "u64": 0, "flag": False, "kind": 0, "text": "", "raw": b"", "number": 0.0},
        "",
    ),
    "empty lists and maps are left out": ({"numbers": [], "texts": [], "toys": [], "by_name": {}}, ""),
    "any order of members": ({"text": "a", "i32": 1}, "08013a0161"),
    "half of a surrogate pair is replaced": ({"text": "a\ud800b"}, "3a0561efbfbd62"),
    "a surrogate pair in two halves is joined": ({"text": "\ud83d\ude00"}, "3a04f09f9880"),
    "views of bytes": ({"raw": memoryview(b"ab"), "opaque": bytearray(b"c")}, "420261624a0163"),
    "a tuple": ({"texts": ("a",)}, "7a0161"),
}


@rows("name", WRITTEN)
def test_a_value_is_written(name: str) -> None:
    value, written = WRITTEN[name]
    assert encode("Toy", value).hex() == written


#: One way: bytes that no writer of ours makes.
READ: dict[str, tuple[str, dict[str, Any]]] = {
    "a default that was written": ("0800", {"i32": 0}),
    "any order of fields": ("3a01610801", {"text": "a", "i32": 1}),
    "the last of a singular field": ("080108023a01613a0162", {"i32": 2, "text": "b"}),
    "the last of a oneof, the other kind first": ("9a010161a20100", {"right": {}}),
    "the last of a oneof, there and back": ("9a010161a201009a010162", {"left": "b"}),
    "int32 is cut to 32 bits": ("08ffffffff1f", {"i32": -1}),
    "int32 of 32 bits without sign": ("08ffffffff0f", {"i32": -1}),
    "uint32 is cut to 32 bits": ("1881808080f0ffffffff01", {"u32": 1}),
    "a number longer than it needs to be": ("0881808000", {"i32": 1}),
    "more than 64 bits are cut": ("20ffffffffffffffffff7f", {"u64": 2**64 - 1}),
    "any number but zero is true": ("2802", {"flag": True}),
    "numbers that are not packed": ("68016802", {"numbers": [1, 2]}),
    "packed and not": ("68016a0202036804", {"numbers": [1, 2, 3, 4]}),
    "no packed numbers": ("6a00", {"numbers": []}),
    "doubles that are not packed": ("71000000000000f83f", {"doubles": [1.5]}),
    "invalid UTF-8 is replaced": ("3a0361ff62", {"text": "a�b"}),
    "a map entry without key": ("8a010412020801", {"by_name": {"": {"i32": 1}}}),
    "a map entry without value": ("8a01030a0161", {"by_name": {"a": {}}}),
    "an empty map entry": ("920100", {"by_number": {0: ""}}),
    "an empty map entry of JSON": ("d20100", {"jsons": {"": None}}),
    "the last of a map's key": ("8a01050a016112008a01070a016112020801", {"by_name": {"a": {"i32": 1}}}),
    "JSON without a member is null": ("b20100", {"json": None}),
    "the last member of JSON": ("b201042a002000", {"json": False}),
    "a JSON number of an integer": ("b20109110000000000000840", {"json": 3}),
    "an unknown number": ("f8ffffff0f01", {}),
    "an unknown varint, fixed and text": ("f8060108 01f90600000000000000000802fd06000000000803fa060161", {"i32": 3}),
    "a known field of another wire type": ("0a01610900000000000000000d0000000038013900000000000000000801", {"i32": 1}),
    "a message field of another wire type": ("60016500000000", {}),
    "fixed values for packed numbers": ("6d00000000", {}),
}


@rows("name", READ)
def test_bytes_are_read(name: str) -> None:
    written, value = READ[name]
    read = decode("Toy", bytes.fromhex(written))
    assert read == value
    assert [type(item) for item in read.values()] == [type(item) for item in value.values()]


#: No message.
BROKEN = {
    "a tag that does not end": "88",
    "a number that does not end": "08",
    "a number that does not end after bytes": "08ffff",
    "a number of eleven bytes": "08" + "80" * 10 + "00",
    "a length that does not end": "3a80",
    "a length behind the end": "3a0241",
    "a length of 4 GiB": "3affffffff0f41",
    "a length of 64 bits": "3affffffffffffffffff01",
    "a fixed 64 that is cut": "5100000000000000",
    "a fixed 32 that is cut": "fd06000000",
    "the field number zero": "0001",
    "the field number zero, wire type 2": "0200",
    "a field number beyond 29 bits": "888080801001",
    "a group": "0b0c",
    "an unknown group": "fb06fc06",
    "the end of a group": "0c",
    "wire type 6": "0e",
    "wire type 7": "0f",
    "a message that ends in the middle of a field": "62023a01",
    "a message whose number runs on behind it": "6201080801",
    "a message whose length runs on behind it": "62013a0161",
    "a packed number that does not end": "6a0180",
    "packed doubles that are cut": "720400000000",
    "a broken map entry": "8a01010a",
    "broken JSON": "b2010111",
}


@rows("name", BROKEN)
def test_broken_bytes_are_a_wire_error(name: str) -> None:
    with pytest.raises(WireError):
        decode("Toy", bytes.fromhex(BROKEN[name]))
    with pytest.raises(WireError):
        members("Toy", bytes.fromhex(BROKEN[name]))


#: Values that a field cannot hold, and what the error says.
UNFIT: dict[str, tuple[Any, str]] = {
    "a member that the message lacks": ({"i33": 1}, "Toy has no i33"),
    "two of a oneof": ({"left": "", "right": {}}, "Toy holds one of left, right"),
    "an int32 too great": ({"i32": 2**31}, "Toy.i32: not an integer"),
    "an int32 too small": ({"i32": -(2**31) - 1}, "Toy.i32: not an integer"),
    "a negative uint32": ({"u32": -1}, "Toy.u32: not an integer"),
    "a uint64 too great": ({"u64": 2**64}, "Toy.u64: not an integer"),
    "text for a number": ({"i32": "1"}, "Toy.i32: not an integer"),
    "a float for a number": ({"i64": 1.0}, "Toy.i64: not an integer"),
    "a number for text": ({"text": 1}, "Toy.text: not a string"),
    "bytes for text": ({"text": b"a"}, "Toy.text: not a string"),
    "text for bytes": ({"raw": "a"}, "Toy.raw: not bytes"),
    "a number for bytes": ({"raw": 3}, "Toy.raw: not bytes"),
    "a number for a bool": ({"flag": 1}, "Toy.flag: not true or false"),
    "text for a double": ({"number": "a"}, "Toy.number: not a number"),
    "nothing for text": ({"text": None}, "Toy.text: not a string"),
    "nothing for a message": ({"toy": None}, "Toy.toy: Toy is not an object"),
    "text for a list": ({"texts": "abc"}, "Toy.texts: not a list"),
    "a list for a map": ({"by_name": [("a", {})]}, "Toy.by_name: not an object"),
    "a map's key of another type": ({"by_name": {1: {}}}, "not a string"),
    "what is no JSON": ({"json": b"a"}, "Toy.json: not a JSON value"),
    "what is no JSON, deep": ({"json": {"a": [b"secret"]}}, "not a JSON value"),
    "a JSON number beyond doubles": ({"json": 10**400}, "not a number"),
    "a list for a message": ([], "Toy is not an object"),
}


@rows("name", UNFIT)
def test_a_value_that_does_not_fit_is_named_and_not_told(name: str) -> None:
    value, says = UNFIT[name]
    with pytest.raises(WireError, match=says) as raised:
        encode("Toy", value)
    assert "secret" not in str(raised.value)


def nested(depth: int) -> dict[str, Any]:
    return {"toy": nested(depth - 1)} if depth > 1 else {}


def nested_bytes(depth: int) -> bytes:
    data = b""
    for _ in range(depth - 1):
        data = b"\x62" + varint(len(data)) + data
    return data


def test_messages_are_nested_up_to_the_limit() -> None:
    assert decode("Toy", nested_bytes(MAX_DEPTH)) == nested(MAX_DEPTH)
    assert encode("Toy", nested(MAX_DEPTH)) == nested_bytes(MAX_DEPTH)


def deep_json(depth: int) -> Any:
    return [deep_json(depth - 1)] if depth else None


@pytest.mark.parametrize("value", [nested(MAX_DEPTH + 1), nested(200), {"json": deep_json(40)}])
def test_messages_nested_deeper_are_refused(value: dict[str, Any]) -> None:
    with pytest.raises(WireError, match="deeper"):
        encode("Toy", value)


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 200, 2_000])
def test_bytes_nested_deeper_are_refused(depth: int) -> None:
    with pytest.raises(WireError, match="deeper"):
        decode("Toy", nested_bytes(depth))


def test_the_fields_of_a_payload_are_counted_wherever_they_are() -> None:
    inner = encode("Toy", {"flags": [True] * (MAX_FIELDS - 1)})
    for data in (b"\x08\x01" * MAX_FIELDS, b"\xf8\x06\x01" * MAX_FIELDS, inner):
        decode("Toy", data)
        with pytest.raises(WireError, match="more than"):
            decode("Toy", data + b"\x08\x01")
        with pytest.raises(WireError, match="more than"):
            decode("Toy", b"\x08\x01" + data)
    with pytest.raises(WireError, match="more than"):
        members("Toy", b"\x62\x00" * (MAX_FIELDS + 1))


@rows("number", [math.inf, -math.inf, 2.0**53, -(2.0**53), 2.0**53 + 2, 1e300, 0.1])
def test_a_json_number_is_read_as_it_was(number: float) -> None:
    read = decode("Value", encode("Value", number))
    assert read == number
    assert isinstance(read, int) == (abs(number) <= 2**53 and number != 0.1)


def test_not_a_number_is_read_as_it_was() -> None:
    assert math.isnan(decode("Value", encode("Value", math.nan)))
