"""Runs at the simulated P5: what it refuses, how its model works, and what it blames a client for."""

import asyncio
import json
import uuid
from typing import Any

import pytest
from harness import until
from p5_sandbox_client import (
    APPEND,
    MODELS,
    RUN,
    TOOL,
    Fields,
    P5Client,
    Talk,
    rendered,
    run_request,
    stream_close,
)
from samples import rows

from proxy.sandbox.p5.ledger import ExecLedger
from proxy.sandbox.p5.options import P5Options
from proxy.sandbox.upstream import KEPT_REQUESTS
from proxy.sandbox.wires.connect.envelopes import envelope
from proxy.sandbox.wires.connect.protobuf import Message, write


def quick(cursor: P5Client, **options: Any) -> P5Options:
    """Options for tests: times of a client in ms."""
    found = cursor.p5.options
    for name, value in {"heartbeat_s": 0.01, **options}.items():
        setattr(found, name, value)
    return found


async def blamed(cursor: P5Client, talk: Talk) -> str:
    """The one violation, without the id of its run."""
    await cursor.p5.idle()
    [violation] = cursor.p5.violations
    return violation.removeprefix(f"{talk.run_id}: ")


async def test_a_plain_answer(cursor: P5Client) -> None:
    talk = await cursor.run("hello")
    assert talk.status == 200 and talk.headers["content-type"] == "text/event-stream"
    assert talk.text.startswith('You asked: "hello".') and talk.thought == ""
    assert talk.end == {}
    turn = next(one.sub(14) for one in talk.updates if 14 in one)
    assert turn is not None and turn.number(2) > 0 and turn.number(1) > turn.number(2)
    assert set(talk.appended) == {200}
    await cursor.p5.idle()
    assert cursor.p5.violations == []


@rows("as_json", [False, True])
async def test_what_was_asked_is_shown(cursor: P5Client, as_json: bool) -> None:
    cursor.as_json = as_json
    image = {2: "u1", 3: "claude-image-1.png", 7: "image/png", 8: b"hello"}
    model = {1: "composer-2.5", 3: [{1: "fast", 2: "false"}]}
    talk = await cursor.run(run_request(rendered("look"), model=model, images=[image], mode=2))
    assert "I see 1 image (1 image/png)" in talk.text
    seen = cursor.p5.requests[-1]
    assert (seen.status, seen.path) == (200, RUN)
    body = seen.body
    assert body["model"] == "composer-2.5" and body["parameters"] == {"fast": "false"} and body["mode"] == 2
    assert (body["prompt"], body["images"]) == ("<user>\nlook\n</user>", 1)
    assert body["selected_images"][0]["data"] == "aGVsbG8=" and body["conversation_id"] == body["conversation_group_id"]
    assert cursor.p5.billed_fast == 0 and cursor.p5.violations == []


async def test_composer_without_a_word_is_billed_as_fast(cursor: P5Client) -> None:
    await cursor.run(run_request(rendered("hi"), model={1: "composer-2.5"}))
    assert cursor.p5.billed_fast == 1 and cursor.p5.requests[-1].body["billed_fast"]


#: Headers that are changed -> status and code.
HEADERS: list[tuple[dict[str, str | None], int, str]] = [
    ({"authorization": None}, 401, "unauthenticated"),
    ({"authorization": "Bearer x"}, 401, "unauthenticated"),
    ({"connect_protocol_version": None}, 400, "invalid_argument"),
    ({"content_type": "application/proto"}, 415, ""),
    ({"content_type": "application/grpc-web+proto"}, 415, ""),
]


@rows("changes, status, code", HEADERS)
async def test_refused_before_a_stream(
    cursor: P5Client, changes: dict[str, str | None], status: int, code: str
) -> None:
    talk = await cursor.run("hello", **changes)
    assert talk.status == status == cursor.p5.requests[-1].status
    assert (json.loads(talk.body)["code"] if talk.body else "") == code
    assert (await cursor.append(talk.run_id, 0, b"", authorization="Bearer x"))[0] == 401
    assert (await cursor.append(talk.run_id, 0, b"", content_type="text/plain"))[0] == 415


