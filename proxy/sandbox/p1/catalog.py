"""The models that the simulated P1 account may use, as the vendor's own client lists them."""

from __future__ import annotations

from typing import NamedTuple

#: Efforts that every model understands. `minimal` belongs to an older family and is refused here.
EFFORTS = ("none", "low", "medium", "high", "xhigh", "max")


class P1Model(NamedTuple):
    """What the backend knows of one model. `full` and `lite` say on which lanes it exists."""

    full: bool
    lite: bool
    ultra: bool = False  # takes the additional effort `ultra`
    tiers: tuple[str, ...] = ("priority", "flex")

    @property
    def efforts(self) -> tuple[str, ...]:
        return (*EFFORTS, "ultra") if self.ultra else EFFORTS


#: The smallest model of a family exists on the lite lane only: elsewhere it is "not found".
MODELS = {
    "gpt-5.2": P1Model(full=True, lite=False),
    "gpt-5.3-codex": P1Model(full=True, lite=False),
    "gpt-5.3-codex-spark": P1Model(full=True, lite=False),
    "gpt-5.4": P1Model(full=True, lite=False),
    "gpt-5.4-mini": P1Model(full=True, lite=False),
    "gpt-5.5": P1Model(full=True, lite=False),
    "gpt-5.6-luna": P1Model(full=False, lite=True),
    "gpt-5.6-sol": P1Model(full=True, lite=True, ultra=True),
    "gpt-5.6-terra": P1Model(full=True, lite=True, ultra=True),
    "gpt-6-astra": P1Model(full=True, lite=True, ultra=True, tiers=("priority", "flex", "ultrafast")),
    "gpt-6-luna": P1Model(full=False, lite=True),
    "gpt-6-sol": P1Model(full=True, lite=True, ultra=True),
    "gpt-6.1-sol": P1Model(full=True, lite=True, ultra=True),
    "gpt-6.1-terra": P1Model(full=True, lite=True, ultra=True),
}
