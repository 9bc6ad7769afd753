"""A message with a field of each kind; the agent's own have some kinds nowhere."""

from __future__ import annotations

from proxy.providers.p5_cursor.wire.protobuf import Codec
from proxy.providers.p5_cursor.wire.run_messages import TABLES
from proxy.providers.p5_cursor.wire.schema import Schema

TOY = Schema(
    """\
Toy = 1 i32 int32, 2 i64 int64, 3 u32 uint32, 4 u64 uint64, 5 flag bool, 6 kind enum(Kind), 7 text string, 8 raw bytes,
    9 opaque bytes(Other), 10 number double, 11 maybe int32?, 12 toy Toy, 13 numbers int32[], 14 doubles double[],
    15 texts string[], 16 toys Toy[], 17 by_name map<string,Toy>, 18 by_number map<int32,string>, |19 left string,
    |20 right Toy, 21 flags bool[], 22 json Value, 23 struct Struct, 24 list ListValue, 25 maybe_text string?,
    26 jsons map<string,Value>, 27 blobs bytes(Other)[], 28 empty Empty
Empty = (empty)
""",
    TABLES["json_values"],
)
CODEC = Codec(TOY)
encode, decode, members = CODEC.encode, CODEC.decode, CODEC.members
