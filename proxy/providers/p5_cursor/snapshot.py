"""The ids of the service's models as of June 2026: used before the service has answered, or when it cannot.

An id is a base, an effort and perhaps `-fast`; for many bases only some of these exist.
"""

from __future__ import annotations

from itertools import product

_LOW_HIGH = ("-low", "-high")
_TO_XHIGH = (*_LOW_HIGH, "-xhigh")
_FOUR = ("-low", "-medium", "-high", "-xhigh")
_FIVE = (*_FOUR, "-max")
_BARE = ("",)
_FAST = ("", "-fast")

#: base, efforts, speeds; the ids are all their combinations
_ROWS: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("auto", _BARE, _BARE),
    ("claude-4-sonnet", ("", "-thinking"), _BARE),
    ("claude-4.5-opus-high", ("", "-thinking"), _BARE),
    ("claude-4.5-sonnet", ("", "-thinking"), _BARE),
    ("claude-4.6-opus", ("-high", "-max"), _BARE),
    ("claude-4.6-opus-high-thinking", _BARE, _FAST),
    ("claude-4.6-opus-max-thinking", _BARE, _FAST),
    ("claude-4.6-sonnet-medium", ("", "-thinking"), _BARE),
    ("claude-opus-4-7", _FIVE, _FAST),
    ("claude-opus-4-7-thinking", _FIVE, _FAST),
    ("claude-opus-4-8", _FIVE, _FAST),
    ("claude-opus-4-8-thinking", _FIVE, _FAST),
    ("composer-2.5", _BARE, _FAST),
    ("gemini-3-flash", _BARE, _BARE),
    ("gemini-3.1-pro", _BARE, _BARE),
    ("gemini-3.5-flash", _BARE, _BARE),
    ("gpt-5-mini", _BARE, _BARE),
    ("gpt-5.1", ("", *_LOW_HIGH), _BARE),
    ("gpt-5.1-codex-max", _FOUR, _FAST),
    ("gpt-5.1-codex-mini", ("", *_LOW_HIGH), _BARE),
    ("gpt-5.2", ("", *_TO_XHIGH), _FAST),
    ("gpt-5.2-codex", ("", *_TO_XHIGH), _FAST),
    ("gpt-5.3-codex", ("", *_TO_XHIGH), _FAST),
    ("gpt-5.4", ("-low",), _BARE),
    ("gpt-5.4", ("-medium", "-high", "-xhigh"), _FAST),
    ("gpt-5.4-mini", ("-none", *_FOUR), _BARE),
    ("gpt-5.4-nano", ("-none", *_FOUR), _BARE),
    ("gpt-5.5", ("-none", "-low", "-medium", "-high", "-extra-high"), _FAST),
    ("grok-4.3", _BARE, _BARE),
    ("grok-build-0.1", _BARE, _BARE),
    ("kimi-k2.5", _BARE, _BARE),
)

SNAPSHOT: tuple[str, ...] = tuple(
    base + effort + speed for base, efforts, speeds in _ROWS for effort, speed in product(efforts, speeds)
)

#: The ids with and without an effort.
BASES: frozenset[str] = frozenset((*SNAPSHOT, *(base for base, _, _ in _ROWS)))

#: Efforts of newer models, whose bare ids the service may refuse; seen in August 2026 in the lists of other clients.
#: They are not in the list above, which has what may be requested without asking.
LATER: frozenset[str] = frozenset(
    base + effort
    for base, efforts in (
        ("claude-fable-5", _FIVE),
        ("claude-opus-5", _FIVE),
        ("claude-sonnet-5", _FIVE),
        ("glm-5.2", ("-high", "-max")),
        ("kimi-k3", ("-low", "-high", "-max")),
        ("cursor-grok-4.5", ("-low", "-medium", "-high")),
        ("cursor-grok-4.6", _FOUR),
        ("gpt-5.6-sol", _FIVE),
        ("gpt-5.6-terra", _FIVE),
        ("gpt-5.6-luna", _FIVE),
    )
    for effort in efforts
)