@rows(
    "body",
    [b"", write({1: "r"}), envelope(b""), envelope(write({1: "r"}), 1), envelope(write({1: "r"})) * 2, envelope(b"\n")],
)
async def test_a_stream_opens_with_one_envelope(cursor: P5Client, body: bytes) -> None:
    headers = dict(cursor.headers("r", "application/connect+proto"))
    async with cursor.post(RUN, body, {**headers}) as response:
        assert (response.status, (await response.json())["code"]) == (400, "invalid_argument")


@rows(
    "changes", [{"x_cursor_client_version": "0.48.5"}, {"x_cursor_client_type": "ide"}, {"x_cursor_client_type": None}]
)
async def test_an_outdated_client_is_told_to_update(cursor: P5Client, changes: dict[str, str | None]) -> None:
    talk = await cursor.run("hello", **changes)
    assert talk.error["code"] == "resource_exhausted"
    assert talk.error["details"][0]["debug"]["details"]["title"] == "Update Required"
    status, body = await cursor.append(str(uuid.uuid4()), 0, b"", **changes)
    assert (status, json.loads(body)["code"]) == (429, "resource_exhausted")


def changed(change: Any, **members: Any) -> Fields:
    """A run request after `change` of its fields."""
    message = run_request(rendered("hello"), **members)
    change(message[1], message[1][2][1][1])
    return message


#: Change of the run request -> code and words of the error.
REFUSED: list[tuple[Any, str, str]] = [
    (lambda run, said: run.pop(1), "invalid_argument", "Conversation state is required"),
    (lambda run, said: run.pop(4), "invalid_argument", "Conversation state is required"),
    (lambda run, said: run[2].pop(1), "invalid_argument", "A user message is required"),
    (lambda run, said: run.pop(9), "invalid_argument", "A model is required"),
    (lambda run, said: run.update({9: {1: "auto"}}), "invalid_argument", "Unknown model ID: auto"),
    (lambda run, said: run.update({9: {1: "claude-opus-5"}}), "not_found", "Error"),
    (lambda run, said: run.update({12: True}), "invalid_argument", "Workspace context exclusion is not allowed"),
    (lambda run, said: said[3].update({1: [{1: b"hello", 2: "u", 3: "p", 7: "image/png"}]}), "internal", "Image not"),
]


@rows("change, code, words", REFUSED)
async def test_refused_requests(cursor: P5Client, change: Any, code: str, words: str) -> None:
    quick(cursor, suffixed=frozenset({"claude-opus-5"}))
    talk = await cursor.run(changed(change))
    assert talk.error["code"] == code and talk.error["message"].startswith(words)


async def test_a_model_that_exists_with_an_effort_only(cursor: P5Client) -> None:
    quick(cursor, suffixed=frozenset({"claude-opus-5"}))
    talk = await cursor.run(run_request(rendered("x"), model={1: "claude-opus-5"}))
    assert talk.error["details"][0]["debug"]["error"] == "ERROR_BAD_MODEL_NAME"
    assert (await cursor.run(run_request(rendered("x"), model={1: "claude-opus-5-high"}))).end == {}


@pytest.mark.parametrize("missing", [2, 3])
async def test_without_message_id_or_context_there_are_heartbeats_only(cursor: P5Client, missing: int) -> None:
    quick(cursor)
    request = changed(lambda run, said: said.pop(missing))
    async with cursor.held(lambda: cursor.last.kinds.count(13) > 2, request) as talk:
        assert {*talk.kinds} == {13}
    await cursor.p5.idle()
    assert cursor.p5.violations


#: Change of the run request -> what it is blamed for.
ODD: list[tuple[Any, str]] = [
    (lambda run, said: said.update({4: 0}), "mode 0"),
    (lambda run, said: said.update({2: "m1"}), "no message_id, or one that is no uuid"),
    (lambda run, said: run.update({16: "x"}), "conversation_group_id is not the conversation_id"),
    (lambda run, said: run.update({1: {5: {}}}), "a conversation state"),
    (lambda run, said: run.update({3: {1: "gpt-5.5"}}), "requested_model and model_details"),
    (lambda run, said: run.update({77: 1}), "run request with the fields [77]"),
    (lambda run, said: said[3].update({1: [{8: b"x"}]}), "an image without uuid, path or mime type"),
]


@pytest.mark.parametrize(("change", "words"), ODD)
async def test_odd_requests_are_served_and_blamed(cursor: P5Client, change: Any, words: str) -> None:
    talk = await cursor.run(changed(change))
    assert talk.end == {} and await blamed(cursor, talk) == words


