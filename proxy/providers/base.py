"""Base classes with the providers' common behaviour."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Generic, TypeVar

from proxy.core.ingress import IngressRules
from proxy.providers.upstream.model_list import ListQuestion, ask_list

if TYPE_CHECKING:
    from proxy.auth.store import CredentialSource
    from proxy.core.models import ModelList
    from proxy.providers.contract import Services
    from proxy.providers.entry import Entry

Section = TypeVar("Section")


class BaseProvider(Generic[Section]):
    """A provider whose service reports how much of the input was cached.

    entry    the provider's entry
    section  the class of its settings
    """

    entry: Entry
    section: type[Section]

    def __init__(self, services: Services) -> None:
        self._services = services
        self.label = self.entry.label
        self._account = services.signs_as(self.label)

    @property
    def _settings(self) -> Section:
        return self._services.config().section(self.section)

    def ingress(self, model: str) -> IngressRules:
        return IngressRules()

    def hosted_tools(self, model: str) -> frozenset[str]:
        return frozenset()

    @property
    def _offered(self) -> ModelList | None:
        return self._services.models.of(self._account)  # asked several times a request

    async def ask_models(self, known: ModelList | None) -> ModelList:
        return await ask_list(self._services, self.label, await self._model_question(), known)

    async def _model_question(self) -> ListQuestion:
        """How the service is asked for its models. Raises ProxyError."""
        raise NotImplementedError

    def reports_cached(self, model: str) -> bool:
        return True

    async def close(self) -> None:
        return None


class SignedInProvider(BaseProvider[Section]):
    """A provider with one credential, which identifies the account."""

    def __init__(self, services: Services, credentials: CredentialSource) -> None:
        super().__init__(services)
        self._credentials = credentials

    def signed_in(self) -> bool:
        return self._credentials.present

    def cache_owner(self) -> Hashable:
        return self._credentials.account

    async def close(self) -> None:
        await self._credentials.close()
