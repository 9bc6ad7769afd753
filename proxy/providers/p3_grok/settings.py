"""The settings of P3: one row each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from proxy.core.routing import Added
from proxy.providers.p3_grok.catalog import MODELS
from proxy.settings import Rows, UnfitValue, models_row, row, switch, text, url, word_of

_VERSION = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+(?:[-+][0-9A-Za-z.+-]+)?")

#: How images are treated.
TOOL_IMAGES = ("omit", "reattach", "inline", "reject")
#: How hosted searches are shown to clients of the Messages API.
SEARCH_BLOCKS = ("text", "native")


def version(value: Any) -> str:
    """version such as 0.2.93."""
    found = text(value).strip()
    if not _VERSION.fullmatch(found):
        raise UnfitValue("expected a version such as 0.2.93")
    return found


@dataclass(frozen=True)
class GrokSettings(Rows):
    """The current settings of P3: `config.section(GrokSettings)`."""

    base_url: str = row("p3.baseUrl", "PROXY_P3_BASE_URL", "https://cli-chat-proxy.grok.com/v1", url, "The API of p3.")
    issuer: str = row("p3.issuer", "PROXY_P3_ISSUER", "https://auth.x.ai", url, "Where p3 signs in.", fixed=True)
    client_version: str = row(
        "p3.clientVersion",
        "PROXY_P3_CLIENT_VERSION",
        "0.2.93",
        version,
        "Version of the vendor's client in requests to p3; the service refuses old ones.",
    )
    models: Added = models_row("p3", MODELS)
    tool_image: str = row(
        None,
        "PROXY_P3_TOOL_IMAGE",
        "omit",
        word_of(*TOOL_IMAGES),
        "Images for p3: left out with a note, sent after the tool results, sent inside them, or refused.",
    )
    hosted_search: bool = row(
        None, "PROXY_P3_HOSTED_SEARCH", False, switch, "Replace the search tools of clients by p3's own search."
    )
    search_blocks: str = row(
        None,
        "PROXY_P3_SEARCH_BLOCKS",
        "text",
        word_of(*SEARCH_BLOCKS),
        "How p3's own searches are shown on /v1/messages: as text, or as server tool blocks.",
    )
    encrypted_reasoning: bool = row(
        None,
        "PROXY_P3_ENCRYPTED_REASONING",
        False,
        switch,
        "Let clients carry p3's encrypted reasoning from turn to turn.",
    )
