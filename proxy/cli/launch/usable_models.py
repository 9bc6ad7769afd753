"""The models that a client's picker shows: those of the providers that the user is signed in to."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from proxy.cli.launch.client_environment import Served
from proxy.config import Config
from proxy.core.models import ModelFacts
from proxy.core.routing import Catalog
from proxy.providers.entry import Entry

#: Endings of names that ask for a faster tier of a listed model. They are served, and have no row of their own.
_TIERS = ("-fast", "-ultrafast")
#: What precedes the rest of a longer name for the same model: `opencode-go/` and `kimi-`.
_BREAKS = "/-"
#: Most names of one provider: a service may list a thousand, and a row of Codex may take a hundred kilobytes.
MAX_NAMES = 200


@dataclass(frozen=True, slots=True)
class UsableModel:
    """A name that the user can type.

    label    of its provider
    product  the subscription that serves it
    shown    whether a picker lists it; a second name of a model is only known
    offered  whether the list of its service is known, which then has all models of the account
    base     the listed model that it is another name of, "" for none
    """

    name: str
    label: str
    product: str
    facts: ModelFacts
    shown: bool = True
    offered: bool = False
    base: str = ""

    @property
    def about(self) -> str:
        """A line about it for a picker.

        >>> UsableModel("k3", "p2", "Kimi Code", ModelFacts()).about
        'Kimi Code (p2)'
        """
        return f"{self.product} ({self.label})"


def usable_models(
    providers: Iterable[Entry], config: Config, labels: Collection[str], *, any_tools: bool = False
) -> list[UsableModel]:
    """The models of the providers with these labels, by provider, in the order of their catalogues.

    labels     none for all providers: where the proxy alone may know an account
    any_tools  only of providers whose models take tools of any name, as all do in lenient mode
    """
    certain_tools = any_tools and config.openai_mode != "lenient"
    found = [
        model
        for entry in sorted(providers, key=lambda entry: entry.label)
        if entry.build is not None and (not labels or entry.label in labels) and not (certain_tools and entry.bridges)
        for model in _of(entry, entry.catalog_now(config), described=bool(config.vision_model))
    ]
    return list({model.name: model for model in reversed(found)}.values())[::-1]  # a name belongs to the first list


def _of(entry: Entry, catalog: Catalog, *, described: bool) -> Iterator[UsableModel]:
    """The models of one catalogue. `described`: whether another model describes pictures for those without eyes."""
    known = frozenset(catalog.shown)
    names = [name for name in catalog.shown if not is_tier(name, known)][:MAX_NAMES]
    ends = {name[place + 1 :] for name in names for place, char in enumerate(name) if char in _BREAKS}
    for name in names:
        facts = catalog.facts_of(name)
        if described and facts.sees is False:
            facts = replace(facts, sees=True)
        shown, offered = facts.listed and name not in ends, entry.offered is not None
        yield UsableModel(name, catalog.label, entry.product, facts, shown, offered)


def with_chosen(models: Sequence[UsableModel], served: Served) -> list[UsableModel]:
    """These models, with a row that no picker shows for the chosen one where it has none: an alias, or a model that
    the plan lacks."""
    if any(model.name == served.model for model in models):
        return list(models)
    catalog, meant = served.catalog, served.meant
    own = UsableModel(served.model, catalog.label, catalog.service, catalog.facts_of(meant))
    known = next((model for model in models if model.name == meant), own)
    return [*models, replace(known, name=served.model, shown=False, base=meant)]


def is_tier(name: str, names: Collection[str]) -> bool:
    """Whether a name asks for a tier of another one of these names.

    >>> is_tier("gpt-6-sol-fast", ("gpt-6-sol", "gpt-6-sol-fast")), is_tier("grok-fast", ("grok-fast",))
    (True, False)
    """
    return any(name.endswith(tier) and name.removesuffix(tier) in names for tier in _TIERS)
