"""What a request for images may say, in both forms, and how each that says something else is refused."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from samples import rows

from core.media.bodies import BOUNDARY, GIF, JPEG, MODEL, PNG, WEBP, data_url, form, part, read, refusal
from proxy.core.invalid import InvalidRequest
from proxy.core.media import image_fields
from proxy.core.media.image_requests import EditForm, ImageJson
from proxy.core.media.requests import BodyReader, ImageRequest

DEFAULTS = {"prompt": "x", "model": MODEL, "background": "auto", "quality": "auto", "size": "auto"}
#: What stands for a MiB where the limits are lowered.
UNIT = 64 * 1024


def invalid(param: str | None = None) -> tuple[int, str, str | None]:
    return 400, "invalid_request", param


def unsupported(param: str | None = None) -> tuple[int, str, str | None]:
    return 400, "unsupported_parameter", param


def too_large(param: str | None = None) -> tuple[int, str, str | None]:
    return 413, "request_too_large", param


BROKEN = (400, "invalid_multipart", None)


def contents(request: ImageRequest) -> list[tuple[str, bytes]]:
    """Type and bytes of each picture."""
    return [(image.media_type, base64.b64decode(b"".join(image.base64), validate=True)) for image in request.images]


FIELDS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({"prompt": "  a fox\n"}, {"prompt": "  a fox\n"}),
    ({"prompt": "\u200b"}, {"prompt": "\u200b"}),
    ({"prompt": "x" * 5000}, {"prompt": "x" * 5000}),
    ({"model": MODEL, "background": None, "quality": None, "size": None, "n": None}, {}),
    ({"background": "opaque", "quality": "low", "size": "1024x1024"},) * 2,
    ({"background": "transparent", "quality": "high", "size": " "},) * 2,
    ({"size": "huge", "quality": "medium", "n": 1},) * 2,
    ({"n": 10}, {"n": 10}),
]


@rows("given, changed", FIELDS)
def test_fields_go_on_with_defaults_in_their_order(given: dict[str, Any], changed: dict[str, Any]) -> None:
    request = read(ImageJson(MODEL, edits=False), json.dumps({"prompt": "x"} | given).encode())
    assert json.dumps(request.fields) == json.dumps(DEFAULTS | changed)
    assert not request.edits


#: the JSON of a generation -> how it is refused
GENERATIONS: list[tuple[str, tuple[int, str, str | None] | None]] = [
    ('{"prompt":"x"}', None),
    (' {"prompt" : "x"}\r\n\t', None),
    ('{"prompt":"x","response_format":"url"}', unsupported("response_format")),
    ('{"prompt":"x","response_format":null}', unsupported("response_format")),
    ('{"prompt":"x","mask":"m"}', unsupported("mask")),
    ('{"prompt":"x","user":"u"}', unsupported("user")),
    ('{"prompt":"x","stream":false}', unsupported("stream")),
    ('{"prompt":"x","images":[]}', unsupported("images")),
    ("{}", invalid("prompt")),
    ('{"prompt":null}', invalid("prompt")),
    ('{"prompt":7}', invalid("prompt")),
    ('{"prompt":["x"]}', invalid("prompt")),
    ('{"prompt":"x","model":7}', invalid("model")),
    ('{"prompt":"x","size":{}}', invalid("size")),
    ('{"prompt":" "}', invalid("prompt")),
    (r'{"prompt":"\u00a0\n"}', invalid("prompt")),
    ('{"prompt":""}', invalid("prompt")),
    ('{"prompt":"x","n":0}', invalid("n")),
    ('{"prompt":"x","n":11}', invalid("n")),
    ('{"prompt":"x","n":255}', invalid("n")),
    ('{"prompt":"x","n":256}', invalid("n")),
    ('{"prompt":"x","n":-1}', invalid("n")),
    ('{"prompt":"x","n":1.0}', invalid("n")),
    ('{"prompt":"x","n":1e0}', invalid("n")),
    ('{"prompt":"x","n":"2"}', invalid("n")),
    ('{"prompt":"x","n":true}', invalid("n")),
    ('{"prompt":"x","n":%s}' % ("1" * 5000), invalid()),
    ('{"prompt":"x","model":"gpt-image-1"}', invalid("model")),
    ('{"prompt":"x","model":""}', invalid("model")),
    ('{"prompt":"x","background":"Auto"}', invalid("background")),
    ('{"prompt":"x","quality":"best"}', invalid("quality")),
    ('{"prompt":"x","size":""}', invalid("size")),
    # the first failing step wins
    ('{"prompt":" ","n":0}', invalid("prompt")),
    ('{"prompt":"x","n":0,"model":"m"}', invalid("model")),
    ('{"prompt":"x","background":"b","n":0}', invalid("n")),
    ('{"prompt":"x","quality":"b","background":"b"}', invalid("background")),
    ('{"prompt":"x","quality":"b","size":""}', invalid("quality")),
    ('{"prompt":" ","user":"u"}', unsupported("user")),
    # strictly JSON
    ("", invalid()),
    ('["x"]', invalid()),
    ('"x"', invalid()),
    ("null", invalid()),
    ('\ufeff{"prompt":"x"}', invalid()),
    ('{"prompt":"x"}{', invalid()),
    ('{"prompt":"x"', invalid()),
    ('{"prompt":"x', invalid()),
    ('{"prompt":"x\\', invalid()),
    ('{"prompt":"x",}', invalid()),
    ("{'prompt':'x'}", invalid()),
    ('{"prompt":"x","prompt":"y"}', invalid()),
    (r'{"prompt":"x","\u0070rompt":"y"}', invalid()),
    ('{"prompt":"x","size":NaN}', invalid()),
    ('{"prompt":NaN}', invalid()),
    (r'{"prompt":"\ud800"}', invalid()),
    (r'{"prompt":"\ud83d\ude00"}', None),
    ('{"prompt":"a\nb"}', invalid()),
    (r'{"prompt":"\x"}', invalid()),
    ("[" * 100_000, invalid()),
    ("[" * 5000, invalid()),
    ('{"prompt":' * 5000, invalid()),
]


@rows("body, expected", GENERATIONS)
def test_generations(body: str, expected: tuple[int, str, str | None] | None) -> None:
    assert refusal(ImageJson(MODEL, edits=False), body.encode()) == expected


def test_a_generation_is_utf8() -> None:
    assert refusal(ImageJson(MODEL, edits=False), b'{"prompt":"\xff"}') == invalid()
    assert refusal(ImageJson(MODEL, edits=False), '{"prompt":"x"}'.encode("utf-16")) == invalid()


def test_a_generation_has_256_kib() -> None:
    body = b'{"prompt":"x"}'
    assert refusal(ImageJson(MODEL, edits=False), body.ljust(262_144)) is None
    assert refusal(ImageJson(MODEL, edits=False), body.ljust(262_145)) == too_large()
    assert refusal(ImageJson(MODEL, edits=False), b"?" * 262_145) == too_large()


URL = data_url()
ONE = [{"image_url": URL}]


def unpadded(data: bytes) -> str:
    return data_url(data).rstrip("=")


#: members of the JSON of an edit -> how it is refused
EDITS: list[tuple[dict[str, Any], tuple[int, str, str | None] | None]] = [
    ({"images": ONE}, None),
    ({"images": ONE * 5}, None),
    ({}, invalid("images")),
    ({"images": None}, invalid("images")),
    ({"images": {"image_url": URL}}, invalid("images")),
    ({"images": [URL]}, invalid("images")),
    ({"images": [[URL]]}, invalid("images")),
    ({"images": [{}]}, invalid("images")),
    ({"images": [{"image_url": None}]}, invalid("images")),
    ({"images": [{"image_url": URL, "detail": "high"}]}, invalid("images")),
    ({"images": []}, invalid("images")),
    ({"images": ONE * 6}, invalid("images")),
    ({"images": ONE * 6, "user": "u"}, unsupported("user")),
    ({"images": [{"image_url": "https://e/x.png"}]}, invalid("images")),
    ({"images": [{"image_url": "file:///x.png"}]}, invalid("images")),
    ({"images": [{"image_url": URL.partition(",")[2]}]}, invalid("images")),
    ({"images": [{"image_url": ""}]}, invalid("images")),
    ({"images": [{"image_url": "data:image/png,abc"}]}, invalid("images")),
    ({"images": [{"image_url": URL.replace(";base64", ";charset=x;base64")}]}, invalid("images")),
    ({"images": [{"image_url": URL.replace("data:image/png", "DATA:Image/PNG")}]}, None),
    ({"images": [{"image_url": data_url(JPEG, "image/jpg")}]}, None),
    ({"images": [{"image_url": data_url(PNG, "image/jpeg")}]}, invalid("images")),
    ({"images": [{"image_url": data_url(PNG, "image/jpg")}]}, invalid("images")),
    ({"images": [{"image_url": data_url(PNG, "")}]}, invalid("images")),
    ({"images": [{"image_url": data_url(b"hello", "image/png")}]}, invalid("images")),
    ({"images": [{"image_url": data_url(b"", "image/png")}]}, invalid("images")),
    ({"images": [{"image_url": data_url(b"GIF88a", "image/gif")}]}, invalid("images")),
    ({"images": [{"image_url": data_url(b"BM" + PNG, "image/bmp")}]}, invalid("images")),
    ({"images": [{"image_url": data_url(b" " + PNG)}]}, invalid("images")),
    ({"images": [{"image_url": data_url(PNG[:8])}]}, None),
    ({"images": [{"image_url": data_url(GIF[:6], "image/gif")}]}, None),
    ({"images": [{"image_url": data_url(b"\xff\xd8\xff", "image/jpeg")}]}, None),
    ({"images": [{"image_url": data_url(WEBP[:12], "image/webp")}]}, None),
    ({"images": [{"image_url": unpadded(PNG[:8])}]}, invalid("images")),
    ({"images": [{"image_url": data_url(PNG[:8]) + "="}]}, invalid("images")),
    ({"images": [{"image_url": data_url(PNG[:9]) + "===="}]}, invalid("images")),
    ({"images": [{"image_url": URL[:60] + "=" + URL[61:]}]}, invalid("images")),
    ({"images": [{"image_url": URL[:60] + "-" + URL[61:]}]}, invalid("images")),
    ({"images": [{"image_url": URL[:60] + " " + URL[61:]}]}, invalid("images")),
    ({"images": [{"image_url": URL[:60] + "\r\n" + URL[62:]}]}, invalid("images")),
    ({"images": [{"image_url": URL[:60] + "é" + URL[61:]}]}, invalid("images")),
    ({"images": [{"image_url": data_url(PNG[:8])[:-2] + "p="}]}, invalid("images")),  # not padded for what it has
    ({"images": [{"image_url": data_url(PNG[:8])[:-2] + "="}]}, invalid("images")),
    ({"images": [{"image_url": data_url(PNG[:10])[:-3] + "x=="}]}, invalid("images")),  # bits that are lost
    # the first failing step wins
    ({"images": [{"image_url": "x"}], "model": "m"}, invalid("images")),
    ({"images": [{"image_url": "x"}], "n": 256}, invalid("n")),
    ({"images": [{"image_url": "x"}], "prompt": " "}, invalid("images")),
    ({"images": ONE, "prompt": " "}, invalid("prompt")),
    ({"images": ONE, "mask": None}, unsupported("mask")),
    ({"images": ONE, "n": 11}, invalid("n")),
]


@rows("given, expected", EDITS)
def test_edits_in_json(given: dict[str, Any], expected: tuple[int, str, str | None] | None) -> None:
    assert refusal(ImageJson(MODEL, edits=True), json.dumps({"prompt": "x"} | given).encode()) == expected


def test_pictures_in_json_keep_their_order_and_type() -> None:
    urls = [data_url(JPEG, "image/JPG"), data_url(PNG), data_url(GIF, "image/gif"), data_url(WEBP, "image/webp")]
    body = {"images": [{"image_url": url} for url in urls], "prompt": "x", "n": 2}
    request = read(ImageJson(MODEL, edits=True), json.dumps(body).encode())
    assert contents(request) == [
        ("image/jpeg", JPEG),
        ("image/png", PNG),
        ("image/gif", GIF),
        ("image/webp", WEBP),
    ]
    assert request.fields == DEFAULTS | {"n": 2}


def escaped(url: str) -> str:
    """As serialisers write it that keep pages of HTML in mind."""
    return url.replace("/", r"\/").replace("+", r"\u002B").replace("=", r"\u003d")


@pytest.mark.parametrize("size", [100, 1000, 100_000])
def test_base64_may_be_escaped(size: int) -> None:
    data = PNG + bytes(range(256)) * (size // 256) + b"\xfb\xff"
    body = escaped(json.dumps({"prompt": "x", "images": [{"image_url": data_url(data)}]}))
    assert contents(read(ImageJson(MODEL, edits=True), body.encode())) == [("image/png", data)]


def test_a_long_prompt_is_read_like_a_short_one() -> None:
    prompt = 'a "fox" \\ é 😀\n\u2028' * 1000
    for ascii_only in (True, False):
        body = json.dumps({"prompt": prompt, "images": ONE, "size": "s" * 3000}, ensure_ascii=ascii_only)
        request = read(ImageJson(MODEL, edits=True), body.encode())
        assert request.fields["prompt"] == prompt
        assert request.fields["size"] == "s" * 3000


#: what a long string may not hold either
@rows("wrong", [b"\n", b"\\x", b"\\ud800", b"\\udc00\\ud800", b"\\u12x", b"\xff", b"\xed\xa0\x80"])
@rows("where", [0, 2000, 4000])
def test_a_long_string_is_as_strict_as_a_short_one(wrong: bytes, where: int) -> None:
    text = b"a" * where + wrong + b"a" * (4000 - where)
    assert refusal(ImageJson(MODEL, edits=True), b'{"images":[],"prompt":"%b"}' % text) == invalid()


@rows(
    "body",
    [
        '{"%s":1}' % ("k" * 5000),
        '{"prompt":"x","n":"%s"}' % ("7" * 5000),
        '{"prompt":"%s","images":NaN}' % ("x" * 5000),
        '{"prompt":NaN,"images":"%s"}' % ("x" * 5000),
        json.dumps({"prompt": "x", "images": ["x" * 2000] * 50}),
        json.dumps({"prompt": "x", "images": [[]] * 200_000}),
        "{" + '"a":1,' * 100_000 + '"b":1}',
        '"%s"' % ("x" * 5000),
    ],
)
def test_large_bodies_that_are_none(body: str) -> None:
    status, code, param = refusal(ImageJson(MODEL, edits=True), body.encode()) or (0, "", None)
    assert (status, code) == (400, "invalid_request") and param in (None, "images")


@pytest.fixture
def _units(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limits in units instead of MiB."""
    assert (image_fields.MAX_IMAGE_BYTES, image_fields.MAX_ALL_BYTES) == (20 << 20, 50 << 20)
    assert (ImageJson(MODEL, edits=True).limit, EditForm.limit) == (64 << 20, 64 << 20)
    monkeypatch.setattr(image_fields, "MAX_IMAGE_BYTES", 20 * UNIT)
    monkeypatch.setattr(image_fields, "MAX_ALL_BYTES", 50 * UNIT)
    monkeypatch.setattr("proxy.core.media.image_requests.EDIT_BYTES", 64 * UNIT)
    monkeypatch.setattr(EditForm, "limit", 64 * UNIT)


