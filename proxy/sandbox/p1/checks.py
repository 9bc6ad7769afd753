"""The checks of a Responses body, as one table in the order in which the simulated backend runs them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from proxy.sandbox.p1.catalog import EFFORTS, MODELS
from proxy.sandbox.p1.headers import LITE_MARKER, check_model_lane, is_vendor_client
from proxy.sandbox.wires.refusal import detail, invalid
from proxy.sandbox.wires.responses.checks import check_plain_members, check_rest, wrong_type


@dataclass(frozen=True, slots=True)
class Seen:
    """What the checks look at."""

    headers: Mapping[str, str]
    body: dict[str, Any]
    lite: bool
    account_id: str


#: Every other top-level member is an "unsupported parameter": limits, sampling, storage, users, cache options.
TOP_LEVEL = frozenset(
    {
        "model",
        "instructions",
        "input",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "reasoning",
        "store",
        "stream",
        "include",
        "service_tier",
        "prompt_cache_key",
        "text",
        "client_metadata",
    }
)


def check_body(seen: Seen) -> None:
    """Raises Refused for the first rule of CHECKS that the body breaks."""
    for check in CHECKS:
        check(seen)


def _parameters(seen: Seen) -> None:
    for name in seen.body:
        if name not in TOP_LEVEL:
            raise detail(f"Unsupported parameter: {name}")


def _store(seen: Seen) -> None:
    if seen.body.get("store") is not False:
        raise detail("Store must be set to false")


def _stream(seen: Seen) -> None:
    if seen.body.get("stream") is not True:
        raise detail("Stream must be set to true")


def _model(seen: Seen) -> None:
    name = seen.body.get("model")
    if not isinstance(name, str) or name not in MODELS:
        raise detail(f"The '{name}' model is not supported when using Codex with a ChatGPT account.")
    model = MODELS[name]
    vendor_only = not model.full
    check_model_lane(name, exists=(seen.lite or model.full) and (not vendor_only or is_vendor_client(seen.headers)))
    if seen.lite and not model.lite:
        raise invalid(f"Model {name} does not support Responses Lite.", code="unsupported_value", param="model")


def _lite_lane(seen: Seen) -> None:
    """On the lite lane instructions and tools travel inside the input, and calls come one at a time."""
    if not seen.lite:
        return
    for name in ("instructions", "tools"):
        if seen.body.get(name):
            raise invalid(
                f"X-OpenAI-Internal-Codex-Responses-Lite does not support `{name}`.",
                code="unsupported_value",
                param=name,
            )
    if seen.body.get("parallel_tool_calls"):
        raise invalid(
            "X-OpenAI-Internal-Codex-Responses-Lite requires `parallel_tool_calls` to be false.",
            code="unsupported_value",
            param="parallel_tool_calls",
        )


def _metadata(seen: Seen) -> None:
    """Texts only, and the lite marker never without its header (the header may come without the marker)."""
    metadata = seen.body.get("client_metadata")
    if metadata is None:
        return
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise wrong_type("client_metadata", "an object of strings")
    marker = metadata.get(LITE_MARKER)
    if marker is not None and (marker != "true" or not seen.lite):
        raise invalid(
            "client_metadata contradicts the X-OpenAI-Internal-Codex-Responses-Lite header.",
            code="invalid_value",
            param="client_metadata",
        )


def _service_tier(seen: Seen) -> None:
    tier = seen.body.get("service_tier")
    if tier is not None and tier not in MODELS[seen.body["model"]].tiers:
        raise detail(f"Unsupported service_tier: {tier}")


def _rest(seen: Seen) -> None:
    efforts = (*EFFORTS, "ultra") if MODELS[seen.body["model"]].ultra else EFFORTS
    check_rest(seen.body, efforts, seen.account_id, lite=seen.lite)


#: The gateway's own demands come first, then the lane, then what the model service looks at.
CHECKS: tuple[Callable[[Seen], None], ...] = (
    _parameters,
    _store,
    _stream,
    _model,
    _lite_lane,
    _metadata,
    lambda seen: check_plain_members(seen.body),
    _service_tier,
    _rest,
)
