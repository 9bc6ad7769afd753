"""What a request says of a call that a run waits for: its result, and the user's words."""

from __future__ import annotations

from typing import Any

from plan_clients import ID, answers, result
from samples import rows

from proxy.providers.p5_cursor.bridge.calls import ExecRequest
from proxy.providers.p5_cursor.bridge.history import UserWords, find_result, has_new_words, results_of, user_words

Messages = list[dict[str, Any]]


def read(**args: Any) -> ExecRequest:
    return ExecRequest(1, "e1", "read_args", {"path": "/w/a.txt", **args})


def success(content: str, **members: Any) -> Messages:
    size = {"total_lines": len(content.split("\n")) if content else 0, "file_size": len(content.encode())}
    return [{"read_result": {"success": {"path": "/w/a.txt", "content": content, **size, **members}}}]


def says(role: str, *blocks: Any) -> dict[str, Any]:
    return {"role": role, "content": blocks[0] if len(blocks) == 1 and isinstance(blocks[0], str) else list(blocks)}


def words(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


REMINDER = words("<system-reminder>be brief</system-reminder>")
#: As Claude Code 2.1.197 (a message of the role system), older ones (a reminder) and 2.1.330 (a text) tell it.
MEANWHILE = "The user sent a new message while you were working:\nand the other file\n\nIMPORTANT: you MUST address it."
CALL = says("assistant", {"type": "tool_use", "id": ID, "name": "Read", "input": {"file_path": "/a"}})
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}


@rows(
    "messages, content",
    [
        ([says("user", "Q"), CALL, says("user", result("a"))], "a"),
        ([says("user", result("old")), CALL, says("user", result("new"))], "new"),
        ([CALL, says("user", result("a")), says("user", "and more")], "a"),
        ([CALL, says("user", result("a")), says("system", "Tools changed"), says("assistant", "ok")], "a"),
        ([CALL, says("user", result("x", "call_cursor_2"), result("a"), words("b"))], "a"),
        ([CALL, says("user", result("old"), result("new"))], "new"),
        ([CALL, says("assistant", result("a"))], None),
        ([CALL, says("user", result("a", "call_cursor_2"))], None),
        ([CALL, says("user", "tool_result")], None),
        ([CALL, {"role": "user", "content": None}, {"role": "user"}, "user", None], None),
        ([CALL, says("user", "x", {"type": "tool_result"})], None),
        (None, None),
        ({}, None),
    ],
)
def test_the_newest_result_of_a_call_is_found(messages: Any, content: str | None) -> None:
    found = find_result({"messages": messages}, ID)
    assert (found and found["content"]) == content


@rows(
    "messages, expected",
    [
        ([CALL, says("user", result())], False),
        ([says("user", "Q"), CALL, says("user", result())], False),
        ([CALL, says("user", result(), REMINDER)], False),
        ([CALL, says("user", REMINDER, result(), words("  "))], False),
        ([CALL, says("user", result(), result("x", "call_cursor_2"))], False),
        ([CALL, says("user", result()), says("system", "Tools changed")], False),
        ([CALL, says("user", result()), says("user", REMINDER)], False),
        ([CALL, says("user", result()), says("user", result("x", "call_cursor_2"))], False),
        # of the client's Read of a document
        ([CALL, says("user", result(), {"type": "document", "source": {}})], False),
        ([CALL, says("user", result()), says("system", "# Environment\n - while you were working: no")], False),
        ([CALL, says("user", result()), says("system", MEANWHILE)], True),
        ([CALL, says("user", result()), says("system", words(f"Tools changed\n\n{MEANWHILE}"))], True),
        ([CALL, says("user", result()), says("system", MEANWHILE), CALL, says("user", result())], False),
        ([CALL, says("user", result(), words(f"<system-reminder>\n{MEANWHILE}\n</system-reminder>"))], True),
        ([CALL, says("user", result(), words(MEANWHILE))], True),
        ([CALL, says("user", result(), words("Stop!"))], True),
        ([CALL, says("user", words("Stop!"), result())], True),
        ([CALL, says("user", result(), words("[Request interrupted by user for tool use]"))], True),
        ([CALL, says("user", result(), words("<system-reminder>a</system-reminder>Stop!"))], True),
        ([CALL, says("user", result()), says("user", "Stop!")], True),
        ([CALL, says("user", result()), says("user", PICTURE)], True),
        ([CALL, says("user", result()), says("assistant", "Done"), says("user", "More")], True),
        ([CALL, says("user", result()), says("assistant", "Done")], True),
    ],
)
def test_new_words_beside_or_behind_a_result(messages: list[Any], expected: bool) -> None:
    assert has_new_words({"messages": messages}, ID) is expected


UNCHANGED = (
    "File unchanged since last read. The content from the earlier Read tool_result in this conversation is still"
    " current — refer to that instead of re-reading."
)