@rows("extra", [{}, {12: 0}])
async def test_members_that_may_be_there_or_not(cursor: P5Client, extra: Fields) -> None:
    talk = await cursor.run(changed(lambda run, said: (run.update(extra), run.pop(19))))
    assert talk.end == {} and cursor.p5.violations == []


async def test_a_resume_is_never_sent(cursor: P5Client) -> None:
    talk = await cursor.run({1: {1: {}, 2: {2: {}}, 4: {}, 9: {1: "x"}}})
    assert talk.error["code"] == "invalid_argument" and await blamed(cursor, talk) == "resume_action"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"x_original_request_id": None}, "x-original-request-id is not that of the run"),
        ({"x_request_id": "x"}, "x-request-id is no uuid"),
        ({"x_ghost_mode": None}, "no x-ghost-mode"),
        ({"x_cursor_client_version": "cli-old"}, "x-cursor-client-version is no build"),
        ({"x_cursor_checksum": "x"}, "a checksum, which belongs to another client"),
        ({"connect_accept_encoding": "gzip,br"}, "connect-accept-encoding gzip,br"),
    ],
)
async def test_odd_headers_are_blamed(cursor: P5Client, changes: dict[str, str | None], words: str) -> None:
    talk = await cursor.run("hello", **changes)
    assert talk.end == {} and await blamed(cursor, talk) == f"headers: {words}"


async def test_a_prompt_that_is_too_long(cursor: P5Client) -> None:
    quick(cursor, context_limit=10)
    assert (await cursor.run("hello")).end == {}
    talk = await cursor.run("hello " * 20)
    assert talk.error["details"][0]["debug"]["error"] == "ERROR_CONVERSATION_TOO_LONG"


async def test_without_the_streaming_header_the_answer_lies_in_a_blob(cursor: P5Client) -> None:
    talk = await cursor.run("hello", x_cursor_streaming=None)
    assert talk.text == "" and talk.end == {}
    said = json.loads(list(cursor.blobs.values())[-1])
    assert said["role"] == "assistant" and said["content"][0]["text"].startswith("You asked")


async def test_run_needs_http2(cursor: P5Client) -> None:
    async with cursor.post(RUN.removesuffix("SSE"), b"", {}) as response:
        assert (response.status, await response.read()) == (464, b"")


@pytest.mark.parametrize(
    ("kind", "body", "status"),
    [
        ("application/proto", b"", 200),
        ("application/json", b"{}", 200),
        ("application/proto", envelope(b""), 400),
        ("application/json", b"[]", 400),
        ("application/connect+proto", envelope(b""), 415),
    ],
)
async def test_models(cursor: P5Client, kind: str, body: bytes, status: int) -> None:
    async with cursor.post(MODELS, body, {**cursor.headers(str(uuid.uuid4()), kind)}) as response:
        data = await response.read()
        assert response.status == status
    if status == 400 and kind == "application/proto":
        assert json.loads(data)["message"] == "parse binary: illegal tag: field no 0"
    if status == 200:
        ids = (
            [one["modelId"] for one in json.loads(data)["models"]]
            if kind == "application/json"
            else [one.text(1) for one in Message(data).all(1)]
        )
        assert ids == list(cursor.p5.options.models)
    assert len(cursor.p5.model_requests) == 1


async def test_the_list_of_models_needs_a_sign_in(cursor: P5Client) -> None:
    cursor.token = "x"
    async with cursor.post(MODELS, b"", {**cursor.headers(str(uuid.uuid4()), "application/proto")}) as response:
        assert (response.status, (await response.json())["code"]) == (401, "unauthenticated")


# the order of appends


async def test_appends_may_come_in_any_order(cursor: P5Client) -> None:
    run_id = str(uuid.uuid4())
    assert (await cursor.append(run_id, 1, {7: {}}))[0] == 200
    async with cursor.open(run_id) as response:
        assert (await cursor.append(run_id, 0, run_request(rendered("hi"))))[0] == 200
        assert Message((await response.content.readany())[5:]).has(2, 10)
    [run] = cursor.p5.runs
    assert list(run.received) == ["run_request", "client_heartbeat"] and cursor.p5.violations == []


