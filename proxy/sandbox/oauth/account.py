"""An upstream with a sign-in service."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from proxy.sandbox.oauth.endpoint import TokenEndpoint
from proxy.sandbox.oauth.tokens import Tokens
from proxy.sandbox.upstream import Upstream


class AccountUpstream(Upstream):
    """`issuer` is the sign-in service, `tokens` what it has issued."""

    tokens: Tokens
    issuer: TokenEndpoint

    @property
    def refreshes(self) -> int:
        """How many refresh tokens were exchanged with success."""
        return self.issuer.refreshes

    def revoke_access(self) -> None:
        """All access tokens stop working: the next request gets a 401."""
        self.tokens.revoke_access()

    @abstractmethod
    def sign_in(self, lifetime_s: int | None) -> tuple[dict[str, Any], Mapping[str, Any]]:
        """A new token response, and what a client stores of it beside the tokens."""

    def stored_credential(self, lifetime_s: int | None = None, expires_ms: int | None = None) -> dict[str, Any]:
        """A fresh sign-in as a client stores it, see `Tokens.stored`. A negative lifetime: an expired token."""
        issued, members = self.sign_in(lifetime_s)
        return {**self.tokens.stored(issued, lifetime_s, expires_ms), **members}

    def credentials(self, lifetime_s: int | None, expires_ms: int | None) -> dict[str, str]:
        return {"auth.json": json.dumps(self.stored_credential(lifetime_s, expires_ms), indent=2) + "\n"}
