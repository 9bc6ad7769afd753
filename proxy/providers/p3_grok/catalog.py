"""P3's models as data: what each is called, how much fits into it, and how hard it can think."""

from __future__ import annotations

from dataclasses import dataclass

from proxy.core.routing import Catalog

LABEL = "p3"


@dataclass(frozen=True, slots=True)
class GrokModel:
    """A row.

    id       here and upstream
    context  window in tokens
    hardest  the effort that stands for the words beyond `high`
    """

    id: str
    context: int
    hardest: str = "high"

    def effort(self, asked: str | None) -> str | None:
        """The effort to send for the one that a client asks for; None when it asks for none."""
        return self.hardest if asked in ("xhigh", "max") else asked


NEWEST = GrokModel("grok-4.6", 500_000, hardest="xhigh")

MODELS: dict[str, GrokModel] = {
    model.id: model for model in (GrokModel("grok-composer-2.5-fast", 200_000), GrokModel("grok-4.5", 500_000), NEWEST)
}

CATALOG = Catalog(LABEL, "grok", tuple(MODELS), families=("grok-",))


def model_for(name: str) -> GrokModel:
    """The model behind a normalised name; one that is not listed has the settings of the newest."""
    return MODELS.get(name) or GrokModel(name, NEWEST.context, NEWEST.hardest)