@pytest.mark.usefixtures("_units")
def test_an_image_in_json_has_20_mib() -> None:
    for size, expected in ((20 * UNIT, None), (20 * UNIT + 1, too_large("images"))):
        body = json.dumps({"images": [{"image_url": data_url(PNG.ljust(size, b"\0"))}], "prompt": "x"})
        assert refusal(ImageJson(MODEL, edits=True), body.encode()) == expected


@pytest.mark.usefixtures("_units")
@pytest.mark.parametrize("filler", ["blanks", "prompt", "images"])
def test_an_edit_in_json_has_64_mib(filler: str) -> None:
    url, limit = data_url(PNG.ljust(12 * UNIT - 300, b"\0")), 64 * UNIT
    images, prompt = [{"image_url": url}] * (4 if filler == "images" else 1), "x"
    body = json.dumps({"images": images, "prompt": prompt}).encode()
    missing = limit - len(body)
    body = body.replace(b'"x"', b'"%b"' % (b"x" * (missing + 1))) if filler == "prompt" else body.ljust(limit)
    assert len(body) == limit
    chunks = [body[start : start + UNIT] for start in range(0, limit, UNIT)]
    assert refusal(ImageJson(MODEL, edits=True), chunks) is None
    assert refusal(ImageJson(MODEL, edits=True), [*chunks, b" "]) == too_large()


