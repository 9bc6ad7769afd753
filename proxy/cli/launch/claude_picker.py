"""The settings by which Claude Code's picker shows the models that the user can use, each with its window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from proxy.cli.launch.usable_models import UsableModel

#: Rows of the picker, and names with a window.
MAX_ROWS, MAX_WINDOWS = 300, 600
#: The model of the client's own whose window a row gets that has another one than the session's first model: that
#: window is a million tokens, and the row's own is where the client compacts.
_LIKE = "claude-opus-5-5"
#: The client takes no smaller window.
_LEAST_WINDOW = 100_000

PICKER = "modelPicker"
#: By model, and the member in it, which is a setting of its own too.
BY_MODEL, COMPACTS_AT = "modelSettings", "autoCompactWindow"


def picker_settings(
    models: Sequence[UsableModel], window: int | None, theirs: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The settings for the client's option `--settings`, which win over those of its files.

    window  of the model that the session begins with: what the client takes for the window of unknown names
    theirs  the user's own settings. A picker or a window in them is kept.
    """
    own = theirs or {}
    settings: dict[str, Any] = {}
    if PICKER not in own:
        shown = [model for model in models if model.shown and _compacts_in_time(model.facts.context, window)][:MAX_ROWS]
        settings[PICKER] = {"options": [_option(model, window) for model in shown]}
    if COMPACTS_AT not in own:
        sizes = {model.name: model.facts.context for model in models[:MAX_WINDOWS]}
        sizes |= _chosen_windows(own.get(BY_MODEL))
        settings[BY_MODEL] = {name: {COMPACTS_AT: size} for name, size in sizes.items() if _is_window(size)}
        if _is_window(window):
            settings[COMPACTS_AT] = window
    return settings


def _compacts_in_time(context: int | None, window: int | None) -> bool:
    """Whether the client can be made to compact before the end of this window, by its size or as the first model's."""
    return context is None or context == window or context >= _LEAST_WINDOW


def _is_window(value: Any) -> bool:
    return value == "auto" or (isinstance(value, int) and value >= _LEAST_WINDOW)


def _chosen_windows(by_model: Any) -> dict[str, Any]:
    """The windows in a user's settings by model: a file with a window for all models replaces them."""
    if not isinstance(by_model, Mapping):
        return {}
    chosen = (
        (name, its[COMPACTS_AT]) for name, its in by_model.items() if isinstance(its, Mapping) and COMPACTS_AT in its
    )
    return dict(islice(chosen, MAX_WINDOWS))


def _option(model: UsableModel, window: int | None) -> dict[str, str]:
    option = {"model": model.name, "label": model.facts.title or model.name, "description": model.about}
    if model.facts.context not in (None, window):
        option["behavesAs"] = _LIKE
    return option
