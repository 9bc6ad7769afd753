"""The interface of a provider, the Call it is given, and the services it may use.

The server knows only this module: it never names a provider, no provider sees a client's HTTP request, and no handler
sees an upstream's answer.
"""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, runtime_checkable
from urllib.parse import urlsplit

from proxy.auth.refresh import Lent
from proxy.core.allowances.accounts import account_key
from proxy.core.sizes import LARGE_BYTES
from proxy.observe.capture.contract import NULL_CAPTURE, RequestCapture
from proxy.observe.lifecycle import Event as LifecycleEvent
from proxy.observe.lifecycle import Happened, Log, NullLog, NullRecorder, Recorder, unheard
from proxy.observe.timings import Timings
from proxy.providers.accounts.allowance_store import AllowanceSink, AllowanceStore
from proxy.providers.accounts.model_lists import ModelLists
from proxy.settings import is_loopback

if TYPE_CHECKING:
    import aiohttp

    from proxy.config import Config
    from proxy.core.identity import Owner
    from proxy.core.ingress import Ingress, IngressRules
    from proxy.core.media.pieces import Pieces
    from proxy.core.media.requests import ImageRequest, TranscriptionRequest
    from proxy.core.models import ModelList
    from proxy.core.search.results import Found, Query
    from proxy.core.tokens.usage import Usage
    from proxy.errors import UpstreamError
    from proxy.providers.accounts.usage_report import UsageReport
    from proxy.providers.upstream.event_reader import Batches
    from proxy.providers.upstream.tokenizer import Tokenizer

#: Last messages of a conversation that a call keeps while its answer is read; the results of the last turn's calls are
#: among them.
KEPT_MESSAGES = 4

#: Where pictures are not sent to the model: nowhere, in results of tools, or in no place of a request.
Blind = Literal["", "results", "anywhere"]


@dataclass(frozen=True, slots=True)
class Target:
    """The upstream model and settings of a requested name, decided by the provider before anything is sent.

    model   upstream model id
    tier    service tier, None for the ordinary one
    effort  reasoning effort, None when none was asked for
    uploads_noted  a picture that was uploaded to a service becomes a note, like any other that is not sent
    blind  where pictures become notes, or would be refused
    narrowed  (what, asked, sent) of an effort or a tier that the service does not offer for the model
    """

    model: str
    tier: str | None = None
    effort: str | None = None
    uploads_noted: bool = False
    blind: Blind = ""
    narrowed: tuple[tuple[str, str, str | None], ...] = ()


@dataclass(frozen=True, slots=True)
class Call:
    """One request, ready for a provider.

    request      the hub request: a checked Messages dict; never changed before `let_go`. For `NativeResponses`, the
                 Responses body
    model        the name asked for, without `[1m]`
    shown_name   the model name in answers, "" when it is `model`
    target       what the provider made of the name
    request_id   ours: in the answer's headers, the log and the monitor
    session      session id for caches and affinity, None when the client named none
    owner        key of conversation state, None for a request that must leave none
    conversation  the session by which the account was chosen: of a header or the body, else made of the first messages
                 where the provider needs one; None as for the owner
    auto_review  the safety classifier, sent to a model of our choice
    cache_hint   the caller's own prompt cache key, for a request without a session
    folded       the answer is sent whole, at its end
    converted    the answer is rendered for another API than Messages: searches have blocks of their own, and
                 citations with their places in the text
    capture      records the request for finding faults; mostly nothing
    timings      where its time goes
    size         bytes of the client's body, 0 for a request of our own
    own_id       an id in a body -> the caller's own, where several callers share the proxy
    simplified   names of tools whose schema was too much work to be sent in full; grows by translation
    """

    request: Mapping[str, Any]
    model: str
    target: Target
    request_id: str
    session: str | None = None
    owner: Owner | None = None
    conversation: str | None = None
    auto_review: bool = False
    cache_hint: str | None = None
    folded: bool = False
    converted: bool = False
    shown_name: str = ""
    recorder: Recorder = field(default_factory=NullRecorder)
    capture: RequestCapture = NULL_CAPTURE
    timings: Timings = field(default_factory=Timings)
    size: int = 0
    own_id: Callable[[str], str] = str
    simplified: list[str] = field(default_factory=list)

    @property
    def large(self) -> bool:
        """Whether the request is so large that walking all of it needs a thread."""
        return self.size > LARGE_BYTES

    def let_go(self) -> None:
        """Drops the middle of the conversation, since a request whose answer is being read is not sent again.

        The first message, which identifies the conversation, and the last ones stay. Done in place, since many hold the
        list: objects take three times the bytes of their JSON, and a stream lasts for minutes. Does nothing with a
        capture, which may not have been written yet."""
        messages = self.request.get("messages")
        if type(messages) is list and self.capture is NULL_CAPTURE:
            del messages[1:-KEPT_MESSAGES]

    @property
    def shown(self) -> str:
        """The name that answers carry."""
        return self.shown_name or self.model

    @property
    def cache_key(self) -> str | None:
        """The key under which the upstream may cache prompts."""
        return self.session or self.cache_hint

    def record(self, event: LifecycleEvent) -> None:
        """Reports what became of this request."""
        self.recorder.record(self.request_id, event)