def picture(data: bytes = PNG, name: str = "image", **head: str) -> bytes:
    return part(name, data, filename=head.get("filename", "a.png"), media_type=head.get("media_type", "image/png"))


PROMPT = part("prompt", "x")

#: parts of the form of an edit -> how it is refused
FORMS: list[tuple[list[bytes], tuple[int, str, str | None] | None]] = [
    ([picture(), PROMPT], None),
    ([PROMPT, *[picture(name="image[]")] * 5], None),
    ([picture(), part("prompt", "x", filename="p.txt")], None),
    ([picture(), PROMPT, part("n", "2"), part("model", MODEL), part("size", "1x1")], None),
    ([part("image", PNG), PROMPT], None),
    ([picture(media_type="text/plain"), PROMPT], None),
    ([], invalid("image")),
    ([PROMPT], invalid("image")),
    ([picture()], invalid("prompt")),
    ([picture(), part("prompt", " ")], invalid("prompt")),
    ([*[picture()] * 6, PROMPT], invalid("image")),
    ([*[picture(b"x")] * 6], invalid("image")),
    ([picture(b"hello"), PROMPT], invalid("image")),
    ([picture(b"")], invalid("image")),
    ([picture(b"hello")], invalid("image")),
    ([picture(base64.b64encode(PNG)), PROMPT], invalid("image")),
    ([part("mask", PNG), picture(b"x")], unsupported("mask")),
    ([picture(b"x"), part("mask", PNG)], unsupported("mask")),
    ([part("user", "u")], unsupported("user")),
    ([picture(), PROMPT, part("response_format", "b64_json")], unsupported("response_format")),
    ([picture(name="images")], unsupported("images")),
    ([picture(name="image[0]")], unsupported("image[0]")),
    ([picture(name="Image")], unsupported("Image")),
    ([part(None, "x")], unsupported()),
    ([part("", "x")], unsupported()),
    ([part("n" * 50_000, "x")], BROKEN),
    ([part("n" * 5000, "x")], unsupported("n" * 99 + "…")),
    ([part("n", "x"), part("mask", PNG)], invalid("n")),
    ([part("mask", PNG), part("n", "x")], unsupported("mask")),
    ([part("n", "256")], invalid("n")),
    ([part("n", "")], invalid("n")),
    ([part("n", " 2")], invalid("n")),
    ([part("n", "2.0")], invalid("n")),
    ([part("n", "٢")], invalid("n")),
    ([part("n", "9" * 1000)], invalid("n")),
    ([part("n", "0"), picture(), PROMPT], invalid("n")),
    ([part("n", "11"), picture(), PROMPT], invalid("n")),
    ([part("n", "11"), part("n", "10"), picture(), PROMPT], None),
    ([part("n", "002"), picture(), PROMPT], None),
    ([part("model", ""), picture(), PROMPT], invalid("model")),
    ([part("model", "dall-e-2"), part("model", MODEL), picture(), PROMPT], None),
    ([part("background", "Auto"), picture(), PROMPT], invalid("background")),
    ([part("quality", "hd"), picture(), PROMPT], invalid("quality")),
    ([part("size", ""), picture(), PROMPT], invalid("size")),
    ([part("model", "m"), picture(b"x"), part("prompt", " ")], invalid("image")),
]


