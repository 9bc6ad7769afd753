"""The settings of P1: one row each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from proxy.core.effort import RANKS
from proxy.core.routing import Added, normalise_model
from proxy.providers.p1_codex.catalog import MODELS, TIERS
from proxy.settings import Rows, header, integer, models_row, row, switch, url, word_of


def model_name(value: Any) -> str:
    """model of p1, listed or not."""
    return normalise_model(header(value))


@dataclass(frozen=True)
class CodexSettings(Rows):
    """The current settings of P1: `config.section(CodexSettings)`."""

    base_url: str = row(
        "p1.baseUrl",
        "PROXY_P1_BASE_URL",
        "https://chatgpt.com/backend-api/codex/responses",
        url,
        "The Responses endpoint of p1, whole.",
    )
    images_base_url: str = row(
        "p1.imagesBaseUrl",
        "PROXY_P1_IMAGES_BASE_URL",
        "https://chatgpt.com/backend-api/codex",
        url,
        "Above the image endpoints of p1: /images/generations and /images/edits are appended.",
    )
    transcriptions_base_url: str = row(
        "p1.transcriptionsBaseUrl",
        "PROXY_P1_TRANSCRIPTIONS_BASE_URL",
        "https://chatgpt.com/backend-api",
        url,
        "Above the transcription endpoint of p1: /transcribe is appended.",
    )
    issuer: str = row("p1.issuer", "PROXY_P1_ISSUER", "https://auth.openai.com", url, "Where p1 signs in.", fixed=True)
    workspace_routing: bool = row(
        "p1.workspaceRouting",
        "PROXY_P1_WORKSPACE_ROUTING",
        True,
        switch,
        "Ask p1 where the account's workspace is served, and send requests there.",
    )
    model: str | None = row(
        "p1.model", "PROXY_P1_MODEL", None, model_name, "Model for every p1 request, whatever the request names."
    )
    models: Added = models_row("p1", MODELS)
    effort: str | None = row(
        "p1.effort",
        "PROXY_P1_EFFORT",
        None,
        word_of(*RANKS),
        "Reasoning effort for every p1 request, whatever the request names.",
    )
    service_tier: str | None = row(
        "p1.serviceTier", "PROXY_P1_SERVICE_TIER", None, word_of(*TIERS), "Service tier for every p1 request."
    )
    reasoning_summary: str | None = row(
        "p1.reasoningSummary",
        "PROXY_P1_REASONING_SUMMARY",
        None,
        word_of("auto", "concise", "detailed", "off", "none"),
        "off or none: ask for no summary of the reasoning; with any other word p1 chooses its length.",
    )
    reasoning_signatures: bool = row(
        "p1.reasoningSignatures",
        "PROXY_P1_REASONING_SIGNATURES",
        True,
        switch,
        "Carry encrypted reasoning from turn to turn in thinking signatures.",
    )
    full_lane: bool = row(
        "p1.fullLane",
        "PROXY_P1_FULL_LANE",
        False,
        switch,
        "Send sol and terra models in the full form, which allows parallel tool calls.",
    )
    pdf_input: bool = row(
        "p1.pdfInput",
        "PROXY_P1_PDF_INPUT",
        False,
        switch,
        "Send PDF documents to p1 as files instead of a note that one was left out.",
    )
    originator: str | None = row("p1.originator", "PROXY_P1_ORIGINATOR", None, header, "originator header of p1.")
    user_agent: str | None = row(
        "p1.userAgent",
        "PROXY_P1_USER_AGENT",
        None,
        header,
        "User agent of p1; an empty one in the file sends none.",
    )
    header_timeout_ms: int = row(
        "p1.headerTimeoutMs",
        "PROXY_P1_HEADER_TIMEOUT_MS",
        300_000,
        integer(1, 86_400_000),
        "How long p1 may take to begin its answer over HTTP.",
    )
    transport: str = row(
        "p1.transport",
        "PROXY_P1_TRANSPORT",
        "auto",
        word_of("auto", "websocket", "http"),
        "How requests reach p1; auto is HTTP, and a WebSocket for conversations that p1.previousResponseId continues.",
    )
    previous_response_id: bool = row(
        "p1.previousResponseId",
        "PROXY_P1_PREVIOUS_RESPONSE_ID",
        False,
        switch,
        "Keep the WebSocket of a conversation open and send only what is new in each turn.",
    )
    ws_connect_spacing_ms: int = row(
        None,
        "PROXY_P1_WS_CONNECT_SPACING_MS",
        0,
        integer(0, 60_000),
        "Least time between two WebSockets being opened to p1; more when p1 refuses them.",
    )
    server_compaction: bool = row(
        "p1.serverCompaction",
        "PROXY_P1_SERVER_COMPACTION",
        False,
        switch,
        "Let p1 compact a conversation in its own way as well when the client asks for a summary.",
    )