async def test_a_number_that_comes_again_is_dropped_and_blamed(cursor: P5Client) -> None:
    run_id = str(uuid.uuid4())
    async with cursor.open(run_id):
        await cursor.append(run_id, 0, run_request(rendered("hi")))
        assert (await cursor.append(run_id, 0, {7: {}}))[0] == 200
    [run] = cursor.p5.runs
    assert list(run.received) == ["run_request"] and run.appends == {0: 2}
    assert cursor.p5.violations == [f"{run_id}: append 0 came again"]


async def test_a_gap_is_blamed_at_the_end(cursor: P5Client) -> None:
    run_id = str(uuid.uuid4())
    async with cursor.open(run_id):
        await cursor.append(run_id, 0, run_request(rendered("hi")))
        await cursor.append(run_id, 2, {7: {}})
    await cursor.p5.idle()
    assert cursor.p5.violations == [f"{run_id}: append 1 never came"]


async def test_messages_whose_stream_does_not_come_are_forgotten(cursor: P5Client) -> None:
    quick(cursor, unclaimed_s=-1.0)
    run_id = str(uuid.uuid4())
    await cursor.append(run_id, 0, run_request(rendered("hi")))
    async with cursor.open(run_id) as response:
        assert (await response.content.readany())[5:] == write({1: {13: {}}})
    [run] = cursor.p5.runs
    assert run.first is None


async def test_an_append_after_the_end_is_blamed(cursor: P5Client) -> None:
    talk = await cursor.run("hello")
    await cursor.p5.idle()
    await cursor.send(talk, {7: {}})
    assert cursor.p5.violations == [], "it was on its way"
    [run] = cursor.p5.runs
    run.ended_at = run.clock() - 1
    await cursor.send(talk, {7: {}})
    assert await blamed(cursor, talk) == f"append {len(talk.appended) - 1} came after the end"


@pytest.mark.parametrize(
    "body",
    [
        b"\x00",
        write({1: "zz", 2: {1: "r"}}),
        write({1: "AA", 2: {1: "r"}}),
        write({1: ""}),
        write({2: {1: "r"}, 4: b"x"}),
    ],
)
async def test_appends_that_are_no_appends(cursor: P5Client, body: bytes) -> None:
    async with cursor.post(APPEND, body, {**cursor.headers("r", "application/proto")}) as response:
        assert (response.status, (await response.json())["code"]) == (400, "invalid_argument")
    assert cursor.p5.violations


# the model


async def test_a_command_is_run_by_the_client(cursor: P5Client) -> None:
    talk = await cursor.run("use Bash: ls -la")
    [asked] = talk.execs
    assert (asked.number(1), asked.text(14, 1), asked.text(14, 2)) == (1, "ls -la", "/w")
    assert talk.text == 'The tool Bash returned: "a.txt\n".'
    assert 2 in talk.kinds and 3 in talk.kinds and 7 in talk.kinds, "display records"
    assert cursor.p5.violations == [] and cursor.p5.total_requests == 1
    assert cursor.p5.runs[-1].ledger.owed == []


async def test_several_calls_come_one_after_the_other(cursor: P5Client) -> None:
    talk = await cursor.run('use Read: /w/a.txt and use Write: {"file_path": "/w/b", "content": "x"} and use Bash: ls')
    assert [next(one for one in asked.fields if one not in (1, 15)) for asked in talk.execs] == [7, 3, 14]
    assert talk.execs[1].text(3, 2) == "x" and talk.execs[1].number(3, 4) == 1
    assert talk.text.splitlines() == [
        'The tool Read returned: "one',
        'two".',
        'The tool Write returned: "/w/b".',
        'The tool Bash returned: "a.txt',
        '".',
    ]
    assert cursor.p5.violations == []


async def test_a_command_by_the_other_kind(cursor: P5Client) -> None:
    quick(cursor, shell="shell")
    talk = await cursor.run('use Bash: {"command": "ls", "timeout": 9, "working_directory": "/x"}')
    [asked] = talk.execs
    assert (asked.text(2, 1), asked.number(2, 3), asked.text(2, 2)) == ("ls", 9, "/x")
    assert talk.text == 'The tool Bash returned: "a.txt".'


async def test_while_a_call_is_open_there_are_heartbeats(cursor: P5Client) -> None:
    quick(cursor)
    answers = cursor.exec_answers
    cursor.exec_answers = lambda asked: answers(asked) if 10 in asked else []  # type: ignore[method-assign]
    async with cursor.held(lambda: cursor.last.execs and cursor.last.kinds.count(13) > 2, "use Bash: ls") as talk:
        assert talk.execs and not talk.ends
    await cursor.p5.idle()
    assert cursor.p5.violations == [], "a client may leave"
    assert [one.name for one in cursor.p5.runs[-1].ledger.owed] == ["exec 1"]


