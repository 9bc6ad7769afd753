"""Errors as callers see them."""

from __future__ import annotations

import re
from functools import cache

import pytest
from samples import rows
from source import PACKAGE, source_of

from proxy.cli.main import COMMANDS
from proxy.errors import (
    _OTHERWISE,
    KINDS,
    PROGRAM,
    BusyError,
    ProxyError,
    RequestError,
    SignInError,
    UpstreamError,
    as_typed,
    final_word,
    headers,
    messages_body,
    messages_event,
    openai_body,
)

WORDS = {
    "invalid_request_error": {"invalid_request": 400, "wrong_method": 405, "media_type": 415},
    "authentication_error": {"sign_in": 401},
    "billing_error": {"billing": 402},
    "permission_error": {"permission": 403},
    "not_found_error": {"not_found": 404},
    "not_found": {"no_route": 404},
    "timeout_error": {"slow_request": 408, "upstream_timeout": 504},
    "request_too_large": {"too_large": 413, "context": 413},
    "rate_limit_error": {"rate_limit": 429, "usage_limit": 429},
    "overloaded_error": {"busy": 429, "overloaded": 529},
    "api_error": {"internal": 500, "transport": 502, "unavailable": 503, "transient": 503},
}


@rows("word", WORDS)
def test_a_kind_has_a_status_and_a_word(word: str) -> None:
    for kind, status in WORDS[word].items():
        error = ProxyError("why", kind=kind)
        body = messages_body(error, "id-1")
        assert error.status == status
        assert body == {"type": "error", "error": {"type": word, "message": "why"}, "request_id": "id-1"}


CODE = "claude-cli/2.1.330 (external, cli)"


@rows(
    "error, agent, told",
    [
        (RequestError("x"), CODE, "policy_blocked"),
        (RequestError("x", param="tools[0].type", provider="p1"), CODE, "policy_blocked"),
        (UpstreamError("x", kind="invalid_request"), CODE, "policy_blocked"),
        (UpstreamError("x", kind="unprocessable"), CODE, "policy_blocked"),
        (RequestError("x"), "Anthropic/Python 2.12.0", "invalid_request_error"),
        (RequestError("x"), "not claude-cli/1", "invalid_request_error"),
        (RequestError("x"), "", "invalid_request_error"),
        (RequestError("x", param="model"), CODE, "invalid_request_error"),
        (RequestError("x", param="safeguards"), CODE, "invalid_request_error"),
        (RequestError("x", param="thread", details={"error_code": "thread"}), CODE, "invalid_request_error"),
        (RequestError("x", kind="media_type"), CODE, "invalid_request_error"),
        (SignInError("x"), CODE, "authentication_error"),
        (UpstreamError("x", kind="context"), CODE, "request_too_large"),
        (UpstreamError("x", kind="invalid_request", status=409), CODE, "invalid_request_error"),
        (BusyError("x"), CODE, "overloaded_error"),
    ],
)
def test_claude_code_is_told_at_once_that_probing_is_no_use(error: ProxyError, agent: str, told: str) -> None:
    last = final_word(error, agent)
    assert messages_body(last, "id")["error"]["type"] == told
    assert last.status == (400 if error.status == 422 else error.status)  # in auto mode it repeats any 422
    assert (last.message, last.provider) == (error.message, error.provider)
    assert headers(last) == headers(error)


def test_no_kind_has_a_status_that_the_openai_family_does_not_know() -> None:
    for row in KINDS.values():
        assert (row.openai_status or row.status) != 529


def test_what_no_retry_cures_says_so() -> None:
    final = {kind for kind in KINDS if headers(ProxyError("x", kind=kind)).get("x-should-retry") == "false"}
    assert {"invalid_request", "sign_in", "usage_limit", "too_large", "permission"} <= final
    assert not {"context", "rate_limit", "busy", "transient", "overloaded", "unavailable", "slow_request"} & final


@rows("seconds, value", [(None, None), (0, "1"), (0.2, "1"), (1.0, "1"), (1.01, "2"), (3600, "3600")])
def test_the_wait_is_a_whole_number_of_seconds(seconds: float | None, value: str | None) -> None:
    assert headers(ProxyError("x", kind="busy", retry_after=seconds)).get("Retry-After") == value


