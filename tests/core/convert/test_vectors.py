"""The vectors on disk: whole translations, in every direction. The case list is the folder."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

from checks import check_message_stream
from samples import rows

from core.openai_bodies import check_hub
from core.strategies import pieces
from core.vector_cases import ANSWERS, DIALECTS, REQUESTS, chat_translated, events_of, grok_result, read, stale
from proxy.core.invalid import InvalidRequest
from proxy.core.messages import merged
from proxy.core.sse import SSEDecoder
from proxy.providers.upstream.text_runs import CHAT_RUNS, RESPONSES_RUNS

EACH_REQUEST = [(name, case) for name, family in REQUESTS.items() for case in family.cases()]
EACH_ANSWER = [(name, case) for name, family in ANSWERS.items() for case in family.cases()]


@rows("family, case", EACH_REQUEST)
def test_request(family: str, case: str) -> None:
    vectors = REQUESTS[family]
    assert vectors.result(vectors.vector(case)) == read(vectors.folder / f"{case}.expected.json")


@rows("family, case", EACH_REQUEST)
def test_a_request_is_translated_again_to_the_same_bytes_and_stays_as_it_was(family: str, case: str) -> None:
    """A retry translates again, prompt caches live on equal bytes, and a body is captured and repeated in the reply."""
    vectors = REQUESTS[family]
    vector = vectors.vector(case)
    before = copy.deepcopy(vector)
    assert json.dumps(vectors.result(vector)) == json.dumps(vectors.result(vector))
    try:
        vectors.translate(vector)
    except InvalidRequest:
        pass
    assert vector == before


@rows("family, case", [row for row in EACH_REQUEST if row[0].endswith("request_to_messages")])
def test_what_was_parsed_is_a_messages_request_for_every_upstream(family: str, case: str) -> None:
    result = REQUESTS[family].result(REQUESTS[family].vector(case))
    if "error" in result:
        return
    request = result["request"]
    check_hub(request)
    for dialect in DIALECTS if all("input_schema" in tool for tool in request.get("tools", ())) else ():
        assert "error" not in chat_translated(request, dialect)
    assert "error" not in grok_result({"request": request})


@rows("family, case", EACH_ANSWER)
def test_answer(family: str, case: str) -> None:
    expected = ANSWERS[family].files(case)
    assert expected == {path: path.read_text("utf-8") for path in expected}
    result = ANSWERS[family].result(case)
    check_message_stream(events_of(result), cut="outcome" in (result or [{}])[-1], hub=True)


@rows("family, case", EACH_ANSWER)
def test_answer_in_any_pieces_and_with_other_line_ends(family: str, case: str) -> None:
    vectors = ANSWERS[family]
    raw = vectors.raw(case)
    expected = vectors.result(case)
    assert vectors.result(case, (raw[at : at + 1] for at in range(len(raw)))) == expected
    raw = raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    chance = random.Random(case)
    for line_end in (b"\n", b"\r\n", b"\r"):
        text = raw.replace(b"\n", line_end)
        for _ in range(3):
            cuts = [chance.randrange(len(text) + 1) for _ in range(chance.randrange(1, 12))]
            assert vectors.result(case, pieces(text, cuts)) == expected


@rows("family, case", EACH_ANSWER)
def test_answer_with_runs_of_texts_as_one(family: str, case: str) -> None:
    """As a transport reads what comes at once."""
    vectors, runs = ANSWERS[family], CHAT_RUNS if family == "chat_to_messages" else RESPONSES_RUNS
    decoder = SSEDecoder(shorten=runs.joined)
    whole = decoder.feed(vectors.raw(case))
    data = b"".join(written(frame) + b"\n" for frame in whole) + b"".join(map(written, decoder.end()))
    assert in_runs(vectors.result(case, [data])) == in_runs(vectors.result(case))


def written(frame: tuple[bytes, bytes]) -> bytes:
    name, data = frame
    lines = [b"data: %b\n" % line for line in data.split(b"\n")]
    return b"".join([b"event: %b\n" % name, *lines] if name else lines)


def in_runs(result: list[dict[str, Any]]) -> list[dict[str, Any]]:
    events = events_of(result)
    return merged(events) + result[len(events) :]


def test_no_expected_file_is_left_over() -> None:
    assert stale() == []