@rows("parts, expected", FORMS)
def test_edits_as_forms(parts: list[bytes], expected: tuple[int, str, str | None] | None) -> None:
    assert refusal(EditForm(BOUNDARY, MODEL), form(*parts)) == expected


def test_a_form_says_what_json_says() -> None:
    parts = [picture(JPEG), part("prompt", "a\r\nfox é"), picture(PNG, "image[]"), part("n", "3"), part("size", "1x1")]
    request = read(EditForm(BOUNDARY, MODEL), form(*parts, part("prompt", " the last ")))
    assert contents(request) == [("image/jpeg", JPEG), ("image/png", PNG)]
    assert request.fields == DEFAULTS | {"prompt": " the last ", "size": "1x1", "n": 3}
    assert list(request.fields) == ["prompt", "model", "background", "quality", "size", "n"]


#: type of the part and its bytes -> the text
TEXTS = [
    ("", "é".encode(), "é"),
    ("text/plain", b"\xff\xc3", "\ufffd\ufffd"),
    ("text/plain; charset=iso-8859-1", b"\xe9\x80", "é€"),
    ('text/plain; charset="UTF-16LE"', "é".encode("utf-16-le"), "é"),
    ("text/plain; charset=Shift_JIS", "狐".encode("shift_jis"), "狐"),
    ("text/plain; charset=zlib", b"abc", "abc"),
    ("text/plain; charset=unicode_escape", rb"\n", r"\n"),
    ("text/plain; charset", b"abc", "abc"),
    ("", b"\xef\xbb\xbfx", "x"),
    ("text/plain; charset=iso-8859-1", b"\xef\xbb\xbf\xc3\xa9", "é"),
    ("", b"\xff\xfex\0", "x"),
]


