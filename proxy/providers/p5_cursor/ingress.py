"""In what P5 differs on the OpenAI-style routes."""

from __future__ import annotations

from proxy.core.ingress import BridgedTools, IngressRules

#: Pictures go along with a run as they are, and nobody fetches one. An answer is as long as the service lets it be.
INGRESS = IngressRules(
    image_urls=False, tools=BridgedTools("Cursor", frozenset({"Read", "Write", "Bash"})), honours=frozenset({"stop"})
)
