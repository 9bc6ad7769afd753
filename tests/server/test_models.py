"""One model by its id, ids that the settings add, new ones, names for the picker of Claude Code."""

from __future__ import annotations

import io
from typing import Any

import pytest
from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient, NotFoundError
from anthropic.types import ModelInfo
from harness import Live, ask, configured, with_live
from openai import NotFoundError as OpenAiNotFound
from openai.types import Model
from samples import rows
from sdk import openai_client, tls

from proxy import Secret
from proxy.core.routing import ALIASES
from proxy.sandbox.p1.catalog import P1Model
from proxy.server.routes.probes import MAX_REPORT_BYTES

WINDOW = ("context_window", "context_length", "max_input_tokens")
ANSWER = ("max_output_tokens", "max_completion_tokens", "max_tokens")


def limits(entry: dict[str, Any]) -> tuple[set[Any], set[Any]]:
    return {entry.get(name) for name in WINDOW}, {entry.get(name) for name in ANSWER}


@rows(
    "path, label, window, answer",
    [
        ("gpt-5.5", "p1", 272_000, None),
        ("gpt-5.6-sol-fast", "p1", 272_000, None),
        ("gpt-5.5[1m]", "p1", 272_000, None),
        ("gpt-5.5%5B1m%5D", "p1", 272_000, None),
        ("gpt-6.1-terra", "p1", 500_000, None),
        ("gpt-7-luna", "p1", None, None),
        ("codex-auto-review", "p1", 272_000, None),
        ("kimi-k3", "p2", 1_048_576, None),
        ("grok-4.5", "p3", 500_000, None),
        ("grok-99", "p3", None, None),
        ("opencode-go/glm-5.1", "p4", 202_752, 32_768),
        ("opencode-go%2Fglm-5.1", "p4", 202_752, 32_768),
        ("deepseek-flash", "p4", None, None),
        ("cursor:gpt-5.5", "p5", None, None),
        ("cursor%3Agpt-5.5", "p5", None, None),
        ("opus", "p1", 272_000, None),
        ("claude-haiku-5-5", "p1", 272_000, None),
    ],
)
async def test_a_model_is_found_by_any_name_of_a_request(
    live: Live, path: str, label: str, window: int | None, answer: int | None
) -> None:
    found = await live.get(f"/v1/models/{path}")
    assert found.status == 200
    entry = found.json
    assert (entry["type"], entry["object"], entry["owned_by"]) == ("model", "model", label)
    assert entry["display_name"] == f"{entry['id']} ({label})" and "[1m]" not in entry["id"] and "%" not in entry["id"]
    assert limits(entry) == ({window}, {answer})
    listed = {one["id"]: one for one in (await live.get("/v1/models")).json["data"]}
    assert listed.get(entry["id"], entry) == entry
    assert (await live.request("HEAD", f"/v1/models/{path}")).status == 200


@rows("path", ["nobody", "claude-gpt-5.5", "opencode-go/nobody", "gpt-5.5/x", "x" * 4000])
async def test_an_unknown_model_is_not_found_in_both_forms(live: Live, path: str) -> None:
    answer = await live.get(f"/v1/models/{path}")
    assert answer.status == 404 and answer.headers["x-should-retry"] == "false"
    assert answer.error["type"] == "not_found_error"
    assert (answer.error["param"], answer.error["code"]) == ("model", "model_not_found")
    assert "GET /v1/models lists them" in answer.error["message"] and len(answer.error["message"]) < 500


async def test_the_sdks_read_one_model_and_all(live: Live) -> None:
    http = DefaultAsyncHttpxClient(verify=tls())
    async with AsyncAnthropic(base_url=live.url, api_key="x", max_retries=0, http_client=http) as anthropic:
        one = await anthropic.models.retrieve("opencode-go/glm-5.1")
        for info in [one, *[info async for info in anthropic.models.list()]]:
            assert ModelInfo.model_validate(info.model_dump(warnings="error"), strict=False) == info
        assert one.max_tokens == 32_768
        with pytest.raises(NotFoundError):
            await anthropic.models.retrieve("nobody")
    async with openai_client(live.url) as openai:
        for model in [await openai.models.retrieve(one.id), *[model async for model in openai.models.list()]]:
            assert Model.model_validate(model.model_dump(warnings="error")) == model
        with pytest.raises(OpenAiNotFound) as caught:
            await openai.models.retrieve("nobody")
        assert caught.value.code == "model_not_found"


# -- ids of the settings, and new ones


async def sent(live: Live, model: str) -> dict[str, Any]:
    answer = await live.post(ask(model=model))
    assert answer.status == 200, answer.raw
    assert answer.json["model"] == model
    return live.sandbox.p1.requests[-1].body


