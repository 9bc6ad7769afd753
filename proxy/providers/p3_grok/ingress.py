"""In what P3 differs on the OpenAI-style routes."""

from __future__ import annotations

from proxy.core.effort import EFFORTS
from proxy.core.ingress import WEB_SEARCH, HostedTool, IngressRules
from proxy.providers.p3_grok.request import SAMPLING

#: The service can narrow it so; the hub has no words for that.
X_SEARCH = HostedTool(
    {"type": "x_search", "name": "x_search"},
    refused=frozenset({"allowed_x_handles", "excluded_x_handles", "from_date", "to_date"}),
)

INGRESS = IngressRules(
    efforts=("none", *EFFORTS),
    hosted={"web_search": WEB_SEARCH, "x_search": X_SEARCH},
    honours=frozenset({"max_tokens", "stop", *SAMPLING}),
    formats=frozenset({"json_schema"}),
)
