"""The members of a request for images besides the pictures: the same checks whatever form they came in."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from proxy.core.invalid import cut
from proxy.core.media.refusals import MAX_REPEATED, UNSUPPORTED, refused, repeated
from proxy.core.media.requests import ImageRequest

#: member -> the values there are, in the order in which members are checked
CHOICES = {
    "background": ("auto", "transparent", "opaque"),
    "quality": ("auto", "low", "medium", "high"),
}
TEXTS = ("prompt", "model", *CHOICES, "size")
MAX_NUMBER = 255
MIN_ANSWERS, MAX_ANSWERS = 1, 10


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
    if number is not None and not MIN_ANSWERS <= number <= MAX_ANSWERS:
        raise refused(f"n must be from {MIN_ANSWERS} to {MAX_ANSWERS}, not {number}", "n")
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


def check_types(given: Mapping[str, Any], known: Sequence[str]) -> None:
    """Raises InvalidRequest for a member of a JSON request that is unknown or of a wrong type."""
    for name, value in given.items():
        if name not in known:
            words = f"{repeated(name)} is not supported; this route takes {', '.join(known)}"
            raise refused(words, cut(name, MAX_REPEATED), UNSUPPORTED)
        if name in TEXTS and not isinstance(value, str | None):
            raise refused(f"{name} must be a string or null", name)
    number = given.get("n")
    if number is not None and (type(number) is not int or not 0 <= number <= MAX_NUMBER):
        raise refused(f"n must be an integer from {MIN_ANSWERS} to {MAX_ANSWERS} or null", "n")
    if given.get("prompt") is None:
        raise refused("prompt is missing; it must be a string", "prompt")


def request_size(request: ImageRequest) -> int:
    """Bytes that a request holds."""
    texts = sum(sys.getsizeof(value) for value in request.fields.values())
    return texts + sum(image.base64.size for image in request.images)
