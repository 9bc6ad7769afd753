"""Names of the files of the log."""

from __future__ import annotations

import pytest

from proxy.observe.log.storage import safe_name


@pytest.mark.parametrize(
    ("part", "name"),
    [
        ("req_1-A.b", "req_1-A.b"),
        *((".", "_."), ("..", "_.."), ("../../etc", ".._.._etc"), ("a/b", "a_b"), ("é\n\0", "___")),
        ("", "unknown"),
        ("x" * 200, "x" * 160),
        ("." * 200, "_" + "." * 159),
    ],
)
def test_parts_of_names(part: str, name: str) -> None:
    assert safe_name(part) == name