@rows("tools", ["not JSON", "5", '{"name": []}', '{"name": "Grep"'])
async def test_words_that_look_like_tools_are_words(cursor: P5Client, tools: str) -> None:
    async with asyncio.timeout(5):
        talk = await cursor.run(run_request(rendered(f"x\n</user>\n\n<tools>\n{tools}\n</tools>")))
    assert talk.status == 200 and talk.text


async def test_a_tool_may_be_described_with_any_character(cursor: P5Client) -> None:
    tool = json.dumps({"name": "Grep", "description": "a\u2028b\x85c", "input_schema": TOOL}, ensure_ascii=False)
    async with asyncio.timeout(5):
        talk = await cursor.run(run_request(f"<user>\nuse Grep: x\n</user>\n\n<tools>\n{tool}\n</tools>"))
    assert '<tool_use id="' in talk.text and 'name="Grep"' in talk.text


async def test_tools_that_are_not_native_are_written(cursor: P5Client) -> None:
    talk = await cursor.run(run_request(rendered("use Grep: x", tools=["Grep"])))
    assert talk.execs == []
    head, body, tail = talk.text.split("\n")
    assert head.startswith('<tool_use id="toolu_') and head.endswith('" name="Grep">') and tail == "</tool_use>"
    assert json.loads(body) == {"text": "x"}
    assert talk.kinds.count(1) > 3, "in pieces"


async def test_a_native_tool_is_written_when_told(cursor: P5Client) -> None:
    talk = await cursor.run(run_request(rendered("write xml Bash: ls", tools=["Bash"])))
    assert talk.execs == [] and 'name="Bash">\n{"text":"ls"}\n' in talk.text


RESUMED = """<system>
Be brief.
</system>

<user>
use Bash: ls
</user>

<assistant>
<thinking>
t
</thinking>

<tool_use id="call_cursor_1" name="Bash">
{"command":"ls"}
</tool_use>
</assistant>

<user>
<tool_result tool_use_id="call_cursor_1" is_error="true">
no such thing
</user>
</tool_result>
</user>"""


async def test_results_in_the_history_are_understood(cursor: P5Client) -> None:
    talk = await cursor.run(run_request(RESUMED))
    assert talk.execs == [] and talk.text == 'The tool Bash returned: "no such thing\n</user>".'


@rows(
    "model, thinks",
    [
        ({1: "claude-opus-4-8-thinking"}, True),
        ({1: "gpt-5.5-high-fast"}, True),
        ({1: "claude-opus-4-8", 3: [{1: "effort", 2: "high"}]}, True),
        ({1: "gpt-5.5"}, False),
        ({1: "composer-2.5", 3: [{1: "fast", 2: "true"}]}, False),
    ],
)
async def test_thinking(cursor: P5Client, model: Fields, thinks: bool) -> None:
    talk = await cursor.run(run_request(rendered("hello"), model=model))
    assert bool(talk.thought) is thinks and talk.text
    assert (5 in talk.kinds) is thinks


async def test_ask_mode_calls_nothing(cursor: P5Client) -> None:
    talk = await cursor.run(run_request(rendered("use Bash: ls"), mode=2))
    assert talk.execs == [] and talk.text.startswith("You asked")


async def test_plan_mode_answers_with_a_plan(cursor: P5Client) -> None:
    talk = await cursor.run(run_request(rendered("hello"), mode=3))
    plans = [message.text(7, 7, 1, 1) for message in talk.messages if message.has(7, 7)]
    assert plans[0].startswith("You asked") and talk.text == "" and talk.end == {}


async def test_a_search_asks_first(cursor: P5Client) -> None:
    talk = await cursor.run("Perform a web search for the query: rust news")
    assert [message.text(7, 2, 1, 1) for message in talk.messages if message.has(7, 2)] == ["rust news"]
    assert "rust news" in talk.text


async def test_a_blob_is_asked_back_after_a_result(cursor: P5Client) -> None:
    cursor.blobs = Spoilt()
    talk = await cursor.run("use Bash: ls")
    assert await blamed(cursor, talk) == "blob 0 came back changed" and talk.end == {}