@rows("media_type, data, expected", TEXTS)
def test_texts_of_a_form_have_a_charset(media_type: str, data: bytes, expected: str) -> None:
    body = form(picture(), part("prompt", data, media_type=media_type))
    assert read(EditForm(BOUNDARY, MODEL), body).fields["prompt"] == expected


#: sizes of pictures -> how they are refused
SIZES = [
    ([20 * UNIT], None),
    ([20 * UNIT + 1], too_large("image")),
    ([20 * UNIT, 20 * UNIT, 10 * UNIT], None),
    ([20 * UNIT, 20 * UNIT, 10 * UNIT + 1], too_large("image")),
    ([20 * UNIT + 1, 1, 1, 1, 1, 1], invalid("image")),
]


@pytest.mark.usefixtures("_units")
@pytest.mark.parametrize(("sizes", "expected"), SIZES)
def test_pictures_of_a_form_are_bounded(sizes: list[int], expected: tuple[int, str, str | None] | None) -> None:
    body = form(PROMPT, *(picture(PNG.ljust(size, b"\0")[:size]) for size in sizes))
    assert refusal(EditForm(BOUNDARY, MODEL), body) == expected


@pytest.mark.usefixtures("_units")
def test_what_follows_a_picture_that_is_too_large_may_be_worse() -> None:
    reader = EditForm(BOUNDARY, MODEL)
    reader.feed(form(picture(PNG.ljust(20 * UNIT, b"\0")))[:-20])
    assert reader.held > 20 * UNIT
    reader.feed(b"\0" * 100)
    assert reader.held < 100
    assert refusal(reader, b"\r\n--%b\r\n" % BOUNDARY + part("mask") + b"\r\n") == unsupported("mask")