def test_inside_a_stream_an_overflow_begins_with_the_words_that_clients_know() -> None:
    for kind, word, message in (
        ("context", "invalid_request_error", "prompt is too long: too much"),
        ("rate_limit", "rate_limit_error", "too much"),
    ):
        event = messages_event(ProxyError("too much", kind=kind, provider="p1"))
        assert event == {"type": "error", "error": {"type": word, "message": message, "provider": "p1"}}
    assert messages_event(ProxyError("x"))["error"] == {"type": "api_error", "message": "x"}


def test_the_openai_form_has_all_four_members() -> None:
    error = RequestError("no", param="messages[0]", code="invalid_json")
    assert openai_body(error) == {
        "error": {"message": "no", "type": "invalid_request_error", "param": "messages[0]", "code": "invalid_json"}
    }


def test_each_child_has_its_kind_and_an_upstream_keeps_its_status() -> None:
    children = (RequestError("x"), SignInError("x"), UpstreamError("x"), BusyError("x"), ProxyError("x"))
    assert [error.status for error in children] == [400, 401, 502, 429, 500]
    assert UpstreamError("x", kind="upstream", status=418).status == 418


def test_a_replaced_error_is_a_new_one_of_its_class() -> None:
    old = UpstreamError("cut", provider="p1", repeatable=False, code="c", retry_after=2.0)
    new = old.replaced(message="cut (try again)", retry_after=5.0)
    assert type(new) is UpstreamError and str(new) == "cut (try again)" and new.args == ("cut (try again)",)
    assert vars(new) == vars(old) | {"message": "cut (try again)", "retry_after": 5.0}
    assert (str(old), old.message, old.retry_after) == ("cut", "cut", 2.0)


def test_a_replaced_kind_brings_its_status_unless_the_upstream_named_one() -> None:
    assert ProxyError("x", kind="busy").replaced(kind="internal").status == 500
    assert UpstreamError("x", kind="upstream", status=418).replaced(kind="transient").status == 418
    assert ProxyError("x", kind="busy").replaced(kind="internal", status=501).status == 501


def test_nothing_unknown_can_be_replaced() -> None:
    with pytest.raises(TypeError, match="usage"):
        UpstreamError("x").replaced(usage={})
    with pytest.raises(KeyError):
        UpstreamError("x").replaced(kind="no such kind")


# -- the texts


@cache
def texts() -> list[tuple[str, str]]:
    """(file, text) of all that the source can say but the simulators."""
    paths = {path.relative_to(PACKAGE): path for path in sorted(PACKAGE.rglob("*.py"))}
    return [
        (name.as_posix(), text)
        for name, path in paths.items()
        if "sandbox" not in name.parts
        for text in source_of(path).texts
    ]


_WORDS = "|".join(sorted(command.name for command in COMMANDS))
#: A command with nothing in front that says how it is started, and one that begins otherwise than `as_typed` looks for.
_BARE = re.compile(rf"`(?:{_WORDS}) [a-zA-Z-]")
_UNSEEN = re.compile(rf"(?<!`){PROGRAM} (?:{_WORDS})\b|python -m proxy|scripts/start")
#: The mark of a file, the title of a screen, and what looks at how the program was started.
_NO_COMMANDS = {"written by model-proxy service install", "model-proxy demo", "… -m proxy"}


def test_a_command_in_a_text_is_one_that_can_be_told_as_the_user_types_it() -> None:
    assert sum(f"`{PROGRAM} " in text for _, text in texts()) > 10
    wrong = [one for one in texts() if (_BARE.search(one[1]) or _UNSEEN.search(one[1])) and one[1] not in _NO_COMMANDS]
    assert wrong == []


def test_commands_are_told_as_typed_once() -> None:
    text = "p1 is not signed in; run `model-proxy auth login p1`. The log is in /x/model-proxy; `p1` is a label"
    told = as_typed(text, "scripts/start")
    assert told == text.replace("`model-proxy auth", "`scripts/start auth") == as_typed(told, "scripts/start")
    assert as_typed(text, PROGRAM) == text


