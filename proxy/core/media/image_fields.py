"""The members of a request for images besides the pictures: the same checks whatever form they came in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proxy.core.invalid import InvalidRequest
from proxy.core.media.refusals import refused, repeated

#: member -> the values there are, in the order in which members are checked
CHOICES = {
    "background": ("auto", "transparent", "opaque"),
    "quality": ("auto", "low", "medium", "high"),
}
TEXTS = ("prompt", "model", *CHOICES, "size")
MAX_NUMBER = 255
MIN_IMAGES, MAX_IMAGES = 1, 10


def checked_fields(given: Mapping[str, Any], model: str) -> dict[str, Any]:
    """What goes upstream, in its order, of members whose types are right; None counts as absent. Raises
    InvalidRequest.

    >>> checked_fields({"prompt": "x", "n": None}, "m")
    {'prompt': 'x', 'model': 'm', 'background': 'auto', 'quality': 'auto', 'size': 'auto'}
    """
    prompt, number = given["prompt"], given.get("n")
    if not prompt or prompt.isspace():
        raise refused("prompt must not be blank", "prompt")
    _check_choice("model", given.get("model"), (model,))
    if number is not None and not MIN_IMAGES <= number <= MAX_IMAGES:
        raise refused(f"n must be from {MIN_IMAGES} to {MAX_IMAGES}, not {number}", "n")
    for name, choices in CHOICES.items():
        _check_choice(name, given.get(name), choices)
    if given.get("size") == "":
        raise refused("size must not be empty; leave it out for auto", "size")
    fields = {"prompt": prompt, "model": model}
    fields |= {name: _given(given, name, "auto") for name in (*CHOICES, "size")}
    return fields if number is None else fields | {"n": number}


def _given(given: Mapping[str, Any], name: str, default: str) -> str:
    value = given.get(name)
    return default if value is None else value


def _check_choice(name: str, value: str | None, choices: tuple[str, ...]) -> None:
    if value is not None and value not in choices:
        one_of = "" if len(choices) == 1 else "one of "
        raise refused(f"{name} must be {one_of}{', '.join(choices)}, not {repeated(value)}", name)


def check_types(given: Mapping[str, Any]) -> None:
    """Raises InvalidRequest for a member of a JSON request that is unknown or of a wrong type."""
    for name, value in given.items():
        if name == "n":
            good = value is None or (type(value) is int and 0 <= value <= MAX_NUMBER)
            what = f"an integer from {MIN_IMAGES} to {MAX_IMAGES} or null"
        elif name in TEXTS:
            good, what = value is None or isinstance(value, str), "a string or null"
        else:
            raise _unknown(name)
        if not good:
            raise refused(f"{name} must be {what}")
    if given.get("prompt") is None:
        raise refused("prompt is missing; it must be a string")


def _unknown(name: str) -> InvalidRequest:
    takes = ", ".join((*TEXTS, "n"))
    return refused(f"{repeated(name)} is not supported; a request for images takes {takes}")
