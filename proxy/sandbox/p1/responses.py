"""`POST …/responses` of P1: the checks in the order in which the backend runs them, and the model's normal answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from proxy.sandbox.p1.catalog import MODELS, P1Model
from proxy.sandbox.p1.failures import HTTP_FAULTS
from proxy.sandbox.p1.headers import FORMAT, LITE_MARKER, check_account, is_lite, is_vendor_client
from proxy.sandbox.p1.state import P1
from proxy.sandbox.play.script import Place
from proxy.sandbox.upstream import CheckedRequest, ServedWire
from proxy.sandbox.wires.field_checks import Checked, Known, Table, check, demanded, fits, optional, required
from proxy.sandbox.wires.refusal import WRONG_TYPE, Refusal, bare, detail
from proxy.sandbox.wires.responses.answer import ResponsesAnswer
from proxy.sandbox.wires.responses.checks import PLAIN_MEMBERS, REST
from proxy.sandbox.wires.responses.faults import RESPONSES_FAULTS
from proxy.sandbox.wires.responses.read import PLAIN, write_answer


@dataclass(frozen=True, slots=True)
class SeenRequest:
    """The checked request, with what follows from its model."""

    headers: Mapping[str, str]
    body: dict[str, Any]
    lite: bool
    account_id: str
    codex: bool = True
    models: Mapping[str, P1Model] = field(default_factory=lambda: MODELS)

    @property
    def model(self) -> P1Model:
        return self.models[self.body["model"]]

    @property
    def ids(self) -> tuple[str, ...]:
        """The known ids. A value that is compared with them may be of any type."""
        return tuple(self.models)

    @property
    def efforts(self) -> tuple[str, ...]:
        return self.model.efforts


#: Every other top-level member is an "unsupported parameter": limits, sampling, storage, users, cache options.
TOP_LEVEL = (
    "model instructions input tools tool_choice parallel_tool_calls reasoning store stream include service_tier "
    "prompt_cache_key text client_metadata"
)


def check_body(seen: SeenRequest) -> None:
    """Raises Refused for the first row that the body violates."""
    check(seen.body, BODY, seen)


def _no_lane(_name: Any, checked: Checked) -> str | None:
    """Refuses the smallest models on the full lane, and to other clients than the vendor's."""
    seen: SeenRequest = checked.rules
    return None if seen.model.full or (seen.lite and is_vendor_client(seen.headers)) else ""


def _lite_header(marker: Any, checked: Checked) -> str | None:
    """The marker never comes without its header; the header may come without the marker."""
    return None if marker == "true" and checked.rules.lite else ""


_NO_MODEL = bare("The '{value}' model is not supported when using Codex with a ChatGPT account.")
_NO_LITE_MODEL = Refusal("Model {value} does not support Responses Lite.", "unsupported_value")
_LANE = "X-OpenAI-Internal-Codex-Responses-Lite"
_NOT_ON_LITE = Refusal(f"{_LANE} does not support `{{where}}`.", "unsupported_value")
_ONE_BY_ONE = Refusal(f"{_LANE} requires `parallel_tool_calls` to be false.", "unsupported_value")
_CONTRADICTION = Refusal(f"client_metadata contradicts the {_LANE} header.", "invalid_value", "client_metadata")
_STRINGS = fits(
    lambda value: isinstance(value, dict) and all(isinstance(one, str) for one in value.values()),
    "an object of strings",
)

#: The gateway's checks come first, then the lane, then the model service's.
BODY: Table = (
    Known(TOP_LEVEL, bare("Unsupported parameter: {value}")),
    required("store", fits(lambda value: value is False), bare("Store must be set to false")),
    required("stream", fits(lambda value: value is True), bare("Stream must be set to true")),
    required("model", demanded("ids"), _NO_MODEL),
    required("model", _no_lane, Refusal("Model not found {value}", "model_not_found", status=404)),
    required("model", lambda _name, seen: None if seen.rules.model.lite else "", _NO_LITE_MODEL, when="lite"),
    # on the lite lane instructions and tools are part of the input, and calls come one at a time
    optional("instructions", "nothing", _NOT_ON_LITE, when="lite"),
    optional("tools", "nothing", _NOT_ON_LITE, when="lite"),
    optional("parallel_tool_calls", "nothing", _ONE_BY_ONE, when="lite"),
    optional("client_metadata", _STRINGS, WRONG_TYPE),
    optional(f"client_metadata.{LITE_MARKER}", _lite_header, _CONTRADICTION),
    *PLAIN_MEMBERS,
    optional("service_tier", demanded("model.tiers"), bare("Unsupported service_tier: {value}")),
    *REST,
)


RESPONSES = ServedWire(Place("p1", "responses"), HTTP_FAULTS, RESPONSES_FAULTS)

#: Form of a context overflow -> its fault.
_OVERFLOWS: dict[str, tuple[str, dict[str, Any]]] = {
    "failed": ("failed", {"after": "nothing", "code": "context_length_exceeded"}),
    "error": ("error_event", {"status": 400, "code": "context_length_exceeded"}),
    "http": ("context_http", {}),
}


def prepare_responses(p1: P1, request: web.Request, body: Any) -> CheckedRequest:
    check_account(request.headers, p1.tokens)
    check(request.headers, FORMAT, "text/event-stream")
    if not isinstance(body, dict):
        raise detail("Invalid JSON body")
    answer, instead = checked_answer(p1, request.headers, body, lite=is_lite(request.headers))
    return CheckedRequest(RESPONSES, answer, {"openai-model": body["model"], **p1.account_headers()}, instead)


def checked_answer(
    p1: P1, headers: Mapping[str, str], body: dict[str, Any], *, lite: bool
) -> tuple[ResponsesAnswer, tuple[str, dict[str, Any]] | None]:
    """The answer to a whole body over either transport, and the fault that replaces it. Raises Refused."""
    check_body(SeenRequest(headers, body, lite, p1.options.account_id, models=p1.options.models))
    answer = write_answer(p1, body, p1.options.account_id, PLAIN, lite=lite)
    over = answer.input_tokens > p1.options.context_limit
    return answer, _OVERFLOWS[p1.options.context_form] if over else None
