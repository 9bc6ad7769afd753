"""What is held of a body is gone with its reader, at once: a garbage collection may come much later."""

from __future__ import annotations

import gc
import weakref
from typing import Any

from media_live import Form, edit, recording
from samples import rows

from proxy.core.media.readers import boundary_of, edit_form, edit_json, generation_json, transcription_form

BOUNDARY = boundary_of(Form(()).content_type)
READERS: dict[str, tuple[Any, bytes]] = {
    "generation": (lambda: generation_json("m"), b'{"prompt": "' + b"x" * 10_000),
    "edit": (lambda: edit_json("m"), b'{"images": [{"image_url": "' + b"x" * 10_000),
    "edit form": (lambda: edit_form(BOUNDARY, "m"), edit(n="1").body),
    "recording": (lambda: transcription_form(BOUNDARY), recording(response_format="json").body),
}


@rows("cut", [0, 10, 100])
@rows("name", READERS)
def test_a_reader_leaves_nothing_behind(name: str, cut: int) -> None:
    make, body = READERS[name]
    reader = make()
    gc.disable()
    try:
        reader.feed(body[: len(body) - cut])
        left = weakref.ref(reader)
        del reader
        assert left() is None
    finally:
        gc.enable()