def kept(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """A copy for readers that outlive `Call.let_go`."""
    messages = request.get("messages")
    return {**request, "messages": [*messages]} if type(messages) is list else request


class Provider(Protocol):
    """A model service."""

    @property
    def label(self) -> str: ...

    def ingress(self, model: str) -> IngressRules:
        """The rules that translate requests of the OpenAI-style routes for this provider, where it has no parser of its
        own. Models of one provider may differ. `model` is the name asked for."""
        ...

    def hosted_tools(self, model: str) -> frozenset[str]:
        """The tools of the Messages API that run upstream and that this model has, without their date: `web_search`.
        `model` is the name asked for."""
        ...

    def signed_in(self) -> bool:
        """Whether there is a credential to try, known without a request: in memory, or by the date of a file."""
        ...

    def resolve(self, model: str, request: Mapping[str, Any], *, auto_review: bool) -> Target:
        """Applies aliases, suffixes and forced settings. Raises RequestError when the result is not served."""
        ...

    async def count_tokens(self, call: Call) -> int:
        """Input tokens of the request, estimated locally: no upstream call, no sign-in."""
        ...

    def stream(self, call: Call) -> Batches:
        """The answer as batches of Messages events, a batch for each piece of upstream data.

        Closing the generator releases the upstream at once. A failure is raised as a ProxyError, whatever was yielded
        before; the last batch then has closed the blocks that may be closed, and the server turns the error into a
        status (nothing visible was sent yet) or an `error` event. A batch before the first content block is not
        visible: the server keeps it until there is content or the client has waited long enough.
        """
        ...

    async def close(self) -> None:
        """Ends background work. Called once, at shutdown."""
        ...


@runtime_checkable
class OwnChat(Protocol):
    """A provider whose chat route has its own list of fields."""

    def chat_request(self, body: Mapping[str, Any], model: str) -> Ingress:
        """A chat body, whose `model` is checked, as a hub request. Raises InvalidRequest and RequestError."""
        ...


@dataclass(slots=True)
class NativeEnd:
    """The facts known once the body has been read.

    usage    Messages counters
    failure  why a whole answer is no success; a refusal's is known from the start
    """

    usage: Usage | None = None
    failure: UpstreamError | None = None


@dataclass(frozen=True, slots=True)
class NativeAnswer:
    """An answer that is passed on unchanged.

    status, headers  what the client gets; only headers that are safe to pass on
    chunks           the body as it arrives, in one piece where no stream was asked for. Raises UpstreamError when the
                     upstream breaks off
    end              filled while the body is read
    """

    status: int
    headers: Mapping[str, str]
    chunks: AsyncGenerator[bytes, None]
    end: NativeEnd


@runtime_checkable
class NativeResponses(Protocol):
    """A provider that speaks the Responses API itself: bodies pass through."""

    def lenient_body(self, body: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
        """The body without what the upstream would refuse, and the paths that were dropped. Raises InvalidRequest."""
        ...

    def native_target(self, model: str, body: Mapping[str, Any]) -> Target:
        """Resolves a name for the native route, where no settings are forced. Raises RequestError."""
        ...

    def native(self, call: Call) -> AbstractAsyncContextManager[NativeAnswer]:
        """Sends `call.request`. Leaving the context releases the upstream at once. Raises ProxyError on entering."""
        ...


@dataclass(frozen=True, slots=True)
class MediaCall:
    """A request for images or a transcript, ready for a provider.

    request_id  ours: for the log
    session     the client's session, None when it named none
    sent        called once when the request's body is no longer needed, so that its bytes may be released
    timings     where its time goes
    """

    request_id: str
    session: str | None = None
    recorder: Recorder = field(default_factory=NullRecorder)
    sent: Callable[[], None] = lambda: None
    timings: Timings = field(default_factory=Timings)

    def record(self, event: LifecycleEvent) -> None:
        """Reports what became of this request."""
        self.recorder.record(self.request_id, event)


@dataclass(frozen=True, slots=True)
class MediaAnswer:
    """A whole, checked answer, passed on byte by byte.

    headers  the upstream's headers that are safe to pass on
    body     JSON; taking it forgets it
    text     the transcript; empty for images
    usage    Messages counters, None when the service gives none
    """

    headers: Mapping[str, str]
    body: Pieces
    text: str = ""
    usage: Usage | None = None


@runtime_checkable
class Images(Protocol):
    """A provider that makes and edits images."""

    @property
    def image_model(self) -> str:
        """The only image model."""
        ...

    async def make_images(self, call: MediaCall, request: ImageRequest) -> MediaAnswer:
        """Makes or edits images. Raises ProxyError. Cancelling releases the upstream at once."""
        ...


@runtime_checkable
class Transcription(Protocol):
    """A provider that transcribes recordings."""

    async def transcribe(self, call: MediaCall, request: TranscriptionRequest) -> MediaAnswer:
        """Transcribes a recording. Raises ProxyError. Cancelling releases the upstream at once."""
        ...


@dataclass(frozen=True, slots=True)
class SearchCall:
    """One web search, ready for a provider.

    request_id  ours: for the log
    call_id     of the model's call, for a service that wants one
    model       the model that searches, "" to leave it to the provider
    session, owner  as in `Call`; None where the search must not be known to belong to a conversation
    """

    query: Query
    request_id: str
    call_id: str = ""
    model: str = ""
    session: str | None = None
    owner: Owner | None = None
    recorder: Recorder = field(default_factory=NullRecorder)
    capture: RequestCapture = NULL_CAPTURE
    timings: Timings = field(default_factory=Timings)

    def record(self, event: LifecycleEvent) -> None:
        """Reports what became of this search."""
        self.recorder.record(self.request_id, event)


@runtime_checkable
class Searches(Protocol):
    """A provider that searches the web, also for models of others."""

    async def search(self, call: SearchCall) -> Found:
        """Searches once. Raises ProxyError. Cancelling releases the upstream at once."""
        ...


@runtime_checkable
class Remembering(Protocol):
    """A provider that keeps state of conversations beyond a request."""

    def served_elsewhere(self, call: Call) -> None:
        """Notes that another provider answered this call, which has an owner or a conversation."""
        ...


@runtime_checkable
class AllowanceSource(Protocol):
    """A provider whose service reports what is left of the allowance."""

    async def ask_allowance(self) -> UsageReport:
        """Asks the service. Raises ProxyError."""
        ...


@runtime_checkable
class Caching(Protocol):
    """A provider that knows about the prompt cache of its service."""

    def reports_cached(self, model: str) -> bool:
        """Whether the service reports how much of the input was cached; a missing number then means none. `model` is
        the upstream's id."""
        ...

    def cache_owner(self) -> Hashable:
        """The owner of the cache, for comparison only: each account or key has its own. None: not known."""
        ...


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Tuning:
    """Timers and limits that replace the defaults: at most one value of each kind, such as `SocketTimers(start=1.0)`.

    >>> Tuning((3,)).of(int), Tuning().of(int)
    (3, 0)
    """

    values: tuple[object, ...] = ()

    def of(self, kind: type[T]) -> T:
        """The value of a kind, or its defaults when none was given."""
        found = next((value for value in self.values if isinstance(value, kind)), None)
        return kind() if found is None else found


@dataclass(frozen=True, slots=True)
class Services:
    """The services that the application gives its providers. Tests replace time, randomness and sleep.

    config      returns the current settings, re-read for each request
    config_dir  where credentials live
    http        the client for calls, HTTP and WebSocket; it knows the outgoing proxies
    direct      a client without proxies, see `client_for`
    clock       epoch seconds
    tuning      timers and limits, for tests
    allowances  receives what an answer says of the account's allowance
    happened    receives renewed sign-ins, and what happens to sockets
    models      the lists of models that the services gave
    account     the name of the provider's account; "" for the unnamed one
    """

    config: Callable[[], Config]
    config_dir: Path
    http: aiohttp.ClientSession
    direct: aiohttp.ClientSession
    tokenizer: Tokenizer
    log: Log = field(default_factory=NullLog)
    clock: Callable[[], float] = time.time
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    random: Callable[[], float] = random.random
    new_id: Callable[[], str] = lambda: uuid.uuid4().hex
    tuning: Tuning = field(default_factory=Tuning)
    allowances: AllowanceSink = field(default_factory=AllowanceStore)
    happened: Happened = unheard
    models: ModelLists = field(default_factory=ModelLists)
    account: str = ""

    @property
    def lent(self) -> Lent:
        """The services that credentials use."""
        return Lent(self.config_dir, self.clock, self.sleep, self.log, self.happened)

    def signs_as(self, label: str) -> str:
        """The name that marks encrypted reasoning: an account cannot read another's."""
        return account_key(label, self.account)

    def offered(self, label: str) -> ModelList | None:
        """The models that the service lists for this account, None if it has not said."""
        return self.models.of(self.signs_as(label))

    def client_for(self, url: str) -> aiohttp.ClientSession:
        """The client for a service. One on this machine is reached without a proxy, whatever the environment says, as
        the vendors' own clients do."""
        return self.direct if is_loopback(urlsplit(url).hostname or "") else self.http