def reads(number: int, content: Any, *, name: str = "Read", is_error: bool = False, **asked: Any) -> list[Any]:
    """A call and its result."""
    call_id = f"call_cursor_{number}"
    call = {"type": "tool_use", "id": call_id, "name": name, "input": {"file_path": "/w/a.txt", **asked}}
    return [says("assistant", call), says("user", result(content, call_id, is_error=is_error))]


@rows(
    "before, asked, expected",
    [
        (reads(5, "1\told"), {}, success("old")),
        ([*reads(5, "1\told"), *reads(6, "1\tnew"), *reads(7, UNCHANGED)], {}, success("new")),
        ([*reads(5, "1\told"), *reads(6, "[Old tool result content cleared]")], {}, success("old")),
        ([*reads(5, "1\told"), *reads(6, "1\tx", is_error=True)], {}, success("old")),
        (reads(5, "1\told", offset=1), {}, success("old")),
        (reads(5, "7\told", offset=7, limit=1), {"offset": 7, "limit": 1}, success("old", range_applied=True)),
        (reads(5, "1\told", limit=1), {}, None),
        (reads(5, "1\told", file_path="/w/b.txt"), {}, None),
        (reads(5, "1\told", name="Bash"), {}, None),
        (reads(5, "[Old tool result content cleared]"), {}, None),
        (reads(5, "1\told", file_path=None), {"file_path": None}, None),
        ([], {}, None),
    ],
)
def test_a_file_that_the_client_does_not_send_again(
    before: list[Any], asked: dict[str, Any], expected: list[dict[str, Any]] | None
) -> None:
    """Else these words would be the content, and be written back."""
    block = find_result({"messages": [*before, *reads(1, UNCHANGED, **asked)]}, ID)
    assert block is not None
    found = answers(read(**asked), block)
    if expected is None:
        assert "shell tool" in found[0]["read_result"]["error"]["error"]
    else:
        assert found == expected


#: What Claude Code 2.1.330 says of a file that it did not show whole; 2.1.197 says it in a reminder in the result.
PARTIAL = "[Truncated: PARTIAL view — /w/a.txt: showing lines 1-2 of 3501 total. Call Read with offset=3 for the rest.]"
READ_CALL, READ_RESULT = reads(1, "1\tone\n2\ttwo")


@rows(
    "messages, truncated",
    [
        ([READ_CALL, READ_RESULT, says("system", PARTIAL)], True),
        ([READ_CALL, READ_RESULT, says("system", words(f"# Environment\n\n{PARTIAL}\nMore."))], True),
        (
            [
                READ_CALL,
                says("user", READ_RESULT["content"][0], words(f"<system-reminder>{PARTIAL}</system-reminder>")),
            ],
            True,
        ),
        ([READ_CALL, READ_RESULT, says("user", words(f"<system-reminder>\n{PARTIAL}\n</system-reminder>"))], True),
        ([READ_CALL, says("user", result(f"<system-reminder>{PARTIAL}</system-reminder>\n\n1\tone\n2\ttwo"))], True),
        ([*reads(5, "1\tone\n2\ttwo"), says("system", PARTIAL), *reads(1, UNCHANGED)], True),
        ([*reads(5, "1\tx"), says("system", PARTIAL), READ_CALL, READ_RESULT], False),
        ([READ_CALL, READ_RESULT, says("system", "Tools changed")], False),
        ([READ_CALL, READ_RESULT, says("assistant", PARTIAL)], False),
    ],
)
def test_a_note_beside_a_result_that_it_is_not_the_whole_file(messages: list[Any], truncated: bool) -> None:
    """Else the service writes back what there is, and the rest of the user's file is lost."""
    block = find_result({"messages": messages}, ID)
    assert block is not None
    assert answers(read(), block) == success("one\ntwo", **({"truncated": True} if truncated else {}))


def test_a_file_that_is_in_the_context_is_not_empty() -> None:
    words = "<system-reminder>This file is already in your context; no need to read it again.</system-reminder>"
    block = find_result({"messages": [*reads(5, "1\told"), *reads(1, words)]}, ID)
    assert block is not None and answers(read(), block) == success("old")
    assert answers(read(), result(words))[0]["read_result"].keys() == {"error"}


# -- what the user said


def conversation(*texts: str) -> list[dict[str, Any]]:
    """Messages of the user; an answer where the text is "…"."""
    return [says("assistant", "ok") if text == "…" else says("user", text) for text in texts]


def said(*texts: str) -> UserWords:
    return user_words({"messages": conversation(*texts)})


