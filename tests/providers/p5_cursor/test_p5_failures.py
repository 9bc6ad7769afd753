"""P5's failures as errors: reported at the end of a stream, in the body of a refusal, or in place of a stream."""

from __future__ import annotations

import json
from typing import Any

from samples import rows

from proxy.core.sse import dump_json
from proxy.core.visible import Visible
from proxy.errors import UpstreamError, headers
from proxy.providers.p5_cursor.failures import LARGE_INPUT, client_error, document_error, end_error, refusal
from proxy.providers.upstream.failures import GiveUp, Retry, decide


def end(error: Any) -> UpstreamError | None:
    return end_error(dump_json({"error": error}).encode())


def reported(code: str, message: str = "Error", name: Any = None, **details: Any) -> UpstreamError:
    debug = {"error": name, "details": details}
    error = end({"code": code, "message": message, "details": [{"type": "aiserver.v1.ErrorDetails", "debug": debug}]})
    assert error is not None
    return error


def shown(error: UpstreamError, tokens: int = 10) -> tuple[int, str, str]:
    """Status, type and words as a client of the Messages API gets them."""
    error = client_error(error, tokens)
    return error.status, error.row.messages, error.message


def is_repeated(error: UpstreamError) -> bool:
    return isinstance(decide(error, attempt=0, visible=Visible.NOTHING, chance=0.0), Retry)


@rows("payload", [b"", b"  ", b"{}", b"not json", b"[]", b'{"metadata": {}}', b'{"error": null}'])
def test_an_end_without_an_error_is_a_good_one(payload: bytes) -> None:
    assert end_error(payload) is None


CODES = {
    "resource_exhausted": (429, "rate_limit_error"),
    "unauthenticated": (401, "authentication_error"),
    "permission_denied": (403, "permission_error"),
    "not_found": (404, "not_found_error"),
    "invalid_argument": (400, "invalid_request_error"),
    "failed_precondition": (400, "invalid_request_error"),
    "deadline_exceeded": (504, "timeout_error"),
    "unavailable": (503, "api_error"),
    **dict.fromkeys(("internal", "unknown", "aborted", "canceled", "data_loss", "new_word"), (502, "api_error")),
}


@rows("code", CODES)
def test_a_code_is_a_status_and_a_type(code: str) -> None:
    error = end({"code": code, "message": "some words"})
    assert error is not None and not is_repeated(error)
    assert shown(error)[:2] == CODES[code]
    assert error.message.startswith(f"Cursor Run failed: {code}: some words") and error.provider == "p5"


@rows(
    "error", [{}, {"code": "internal"}, {"message": "only words"}, {"code": 7, "message": "words"}, "only words", [], 7]
)
def test_an_error_that_lacks_code_or_words_is_an_error_all_the_same(error: Any) -> None:
    found = end(error)
    assert found is not None and found.status == 502 and "unknown" in found.message


@rows(
    "trailers, words",
    [
        (b"grpc-status: 0\r\ngrpc-message: fine\r\n", None),
        (b"grpc-status:13\ngrpc-message:out%20of%20order\n", "internal: out of order"),
        (b"grpc-message: slow\r\nGrpc-Status: 8\r\n", "resource_exhausted: slow"),
        (b"grpc-status: 10", "unknown: Error"),
        (b"grpc-status: \xff\xfe", "unknown: Error"),
    ],
)
def test_an_end_in_the_form_of_grpc_web_tells_a_failure_too(trailers: bytes, words: str | None) -> None:
    error = end_error(trailers)
    assert words in error.message if error is not None and words else error is words is None


def test_the_words_are_the_first_of_the_texts_for_people() -> None:
    words = {"title": "T", "detail": "D", "additionalInfo": {"chatMessage": "C"}}
    for missing, told in (("", "C"), ("additionalInfo", "T"), ("title", "D"), ("detail", "Error")):
        words.pop(missing, None)
        error = reported("resource_exhausted", **words)
        assert error.message.startswith(f"Cursor Run failed: resource_exhausted: {told}")
    assert headers(client_error(reported("resource_exhausted", title="T"), 10)) == {"Retry-After": "5"}


NAMED = {
    ("internal", "ERROR_NOT_LOGGED_IN"): (401, "model-proxy auth login p5"),
    ("internal", 12): (401, "model-proxy auth login p5"),
    ("unknown", "ERROR_BAD_MODEL_NAME"): (400, "model-proxy models"),
    ("resource_exhausted", "ERROR_PRO_USER_USAGE_LIMIT"): (429, "resource_exhausted"),
    ("resource_exhausted", 30): (429, "p5.clientVersion"),
    ("internal", 43): (413, "context window"),
    ("permission_denied", 64): (403, "p5.baseUrl"),
}