#: What Claude Code 2.1.242 and 2.1.330 look for in the text of an error to tell their own words instead, read out of
#: both; some only at one status. `x-api-key` gives "Not logged in", whatever else the text says.
SWALLOWED = (
    *("x-api-key", "credit balance is too low", "organization has been disabled", "api key authentication is disabled"),
    *(
        "oauth token has been revoked",
        "oauth access token has been revoked",
        "capability_rejected: ",
        "opus is experie",
    ),
    *("oauth authentication is currently not allowed", "repeated 529 overloaded errors", "invalid model name"),
    *("(?:extra usage|usage credits) (?:is|are) required for long context", "spend limit reached", "fable is experie"),
    *(
        "`tool_use` ids were found without `tool_result`",
        "unexpected `tool_use_id` found",
        "`tool_use` ids must be uni",
    ),
    *(
        "maximum of \\d+ pdf pages",
        "the pdf specified",
        "could not process (?:image|pdf)",
        "image exceeds",
        "too much med",
    ),
    *("image dimensions exceed", "image does not match the provided media type", "(?:image|pdf) cannot be empty"),
    *("exceeds? (?:the )?api limit", "unable to (?:resize|compress) image", "image file is empty", "pdf pages"),
    *("does not support pdf", "output blocked by content filter", "request rejected as unprocessable by the model"),
    *("cannot be used as an advisor", "the advisor tool is not available", "input is too long"),
    *("effort '[a-z]+' is not supported when", r"messages[.\[]\d+[\].]+content[.\[]\d+[\].]+(?:image|document|pdf)"),
    *(
        "string too long. expected a string with maximum length",
        "the (?:request|message) size \\(",
        '"overloaded_error"',
    ),
)
#: And what makes it compact: said of a conversation that does not fit, and of nothing else.
COMPACTS = (
    *(
        "prompt is too long",
        "context window",
        "maximum context length",
        "context_length_exceeded",
        "maximum prompt len",
    ),
    *(
        "longer than the model'?s? (?:maximum|context)",
        "exceeds the (?:available|maximum)",
        "exceeded model token limit",
    ),
    *("input token length too long", "input tokens exceed", "maximum context limit", "prompt exceeds max length"),
    *("tokens in request more than max", "range of input length", "but model only supports up to", "context exceeds"),
    *("reduce the length of the messages", "input length and `max_tokens` exceed", "`inputs` tokens"),
)


#: Of these folders nothing stands in an answer.
_ELSEWHERE = ("cli/", "observe/", "config.py")
#: The name of a header, words that are looked for in those of an upstream, and what is meant to be read by the client.
_MEANT = {
    *("x-api-key", "could not process image", "context_length_exceeded", "maximum prompt length", "context window"),
    *("capability_rejected: beta_header:message-threads-2026-08-12", "prompt is too long", "prompt is too long: …"),
    *(text for text in _OTHERWISE if not text.startswith("x-")),
    "context window exceeded: …",
    "the prompt is too long for the context window of the model: compact the conversation or begin a new one",
    "prompt is too long: the service refused a request of this size, which may be over the context window",
}


def test_claude_code_shows_our_words_and_not_its_own() -> None:
    looks = re.compile("|".join((*SWALLOWED, *COMPACTS)), re.IGNORECASE)
    told = [(file, text) for file, text in texts() if not file.startswith(_ELSEWHERE)]
    assert len(told) > 3000
    assert [one for one in told if looks.search(one[1]) and one[1] not in _MEANT] == []
    assert looks.search("this proxy wants its key as `Authorization: Bearer …` or `x-api-key`")


@rows("words", _OTHERWISE)
def test_what_an_upstream_says_of_a_credential_is_not_swallowed(words: str) -> None:
    error = UpstreamError(f"No: {words.upper()} here (check the API key: PROXY_P4_API_KEY)", kind="sign_in")
    told = final_word(error, "claude-cli/2.1.330 (external, cli)")
    assert re.search("|".join(SWALLOWED), told.message, re.IGNORECASE) is None
    assert told.message.endswith(" here (check the API key: PROXY_P4_API_KEY)") and told.kind == "sign_in"
    assert final_word(error, "Anthropic/Python 1.0") is error


def test_a_conversation_that_is_too_long_is_known_as_that() -> None:
    looks = re.compile("|".join(COMPACTS), re.IGNORECASE)
    for text in ("Your input exceeds the context window of this model.", "no words for it"):
        assert looks.search(messages_event(ProxyError(text, kind="context"))["error"]["message"])
