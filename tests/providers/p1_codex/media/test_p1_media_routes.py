"""Images and audio from the caller to the simulated services and back."""

from __future__ import annotations

import json
from typing import Any

import aiohttp
import pytest
from harness import Answer, Live, with_live
from media_live import GENERATIONS, PNG, SWITCHES, TRANSCRIPTIONS

GOOD = '{"created":1,"data":[{"b64_json":"aW1n"}]}'
live_on = with_live(**SWITCHES)
signed_out = with_live(**SWITCHES, signed_in=False)


async def generate(live: Live) -> Answer:
    return await live.post({"prompt": "x"}, GENERATIONS)


async def transcribe(live: Live, audio: bytes = b"RIFF....WAVE", **part: Any) -> Answer:
    form = aiohttp.FormData(quote_fields=False)
    form.add_field("file", audio, **{"filename": "../recording.webm", "content_type": "audio/webm;codecs=opus", **part})
    form.add_field("language", " en ")
    return await live.request("POST", TRANSCRIPTIONS, data=form)


def fault(answer: Answer) -> tuple[int, str, str]:
    error = answer.json["error"]
    assert error.keys() >= {"message", "type", "param", "code"} and error["param"] is None
    assert answer.headers["cache-control"] == "no-store" and "x-content-type-options" not in answer.headers
    return answer.status, error["type"], error["code"]


def upstream(status: int, body: str = "", **headers: str) -> dict[str, Any]:
    return {"status": status, "body": body, "headers": {name.replace("_", "-"): one for name, one in headers.items()}}


INVALID = (502, "api_error", "invalid_upstream_response")

#: Steps of the upstream -> what the caller is told; None: a good answer.
ANSWERS: list[tuple[list[dict[str, Any]], tuple[int, str, str] | None, int]] = [
    ([upstream(200, GOOD)], None, 1),
    ([upstream(200, '{"created":1,"data":[{"b64_json":"aW\\/n"}]}')], None, 1),
    ([upstream(200, '{"created":1,"data":[{"b64_json":"aW1n"}],"usage":"x"}')], None, 1),
    ([upstream(401), upstream(200, GOOD)], None, 2),
    ([upstream(200, '{"data":[{"b64_json":"aW1n"}]}')], INVALID, 1),
    ([upstream(200, '{"created":1,"data":[{"url":"https://e"}]}')], INVALID, 1),
    ([upstream(302, location="/x")], INVALID, 1),
    ([upstream(304)], INVALID, 1),
    ([upstream(500)], (500, "api_error", "upstream_error"), 1),
    ([upstream(429, retry_after="7")], (429, "rate_limit_error", "upstream_error"), 1),
    ([upstream(403)], (403, "permission_error", "upstream_error"), 1),
    ([upstream(404)], (404, "invalid_request_error", "upstream_error"), 1),
    ([upstream(401), upstream(401)], (401, "authentication_error", "upstream_error"), 2),
    ([{"fault": "unauthorized", "times": 2}], (401, "authentication_error", "upstream_error"), 2),
    ([{"fault": "refused"}], (400, "invalid_request_error", "moderation_blocked"), 1),
]


@live_on
@pytest.mark.parametrize(("steps", "told", "attempts"), ANSWERS)
async def test_answers(
    live: Live, steps: list[dict[str, Any]], told: tuple[int, str, str] | None, attempts: int
) -> None:
    p1 = live.sandbox.p1
    p1.script.extend(steps)
    answer = await generate(live)
    assert (p1.total_requests, p1.refreshes) == (attempts, attempts - 1)
    if told is None:
        assert answer.status == 200 and answer.raw == steps[-1]["body"].encode()
        assert answer.headers["content-type"] == "application/json"
        return
    assert fault(answer) == told
    assert answer.headers.get("retry-after") == steps[-1].get("headers", {}).get("retry-after")


@live_on
async def test_headers_of_an_answer(live: Live) -> None:
    answer = await generate(live)
    assert answer.headers["x-request-id"].startswith("req_") and "set-cookie" not in answer.headers
    assert answer.headers["x-content-type-options"] == "nosniff" and answer.json["data"]
    assert live.sandbox.p1.requests[-1].body == {
        "prompt": "x",
        "model": "gpt-image-2",
        "background": "auto",
        "quality": "auto",
        "size": "auto",
    }


@live_on
async def test_a_recording_on_its_way(live: Live) -> None:
    answer = await transcribe(live)
    assert answer.json["text"].endswith("WAV as audio/webm;codecs=opus, in en.")
    body = live.sandbox.p1.requests[-1].body
    assert (body["file"]["name"], body["file"]["media_type"], body["language"]) == (
        "recording.webm",
        "audio/webm;codecs=opus",
        "en",
    )
    for name, kind, sent in (
        ("a.webm", "video/webm", "audio/webm"),
        ("a.wav", "application/octet-stream", "audio/wav"),
        ("größe 🙂.wav", "audio/wav", "audio/wav"),
    ):
        await transcribe(live, filename=name, content_type=kind)
        file = live.sandbox.p1.requests[-1].body["file"]
        assert (file["name"], file["media_type"]) == (name, sent)
    live.sandbox.p1.script.extend([{"fault": "say", "text": 'a "b"\nc'}, {"fault": "empty"}])
    assert (await transcribe(live)).raw == b'{"text":"a \\"b\\"\\nc"}'
    assert fault(await transcribe(live)) == INVALID


@live_on
async def test_pictures_of_a_form_arrive_as_they_were(live: Live) -> None:
    form = aiohttp.FormData()
    for name in ("image", "image[]"):
        form.add_field(name, PNG, filename="a.bin", content_type="application/octet-stream")
    form.add_field("prompt", "both")
    answer = await live.request("POST", "/v1/images/edits", data=form)
    assert answer.status == 200
    assert [one["size"] for one in live.sandbox.p1.requests[-1].body["images"]] == [len(PNG)] * 2


@signed_out
async def test_nobody_has_signed_in(live: Live) -> None:
    for answer in (await generate(live), await transcribe(live)):
        assert fault(answer) == (401, "authentication_error", "authentication_error")
        assert "auth login p1" in answer.json["error"]["message"]
    assert (await live.post({"prompt": "x", "n": 256}, GENERATIONS)).status == 400
    assert live.upstream == 0


@live_on
@pytest.mark.parametrize(
    ("status", "told"),
    [(401, (401, "authentication_error", "authentication_error")), (500, (503, "api_error", "upstream_error"))],
)
async def test_a_renewal_that_fails(live: Live, status: int, told: tuple[int, str, str]) -> None:
    live.sandbox.p1.revoke_access()
    refusal = {"error": {"message": "no", "code": "refresh_token_reused"}}
    live.sandbox.p1.issuer.answer_with(status, refusal, times=None)
    assert fault(await generate(live)) == told
    assert live.upstream == 1


@live_on
async def test_a_large_answer(live: Live) -> None:
    live.sandbox.p1.script.extend([{"fault": "large", "size": 8_000_000}])
    answer = await generate(live)
    assert answer.status == 200 and len(json.loads(answer.raw)["data"][0]["b64_json"]) > 10_000_000