@rows("case", NAMED)
def test_the_name_of_what_is_wrong_counts_more_than_the_code(case: tuple[str, Any]) -> None:
    status, words = NAMED[case]
    code, name = case
    found = shown(reported(code, name=name, title="T"))
    assert found[0] == status and words in found[2]


def test_429_update_required_on_every_request_although_the_plan_is_fine() -> None:
    error = client_error(reported("resource_exhausted", name=28, title="Update Required", detail="Please update"), 10)
    assert error.status == 429 and "PROXY_P5_CLIENT_VERSION" in error.message and "p5.clientVersion" in error.message
    assert not is_repeated(error) and headers(error) == {"x-should-retry": "false"}


def test_unknown_model_id_says_where_the_names_are() -> None:
    error = reported("not_found", message="Unknown model ID: auto")
    assert shown(error)[0] == 400 and "model-proxy models" in error.message


def test_this_region_is_not_yet_available() -> None:
    error = reported("permission_denied", message="This region is not yet available for your team")
    assert error.status == 403 and "This region is not yet available for your team" in error.message
    assert "p5.baseUrl" in error.message


def test_a_limit_without_words_is_a_limit_for_a_small_prompt_and_too_long_for_a_huge_one() -> None:
    """Bare `resource_exhausted: Error` for a tiny prompt, and the same for a huge one."""
    error = reported("resource_exhausted")
    assert shown(error)[0] == 429 and "plan" in error.message
    status, _, words = shown(error, LARGE_INPUT + 1)
    assert status == 413 and words.startswith("prompt is too long") and "context window" in words
    assert shown(reported("resource_exhausted", title="usage limit reached"), LARGE_INPUT + 1)[0] == 429


def test_only_a_limit_that_is_a_failing_network_is_tried_again() -> None:
    assert is_repeated(reported("resource_exhausted", message="Network Error"))
    for other in ("resource_exhausted", "internal", "unavailable"):
        assert not is_repeated(reported(other, message="quota"))
    assert not is_repeated(reported("internal", message="network error"))


def refused(status: int, body: Any = b"", retry_after: str | None = None) -> UpstreamError:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return refusal(status, retry_after, data, "sent application/connect+proto, answered text/plain", now=0.0)


REFUSALS = {
    (401, "expired"): (401, "authentication_error"),
    (403, "no"): (401, "authentication_error"),
    (403, "This region is not yet available for your team"): (403, "permission_error"),
    (403, "upgrade your plan"): (403, "permission_error"),
    (429, "slow down"): (429, "rate_limit_error"),
    (464, ""): (502, "api_error"),
    (421, ""): (502, "api_error"),
    (415, "unsupported media type"): (502, "api_error"),
    (404, "nothing here"): (502, "api_error"),
    (413, "maximum request body size"): (413, "request_too_large"),
    (500, "boom"): (502, "api_error"),
    (302, ""): (502, "api_error"),
}


@rows("case", REFUSALS)
def test_a_refusal_before_the_run(case: tuple[int, str]) -> None:
    status, words = case
    body = {"code": "some_code", "message": words} if words else b""
    error = refused(status, body)
    found = shown(error)
    assert found[:2] == REFUSALS[case] and words in found[2]
    assert is_repeated(error) == (status == 429)


def test_http_464_and_421_are_explained_and_a_415_names_both_types() -> None:
    assert "HTTP/2" in refused(464).message and "*.cursor.sh" in refused(421).message
    assert "application/connect+proto" in refused(415).message and "text/plain" in refused(415).message


def test_the_wait_of_a_429_is_kept_and_a_usage_limit_is_not_tried_again() -> None:
    assert headers(client_error(refused(429, {"message": "x"}, "17"), 10)) == {"Retry-After": "17"}
    assert headers(client_error(refused(429), 10)) == {"Retry-After": "5"}
    assert not is_repeated(refused(429, {"message": "You have reached your usage limit"}))
    assert not is_repeated(refused(429, {"message": "Update Required"}))


@rows("body", [{"error": "boom"}, {"detail": "boom"}, {"error": {"message": "boom"}}, b"boom"])
def test_the_words_of_a_box_on_the_way_are_told_too(body: Any) -> None:
    assert refused(503, body).message == "p5: the service answered with status 503: boom"


def test_a_document_in_place_of_a_stream() -> None:
    error = document_error(b'{"code":"x","message":"m"}')
    assert error.status == 502 and error.message == "p5: m"
    assert document_error(b'{"code":"unauthenticated","message":"m"}').status == 401
    page = document_error(b"<html>proxy</html>")
    assert page.status == 502 and "not a stream" in page.message and "*.cursor.sh" in page.message


def test_no_credential_of_the_services_words_is_passed_on() -> None:
    token = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcdefgh"
    assert token not in reported("internal", message=f"bad token {token}").message
    assert isinstance(decide(reported("internal"), attempt=0, visible=Visible.NOTHING, chance=0), GiveUp)
