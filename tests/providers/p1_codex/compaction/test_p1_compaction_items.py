"""P1's own compaction as data: the request, what is kept, and where it goes."""

from __future__ import annotations

import copy
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import rows

from proxy.core.convert.messages_to_responses import ResponsesOptions, messages_to_responses
from proxy.core.effort import SYSTEM_MARKER, TASK_MARKER, TEXT_ONLY_MARKER, is_compaction
from proxy.providers.p1_codex.compaction.items import (
    BYTES_A_TOKEN,
    RETAINED_TOKENS,
    Item,
    compaction_body,
    encrypted_content,
    message_tokens,
    mismatch,
    native_history,
    replayed,
    split,
    summary_of,
)

INSTRUCTION = f"{TEXT_ONLY_MARKER}\n\n{TASK_MARKER} the conversation so far."
SUMMARY = "The user wants a parser for dates; it is half done."
COMPACTED = {"type": "compaction", "encrypted_content": "E"}
TRIGGER = {"type": "compaction_trigger"}


def text(role: str, *texts: str) -> Item:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": one} for one in texts]}


AT: Item = {"type": "additional_tools", "role": "developer", "tools": []}
D, U1, A1 = text("developer", "Be brief."), text("user", "first"), text("assistant", "answer")
FC: Item = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
FCO: Item = {"type": "function_call_output", "call_id": "c", "output": "ok"}
U2 = text("user", "second")


def body(*items: Item, **members: Any) -> dict[str, Any]:
    return {"model": "gpt-5.6-sol", "input": list(items), "store": False, "stream": True, **members}


BOUNDARY = body(AT, D, U1, A1, FC, FCO, text("user", "second", INSTRUCTION), instructions="", include=[], tools=[1])


# -- the request


def test_the_request_leaves_out_the_words_about_the_summary() -> None:
    before = copy.deepcopy(BOUNDARY)
    asked = compaction_body(BOUNDARY)
    assert asked["input"] == [AT, U1, A1, FC, FCO, U2, TRIGGER]
    assert asked["include"] == ["reasoning.encrypted_content"] and "instructions" not in asked
    assert {name: asked[name] for name in ("model", "store", "stream", "tools")} == {
        name: BOUNDARY[name] for name in ("model", "store", "stream", "tools")
    }
    assert before == BOUNDARY


@rows(
    "conversation, left",
    [
        ([U1, text("user", INSTRUCTION)], [U1]),
        ([U1, text("user", f"{TASK_MARKER} this conversation.")], [U1]),
        ([U1, text("user", f"why does it say {TASK_MARKER}?")], [U1, text("user", f"why does it say {TASK_MARKER}?")]),
        ([text("user", "a", INSTRUCTION), A1, U2], [text("user", "a", INSTRUCTION), A1, U2]),
        ([A1], [A1]),
        ([], []),
    ],
)
def test_only_the_last_message_of_the_user_loses_the_instruction(conversation: list[Item], left: list[Item]) -> None:
    assert compaction_body(body(*conversation))["input"] == [*left, TRIGGER]


def test_pictures_beside_the_instruction_stay() -> None:
    picture = {"type": "input_image", "image_url": "data:image/png;base64,aGk="}
    asked: Item = {**U2, "content": [picture, *text("user", INSTRUCTION)["content"]]}
    assert compaction_body(body(asked))["input"] == [{**U2, "content": [picture]}, TRIGGER]


