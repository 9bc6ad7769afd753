"""Auto mode: what of an answer waits for the verdicts, who is asked for them, and what a client is told."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from checks import check_message_stream
from events import closed, delta, opened
from harness import Answer, Fake, Live, ask, configured, kinds, tool, until, use, watch_often, whole_message, with_live

from proxy.errors import ProxyError, UpstreamError
from proxy.observe.lifecycle import Judged
from proxy.providers.contract import Call
from proxy.providers.upstream.event_reader import Batches
from proxy.sandbox import Sandbox
from proxy.server.serving import judge

Batch = list[dict[str, Any]]

CONTEXT = {"permission_mode": "auto", "home_dir": "/home/me", "live_cwd": "/home/me/project", "user_identity": "SECRET"}
SAFEGUARDS = [{"type": "dangerous_tool_use", "classifier_context": CONTEXT}]
NOT_FLAGGED = {"type": "evaluated", "outcome": "not_flagged"}

START, *_, REASON, STOP = whole_message("gpt-5.5", "fine")
END: Batch = [{**REASON, "delta": {"stop_reason": "tool_use", "stop_sequence": None}}, STOP]


@pytest.fixture
def live_options() -> dict[str, Any]:
    return {"tuning": (watch_often(judge_quiet=0.02),)}


def used(number: int, command: str = "make", tool: str = "Bash") -> Batch:
    """The events of one whole call."""
    arguments = json.dumps({"command": command})
    return [
        opened("tool_use", number, id=f"t{number}", name=tool),
        delta(arguments, "input_json_delta", number),
        closed(number),
    ]


def asking(**members: Any) -> dict[str, Any]:
    return ask(**{"safeguards": SAFEGUARDS, **members})


def says(*flagged: bool) -> str:
    rows = [{"call": place, "flagged": one, "reason": "It is bad."} for place, one in enumerate(flagged, 1)]
    return json.dumps({"verdicts": rows})


class Reviewed(Fake):
    """P1 as both: it answers with these steps, and as the reviewer with `review`, one for each question."""

    def __init__(self, *steps: Any, review: Any = "", label: str = "p1") -> None:
        super().__init__(label, self._play)
        self._steps = steps
        self._review = review
        self.questions: list[Any] = []
        self.cancelled = 0

    def _play(self, call: Call) -> Batches:
        return self._judge(call) if call.auto_review else self._answer()

    async def _answer(self) -> Batches:
        for step in self._steps:
            if isinstance(step, float):
                await asyncio.sleep(step)
            elif isinstance(step, asyncio.Event):
                await step.wait()
            else:
                yield step

    async def _judge(self, call: Call) -> Batches:
        self.questions.append(json.loads(call.request["messages"][0]["content"][0]["text"]))
        review = self._review
        try:
            if isinstance(review, asyncio.Event):
                await review.wait()
            if isinstance(review, BaseException):
                raise review
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        answers = review if isinstance(review, list) else whole_message(call.model, str(review))
        yield answers


def told(answer: Answer) -> dict[str, Any]:
    """The verdicts of an answer by the ids of its calls."""
    [entry] = answer.events[-2]["delta"]["safeguard_results"]
    assert entry["type"] == "dangerous_tool_use" and entry["status"]["type"] == "available"
    return dict(entry["status"]["tool_uses"])


async def test_each_call_gets_its_verdict_and_the_reviewer_is_asked_once(live: Live) -> None:
    fake = use(live, Reviewed([START, *used(0)], [*used(1, "deploy")], END, review=says(False, True)))
    answer = await live.stream(asking())
    check_message_stream(answer.events)
    assert told(answer) == {
        "t0": NOT_FLAGGED,
        "t1": {"type": "evaluated", "outcome": "flagged", "explanation": "It is bad"},
    }
    assert [[call["input"]["command"] for call in one["calls"]] for one in fake.questions] == [["make", "deploy"]]
    review = fake.calls[1]
    assert review.folded and review.owner is None and review.session is None
    assert review.request_id == f"{answer.headers['request-id']}-judge" and review.model == "gpt-5.6-luna"
    [judged] = [event for event in live.watcher.last if isinstance(event, Judged)]
    assert (judged.model, judged.outcomes, judged.input_tokens, judged.output_tokens) == (
        "gpt-5.6-luna",
        {"not_flagged": 1, "flagged": 1},
        3,
        1,
    )
    [noted] = live.notes.all("auto_mode_judged")
    assert noted["reviewer"] == "gpt-5.6-luna" and "deploy" not in json.dumps(noted)
    assert answer.events[-2]["usage"] == REASON["usage"]  # what the judge cost is not the client's answer


@pytest.mark.parametrize(
    "reason", ["end_turn", "max_tokens", "refusal", "pause_turn", "stop_sequence", "model_context_window_exceeded"]
)
async def test_an_answer_without_calls_says_so_without_asking(live: Live, reason: str) -> None:
    end = [{**REASON, "delta": {"stop_reason": reason, "stop_sequence": None}}, STOP]
    thought = [opened("thinking"), delta("hm", "thinking_delta"), closed()]
    fake = use(live, Reviewed([START, *thought, *end]))
    answer = await live.stream(asking())
    assert told(answer) == {} and answer.events[-2]["delta"]["stop_reason"] == reason
    assert fake.questions == [] and not live.notes.all("auto_mode_judged")


async def test_a_whole_answer_has_them_as_a_member_of_the_message(live: Live) -> None:
    use(live, Reviewed([START, *used(0), *END], review=says(False)))
    answer = await live.post(asking())
    assert answer.json["safeguard_results"][0]["status"]["tool_uses"] == {"t0": NOT_FLAGGED}
    assert answer.json["stop_reason"] == "tool_use"


@pytest.mark.parametrize(
    ("review", "verdict"),
    [
        ("I would not run this.", "error"),
        (says(), "error"),
        ('{"verdicts": [{"call": 1, "flagged": "no"}]}', "error"),
        (UpstreamError("no", kind="transient"), "error"),
        (ProxyError("too long", kind="context"), "input_too_long"),
        (ProxyError("too long", kind="too_large"), "input_too_long"),
        (RuntimeError("a bug"), "error"),
        ([START, {**REASON, "delta": {"stop_reason": "refusal"}}, STOP], "refused"),
        ([START], "error"),
    ],
)
async def test_a_judge_that_fails_is_unavailable(live: Live, review: Any, verdict: str) -> None:
    use(live, Reviewed([START, *used(0), *END], review=review))
    assert told(await live.stream(asking())) == {"t0": {"type": "unavailable", "reason": verdict}}


@with_live(tuning=(watch_often(judge=0.05, keepalive=0.01, judge_quiet=0.01),))
async def test_a_judge_that_takes_too_long_is_given_up_and_the_client_is_pinged_meanwhile(live: Live) -> None:
    fake = use(live, Reviewed([START, *used(0)], END, review=asyncio.Event()))
    answer = await live.stream(asking())
    assert told(answer) == {"t0": {"type": "unavailable", "reason": "timeout"}} and fake.cancelled == 1
    assert "ping" in kinds(answer.events)[4:-2]


async def test_it_is_asked_while_the_answer_still_streams_and_anew_when_a_call_follows(live: Live) -> None:
    more, gate = asyncio.Event(), asyncio.Event()
    fake = use(live, Reviewed([START, *used(0)], more, used(1), END, review=gate))
    request = asyncio.create_task(live.stream(asking()))
    await until(lambda: len(fake.questions) == 1)
    more.set()
    await until(lambda: len(fake.questions) == 2)
    assert fake.cancelled == 1 and [len(one["calls"]) for one in fake.questions] == [1, 2]
    fake._review = says(True, False)
    gate.set()
    assert list(told(await request)) == ["t0", "t1"]


async def test_nothing_but_the_end_is_held(live: Live) -> None:
    gate = asyncio.Event()
    fake = use(live, Reviewed([START, *used(0), *END], review=gate))
    async with live.open(asking(stream=True)) as response:
        begun = await response.content.readuntil(b'"content_block_stop"')
        assert b"message_delta" not in begun
        await until(lambda: len(fake.questions) == 1)
    await until(lambda: fake.cancelled == 1)  # the client left
    assert fake.closed == 2


@pytest.mark.parametrize(("agent", "kind"), [({}, "main"), ({"x-claude-code-agent-id": "a"}, "subagent")])
async def test_the_reviewer_learns_that_another_agent_wrote_the_task(live: Live, agent: Any, kind: str) -> None:
    fake = use(live, Reviewed([START, *used(0), *END], review=says(False)))
    await live.stream(asking(), {"x-claude-code-session-id": "s", **agent})
    assert [one["agent"] for one in fake.questions] == [kind]


async def test_a_large_call_is_looked_through_in_a_thread(live: Live) -> None:
    use(live, Reviewed([START, *used(0, "rm -rf ~ " + "x" * 50_000), *END]))
    assert told(await live.stream(asking()))["t0"]["outcome"] == "flagged"


async def test_a_bug_in_the_rules_is_no_permission(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise RecursionError

    monkeypatch.setattr(judge, "decide", broken)
    use(live, Reviewed([START, *used(0), *END], review=says(False)))
    assert told(await live.stream(asking())) == {"t0": {"type": "unavailable", "reason": "error"}}


async def test_tools_that_need_no_verdict_are_skipped_without_a_model(live: Live) -> None:
    fake = use(live, Reviewed([START, *used(0, tool="TodoWrite"), *END]))
    assert told(await live.stream(asking())) == {"t0": {"type": "skipped"}}
    assert fake.questions == [] and [one["reviewer"] for one in live.notes.all("auto_mode_judged")] == ["rules"]


async def test_a_call_that_was_cut_is_to_be_made_again(live: Live) -> None:
    end = [{**REASON, "delta": {"stop_reason": "max_tokens", "stop_sequence": None}}, STOP]
    use(live, Reviewed([START, *used(0)[:2], *end]))
    assert told(await live.stream(asking())) == {"t0": {"type": "unavailable", "reason": "truncated"}}


# -- who judges


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/messages/count_tokens"])
@with_live(auto_mode="client")
async def test_the_client_is_told_to_judge_itself_by_the_name_of_the_field(live: Live, path: str) -> None:
    fake = use(live, Reviewed([START, *used(0), *END]))
    answer = await live.post(asking(), path)
    if path.endswith("count_tokens"):
        assert answer.json == {"input_tokens": 7}
        return
    assert answer.status == 400 and answer.error["type"] == "invalid_request_error"
    assert "safeguards" in answer.error["message"] and "details" not in answer.error
    assert answer.headers["request-id"] and fake.calls == []


@with_live(signed_in=False)
async def test_without_a_sign_in_of_the_reviewer_the_client_judges(live: Live) -> None:
    assert (await live.post(asking())).status == 400
    assert live.sandbox.p1.total_requests == 0


@with_live(auto_mode="off")
async def test_it_may_be_off(live: Live) -> None:
    use(live, Reviewed([START, *used(0), *END]))
    assert "safeguard_results" not in (await live.stream(asking())).events[-2]["delta"]


@pytest.mark.parametrize("safeguards", [None, [], "x", {}, [{"type": "other"}], [1]])
async def test_other_safeguards_are_ignored(live: Live, safeguards: Any) -> None:
    use(live, Reviewed([START, *used(0), *END]))
    answer = await live.stream(asking(safeguards=safeguards))
    assert answer.status == 200 and "safeguard_results" not in answer.events[-2]["delta"]


@pytest.mark.parametrize("model", ["kimi-for-coding", "cursor"])
@with_live(auto_review_model="gpt-5.5[1m]")
async def test_the_reviewer_may_be_chosen(live: Live, model: str) -> None:
    reviewer = use(live, Reviewed(review=says(False)))
    use(live, Reviewed([START, *used(0), *END], label="p2" if model.startswith("kimi") else "p5"))
    assert told(await live.stream(asking(model=model))) == {"t0": NOT_FLAGGED}
    assert [call.model for call in reviewer.calls] == ["gpt-5.5"]


#: What the sandbox's models answer with two calls, and its reviewers find one of them harmful.
TWO_CALLS = {"prompt": "use Bash: make all and use Bash: dangerous thing", "tools": [tool()]}
MODELS = ("gpt-5.6-sol", "kimi-for-coding", "grok-4.6", "opencode-go/kimi-k2.6", "minimax-m3", "cursor")


@pytest.mark.parametrize("model", MODELS)
async def test_every_provider_is_judged_and_none_is_told_of_the_users_policy(
    live: Live, sandbox: Sandbox, model: str
) -> None:
    """In the sandbox, with the reviewer of the provider that answers, where it has one."""
    answer = await live.stream(asking(model=model, **TWO_CALLS), {"x-claude-code-session-id": "s"})
    verdicts = list(told(answer).values())
    assert [one.get("outcome") for one in verdicts][:1] == ["not_flagged"], verdicts
    sent = [json.dumps(seen.body) for one in sandbox.upstreams.values() for seen in one.requests]
    assert not any("safeguards" in text or "SECRET" in text for text in sent)
    assert "SECRET" not in json.dumps([live.notes.records, live.notes.captures])


@pytest.mark.parametrize("model", MODELS)
async def test_every_provider_can_review(live: Live, model: str) -> None:
    live.config = configured(live.config, auto_review_model=model)
    verdicts = told(await live.stream(asking(**TWO_CALLS)))
    assert [one["outcome"] for one in verdicts.values()] == ["not_flagged", "flagged"]
