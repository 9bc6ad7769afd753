"""The model that a client begins with."""

from __future__ import annotations

import pytest
from samples import rows

from proxy.cli.launch.choosing import UnknownModel, first_entry, served_model
from proxy.config import Config
from proxy.providers.registry import PROVIDERS

#: who is signed in, who serves aliases, what the user names -> provider, model, window, whether aliases go there too
CHOICES: list[tuple[set[str], str, str | None, tuple[str, str, int | None, bool]]] = [
    ({"p1"}, "p1", None, ("p1", "gpt-5.6-sol", 272_000, True)),
    ({"p1", "p3"}, "p3", None, ("p3", "grok-4.6", 500_000, True)),
    ({"p2", "p4"}, "p1", None, ("p2", "kimi-for-coding", 262_144, False)),
    ({"p5"}, "p5", None, ("p5", "cursor", None, True)),
    ({"p1"}, "p1", "p2", ("p2", "kimi-for-coding", 262_144, False)),
    ({"p1"}, "p1", "grok", ("p3", "grok-4.6", 500_000, False)),
    ({"p1"}, "p1", "grok-4.5[1m]", ("p3", "grok-4.5[1m]", 500_000, False)),
    ({"p2"}, "p1", "opus", ("p2", "opus", 262_144, False)),
    ({"p1"}, "p1", "claude-haiku-4-5", ("p1", "claude-haiku-4-5", 272_000, True)),
]


@rows("usable, alias, model, chosen", CHOICES)
def test_the_model_is_of_somebody_who_is_signed_in(
    usable: set[str], alias: str, model: str | None, chosen: tuple[str, str, int | None, bool]
) -> None:
    config = Config(alias_provider=alias)
    served = served_model("http://x", config, PROVIDERS, first_entry(PROVIDERS, config, usable), model)
    assert (served.catalog.label, served.model, served.window, served.alias) == chosen


def test_a_name_that_nobody_serves_is_told_with_what_is_near() -> None:
    with pytest.raises(UnknownModel, match=r'nobody serves the model "gpt5.6-sol"\. Did you mean gpt-5\.6-sol'):
        served_model("http://x", Config(), PROVIDERS, PROVIDERS[0], "gpt5.6-sol")