@with_live(p1_models=(("new-luna", "gpt-6-luna"), ("gpt-7-sol", "")))
async def test_an_id_of_the_settings_is_listed_and_goes_out_in_the_ways_of_its_base(live: Live) -> None:
    known = live.sandbox.p1.options.models
    known["new-luna"] = P1Model(full=False, lite=True)
    known["gpt-7-sol"] = P1Model(full=False, lite=True)
    listed = {one["id"]: one for one in (await live.get("/v1/models")).json["data"]}
    assert limits(listed["new-luna"])[0] == limits(listed["gpt-7-sol"])[0] == {272_000}
    assert {"new-luna-fast", "gpt-7-sol-fast"} <= set(listed)
    assert (await sent(live, "new-luna"))["model"] == "new-luna"
    assert (await sent(live, "new-luna-fast"))["service_tier"] == "priority"
    assert (await sent(live, "gpt-7-sol"))["model"] == "gpt-7-sol"
    assert live.notes.all("model_not_listed") == []


async def test_ids_of_the_settings_count_while_the_proxy_runs(live: Live) -> None:
    live.sandbox.p1.options.models["new"] = P1Model(full=True, lite=False)
    assert (await live.post(ask(model="new"))).status == 400
    live.config = configured(live.config, p1_models=(("new", ""),))
    assert (await sent(live, "new"))["model"] == "new"
    live.config = configured(live.config, p1_models=())
    assert (await live.post(ask(model="new"))).status == 400


@pytest.mark.parametrize(
    ("model", "sent_as", "like", "knows"),
    [
        ("gpt-6.2-sol", "gpt-6.2-sol", "gpt-6.1-sol", P1Model(full=False, lite=True)),
        ("gpt-7-luna-fast", "gpt-7-luna", "gpt-6-luna", P1Model(full=False, lite=True)),
        ("gpt-5.9", "gpt-5.9", "gpt-5.5", P1Model(full=True, lite=False)),
        ("codex-mini-latest", "codex-mini-latest", "gpt-5.4-mini", P1Model(full=True, lite=False)),
        ("gpt-daybreak-green", "gpt-daybreak-green", "gpt-daybreak-blue-latest", P1Model(full=False, lite=True)),
    ],
)
async def test_a_new_model_of_a_known_form_goes_out_like_the_nearest_and_the_log_says_so_once(
    live: Live, model: str, sent_as: str, like: str, knows: P1Model
) -> None:
    refused = await live.post(ask(model=model))
    assert refused.status == 400 and "model is not supported" in refused.error["message"]
    live.sandbox.p1.options.models[sent_as] = knows
    for _ in range(2):
        assert (await sent(live, model))["model"] == sent_as
    assert live.notes.all("model_not_listed") == [{"model": sent_as, "like": like}]


@with_live(p1_model="my-model", openai_routes=True)
async def test_any_id_may_replace_the_model_of_every_request(live: Live) -> None:
    live.sandbox.p1.options.models["my-model"] = P1Model(full=True, lite=False)
    assert (await sent(live, "haiku"))["model"] == "my-model"


@pytest.mark.parametrize("model", ["codex-auto-review", "gpt-6.1-terra", "gpt-daybreak-blue-latest"])
@with_live(openai_routes=True)
async def test_what_the_vendors_client_knows_goes_out_on_the_lite_lane(live: Live, model: str) -> None:
    live.sandbox.p1.options.models.setdefault(model, P1Model(full=False, lite=True))
    body = {"model": model, "input": "hi", "store": False}
    assert (await live.post(body, "/v1/responses")).status == 200
    assert live.sandbox.p1.requests[-1].body["model"] == model
    assert live.notes.all("model_not_listed") == []


# -- names for the picker


@with_live(claude_names=True)
async def test_every_model_has_a_second_name_for_the_picker(live: Live) -> None:
    entries = (await live.get("/v1/models")).json["data"]
    ids = [one["id"] for one in entries]
    assert len(set(ids)) == len(ids)
    plain = [model for model in ids if not model.startswith("claude-")]
    aliases = {"haiku", "sonnet", "opus", "fable"}
    modes = {model for model in plain if model.startswith(("cursor-plan:", "cursor-ask:"))}
    wanted = {f"claude-{model}" for model in {*plain} - aliases - modes}
    assert {model for model in ids if model.startswith("claude-") and model not in ALIASES} == wanted
    assert "claude-cursor:gpt-5.5-high" in wanted and modes
    places = {kind: [ids.index(model) for model in ids if model.startswith(kind)] for kind in ("claude-", "cursor:")}
    assert max(places["claude-"]) < min(places["cursor:"])  # a picker asks for the first thousand
    assert all(isinstance(one["display_name"], str) for one in entries)
    told = next(one for one in entries if one["id"] == "claude-opencode-go/glm-5.1")
    assert limits(told) == ({202_752}, {32_768})
    assert (await live.get("/v1/models/claude-opencode-go/glm-5.1")).json == told


