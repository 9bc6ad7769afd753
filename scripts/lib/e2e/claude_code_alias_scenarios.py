"""Claude Code's own words for models, for somebody whose one subscription is not p1's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from e2e.claude_code import ClaudeCode
from e2e.expecting import Scenario, Scenarios, expect, named
from e2e.servers import watched_proxy

SCENARIOS: Scenarios[ClaudeCode] = Scenarios()

#: Provider -> its main and its small model, as its upstream calls them.
MODELS: Mapping[str, tuple[str, str]] = {
    "p2": ("kimi-for-coding", "kimi-for-coding"),
    "p3": ("grok-4.6", "grok-4.5"),
    "p4": ("kimi-k2.7-code", "glm-5.3-flash"),
}
_SMALL = "haiku"
WORDS = (_SMALL, "sonnet", "opus", "fable", "opusplan")


def _words_on(provider: str) -> Scenario[ClaudeCode]:
    async def words(claude: ClaudeCode, folder: Path) -> None:
        """A tool round with each, by that provider alone."""
        main, small = MODELS[provider]
        async with watched_proxy(folder, [], {"PROXY_ALIAS_PROVIDER": provider}) as (url, sandbox):
            upstreams = {label: getattr(sandbox, label).requests for label in ("p1", *MODELS)}
            for word in WORDS:
                done = await claude.run(url, "use Bash: echo from-$((1 + 1))-bash", model=word)
                expect(not done.result["is_error"] and "from-2-bash" in done.text, f"{word} has a round", done.result)
                expect(not done.retries, f"{word} asks nothing twice", done.retries)
                wanted = small if word == _SMALL else main
                asked = [seen.body["model"] for seen in upstreams[provider]]
                expect(asked and asked[-1] == wanted, f"{word} is served by {wanted}", asked)
        others = [label for label, requests in upstreams.items() if requests and label != provider]
        expect(not others, "nobody else is asked", others)

    return named(words, f"claude words on {provider}")


for _provider in MODELS:
    SCENARIOS.add(_words_on(_provider))
