"""Pictures that go along with a run."""

from __future__ import annotations

import base64
from typing import Any

from core.strategies import requests
from hypothesis import given
from samples import rows

from proxy.providers.p5_cursor.images import selected_images


def image(data: Any = "aGVsbG8=", media_type: Any = "image/png", kind: str = "base64") -> dict[str, Any]:
    return {"type": "image", "source": {"type": kind, "media_type": media_type, "data": data}}


def linked(url: str = "https://x.invalid/i.png") -> dict[str, Any]:
    return {"type": "image", "source": {"type": "url", "url": url}}


def result(*content: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": "c", "content": list(content)}


def document(*content: Any) -> dict[str, Any]:
    return {"type": "document", "source": {"type": "content", "content": list(content)}}


def said(role: str, *content: Any) -> dict[str, Any]:
    return {"role": role, "content": list(content)}


def test_the_example_of_the_wire_document() -> None:
    found = selected_images({"messages": [said("user", result({"type": "document"}), image(), linked())]})
    assert [(one["data"], one["path"], one["mime_type"]) for one in found] == [
        (b"hello", "claude-image-1.png", "image/png")
    ]
    assert set(found[0]) == {"uuid", "path", "mime_type", "data"}


A, B, C = (base64.b64encode(name.encode()).decode() for name in "abc")


@rows("messages, paths", [
        ([said("user", image(A), image(B, "image/jpeg"))], ["a 1.png", "b 2.jpg"]),
        ([said("user", image(A)), said("user", image(B))], ["a 1.png", "b 2.png"]),
        ([said("user", image(A)), said("assistant", {}), said("user", image(B))], ["b 1.png"]),
        ([said("user", image(A)), said("assistant", image(C))], ["a 1.png"]),
        ([said("user", image(A)), said("system", image(C)), said("user", image(B))], ["b 1.png"]),
        ([said("user", image(A)), said("assistant"), {"role": "user", "content": "and now?"}], []),
        ([said("assistant", image(A))], []),
        ([said("user", image(A), result(image(B), result(image(C))))], ["a 1.png", "b 2.png", "c 3.png"]),
        ([said("user", linked(), image(A))], ["a 1.png"]),
        ([said("user", document(image(A), linked()), document(image(B)))], ["a 1.png", "b 2.png"]),
        ([said("user", {"type": "search_result", "content": [image(C)]})], ["c 1.png"]),
        ([said("user", result(document(image(A))))], []),
        ([said("user", image("***"), image(""), image(None), image(B))], ["b 4.png"]),
        ([said("user", image("YQ"), image(" Y Q = = \n"))], ["a 1.png", "a 2.png"]),
        ([said("user", image(A, None), image(B, "image/gif"))], ["a 1.png", "b 2.gif"]),
        ([said("user", image(A, "image/webp"))], ["a 1.webp"]),
        ([said("user", image(A, "image/tiff"), image(B, "IMAGE/JPG"))], ["a 1.img", "b 2.jpg"]),
        ([said("user", linked(f"data:image/gif;base64,{A}"))], ["a 1.gif"]),
        ([said("user", {"type": "image"}, 3, None)], []),
        ([3, {"role": "user"}], []),
        (None, []),
    ])  # fmt: skip
def test_pictures_of_the_last_turn_of_the_user_go_along(messages: Any, paths: list[str]) -> None:
    found = selected_images({"messages": messages})
    assert [f"{one['data'].decode()} {one['path'].removeprefix('claude-image-')}" for one in found] == paths


@rows("size", [1, 196_607, 196_608, 196_609, 600_000])
def test_large_pictures_come_through_whole(size: int) -> None:
    data = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    text = base64.b64encode(data).decode()
    for form in (text, text.rstrip("="), f"{text[:5]}\n{text[5:]}"):
        (found,) = selected_images({"messages": [said("user", image(form))]})
        assert found["data"] == data
    padded = "A" * (256 * 1024 - 4) + "QQ=="
    assert selected_images({"messages": [said("user", image(padded + "QUFB"))]}) == []


def test_equal_pictures_have_equal_ids_in_every_turn() -> None:
    first, second, third = selected_images({"messages": [said("user", image(A), image(B), image(A, "image/gif"))]})
    (again,) = selected_images({"messages": [said("user", result(image(A)))]})
    assert first["uuid"] == third["uuid"] == again["uuid"] != second["uuid"]
    assert first["uuid"][14] == "5"


def test_a_text_only_turn_resends_no_picture() -> None:
    """`Image not found [internal]` on a text-only turn."""
    earlier = [said("user", image(A)), said("assistant", {"type": "text", "text": "a cat"})]
    assert selected_images({"messages": [*earlier, {"role": "user", "content": "thanks"}]}) == []


@given(requests)
def test_any_request_is_survived(request: dict[str, Any]) -> None:
    selected_images(request)