@with_live(claude_names=True, openai_routes=True)
async def test_a_name_for_the_picker_reaches_the_upstream_without_its_beginning(live: Live) -> None:
    for model, upstream in (("claude-gpt-5.6-sol", "gpt-5.6-sol"), ("claude-gpt-5.5-fast", "gpt-5.5")):
        assert (await sent(live, model))["model"] == upstream
    streamed = await live.stream(ask(model="claude-glm-5.2[1m]"))
    assert streamed.events[0]["message"]["model"] == "claude-glm-5.2"
    assert live.sandbox.p4.requests[-1].body["model"] == "glm-5.2"
    chat = await live.post(ask(model="claude-kimi-k3"), "/v1/chat/completions")
    assert chat.json["model"] == "claude-kimi-k3"
    assert (await sent(live, "claude-opus-5"))["model"] == "gpt-5.6-sol"


async def test_without_the_setting_such_names_are_unknown(live: Live) -> None:
    assert (await live.post(ask(model="claude-gpt-5.6-sol"))).status == 400
    ids = [one["id"] for one in (await live.get("/v1/models")).json["data"]]
    assert "claude-gpt-5.6-sol" not in ids


# -- aliases


@pytest.mark.parametrize(
    ("label", "haiku", "opus"),
    [
        ("p2", "kimi-for-coding", "kimi-for-coding"),
        ("p3", "grok-4.5", "grok-4.6"),
        ("p4", "glm-5.3-flash", "kimi-k2.7-code"),
    ],
)
async def test_any_provider_stands_behind_the_aliases(live: Live, label: str, haiku: str, opus: str) -> None:
    live.config = configured(live.config, alias_provider=label)
    for alias, model in (("haiku", haiku), ("claude-haiku-9", haiku), ("opus", opus), ("claude-sonnet-5-5", opus)):
        answer = await live.post(ask(model=alias))
        assert (answer.status, answer.json["model"]) == (200, alias)
        assert live.sandbox[label].requests[-1].body["model"] == model
    listed = {one["id"]: one for one in (await live.get("/v1/models")).json["data"]}
    assert listed["haiku"]["owned_by"] == label
    assert limits(listed["haiku"]) == limits(listed[haiku])


@with_live(signed_in=False, openai_routes=True)
async def test_a_missing_sign_in_of_an_alias_names_the_setting(live: Live) -> None:
    for model, told in (("haiku", True), ("gpt-5.5", False)):
        chat = {"model": model, "messages": ask()["messages"]}
        answers = [
            (await live.post(ask(model=model))).error["message"],
            (await live.post(chat, "/v1/chat/completions")).json["error"]["message"],
        ]
        assert [("`. Or set aliasProvider (PROXY_ALIAS_PROVIDER)" in message) for message in answers] == [told] * 2
        assert all("model-proxy auth login p1" in message for message in answers)


@with_live(signed_in=False, openai_routes=True, image_routes=True, openai_mode="lenient", command="scripts/start")
async def test_a_missing_sign_in_names_the_command_as_this_user_types_it(live: Live) -> None:
    for label, model in (("p1", "gpt-5.5"), ("p2", "k3"), ("p3", "grok-4.6"), ("p5", "cursor:gpt-5.5")):
        answers = [
            await live.post({"model": model, "stream": stream} | body, path)
            for path, body in (
                ("/v1/messages", ask(model=model)),
                ("/v1/chat/completions", {"messages": ask()["messages"]}),
                ("/v1/responses", {"input": "hi"}),
            )
            for stream in (False, True)
        ]
        if label == "p1":
            answers.append(await live.post({"model": "gpt-image-2", "prompt": "x"}, "/v1/images/generations"))
        for answer in answers:
            assert answer.status == 401 and f"`scripts/start auth login {label}`" in answer.raw.decode(), answer.raw
            assert "model-proxy auth" not in answer.raw.decode()


# -- what clients ask for beside models


@with_live(api_key=Secret("k3y"))
async def test_somebody_is_there_for_whoever_asks_without_a_key(live: Live) -> None:
    for method in ("HEAD", "GET"):
        answer = await live.request(method, "/api/hello")
        assert (answer.status, answer.raw) == (200, b"")
    assert (await live.post({}, "/v1/metrics")).status == 401


@rows("path", ["/v1/metrics", "/v1/logs", "/v1/traces"])
async def test_reports_are_taken_and_forgotten_a_long_one_not_to_its_end(live: Live, path: str) -> None:
    for body in (b"", b"\x00" * 1000, b"\x00" * (MAX_REPORT_BYTES + 2**20)):
        answer = await live.request("POST", path, data=io.BytesIO(body))
        assert (answer.status, answer.raw) == (200, b"")
    assert (await live.request("POST", path, data=b"", headers={"Host": "evil.example"})).status == 403
