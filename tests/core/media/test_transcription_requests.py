"""What a request for a transcript may say, and how each that says something else is refused."""

from __future__ import annotations

import pytest
from samples import rows

from core.media.bodies import BOUNDARY, WAV, form, part, read, refusal
from proxy.core.invalid import InvalidRequest
from proxy.core.media.recording_form import RecordingForm

MB = 1024 * 1024

Refused = tuple[int, str, str | None] | None


def invalid(param: str | None = None) -> Refused:
    return 400, "invalid_request", param


def unsupported(param: str | None = None) -> Refused:
    return 400, "unsupported_parameter", param


def recording(data: bytes = WAV, filename: str | None = "a.wav", media_type: str = "audio/wav") -> bytes:
    return part("file", data, filename=filename, media_type=media_type)


def large(size: int) -> bytes:
    return recording(WAV.ljust(size, b"\0"))


REQUESTS: list[tuple[list[bytes], Refused]] = [
    ([recording()], None),
    ([recording(), part("model", "whisper-1")], None),
    ([recording(), part("response_format", "json"), part("stream", "false")], None),
    ([recording(), part("response_format", ""), part("model", "m" * 100_000)], None),
    ([], invalid("file")),
    ([part("model", "whisper-1")], invalid("file")),
    ([recording(), recording()], invalid("file")),
    ([recording(b"")], invalid("file")),
    ([recording(), part("file", "x")], invalid("file")),
    ([part("file[]", WAV, filename="a.wav")], unsupported()),
    ([part("File", WAV, filename="a.wav")], unsupported()),
    ([part(None, WAV)], unsupported()),
    ([recording(), part("user", "u")], unsupported()),
    ([part("temperature", "0"), recording(b"")], unsupported("temperature")),
    ([part("prompt", "names"), recording()], unsupported("prompt")),
    ([part("timestamp_granularities[]", "word"), recording()], unsupported("timestamp_granularities[]")),
    ([part("include[]", "logprobs"), recording()], unsupported("include[]")),
    ([part("chunking_strategy", "auto"), recording()], unsupported("chunking_strategy")),
    ([part("stream", "true"), recording()], unsupported("stream")),
    *(
        ([part("response_format", name), recording()], unsupported("response_format"))
        for name in ("verbose_json", "srt", "vtt", "JSON", "diarized_json")
    ),
    ([large(25 * MB)], None),
    ([large(25 * MB + 1)], (413, "request_too_large", "file")),
    ([large(25 * MB + 1), part("prompt", "x")], unsupported("prompt")),
    # the file, then its type, then the language
    ([part("language", "x" * 65), recording(b"")], invalid("file")),
    ([part("language", "x" * 65), recording(media_type="text/plain")], invalid("file")),
    ([part("language", "x" * 65), recording()], invalid("language")),
    ([part("language", "é" * 33), recording()], invalid("language")),
    ([part("language", "é" * 32), recording()], None),
    ([part("language", f" {'x' * 64} "), recording()], None),
    ([part("language", "x" * 65), part("language", "en"), recording()], None),
]


@rows("parts, expected", REQUESTS)
def test_requests(parts: list[bytes], expected: Refused) -> None:
    assert refusal(RecordingForm(BOUNDARY), form(*parts)) == expected


def test_everything_of_a_request() -> None:
    body = form(
        recording(b"\x1a\x45\xdf\xa3\r\n--", "../recording.webm", "audio/webm;codecs=opus"),
        part("language", " en "),
        part("response_format", "text"),
    )
    request = read(RecordingForm(BOUNDARY), body)
    assert b"".join(request.audio) == b"\x1a\x45\xdf\xa3\r\n--"
    assert (request.name, request.media_type) == ("recording.webm", "audio/webm;codecs=opus")
    assert (request.language, request.as_text) == ("en", True)


@pytest.mark.parametrize("language", [[], [part("language", "  ")], [part("language", "en"), part("language", "")]])
def test_no_language(language: list[bytes]) -> None:
    assert read(RecordingForm(BOUNDARY), form(recording(), *language)).language is None


OCTETS = "application/octet-stream"
WEBM, MP4 = b"\x1a\x45\xdf\xa3 webm", b"\0\0\0\x20ftypM4A "