@rows(
    "here, there, expected",
    [
        # the user goes on
        (("a", "…", "b"), ("a",), True),
        (("a", "…", "b", "…", "c"), ("a", "…", "b"), True),
        (("a", "…", "b", "c"), ("a",), True),
        # or back, and says something else
        (("a", "…", "c"), ("a", "…", "b"), True),
        (("a", "…", "c"), ("a", "…", "b", "…", "d"), True),
        # the same words, or fewer of them: a request that is repeated, a title
        (("a",), ("a",), False),
        (("a", "…", "b"), ("a", "…", "b"), False),
        (("a",), ("a", "…", "b"), False),
        (("a", "…"), ("a", "…", "b"), False),
        # another conversation
        (("b",), ("a",), False),
        (("b", "…", "c"), ("a", "…", "c"), False),
        (("a", "c"), ("a", "b"), False),
        (("ab",), ("a", "…", "b"), False),
        # nobody said anything
        ((), ("a",), False),
        ((), (), False),
        (("a",), (), True),
    ],
)
def test_who_says_something_else_follows(here: tuple[str, ...], there: tuple[str, ...], expected: bool) -> None:
    assert said(*here).follows(said(*there)) is expected


@rows(
    "messages, same",
    [
        ([says("user", "a")], True),
        ([says("user", words("a"))], True),
        ([says("user", REMINDER, words("a"))], True),
        ([says("system", "Be brief."), says("user", "a"), says("system", "Tools changed")], True),
        ([says("user", "a"), CALL, says("user", result())], True),
        ([says("user", "a"), CALL, says("user", result(), REMINDER, words(" \n"))], True),
        ([says("user", PICTURE, words("a"))], True),
        ([says("user", "a"), CALL, says("user", result(), words("b"))], False),
        ([says("user", "a"), says("user", "a")], False),
        ([says("user", "a ")], True),
        ([says("user", "\n a\n")], True),
        ([says("user", "")], False),
    ],
)
def test_the_user_s_words_are_those_that_a_client_does_not_add(messages: list[Any], same: bool) -> None:
    assert (user_words({"messages": messages}).chain == said("a").chain) is same


@rows(
    "messages, opening, answered",
    [
        (("a",), ("a",), False),
        (("a", "b"), ("a", "b"), False),
        (("a", "…", "b"), ("a",), True),
        (("a", "…"), ("a",), True),
        (("…", "a"), (), True),
    ],
)
def test_what_was_said_before_the_first_answer_names_a_conversation(
    messages: tuple[str, ...], opening: tuple[str, ...], answered: bool
) -> None:
    found = said(*messages)
    assert (found.opening, found.answered) == (said(*opening).opening, answered)
    assert said("ab").opening != said("a", "b").opening != said("a").opening


def turns(*texts: str) -> UserWords:
    """Of messages, the user's first, each with a call and its result between them."""
    return user_words({"messages": [says(("user", "assistant")[at % 2], text) for at, text in enumerate(texts)]})


@rows(
    "here, there, expected",
    [
        (("a",), ("a",), True),
        (("a", "b"), ("a",), True),
        ((" a\n", "b "), ("a",), True),
        (("a", "b", "c"), ("a", "b", "c"), True),
        (("a", "b\n", "c", "d"), ("a", "b", "c"), True),
        # an answer was edited, or is gone
        (("a", "x", "c"), ("a", "b", "c"), False),
        (("a", "", "c"), ("a", "b", "c"), False),
        (("a", "b"), ("a", "b", "c"), False),
        (("a",), ("a", "b"), False),
        # the user said something else
        (("x", "b", "c"), ("a", "b", "c"), False),
        (("a", "b", "c"), ("a",), False),
        (("ab",), ("a", "b"), False),
    ],
)
def test_who_goes_on_with_a_run(here: tuple[str, ...], there: tuple[str, ...], expected: bool) -> None:
    assert turns(*here).goes_on_from(turns(*there)) is expected


def test_a_call_and_its_result_are_no_texts() -> None:
    after = [says("user", "a"), CALL, says("user", result(), REMINDER)]
    assert user_words({"messages": after}).texts == turns("a").texts
    assert len(turns("a", "b", " ", "c").texts) == 3


def test_half_a_character_has_a_digest() -> None:
    assert len(said("a\ud800").chain) == 1


@rows(
    "messages, found",
    [
        ([CALL, says("user", result())], [ID]),
        ([says("user", result("x", "b"), result("y", "a")), says("user", result())], [ID, "a", "b"]),
        ([says("user", result("x", "a")), says("user", result("y", "a"))], ["a"]),
        ([says("user", result("x", "other"))], []),
        ([says("assistant", result())], []),
        ([None, {"role": "user"}, says("user", "x", {"type": "tool_result"})], []),
        ([], []),
        (None, []),
    ],
)
def test_which_calls_have_results(messages: Any, found: list[str]) -> None:
    assert results_of({"messages": messages}, {ID, "a", "b"}) == found
    assert results_of({"messages": messages}, ()) == []