class Spoilt(dict[bytes, bytes]):
    def __setitem__(self, key: bytes, value: bytes) -> None:
        super().__setitem__(key, value + b"!")


async def test_a_run_is_cancelled(cursor: P5Client) -> None:
    answers = cursor.exec_answers
    cursor.exec_answers = lambda asked: answers(asked) if 10 in asked else [{4: {3: {}}}]  # type: ignore[method-assign]
    talk = await cursor.run("use Bash: ls")
    assert talk.error["code"] == "canceled" and cursor.p5.violations == []


#: What a client does instead of the right answers to exec 1, and what it is blamed for.
WRONG: list[tuple[str, Any, str]] = [
    ("twice", lambda right: [*right[:-1], right[-2], right[-1]], "exec 1 was answered twice"),
    ("no result", lambda right: [right[-1]], "exec 1 was closed without a result"),
    ("closed twice", lambda right: [*right, right[-1]], "stream_close for exec 1, which is not open"),
    ("other id", lambda right: [*right, stream_close(9)], "stream_close for exec 9, which is not open"),
    ("beat after", lambda right: [*right, {5: {3: {1: 1}}}], "a heartbeat for exec 1, which is not open"),
    ("foreign", lambda right: [*right, {6: {1: 5}}], "an answer to query 5, which is not open"),
    ("kv", lambda right: [*right, {3: {1: 1, 3: {}}}], "kv 1 was answered twice"),
    ("thrown without words", lambda right: [{5: {2: {1: 1}}}, right[-1]], "exec 1 was thrown without words"),
    ("second request", lambda right: [*right, {1: {}}], "run_request [] within a run"),
    ("resume", lambda right: [*right, {4: {2: {}}}], "conversation_action [2] within a run"),
    ("two members", lambda right: [*right, {7: {}, 5: {3: {}}}], "a client's message with the fields [7, 5]"),
    ("unknown", lambda right: [*right, {9: {}}], "a client's message with the fields [9]"),
]


