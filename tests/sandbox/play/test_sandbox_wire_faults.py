"""The faults that every wire of every simulated upstream can play, seen by a raw client."""

import json
from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from typing import Any

import pytest
from families import FAMILIES, WHOLE_FAMILIES, Asker, Family
from samples import Features, each, rows, sampled, walk

from proxy.sandbox import FAULTS
from proxy.sandbox.p4.gateway import CLASSES

#: Fault, parameters -> status, words of the body.
Failures = list[tuple[str, dict[str, Any], int, str]]

P1_HTTP: Failures = [
    ("rate_limit", {"seconds": 2}, 429, "rate_limit_exceeded"),
    ("huge_retry_after", {}, 429, "rate_limit_exceeded"),
    ("usage_limit", {"seconds": 60}, 429, '"resets_in_seconds":60'),
    ("overloaded", {"status": 529, "retry_after": 1}, 529, "server_is_overloaded"),
    ("server_error", {}, 500, "server_error"),
    ("html_error", {}, 502, "<html>"),
    ("redirect", {}, 302, ""),
    ("unauthorized", {}, 401, "token_expired"),
    ("forbidden", {}, 403, "Access denied"),
    ("context_http", {}, 400, "context window"),
    ("unsealable", {}, 400, "could not be verified"),
]

P2_HTTP: Failures = [
    ("rate_limit", {"seconds": 2}, 429, "rate limit"),
    ("rate_limit", {"seconds": None, "wrapped": True}, 429, '{"type":"error","error":{'),
    ("huge_retry_after", {}, 429, "rate limit"),
    ("usage_limit", {}, 429, "exceeded_current_quota_error"),
    ("overloaded", {"retry_after": 1}, 529, "overloaded"),
    ("server_error", {}, 500, "server_error"),
    ("html_error", {}, 502, "<html>"),
    ("redirect", {}, 302, ""),
    ("unauthorized", {}, 401, "invalid_authentication_error"),
    ("payment_required", {}, 402, "membership"),
    ("forbidden", {}, 403, "access_terminated_error"),
    ("context_http", {}, 400, "token limit"),
    ("bad_request", {"message": "m"}, 400, '"message":"m"'),
]

P3_HTTP: Failures = [
    ("rate_limit", {"seconds": 2}, 429, "rate_limit_exceeded"),
    ("huge_retry_after", {}, 429, "rate_limit_exceeded"),
    ("usage_limit", {"used": 7, "limit": 5}, 429, "tokens (actual/limit): 7/5"),
    ("spending_limit", {}, 403, '{"code":429,"error":"You ran out of credits'),
    ("payment_required", {}, 402, "personal-team-blocked:spending-limit"),
    ("forbidden", {}, 403, "permission-denied"),
    ("bad_credentials", {}, 403, '"code":"unauthenticated:bad-credentials"'),
    ("bad_credentials_nested", {}, 403, '"error":{"message"'),
    ("bad_credentials_text", {}, 403, '{"error":"The OAuth2 access token'),
    ("unauthorized", {}, 401, "bad-credentials"),
    ("overloaded", {"retry_after": 1}, 529, "overloaded_error"),
    ("unavailable", {}, 503, '"code":"The service is currently unavailable"'),
    ("server_error", {}, 500, "internal"),
    ("bad_image", {"status": 500}, 500, "invalid_image"),
    ("no_model", {}, 400, "does not exist"),
    ("outdated", {"given": "0.1.0"}, 426, "version 0.1.0 is outdated"),
    ("bad_request", {"message": "m"}, 400, '"error":"m"'),
    ("too_large", {}, 413, "too large"),
    ("context_http", {}, 400, "maximum prompt length is 500000"),
    ("unsealable", {}, 400, "encrypted_content"),
    ("html_error", {}, 502, "<html>"),
    ("redirect", {}, 302, ""),
    ("error_body", {"shape": "flat", "code": 429}, 500, '{"code":429,"error":"boom"}'),
    ("error_body", {"shape": "error_only"}, 500, '{"error":"boom"}'),
    ("error_body", {"shape": "nested", "code": None}, 500, '"code":null'),
    ("error_body", {"shape": "messages"}, 500, '"error":{"type":"internal","message":"boom"}'),
    ("error_body", {"shape": "doubled"}, 500, r'{"error":"{\"type\":\"error\",'),
    ("error_body", {"shape": "string"}, 500, '"boom"'),
    ("error_body", {"shape": "detail"}, 500, '{"detail":"boom"}'),
    ("error_body", {"shape": "message"}, 500, '{"message":"boom"}'),
    ("error_body", {"shape": "html", "status": 522}, 522, "<title>boom</title>"),
    ("error_body", {"shape": "empty", "status": 503}, 503, ""),
]

