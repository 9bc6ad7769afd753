"""The models that the simulated P1 account may use, as the vendor's own client lists them."""

from __future__ import annotations

from typing import NamedTuple

#: Efforts that every model understands. `minimal` belongs to an older family and is refused here.
EFFORTS = ("none", "low", "medium", "high", "xhigh", "max")


class CodexModel(NamedTuple):
    """What the backend knows of one model. `full` and `lite` say on which lanes it exists."""

    full: bool
    lite: bool
    ultra: bool = False  # takes the additional effort `ultra`
    tiers: tuple[str, ...] = ("priority", "flex")


#: The smallest model of a family exists on the lite lane only: elsewhere it is "not found".
MODELS = {
    "gpt-5.2": CodexModel(full=True, lite=False),
    "gpt-5.3-codex": CodexModel(full=True, lite=False),
    "gpt-5.3-codex-spark": CodexModel(full=True, lite=False),
    "gpt-5.4": CodexModel(full=True, lite=False),
    "gpt-5.4-mini": CodexModel(full=True, lite=False),
    "gpt-5.5": CodexModel(full=True, lite=False),
    "gpt-5.6-luna": CodexModel(full=False, lite=True),
    "gpt-5.6-sol": CodexModel(full=True, lite=True, ultra=True),
    "gpt-5.6-terra": CodexModel(full=True, lite=True, ultra=True),
    "gpt-6-astra": CodexModel(full=True, lite=True, ultra=True, tiers=("priority", "flex", "ultrafast")),
    "gpt-6-luna": CodexModel(full=False, lite=True),
    "gpt-6-sol": CodexModel(full=True, lite=True, ultra=True),
    "gpt-6.1-sol": CodexModel(full=True, lite=True, ultra=True),
    "gpt-6.1-terra": CodexModel(full=True, lite=True, ultra=True),
}
