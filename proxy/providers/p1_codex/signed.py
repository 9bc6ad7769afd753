"""Requests to P1's services: signed for their account, and sent to the account's workspace."""

from __future__ import annotations

from dataclasses import dataclass

from proxy.auth.refresh import Credentials
from proxy.core.media.pieces import Pieces
from proxy.errors import UpstreamError
from proxy.observe.capture.contract import NULL_CAPTURE, RequestCapture
from proxy.observe.timings import Timings
from proxy.providers.contract import Services
from proxy.providers.p1_codex.account.rate_limits import RateLimits
from proxy.providers.p1_codex.account.workspace import Workspace, Workspaces
from proxy.providers.p1_codex.failures import PROFILE
from proxy.providers.p1_codex.request import with_credential
from proxy.providers.p1_codex.settings import CodexSettings
from proxy.providers.upstream.adapter import RequestCredential
from proxy.providers.upstream.attempts import Attempts
from proxy.providers.upstream.transport import UpstreamRequest, Written


@dataclass(frozen=True, slots=True)
class Signer:
    """The shared state of all requests of one account."""

    services: Services
    credentials: Credentials
    workspaces: Workspaces
    rate_limits: RateLimits

    def request(self, request_id: str, timings: Timings | None = None) -> SignedRequest:
        """Starts one request. Requests on the side have no `timings`."""
        return SignedRequest(self, request_id, timings)


class SignedRequest:
    """One request of the account, with its workspace and its credential, which is renewed once when refused."""

    def __init__(self, signer: Signer, request_id: str, timings: Timings | None) -> None:
        timings = timings or Timings()
        self.credential = RequestCredential(signer.credentials, timings)
        self.request_id = request_id
        self._signer = signer
        self._timings = timings
        self._workspace = Workspace()

    async def sign_in(self) -> None:
        """Loads the credential. Raises ProxyError."""
        await self.credential.get()
        await self.locate()

    async def locate(self) -> None:
        """Looks up the account's workspace. Raises UpstreamError."""
        self._workspace = await self._signer.workspaces.of(self.credential.current)

    async def renew(self, error: UpstreamError) -> bool:
        """Renews a refused token; True when there is a new one to try. The account, and so the workspace, stays the
        same. Raises ProxyError."""
        return error.status == 401 and await self.credential.renew()

    def attempts(self) -> Attempts:
        return Attempts(self._signer.services, PROFILE, self.request_id, self.renew)

    def client_error(self, error: UpstreamError) -> UpstreamError:
        """The error as the client gets it."""
        return self._signer.rate_limits.client_error(self.credential.account_id, error)

    def headers(self, others: dict[str, str]) -> dict[str, str]:
        """The headers of a request, with credential and workspace."""
        return self._workspace.headers(with_credential(others, self.credential.current))

    def url(self, configured: str) -> str:
        """The address of a service for this account."""
        return self._workspace.url(configured)

    def post(
        self,
        codex: CodexSettings,
        headers: dict[str, str],
        body: bytes | Pieces | Written,
        attempt: int,
        *,
        url: str | None = None,
        capture: RequestCapture = NULL_CAPTURE,
    ) -> UpstreamRequest:
        """One attempt over HTTP; `url` is the Responses endpoint unless another is given, both as configured."""
        return UpstreamRequest(
            url=self.url(codex.base_url if url is None else url),
            headers=self.headers(headers),
            body=body,
            request_id=self.request_id,
            attempt=attempt,
            capture=capture,
            timings=self._timings,
            head_s=codex.header_timeout_ms / 1000,
        )