P4_HTTP: Failures = [
    ("rate_limit", {"seconds": 17}, 429, "RateLimitError"),
    ("huge_retry_after", {}, 429, "RateLimitError"),
    ("usage_limit", {"seconds": 7_200, "window": "weekly"}, 429, "GoUsageLimitError"),
    ("overloaded", {}, 529, "overloaded_error"),
    ("server_error", {}, 500, '{"error":{"type":"error"'),
    ("html_error", {}, 502, "<html>"),
    ("redirect", {}, 302, ""),
    ("unauthorized", {}, 401, "AuthError"),
    ("payment_required", {}, 402, "CreditsError"),
    ("forbidden", {}, 403, "EntitlementError"),
    ("client_closed", {}, 499, ""),
    ("context_http", {}, 400, "maximum context length"),
    ("bad_request", {"vendor": "Z.AI", "status": 404}, 400, "Error from provider (Z.AI): "),
    ("plain_error", {}, 418, "I am a teapot"),
    *(("gateway_error", {"kind": kind}, status, kind) for kind, (status, _) in CLASSES.items()),
]

#: In front of all of them.
FRONT: Failures = [("json_error", {"message": "m"}, 200, '"error":{"message":"m"')]

HTTP = {label: [*rows, *FRONT] for label, rows in {"p1": P1_HTTP, "p2": P2_HTTP, "p3": P3_HTTP, "p4": P4_HTTP}.items()}


#: A family, and one of its rows.
Case = tuple[Any, ...]


def cases(table: Callable[[Family], Iterable[Case]], features: Features) -> list[Case]:
    """Each row of the table of each family, or a sample of them."""
    return sampled(((family, *row) for family in FAMILIES for row in table(family)), 1, features)


def by_wire(family: Family, fault: str, params: dict[str, Any], *_: object) -> Sequence[Hashable]:
    """What makes a difference: each row on each wire."""
    return [(family.wire, fault, repr(params))]


async def each_of(asker: Asker, table: list[Case], check: Callable[..., Awaitable[None]]) -> None:
    with walk() as row:
        for family, *rest in table:
            if family == asker.family:
                with row(rest):
                    await check(asker, *rest)


HTTP_CASES = cases(
    lambda family: HTTP[family.label],
    lambda family, fault, params, *_: [(fault, repr(params)), (family.label, fault)],
)


async def test_http_faults(asker: Asker) -> None:
    async def check(asker: Asker, fault: str, params: dict[str, Any], status: int, words: str) -> None:
        family = asker.family
        for body in (family.body(), family.whole())[: 1 + (family in WHOLE_FAMILIES)]:
            reply = await asker.played(fault, body=body, **params)
            assert (reply.status, words in reply.data.decode()) == (status, True), reply.data
            assert asker.upstream.requests[-1].status == status
            assert (await asker.client.ask(body)).status == 200, "a step is used once"

    await each_of(asker, HTTP_CASES, check)


async def test_headers_of_http_faults(asker: Asker) -> None:
    assert (await asker.played("rate_limit", seconds=0.2)).headers["retry-after"] == "0.2"
    assert (await asker.played("huge_retry_after")).headers["retry-after"] == "86400"
    assert (await asker.played("html_error")).headers["content-type"].startswith("text/html")
    assert (await asker.played("redirect")).headers["location"] == "/elsewhere"


