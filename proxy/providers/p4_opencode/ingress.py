"""In what P4's models differ on the OpenAI-style routes: mostly by the wire that they are served on."""

from __future__ import annotations

from proxy.core.ingress import IngressRules
from proxy.providers.p4_opencode.catalog import OpenCodeModel, Wire
from proxy.providers.p4_opencode.request import MINIMAX, SAMPLING, takes_sampling

_FORMATS = frozenset({"json_schema", "json_object"})
_ALWAYS = frozenset({"response_format"})
_RULES: dict[Wire, IngressRules] = {
    "chat": IngressRules(honours=frozenset({"max_tokens", "stop", *SAMPLING})),
    "messages": IngressRules(honours=frozenset({"max_tokens", "temperature", "top_p", "top_k", "stop"})),
    "responses": IngressRules(
        honours=frozenset({"max_tokens", "stop", "verbosity", "strict"}), formats=_FORMATS, always=_ALWAYS
    ),
}
#: Models that differ from the others of their wire.
_MODELS = {
    MINIMAX: IngressRules(honours=_RULES["messages"].honours, formats=frozenset({"json_schema"}), always=_ALWAYS),
}


def ingress_of(row: OpenCodeModel | None) -> IngressRules:
    """The rules of a model; the ordinary ones of a name that is none."""
    if row is None or not takes_sampling(row):
        return IngressRules()
    return _MODELS.get(row.id, _RULES[row.wire])