@rows("lite", [True, False])
@rows("system", [None, SYSTEM_MARKER])
def test_what_is_recognised_is_also_taken_out(lite: bool, system: str | None) -> None:
    """Recognising looks at the client's request, taking out at the translated one."""
    asked = INSTRUCTION if system is None else f"{TASK_MARKER} this conversation."
    call = {"type": "tool_use", "id": "t", "name": "Bash", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": "ok"}
    said = [("user", "hello"), ("assistant", [call]), ("user", [result, {"type": "text", "text": asked}])]
    messages = [{"role": role, "content": content} for role, content in said]
    request = {"messages": messages, "system": system or "Be brief."}
    assert is_compaction(request)
    translated = messages_to_responses(request, ResponsesOptions("gpt-5.6-sol", lite=lite))
    sent = compaction_body(translated)["input"]
    assert [item["type"] for item in sent] == ["message", "function_call", "function_call_output", "compaction_trigger"]
    assert native_history(translated, "E") == [text("user", "hello"), COMPACTED]


def made(item: Any, event: str = "done") -> dict[str, Any]:
    return {"type": f"response.output_item.{event}", "item": item}


@rows(
    "event, content",
    [
        (made({"id": "c", **COMPACTED}), "E"),
        (made(COMPACTED, "added"), None),
        (made({**COMPACTED, "type": "reasoning"}), None),
        (made({**COMPACTED, "encrypted_content": ""}), None),
        (made({**COMPACTED, "encrypted_content": 7}), None),
        (made(None), None),
        ({}, None),
    ],
)
def test_the_item_of_an_answer(event: dict[str, Any], content: str | None) -> None:
    assert encrypted_content(event) == content


# -- what is kept


def test_the_history_is_the_messages_of_the_user_and_the_item() -> None:
    assert native_history(BOUNDARY, "E") == [U1, U2, COMPACTED]


def test_the_first_message_that_does_not_fit_is_cut_and_ends_the_list() -> None:
    full, half = "f" * BYTES_A_TOKEN * (RETAINED_TOKENS - 2), "é" * 100
    kept = native_history(body(U1, text("user", half, "more"), text("user", full)), "E")
    assert kept == [text("user", "é" * 4), text("user", full), COMPACTED]  # two tokens of eight bytes are left


def test_a_cut_keeps_the_pictures_and_never_half_a_character() -> None:
    picture = {"type": "input_image", "image_url": "https://e.example/x.png"}
    both: Item = {**U1, "content": [{"type": "input_text", "text": "x😀" * 9}, picture]}
    full = text("user", "f" * BYTES_A_TOKEN * (RETAINED_TOKENS - 1))
    assert native_history(body(both, full), "E")[0]["content"] == [{"type": "input_text", "text": "x"}, picture]


IMAGE = {"type": "input_image", "image_url": "https://e.example/x.png"}


@rows(
    "parts, tokens",
    [([""], 1), (["abcd"], 1), (["abcde"], 2), (["a", "b"], 2), (["日本"], 2), ([], 1), ([IMAGE, "a"], 2001)],
)
def test_the_measure_of_a_message(parts: list[Any], tokens: int) -> None:
    content = [part if isinstance(part, dict) else {"type": "input_text", "text": part} for part in parts]
    assert message_tokens({**U1, "content": content}) == tokens


messages = st.builds(
    text,
    st.sampled_from(["user", "developer", "assistant"]),
    st.text(max_size=20) | st.sampled_from(["x" * 70_000, "é" * 30_000]),
)


@given(st.lists(messages | st.sampled_from([AT, FC, FCO]), max_size=12))
def test_what_is_kept_is_bounded_and_in_order(items: list[Item]) -> None:
    kept = native_history(body(*items), "E")[:-1]
    assert sum(map(message_tokens, kept)) <= RETAINED_TOKENS + 1  # an empty message may have been cut to one token
    _, conversation = split(items)
    candidates = [item for item in conversation if item["type"] == "message" and item["role"] != "assistant"]
    tail = candidates[len(candidates) - len(kept) :]
    assert kept[1:] == tail[1:]
    if kept:
        assert tail[0]["content"][0]["text"].startswith(kept[0]["content"][0]["text"])


@given(st.lists(st.sampled_from([AT, D, U1, A1, FC, FCO, U2]), max_size=8))
def test_envelope_and_conversation_are_the_input(items: list[Item]) -> None:
    envelope, conversation = split(items)
    assert envelope + conversation == items and conversation[:1] not in ([AT], [D])
    assert all(item in (AT, D) for item in envelope)


# -- the anchor


@rows(
    "answer, summary",
    [
        (f"<analysis>a <summary> hides</analysis>\n<summary>\n{SUMMARY}\n</summary>", SUMMARY),
        (f"<summary>{SUMMARY}</summary> and more", SUMMARY),
        (f"  {SUMMARY} ", SUMMARY),
        (f"<analysis>hm</analysis>{SUMMARY}", SUMMARY),
        (f"<summary>{SUMMARY}", f"<summary>{SUMMARY}"),
        (f"<analysis>{SUMMARY}", f"<analysis>{SUMMARY}"),
        (f"</summary>{SUMMARY}<summary>", f"</summary>{SUMMARY}<summary>"),
        (f"</analysis><analysis>hm</analysis>{SUMMARY}", f"</analysis>{SUMMARY}"),
        (f"<summary> </summary>{SUMMARY}", f"<summary> </summary>{SUMMARY}"),
        *((f"<summary>{SUMMARY}" + "\n" * n + "End</summary>", f"{SUMMARY}\n\nEnd") for n in (2, 3, 4, 5, 1000)),
        ("<summary>" + "x" * 32 + "</summary>", "x" * 32),
        ("<summary>" + "x" * 31 + "</summary>", None),
        ("é" * 16, "é" * 16),
        ("\ud83d" + "\ude00" * 1 + "y" * 30, "😀" + "y" * 30),
        ("", None),
    ],
)
def test_the_summary_is_what_the_client_will_send_back(answer: str, summary: str | None) -> None:
    assert summary_of(answer) == summary


@pytest.mark.parametrize("tag", ["<analysis>", "<summary>"])
def test_beginnings_without_an_end_cost_nothing(tag: str) -> None:
    """Looking for the end behind each of them takes many seconds, not a millisecond."""
    answer = tag * 20_000
    started = time.process_time()
    assert summary_of(answer) == answer
    assert time.process_time() - started < 1


@rows(
    "first, reason",
    [
        (text("user", f"Continued from before. {SUMMARY} Go on."), None),
        (text("user", "reminder", SUMMARY), None),
        (text("user", "something else"), "summary_missing"),
        (text("user", f"{SUMMARY} {SUMMARY}"), "summary_repeated"),
        (text("user", SUMMARY, SUMMARY), "summary_repeated"),
        (FC, "no_message"),
    ],
)
def test_where_the_summary_is_recognised(first: Item, reason: str | None) -> None:
    assert mismatch([first, A1], SUMMARY) == reason


def test_a_summary_is_recognised_whatever_its_blank_lines() -> None:
    summary = summary_of(f"{SUMMARY}\n\n\n\nEnd")
    assert summary is not None
    for shown in (f"{SUMMARY}\n\nEnd", f"{SUMMARY}\n\n\n\nEnd"):
        assert mismatch([text("user", shown)], summary) is None


def test_the_history_takes_the_place_of_the_summary_and_of_nothing_beside_it() -> None:
    for parts in ([], ["<system-reminder>", "next prompt"]):
        first = text("user", *parts[:1], f"… {SUMMARY} …", *parts[1:])
        found = replayed([AT, D, first, A1, U2], [U1, COMPACTED], SUMMARY)
        assert found == [AT, D, U1, COMPACTED, *([text("user", *parts)] if parts else []), A1, U2]