@pytest.mark.usefixtures("_units")
def test_a_form_has_64_mib() -> None:
    body = form(picture(), PROMPT)
    assert refusal(EditForm(BOUNDARY, MODEL), [body, bytes(64 * UNIT - len(body))]) is None
    assert refusal(EditForm(BOUNDARY, MODEL), [body, bytes(64 * UNIT - len(body) + 1)]) == too_large()
    assert refusal(EditForm(BOUNDARY, MODEL), bytes(64 * UNIT + 1)) == too_large()


@rows(
    "make, body",
    [
        (ImageJson(MODEL, edits=True), json.dumps({"prompt": "x", "images": ONE, "y" * 200_000: 1})),
        (ImageJson(MODEL, edits=True), json.dumps({"prompt": "x", "images": ONE, "y" * 900: 1})),
        (ImageJson(MODEL, edits=True), json.dumps({"prompt": "x", "images": ONE, "model": "y" * 200_000})),
        (ImageJson(MODEL, edits=True), json.dumps({"prompt": "x", "images": "y" * 200_000})),
        (ImageJson(MODEL, edits=True), json.dumps({"prompt": "x", "images": [{"image_url": "y" * 200_000}]})),
        (ImageJson(MODEL, edits=False), json.dumps({"prompt": "x", "quality": "y" * 900})),
        (EditForm(BOUNDARY, MODEL), form(picture(), PROMPT, part("model", "y" * 200_000)).decode("latin-1")),
        (EditForm(BOUNDARY, MODEL), form(part("n", "y" * 200_000)).decode("latin-1")),
        (EditForm(BOUNDARY, MODEL), form(part("y" * 7000)).decode("latin-1")),
    ],
)
def test_errors_repeat_little(make: BodyReader[ImageRequest], body: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        read(make, body.encode("latin-1"))
    assert raised.value.message.count("y") <= 110
