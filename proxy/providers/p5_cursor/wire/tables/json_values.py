"""JSON inside a message: `google.protobuf.Value`, `Struct` and `ListValue`."""

TABLE = """\
Value = |1 null_value enum(NullValue), |2 number_value double, |3 string_value string, |4 bool_value bool,
    |5 struct_value Struct, |6 list_value ListValue
Struct = 1 fields map<string,Value>
ListValue = 1 values Value[]
"""
