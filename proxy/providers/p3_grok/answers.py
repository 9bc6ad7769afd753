"""In what the answers of P3 differ from those of other upstreams on the Responses API."""

from __future__ import annotations

from proxy.core.reducer import AnswerRules
from proxy.providers.p3_grok.settings import GrokSettings

#: A failure that names nothing known is not asked for again: a search may have been made.
_UNNAMED = ("upstream", 502)


def answer_rules(grok: GrokSettings, *, converted: bool) -> AnswerRules:
    """The rules for one answer. `converted`: see `Call`; other APIs have items for searches, whatever the setting."""
    return AnswerRules(
        search="blocks" if converted or grok.search_blocks == "native" else "text",
        cites=True,
        parts=True,
        converted=converted,
        exact=True,
        any_limit=True,
        told_usage=True,
        unnamed=_UNNAMED,
        unexplained=_UNNAMED,
    )
