"""One question for a list of models, and what becomes of answers that are none."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from hypothesis import given
from hypothesis import strategies as st
from oauth_accounts import Clock
from samples import rows

from proxy.config import Config
from proxy.core.models import MAX_MODELS, ModelFacts, ModelList, as_json, from_json, model_list, union, words_in
from proxy.errors import UpstreamError
from proxy.observe.lifecycle import NullLog
from proxy.providers.accounts.model_lists import ListTimers
from proxy.providers.contract import Services, Tuning
from proxy.providers.p1_codex.catalog import offered_model as of_p1
from proxy.providers.p2_kimi.catalog import offered_model as of_p2
from proxy.providers.p3_grok.catalog import offered_model as of_p3
from proxy.providers.p4_opencode.catalog import offered_model as of_p4
from proxy.providers.p5_cursor.provider import _list_rows, _offered_model
from proxy.providers.p5_cursor.wire.protobuf import encode
from proxy.providers.upstream.model_list import MAX_BODY_BYTES, ListQuestion, _read, ask_list

GOOD = json.dumps({"data": [{"id": "a"}, {"id": "b"}, {"id": "a"}, {"id": 3}, 4, {}]}).encode()
#: Answers that never come: the connection breaks, or nothing happens.
CUT, SILENCE = b"cut", b"silence"


class Service:
    """A service whose answers a test sets, one for each question; the last one stays."""

    def __init__(self) -> None:
        self.answers: list[bytes | web.Response] = [GOOD]
        self.asked: list[web.Request] = []
        self.services: Services
        self.url = ""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer is CUT:
            assert request.transport is not None
            request.transport.abort()
        if answer in (CUT, SILENCE):
            await asyncio.sleep(3600)
        return answer if isinstance(answer, web.Response) else web.Response(body=answer)

    async def ask(self, known: ModelList | None = None) -> ModelList:
        return await ask_list(self.services, "p2", ListQuestion(self.url, {"x": "y"}, of_p4), known)


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    service, app = Service(), web.Application()
    app.router.add_route("*", "/{path:.*}", service.handle)
    async with TestServer(app) as server, aiohttp.ClientSession() as session:
        service.url = str(server.make_url("/models"))
        tuning = Tuning((ListTimers(answer=0.3),))
        made = (Config, Path(), session, session, cast(Any, None), NullLog(), Clock())
        service.services = Services(*made, tuning=tuning)
        yield service


async def test_each_id_counts_once_and_what_is_no_row_is_left_out(service: Service) -> None:
    found = await service.ask()
    assert [*found.models] == ["a", "b"] and service.asked[0].headers["x"] == "y"


@rows(
    "answer, reason",
    [
        (b"", "cannot be read (JSONDecodeError)"),
        (b"{}", "the answer names no model"),
        (b'{"data":[]}', "the answer names no model"),
        (b'{"data":{"a":1}}', "the answer names no model"),
        (b'[{"id":"a"}]', "the answer names no model"),
        (b"<html>", "cannot be read (JSONDecodeError)"),
        (b'{"data":' + b"[" * 20_000, "cannot be read"),
        (b'{"data":[' + b"1," * 10 + b"9" * 5000 + b"]}", "cannot be read"),
        (b"\n" * (MAX_BODY_BYTES + 1), f"the answer passed {MAX_BODY_BYTES} bytes"),
    ],
)
async def test_what_is_no_list(answer: bytes, reason: str) -> None:
    question = ListQuestion("", {}, of_p4)
    service, app = Service(), web.Application()
    app.router.add_route("*", "/{path:.*}", service.handle)
    service.answers = [answer]
    async with TestServer(app) as server, aiohttp.ClientSession() as session:
        made = (Config, Path(), session, session, cast(Any, None), NullLog(), Clock())
        question = ListQuestion(str(server.make_url("/models")), {}, of_p4)
        with pytest.raises(UpstreamError) as raised:
            await ask_list(Services(*made), "p2", question, None)
    assert raised.value.message.startswith("p2 did not list its models: ") and reason in raised.value.message
    assert len(raised.value.message) < 200


@pytest.mark.parametrize("status", [201, 302, 304, 401, 429, 500])
async def test_another_status_is_no_list(service: Service, status: int) -> None:
    service.answers = [web.Response(status=status, headers={"location": "/elsewhere"})]
    with pytest.raises(UpstreamError, match=f"status {status}"):
        await service.ask()
    assert len(service.asked) == 1


async def test_a_list_that_has_not_changed_is_confirmed(service: Service) -> None:
    service.answers = [web.Response(body=GOOD, headers={"etag": '"1"'}), web.Response(status=304)]
    first = await service.ask()
    cast(Clock, service.services.clock).now += 60
    again = await service.ask(first)
    assert service.asked[1].headers["if-none-match"] == '"1"'
    assert again == first and again.models is first.models and again.asked == first.asked + 60


async def test_a_question_that_did_not_get_through_is_asked_once_more(service: Service) -> None:
    service.answers = [CUT, GOOD]
    assert [*(await service.ask()).models] == ["a", "b"] and len(service.asked) == 2
    service.answers = [CUT]
    with pytest.raises(UpstreamError, match="no answer"):
        await service.ask()


async def test_a_service_that_does_not_answer_is_given_up(service: Service) -> None:
    service.answers = [SILENCE]
    with pytest.raises(UpstreamError, match=r"no answer \(TimeoutError\)"):
        await service.ask()
    assert len(service.asked) == 1


def test_ids_that_cannot_be_names_are_left_out() -> None:
    found = model_list(((name, ModelFacts()) for name in ("a", "", "x" * 101, "b c", "d\x1b", "a", "é")), 0.0)
    assert [*found.models] == ["a", "é"]
    many = ((f"m{number}", ModelFacts()) for number in range(2 * MAX_MODELS))
    assert len(model_list(many, 0.0).models) == MAX_MODELS


def test_of_p5_a_message_or_json_is_read() -> None:
    """123 bytes of a first model: its length is a brace."""
    question = ListQuestion("", {}, _offered_model, "models", b"", _list_rows)
    body = encode("GetUsableModelsResponse", {"models": [{"model_id": "a", "display_name": "n" * 118}]})
    assert body[:2] == b"\n{" and [*_read(body, question)] == [("a", ModelFacts())]
    assert [*_read(b'{"models":[{"modelId":"a","displayName":"A"}]}', question)] == [("a", ModelFacts(title="A"))]


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=8,
)
_MEMBERS = (
    *("slug", "id", "modelId", "displayName", "display_name", "visibility", "use_responses_lite", "input_modalities"),
    *("context_window", "max_context_window", "supported_reasoning_levels", "default_reasoning_level", "service_tiers"),
    *("additional_speed_tiers", "context_length", "think_efforts", "supports_thinking_type", "supports_image_in"),
    *("supports_reasoning", "contextWindow", "supportsReasoningEffort", "reasoningEfforts", "supportsBackendSearch"),
)


@given(st.dictionaries(st.sampled_from(_MEMBERS), _values, max_size=12))
def test_any_row_is_survived_and_kept_as_it_is(row: dict[str, Any]) -> None:
    for read in (of_p1, of_p2, of_p3, of_p4, _offered_model):
        _, facts = read(row)
        kept = from_json(json.loads(json.dumps(as_json(ModelList({"a": facts}, 1.0)))))
        assert kept.models == {"a": facts}


@given(st.binary(max_size=80) | st.binary(max_size=40).map(lambda data: b"{" + data))
def test_any_answer_is_survived(body: bytes) -> None:
    question = ListQuestion("", {}, _offered_model, "models", b"", _list_rows)
    try:
        assert model_list(_read(body, question), 0.0).models
    except (ValueError, RecursionError):
        pass


def test_lists_of_several_accounts_are_one() -> None:
    first, second = ModelList({"a": ModelFacts(1)}, 5.0), ModelList({"a": ModelFacts(2), "b": ModelFacts()}, 3.0)
    both = union([first, second])
    assert both is not None and both.models["a"].context == 1 and {*both.models} == {"a", "b"} and both.asked == 3.0
    assert union([]) is None and union([first]) is first
    assert words_in(["low", "low", 3, "x" * 99]) == ("low",)
