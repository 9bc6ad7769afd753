"""The stock `protobuf` package with the same tables: another implementation to compare with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from google.protobuf import descriptor_pool, message_factory, struct_pb2, unknown_fields
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto

from proxy.providers.p5_cursor.wire.schema import Field, Schema

#: An opaque message is bytes in both, and an open enum reads as an int32 does.
TYPES = {"enum": "int32"}
JSON_MESSAGES = ("Value", "Struct", "ListValue")


def stock_classes(schema: Schema, package: str) -> dict[str, Any]:
    """message -> the class that the stock package makes of it."""
    file = FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")
    file.dependency.append(struct_pb2.DESCRIPTOR.name)
    own = [message for message in schema.messages if message not in JSON_MESSAGES]
    for message in own:
        _declare(file.message_type.add(name=_name(message)), schema, message, package)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(struct_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(file)
    found = {
        message: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{_name(message)}"))
        for message in own
    }
    for message in JSON_MESSAGES:
        found[message] = message_factory.GetMessageClass(pool.FindMessageTypeByName(f"google.protobuf.{message}"))
    return found


def _name(message: str) -> str:
    return message.replace(".", "_")


def _declare(declared: DescriptorProto, schema: Schema, message: str, package: str) -> None:
    fields = schema.fields(message)
    if any(field.oneof for field in fields):
        declared.oneof_decl.add(name="only_one")
    for field in fields:
        row = declared.field.add(name=field.name, number=field.number)
        row.label = row.LABEL_REPEATED if field.repeated or field.is_map else row.LABEL_OPTIONAL
        if field.is_map:
            entry = _declare_map(declared, schema, field, package)
            row.type, row.type_name = row.TYPE_MESSAGE, f".{package}.{declared.name}.{entry}"
            continue
        _set_type(row, field.type, package)
        if field.oneof:
            row.oneof_index = 0
    for row, field in zip(declared.field, fields, strict=True):
        if field.explicit and field.is_scalar and not field.oneof and not field.repeated:
            row.proto3_optional, row.oneof_index = True, len(declared.oneof_decl)
            declared.oneof_decl.add(name=f"_{field.name}")


def _declare_map(declared: DescriptorProto, schema: Schema, field: Field, package: str) -> str:
    name = "".join(part.capitalize() for part in field.name.split("_")) + "Entry"
    entry = declared.nested_type.add(name=name)
    entry.options.map_entry = True
    for part in schema.fields(field.type):
        row = entry.field.add(name=part.name, number=part.number, label=FieldDescriptorProto.LABEL_OPTIONAL)
        _set_type(row, part.type, package)
    return name


def _set_type(row: FieldDescriptorProto, kind: str, package: str) -> None:
    if kind in JSON_MESSAGES:
        row.type, row.type_name = row.TYPE_MESSAGE, f".google.protobuf.{kind}"
    elif kind[0].isupper():
        row.type, row.type_name = row.TYPE_MESSAGE, f".{package}.{_name(kind)}"
    else:
        row.type = getattr(row, f"TYPE_{TYPES.get(kind, kind).upper()}")


def unknown_numbers(message: Any) -> Iterator[int]:
    """The numbers of fields that the stock package does not know, in a message and those inside it."""
    yield from (field.field_number for field in unknown_fields.UnknownFieldSet(message))
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for inner in _messages(field, value):
            yield from unknown_numbers(inner)


def _messages(field: Any, value: Any) -> Iterator[Any]:
    if field.message_type.GetOptions().map_entry:
        yield from (item for item in value.values() if hasattr(item, "ListFields"))
    elif field.is_repeated:
        yield from value
    else:
        yield value


def has_map(schema: Schema, message: str, value: Any) -> bool:
    """The stock package writes the entries of a map in an order of its own."""
    if message in JSON_MESSAGES:
        return isinstance(value, dict | list)
    for field in schema.fields(message):
        if field.name not in value:
            continue
        contents = value[field.name] if field.repeated else [value[field.name]]
        if field.is_map or any(not field.is_scalar and has_map(schema, field.type, item) for item in contents):
            return True
    return False