#: Events before any output.
OPENINGS = {"responses": 2, "messages": 2, "chat": 1}

#: Fault, parameters -> the last delta (None: nothing but the opening), whether the end came, and whether it broke.
ENDINGS: list[tuple[str, dict[str, Any], str | None, bool, bool]] = [
    ("cut_before_output", {}, None, False, True),
    ("cut_text", {}, "text", False, True),
    ("cut_text", {"reset": True}, "text", False, True),
    ("cut_thinking", {}, "thinking", False, True),
    ("cut_arguments", {}, "call", False, True),
    ("cut_frame", {}, "text", False, True),
    ("cut_after_terminal", {}, "text", True, True),
    ("end_without_terminal", {}, "text", False, False),
    ("end_before_output", {}, None, False, False),
    ("error_event", {"after": "created"}, None, False, False),
    ("error_event", {"after": "call"}, "call", False, False),
    ("incomplete", {}, "text", True, False),
    ("incomplete", {"after": "call"}, "call", True, False),
    ("late_events", {}, "text", True, False),
    ("empty", {}, None, True, False),
]


ENDING_CASES = cases(lambda _family: ENDINGS, by_wire)


async def test_endings(asker: Asker) -> None:
    async def check(asker: Asker, fault: str, params: Any, last: str | None, ended: bool, broken: bool) -> None:
        reply = await asker.played(fault, body=asker.family.body(**asker.family.thinks), **params)
        kinds = [kind for kind, _ in reply.pieces]
        assert (reply.status, reply.ended, reply.broken is not None) == (200, ended, broken)
        assert (kinds[-1] if kinds else None) == last
        if last is None and not ended:
            more = fault == "error_event"
            assert len(reply.events) == OPENINGS[asker.family.wire] + more
        if fault in ("error_event", "late_events"):
            assert '"error"' in json.dumps(reply.events[-1])
        await asker.upstream.idle()

    await each_of(asker, ENDING_CASES, check)


#: Faults that leave a whole call of Bash, for a reader who is ready for them: everywhere, and by wire.
HARMLESS: dict[str, str] = {
    "": "keepalives unknown_events comments comments_only done_sentinel tiny_writes crlf fixed_call_ids",
    "responses": "rate_limits bare_terminal no_deltas arguments_in_done arguments_in_item sealed_only_added "
    "sealed_only_done sealed_differs",
    "p3": "data_only silent_frames named_by_call arguments_at_once late_text_done empty_thoughts thoughts_as_text "
    "search open_page queries search_failed parallel_searches x_search_events citations doom_loop no_done",
    "chat": "arguments_before_name arguments_at_end whole_arguments name_in_pieces missing_ids explicit_nulls "
    "late_thought second_choice usage",
    "messages": "whole_arguments strange_block usage",
}

#: And with these parameters as well.
VARIANTS: dict[tuple[str, str], list[dict[str, Any]]] = {
    ("p3", "search"): [{"on_x": True}],
    ("p3", "silent_frames"): [{"blank": True}],
    ("p3", "parallel_searches"): [{"on_x": True}],
    ("p3", "citations"): [{"where": "late"}, {"where": "item"}],
    ("", "comments_only"): [{"every_s": 0.01}],
    ("", "tiny_writes"): [{"size": 7}],
    ("chat", "missing_ids"): [{"empty": True}],
    ("chat", "usage"): [{"where": where} for where in ("own", "finish", "choice", "missing")],
    ("messages", "usage"): [{"where": where} for where in ("start", "delta", "missing")],
}


def harmless(family: Family) -> list[tuple[str, dict[str, Any]]]:
    named = [(key, fault) for key in ("", family.wire, family.label) for fault in HARMLESS.get(key, "").split()]
    return [(fault, params) for key, fault in named for params in ({}, *VARIANTS.get((key, fault), ()))]


WHOLE_CASES = cases(harmless, by_wire)


