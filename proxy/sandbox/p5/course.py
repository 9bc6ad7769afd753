"""How a run goes: what is refused, the script's step for it, or the model's normal answer."""

from __future__ import annotations

from collections.abc import Mapping

from proxy.sandbox.model.pieces import tokens_of
from proxy.sandbox.p5.answer import NEVER, AgentAnswer
from proxy.sandbox.p5.failures import HTTP_FAULTS
from proxy.sandbox.p5.faults.opening import OPENING_FAULTS
from proxy.sandbox.p5.faults.table import AGENT_FAULTS
from proxy.sandbox.p5.headers import check_version
from proxy.sandbox.p5.opening import Opening, read_opening
from proxy.sandbox.p5.prompt import read_prompt
from proxy.sandbox.p5.runs import Course, Run
from proxy.sandbox.p5.state import P5
from proxy.sandbox.play.actions import Pace, Reply
from proxy.sandbox.play.script import Place, Step
from proxy.sandbox.upstream import Prepared, ServedWire
from proxy.sandbox.wires.connect.errors import Failed
from proxy.sandbox.wires.connect.protobuf import Malformed

AGENT = ServedWire(Place("p5", "agent"), HTTP_FAULTS, AGENT_FAULTS)


#: What comes instead of an answer to a prompt that is too large.
TOO_LONG = (
    "end_error",
    {"code": "invalid_argument", "error": "ERROR_CONVERSATION_TOO_LONG", "title": "Conversation too long"},
)


def take_opening(p5: P5) -> Step | None:
    """The step of the script that comes before anything is asked for: an HTTP answer, or a fault of the beginning. One
    that looks at what is asked for waits for that."""
    step = p5.script.next_at(AGENT.place)
    if step is None or step.asks_for_a_body:
        return None
    early = isinstance(step.outcome, Reply) or step.fault in HTTP_FAULTS or step.fault in OPENING_FAULTS
    return p5.script.use(step) if early else None


def set_course(p5: P5, run: Run) -> None:
    """Decides how the run goes, as soon as it has its first message and its stream."""
    if run.first is None or run.seen is None or run.course is not None:
        return
    try:
        check_version(run.seen.headers)
        opening = read_opening(run.first, run.blame, p5.options.suffixed)
    except (Failed, Malformed) as problem:
        failed = problem if isinstance(problem, Failed) else Failed("invalid_argument", f"parse binary: {problem}")
        run.course = Course([{"type": "end", "error": failed.body}], Pace())
        return
    run.seen.body = opening.body
    if opening.silent:
        run.course = Course([NEVER], Pace())
        return
    answer = _answer(p5, run, opening, run.seen.headers)
    limit = p5.options.context_limit
    instead = TOO_LONG if limit and answer.input_tokens > limit else None
    outcome, pace = p5.decide(Prepared(AGENT, answer, instead=instead), opening.body)
    if isinstance(outcome, Reply):
        # the stream is open already, so the status is that of the append
        run.replies[0], outcome = outcome, [NEVER]
    run.course = Course(map(answer.bound, outcome), pace)


def _answer(p5: P5, run: Run, opening: Opening, headers: Mapping[str, str]) -> AgentAnswer:
    images = [image["mime_type"] for image in opening.body["selected_images"]]
    ask, as_text = read_prompt(opening.prompt, images, mode=opening.mode, thinks=opening.thinks)
    if opening.body["billed_fast"]:
        p5.billed_fast += 1
    return AgentAnswer(
        ask=ask,
        run=run,
        options=p5.options,
        ids=p5.ids,
        prompt=opening.prompt,
        input_tokens=tokens_of(opening.prompt),
        mode=opening.mode,
        as_text=as_text,
        parked=headers.get("x-cursor-streaming") != "true",
    )