#: type that the part names, file name, first bytes -> type that goes out, None where it is refused
TYPES: list[tuple[str, str | None, bytes, str | None]] = [
    *(
        (f"audio/{kind}", "a.txt", b"?", f"audio/{kind}")
        for kind in ("flac", "m4a", "mp3", "mp4", "mpeg", "ogg", "wav", "wave", "webm", "x-m4a", "x-wav")
    ),
    ("Audio/WAV", "a.mp3", b"?", "audio/wav"),
    ("audio/webm; codecs=opus", None, b"?", "audio/webm; codecs=opus"),
    ("audio/webm;codecs=é", None, b"?", "audio/webm"),
    ("video/webm", "a.webm", b"?", "audio/webm"),
    ("video/webm;codecs=vp8", "a.webm", b"?", "audio/webm"),
    ("video/mp4", "a.mp4", b"?", "audio/mp4"),
    ("video/mpeg", "a.mpeg", b"?", "audio/mpeg"),
    (OCTETS, "a.wav", b"?", "audio/wav"),
    (OCTETS, "b/A.WAV", b"?", "audio/wav"),
    (OCTETS, "a.mpga", b"?", "audio/mpeg"),
    (OCTETS, "a.oga", b"?", "audio/ogg"),
    (OCTETS, "a.opus", b"?", "audio/ogg"),
    (OCTETS, "a.m4a", b"?", "audio/m4a"),
    ("audio/opus", "a", b"OggS", "audio/ogg"),
    ("audio/x-flac", "a", b"fLaC", "audio/flac"),
    ("audio/vnd.wave", "a", WAV, "audio/wav"),
    ("audio/mpga", "a", b"ID3", "audio/mp3"),
    ("audio/oga", "a.mp3", b"?", "audio/mp3"),
    ("application/ogg", "a.txt", b"OggS", "audio/ogg"),
    ("", "a.flac", b"?", "audio/flac"),
    ("", None, WEBM, "audio/webm"),
    ("", "", MP4, "audio/mp4"),
    ("", "audio", WAV, "audio/wav"),
    ("what?", "a.wav", b"?", "audio/wav"),
    ("", None, b"?", None),
    ("", "wav", b"?", None),
    (OCTETS, "a.txt", b"RIFF", None),
    (OCTETS, "a.wav.zip", b"PK", None),
    ("text/plain", "a.wav", WAV, None),
    ("audio/aac", "a.wav", WAV, None),
    ("video/quicktime", "a.mp4", MP4, None),
]


@rows("named, filename, data, expected", TYPES)
def test_types(named: str, filename: str | None, data: bytes, expected: str | None) -> None:
    body = form(recording(data, filename, named))
    if expected is None:
        assert refusal(RecordingForm(BOUNDARY), body) == invalid("file")
    else:
        assert read(RecordingForm(BOUNDARY), body).media_type == expected


#: what stands in the head of the part -> the name that goes out
NAMES = [
    ('filename="a.wav"', "a.wav"),
    ("filename=a.wav", "a.wav"),
    ('FILENAME = "a b.wav"', "a b.wav"),
    ('filename="C:\\recordings\\a.wav"', "a.wav"),
    ('filename="../../a.wav"', "a.wav"),
    ('filename="a/"', "audio.webm"),
    ('filename=".."', "audio.webm"),
    ('filename="."', "audio.webm"),
    ('filename=""', "audio.webm"),
    ("x=y", "audio.webm"),
    ('filename="a\\"b\\\\c.wav"', "c.wav"),
    ('filename="a\\"b.wav"', "ab.wav"),
    ('filename="a%22b;c.wav"', "a%22b;c.wav"),
    ('filename="a\tb.wav"', "ab.wav"),
    ('filename="狐.wav"', "狐.wav"),
    ("filename*=UTF-8''%E7%8B%90%0D%0A.wav", "狐.wav"),
    ("filename*=iso-8859-1'en'%E9.wav", "é.wav"),
    ("filename*=nonsense", "audio.webm"),
    ("filename=\"a.wav\"; filename*=UTF-8''b.wav", "a.wav"),
    (f'filename="{"é" * 126}abc.wav"', f"{'é' * 125}.wav"),
    (f'filename="{"a" * 300}"', "a" * 255),
    (f'filename="a.{"b" * 300}"', f"a.{'b' * 253}"),
]


@rows("written, expected", NAMES)
def test_names(written: str, expected: str) -> None:
    head = f"content-disposition: form-data; name=file; {written}\r\ncontent-type: audio/wav\r\n\r\n"
    assert read(RecordingForm(BOUNDARY), form(head.encode() + WAV)).name == expected


def test_a_form_has_26_mib() -> None:
    body = form(recording())
    assert refusal(RecordingForm(BOUNDARY), [body, bytes(26 * MB - len(body))]) is None
    too_large = (413, "request_too_large", None)
    assert refusal(RecordingForm(BOUNDARY), [body, bytes(26 * MB - len(body) + 1)]) == too_large


def test_a_recording_that_is_too_large_is_not_kept() -> None:
    reader = RecordingForm(BOUNDARY)
    reader.feed(form(large(25 * MB))[:-18])
    assert reader.held >= 25 * MB
    reader.feed(b"\0")
    assert reader.held < 100


@pytest.mark.parametrize("body", [form(recording(WAV, "y" * 5000, "y/" + "y" * 5000)), form(part("y" * 5000))])
def test_errors_repeat_little(body: bytes) -> None:
    with pytest.raises(InvalidRequest) as raised:
        read(RecordingForm(BOUNDARY), body)
    assert raised.value.message.count("y") <= 110
