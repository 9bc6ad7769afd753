"""What doctor tells of attempts whose answers are not what a service says."""

from __future__ import annotations

from samples import rows

from proxy.cli.doctor.attempts import SeenAttempt, attempt_lines

HOSTILE = [
    b"[" * 100_000,
    b"[" * 900 + b"]" * 900,
    b'{"a":' * 400 + b"1" + b"}" * 400,
    b"9" * 5000,
    b'{"choices": 5}',
    b'{"choices": [{"delta": 7}], "type": ["x"]}',
    b'{"error": NaN}',
    b"\xff\x00\xfe",
]


@rows("said", HOSTILE)
def test_an_answer_of_any_bytes_is_told(said: bytes) -> None:
    seen = SeenAttempt("http", "POST", "http://127.0.0.1:9/", {}, said)
    seen.error = said
    seen.raw += said
    lines = list(attempt_lines(seen))
    assert lines[0].startswith("sent: http POST") and any(line.startswith("events: 1") for line in lines)
    assert max(map(len, lines)) < 100_000
