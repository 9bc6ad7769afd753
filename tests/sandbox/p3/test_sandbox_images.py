"""How large the simulated P3 finds a picture, and whether it looks at it."""

import base64
import struct

import pytest
from pictures import png

from proxy.sandbox.p3.input_checks import Size, image_fault, size_of

GIF = struct.pack("<HH", 40, 30)
JPEG_APP = b"\xff\xe0\x00\x04ab"
JPEG_FRAME = b"\xff\xc2\x00\x11\x08" + struct.pack(">HH", 30, 40)
RIFF = b"RIFF\0\0\0\0WEBP"

#: The first bytes of a picture -> its size.
SIZES: list[tuple[bytes, Size | None]] = [
    (base64.b64decode(png(40, 30)), (40, 30)),
    (b"GIF87a" + GIF, (40, 30)),
    (b"GIF89a" + GIF, (40, 30)),
    (b"\xff\xd8" + JPEG_FRAME, (40, 30)),
    (b"\xff\xd8" + JPEG_APP + b"\xff\x01" + JPEG_FRAME, (40, 30)),
    (RIFF + b"VP8 " + b"\0" * 10 + struct.pack("<HH", 40, 30), (40, 30)),
    (RIFF + b"VP8L" + b"\0" * 5 + struct.pack("<I", 39 | 29 << 14), (40, 30)),
    (RIFF + b"VP8X" + b"\0" * 8 + b"\x27\0\0\x1d\0\0", (40, 30)),
    (RIFF + b"WAVE", None),
    (b"\xff\xd8" + JPEG_APP, None),
    (b"\xff\xd8no jpeg", None),
    (b"GIF89a", None),
    (b"BM", None),
    (b"", None),
]


@pytest.mark.parametrize(("data", "size"), SIZES)
def test_sizes(data: bytes, size: Size | None) -> None:
    assert size_of(data) == size
    fault = image_fault(f"data:image/png;base64,{base64.b64encode(data).decode()}")
    assert (fault is None) is (size is not None)


@pytest.mark.parametrize(
    ("width", "height", "seen"), [(8, 64, True), (8, 63, False), (7, 99, False), (23, 23, True), (22, 23, False)]
)
def test_the_smallest(width: int, height: int, seen: bool) -> None:
    assert (image_fault(f"data:image/png;base64,{png(width, height)}") is None) is seen