async def test_whole_answers(asker: Asker) -> None:
    async def check(asker: Asker, fault: str, params: dict[str, Any]) -> None:
        reply = await asker.played(fault, **params)
        assert reply.broken is None and reply.ended
        assert reply.calls == [("Bash", {"command": "ls"})]
        numbers = [event["sequence_number"] for event in reply.events if "sequence_number" in event]
        assert numbers == list(range(len(numbers)))
        assert bool(numbers) is (asker.family.wire == "responses")

    await each_of(asker, WHOLE_CASES, check)


#: What makes a fault quick enough to try them all.
QUICK = {"seconds": 0.01, "size": 1_000, "every_s": 0.001}


def quick(fault: str) -> dict[str, Any]:
    sizes = dict.fromkeys(("huge_frame", "tiny_writes"), "size")
    names = {**sizes, "silence": "seconds", "held_open": "seconds", "comments_only": "every_s"}
    return {name: QUICK[name] for begin, name in names.items() if fault.startswith(begin)}


async def test_silence(asker: Asker) -> None:
    for place in ("before_head", "after_created", "mid_text", "mid_arguments"):
        assert (await asker.played(f"silence_{place}", seconds=0.01)).ended


#: Fault, parameters -> whether JSON comes, and whether the connection breaks.
WHOLE_FAULTS: list[tuple[str, dict[str, Any], bool, bool]] = [
    ("cut_before_output", {}, False, True),
    ("cut_text", {"reset": True}, False, True),
    ("malformed_json", {}, False, False),
    ("invalid_utf8", {}, False, False),
    ("huge_frame", {"size": 5_000}, True, False),
    ("silence_before_head", {"seconds": 0.01}, True, False),
    ("empty", {}, True, False),
    ("fixed_call_ids", {}, True, False),
]


@each(1)
@pytest.mark.parametrize("asker", WHOLE_FAMILIES, ids=str, indirect=True)
@pytest.mark.parametrize(("fault", "params", "good", "broken"), WHOLE_FAULTS)
async def test_faults_without_a_stream(asker: Asker, fault: str, params: Any, good: bool, broken: bool) -> None:
    reply = await asker.played(fault, body=asker.family.whole("hello"), **params)
    assert (reply.status, reply.broken is not None) == (200, broken)
    if not good:
        with pytest.raises(ValueError):
            json.loads(reply.data)
        return
    assert (b"You asked" in reply.data) is (fault != "empty") and json.loads(reply.data)
    assert (b'"Bash"' in reply.data) is (fault == "fixed_call_ids")
    assert (len(reply.data) > 5_000) is (fault == "huge_frame")


#: Faults that other tests here and of the wire look at.
OTHERS = {
    "": "late_events malformed_json invalid_utf8 huge_frame empty no_arguments interleaved silence_before_head "
    "silence_after_created silence_mid_text silence_mid_arguments json_answer named_error",
    "responses": "completed_with_error failed refusal read_pages_empty read_huge_offset read_spaces",
    "chat": "bad_arguments truncated_arguments index_restarts missing_index missing_names repeated_names "
    "text_between no_finish no_done finish_reason several_choices cut_after_reason end_after_reason flat_error",
    "messages": "bad_arguments truncated_arguments cut_after_reason end_after_reason",
    "p3": "byte_order_mark mixed_ends unfinished_end held_open done_instead no_numbers minimal terminal_only "
    "thoughts_only call_not_done arguments_mismatch untyped_error slow_down",
    "p4": "cost_together cost_later no_cost",
}


@pytest.mark.parametrize("family", FAMILIES, ids=str)
def test_every_fault_has_a_test(family: Family) -> None:
    http = {row[0] for row in HTTP[family.label]}
    others = {name for key in ("", family.wire, family.label) for name in OTHERS.get(key, "").split()}
    seen = {row[0] for row in ENDINGS} | {row[0] for row in harmless(family)}
    assert set(FAULTS[family.place]) == http | others | seen
    if family in WHOLE_FAMILIES:
        assert set(FAULTS[family.place._replace(stream=False)]) == http | {row[0] for row in WHOLE_FAULTS}


#: Each fault, with and without a stream.
PLAYED = cases(
    lambda family: [
        (fault, stream) for stream in (True, False) for fault in FAULTS.get(family.place._replace(stream=stream), ())
    ],
    by_wire,
)