@pytest.mark.parametrize(("change", "words"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
async def test_wrong_answers_are_blamed(cursor: P5Client, change: Any, words: str) -> None:
    quick(cursor, reads_back=False)
    answers = cursor.exec_answers
    cursor.exec_answers = lambda asked: answers(asked) if 10 in asked else change(answers(asked))  # type: ignore[method-assign]
    blames = cursor.p5.violations
    run = asyncio.create_task(cursor.run("use Bash: ls and use Bash: pwd"))
    await until(lambda: words in [violation.partition(": ")[2] for violation in blames])
    run.cancel()
    await asyncio.gather(run, return_exceptions=True)


WRITE = 'use Write: {"file_path": "/a", "content": "x"}'

#: Results of Read, Write and Bash that are not what was asked for or do not add up, and the words.
INEXACT: list[tuple[str, int, list[Fields], str]] = [
    ("use Read: /a", 7, [{1: {1: "/b", 2: "x", 3: 1, 4: 1}}], "result 7.1 has '/b' in field 1, not '/a'"),
    ("use Read: /a", 7, [{1: {1: "/a", 2: "x\ny", 3: 1, 4: 3}}], "result 7.1 has 1 in field 3, not 2"),
    ("use Read: /a", 7, [{1: {1: "/a", 2: "é", 3: 1, 4: 1}}], "result 7.1 has 1 in field 4, not 2"),
    ("use Read: /a", 7, [{1: {1: "/a"}, 2: {1: "/a"}}], "result 7 has the arms [1, 2]"),
    ("use Read: /a", 7, [{9: {}}], "result 7 has the arms [9]"),
    ("use Read: /a", 7, [{2: {1: "a", 2: "no"}}], "result 7.2 has 'a' in field 1, not '/a'"),
    (
        WRITE := 'use Write: {"file_path": "/a", "content": "x"}',
        3,
        [{1: {1: "/a", 2: 2, 3: 1, 4: "x"}}],
        "result 3.1 has 2 in field 2, not 1",
    ),
    (WRITE, 3, [{1: {1: "/a", 2: 1, 3: 1}}], "result 3.1 has '' in field 4, not 'x'"),
    ("use Read: /a", 7, [{2: {1: "/a", 5: "no"}}], "result 7.2 has the fields [5]"),
    ("use Bash: ls", 14, [{3: {1: 0, 9: "/w"}}], "result 14.3 has the fields [9]"),
    ("use Bash: ls", 14, [{4: {}}, {3: {}}], "result 14.3 has '' in field 2, not '/w'"),
]


@pytest.mark.parametrize(("prompt", "number", "results", "words"), INEXACT, ids=lambda one: str(one)[:30])
async def test_results_must_add_up(
    cursor: P5Client, prompt: str, number: int, results: list[Fields], words: str
) -> None:
    cursor.results[number] = lambda _: results
    talk = await cursor.run(prompt)
    assert await blamed(cursor, talk) == f"exec 1: {words}" and talk.end == {}


async def test_heartbeats_that_stay_away_are_blamed(cursor: P5Client) -> None:
    quick(cursor, client_heartbeat_s=-1.0, exec_heartbeat_s=-1.0)
    await cursor.run("hello")
    await cursor.p5.idle()
    words = [violation.partition(": ")[2].partition(" for ")[0] for violation in cursor.p5.violations]
    assert words == ["no client_heartbeat", *["exec 0 had no heartbeat"] * 2, "no client_heartbeat"]


def test_an_answer_after_an_abort_is_blamed_unless_it_was_on_its_way() -> None:
    blames: list[str] = []
    now = [0.0]
    ledger = ExecLedger(blames.append, P5Options(), lambda: now[0])
    ledger.control(Message(write({3: {}})))
    for number in (1, 2):
        ledger.note(write({2: {1: number, 7: {1: "/a"}, 15: "e"}}))
        ledger.note(write({5: {1: {1: number}}}))
        now[0] += number
        ledger.exec_answer(Message(write({1: number, 7: {2: {1: "/a", 2: "x"}}, 15: "e"})))
        now[0] -= number
        assert ledger.owed == []
    ledger.exec_answer(Message(write({1: 2, 7: {2: {1: "/a", 2: "x"}}, 15: "e"})))
    assert blames == [f"an answer to exec {number}, which is not open" for number in (1, 2)]


def test_what_a_client_answers_by_itself_must_not_wait() -> None:
    now = [0.0]
    ledger = ExecLedger(lambda words: None, P5Options(), lambda: now[0])
    for asked in ({2: {1: 1, 7: {}}}, {2: {1: 2, 9: {}}}, {2: {1: 3, 45: {}}}, {4: {1: 4, 3: {}}}, {7: {1: 5, 2: {}}}):
        ledger.note(write(asked))
    now[0] = 1.0
    assert ledger.overdue == []
    now[0] = 5.0
    assert [one.name for one in ledger.overdue] == ["exec 2", "exec 3", "kv 4", "query 5"], "a tool may take long"


@pytest.mark.parametrize("kind", [2, 3, 4, 5, 7, 8, 14, 29])
def test_a_tool_may_take_long_while_heartbeats_come(kind: int) -> None:
    now = [0.0]
    ledger = ExecLedger(lambda words: None, P5Options(), lambda: now[0])
    ledger.note(write({2: {1: 1, kind: {}}}))
    for now[0] in (10.0, 20.0):
        ledger.control(Message(write({3: {1: 1}})))
    assert ledger.overdue == []
    now[0] = 33.0
    assert [one.name for one in ledger.overdue] == ["exec 1"]


NUMBER = {"exec": 2, "kv": 4, "query": 7}


@pytest.mark.parametrize("family", NUMBER)
def test_ids_may_be_used_again_once_they_are_settled(family: str) -> None:
    ledger = ExecLedger(lambda words: None, P5Options(), lambda: 0.0)
    for _ in range(2):
        ledger.note(write({NUMBER[family]: {2: {}}}))
    assert len(ledger.asked) == 2 and ledger.find(family, 0) is ledger.asked[1]


async def test_runs_that_are_over_are_forgotten_and_those_under_way_are_not(cursor: P5Client) -> None:
    first = str(uuid.uuid4())
    async with cursor.open(first):
        await cursor.append(first, 0, run_request(rendered("hi")))
        for _ in range(KEPT_REQUESTS + 10):
            cursor.p5.runs.claim(str(uuid.uuid4())).end()
        assert len(cursor.p5.runs) == KEPT_REQUESTS
        await cursor.append(first, 1, {7: {}})
        assert cursor.p5.runs[0].heartbeats == 1
