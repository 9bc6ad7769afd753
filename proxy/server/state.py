"""What the application owns while it runs: one object under one key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from aiohttp import web

from proxy.config import Config
from proxy.core.routing import Catalog
from proxy.observe.lifecycle import Log, Recorder
from proxy.providers.contract import Provider
from proxy.server.admission import Admission
from proxy.server.running import Running
from proxy.server.sessions import Sessions


@dataclass(frozen=True)
class State:
    """Shared by all requests of one application.

    config    the settings as they are now
    known     every catalogue, also of providers that are not served
    packed    whether the runner leaves bodies packed
    openai    whether the OpenAI-style routes exist; decided once, at the start
    """

    config: Callable[[], Config]
    log: Log
    recorder: Recorder
    known: tuple[Catalog, ...]
    sessions: Sessions
    admission: Admission
    clock: Callable[[], float]
    packed: bool = False
    openai: bool = False
    running: Running = field(default_factory=Running)
    providers: dict[str, Provider] = field(default_factory=dict)

    @property
    def served(self) -> list[Catalog]:
        """Catalogues of the providers that answer."""
        return [catalog for catalog in self.known if catalog.label in self.providers]


STATE: web.AppKey[State] = web.AppKey("state", State)

#: The id of a request: in its answer's headers, the log, the monitor.
REQUEST_ID: web.RequestKey[str] = web.RequestKey("request_id", str)


def header_values(request: web.BaseRequest) -> Mapping[str, list[str]]:
    """lower-case header name -> all its values. Bytes that are not UTF-8 are replaced: values go into JSON."""
    values: dict[str, list[str]] = {}
    for name, value in request.headers.items():
        if not value.isascii():
            value = value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        values.setdefault(name.lower(), []).append(value)
    return values