async def test_every_fault_plays(asker: Asker) -> None:
    async def check(asker: Asker, fault: str, stream: bool) -> None:
        body = asker.family.body("use Bash: ls") if stream else asker.family.whole("use Bash: ls")
        reply = await asker.played(fault, body=body, **quick(fault))
        assert reply.status >= 200
        assert (reply.broken is not None) is fault.startswith("cut")
        await asker.upstream.idle()

    await each_of(asker, PLAYED, check)


async def test_what_comes_in_place_of_a_stream(asker: Asker) -> None:
    whole = json.loads((await asker.played("json_answer", "use Bash: ls")).data)
    assert '"Bash"' in json.dumps(whole) and whole["usage"]
    named = (await asker.played("named_error")).data
    assert named == b'event: error\ndata: {"type":"overloaded_error","message":"boom"}\n\n'
    assert (await asker.played("named_error", plain=True)).data == b"event: error\ndata: boom\n\n"
    if asker.family.wire == "chat":
        assert b'"object":"error"' in (await asker.played("flat_error")).data


async def test_an_end_behind_its_reason(asker: Asker) -> None:
    if asker.family.wire == "responses":
        return
    for fault in ("cut_after_reason", "end_after_reason"):
        reply = await asker.played(fault)
        assert not reply.ended and "reason" in json.dumps(reply.events[-1])
        assert (reply.broken is not None) is (fault == "cut_after_reason")


async def test_calls_interleave(asker: Asker) -> None:
    reply = await asker.played("interleaved", "use Bash: abc and use Read: def")
    pieces = [piece for kind, piece in reply.pieces if kind == "call"]
    assert pieces == ['{"command":"', '{"file_path"', 'abc"}', ':"def"}']
    assert reply.calls == [("Bash", {"command": "abc"}), ("Read", {"file_path": "def"})] and reply.ended
    assert [name for name, _ in (await asker.played("interleaved", "hello")).calls] == ["Bash", "Bash"]


@rows("prefix", ["call_", "Agent_"])
async def test_ids_repeat(asker: Asker, prefix: str) -> None:
    prompt = "use Bash: a and use Bash: b"
    replies = [await asker.played("fixed_call_ids", prompt, prefix=prefix) for _ in range(2)]
    assert [reply.ids for reply in replies] == [[f"{prefix}0", f"{prefix}1"]] * 2
    if asker.family in WHOLE_FAMILIES:
        body = asker.family.whole("use Bash: a")
        assert f'"{prefix}0"' in (await asker.played("fixed_call_ids", body=body, prefix=prefix)).data.decode()


async def test_odd_arguments(asker: Asker) -> None:
    async def sent(fault: str) -> str:
        reply = await asker.played(fault)
        assert reply.ended
        return "".join(piece for kind, piece in reply.pieces if kind == "call")

    assert await sent("no_arguments") == ""
    if asker.family.wire != "responses":
        assert await sent("bad_arguments") == "[1]"
        assert await sent("truncated_arguments") == '{"comman'


@each(1, lambda asker: [asker.wire])
async def test_bytes_that_no_reader_likes(asker: Asker) -> None:
    lines = (await asker.played("malformed_json")).data.split(b"\n")
    assert len([line for line in lines if line.startswith(b"data: {") and not line.endswith(b"}")]) == 1
    assert b"\xff\xfe" in (await asker.played("invalid_utf8")).data
    assert len((await asker.played("huge_frame")).data) > 9 * 1024 * 1024
    assert len((await asker.played("huge_frame", size=2_000_000)).data) > 2_000_000
    assert (await asker.played("comments")).data.startswith(b": keepalive\n\n")
    assert b"\r\n\r\n" in (await asker.played("crlf")).data
    sentinels = (await asker.played("done_sentinel")).data.count(b"data: [DONE]\n\n")
    assert sentinels == 1 + (asker.family.wire == "chat")
    late = await asker.played("late_events")
    assert late.data.rindex(b'"too late"') < late.data.rindex(b'"error"')
