"""When a conversation asks for P3's own search."""

from __future__ import annotations

from typing import Any

from samples import rows

from proxy.providers.p3_grok.search import search_asked

PHRASES = {
    "x_search": (
        *("search x for", "search on x", "search twitter", "search tweets", "x search"),
        *("posts on x", "posts from x", "tweets about", "twitter posts"),
    ),
    "web_search": ("search online", "search the web", "web search", "look up online", "look up on the web"),
}
EACH = [(phrase, search) for search, phrases in PHRASES.items() for phrase in phrases]


def said(*texts: str) -> list[Any]:
    return [{"role": "user", "content": [{"type": "text", "text": text} for text in texts]}]


@rows("phrase, search", EACH)
def test_a_phrase_is_words_of_its_own(phrase: str, search: str) -> None:
    for text in (phrase, phrase.upper(), f"please {phrase}, now", f"-{phrase}-", f"é{phrase}ß", f"({phrase})"):
        assert search_asked(said(text)) == search
    for text in (f"a{phrase}", f"{phrase}1", f"_{phrase}", f"{phrase}Z", phrase.replace(" ", "  ")):
        assert search_asked(said(text)) is None
    assert search_asked(said(f"a{phrase} {phrase}")) == search


@rows(
    "messages, search",
    [
        ([], None),
        (said("web search or x search"), "x_search"),
        (said("search", "the web"), "web_search"),
        (said("<system-reminder>web search</system-reminder>"), None),
        (said("\n<system-reminder>x search</system-reminder>", "web search"), "web_search"),
        (said("web search, please <System-Reminder >x search</system-reminder> x search"), "web_search"),
        (said("<bash-stdout>x search</bash-stdout>"), None),
        ([*said("web search"), {"role": "system", "content": "x search"}], "web_search"),
        ([*said("web search"), {"role": "assistant", "content": "x search"}], "web_search"),
        ([*said("web search"), *said("thanks")], None),
        ([{"role": "user", "content": [{"type": "tool_result", "content": "web search"}, {"type": "text"}, 3]}], None),
        ([{"role": "user", "content": None}], None),
        (said("\ud800 web search"), "web_search"),
        # only ASCII letters have another case here
        (said("searcH the web"), "web_search"),
        (said("search tw\u0130tter"), None),
        (said("\u212aweb search"), "web_search"),
    ],
)
def test_only_what_the_user_said_last_counts(messages: list[Any], search: str | None) -> None:
    assert search_asked(messages) == search
