"""One request to P5: a new run, or one that waited for this request's content."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from proxy.core.identity import Owner
from proxy.core.messages import MessageStream
from proxy.core.sizes import LARGE_BYTES, least_size
from proxy.core.visible import Visible
from proxy.errors import UpstreamError
from proxy.observe.capture.contract import NULL_ATTEMPT
from proxy.off_loop import in_thread_if
from proxy.providers.contract import Call, Services
from proxy.providers.p5_cursor.answer import CursorToMessages
from proxy.providers.p5_cursor.bridge.calls import is_an_aside
from proxy.providers.p5_cursor.bridge.history import UserWords, user_words
from proxy.providers.p5_cursor.bridge.open_runs import OpenRuns
from proxy.providers.p5_cursor.bridge.steps import Workplace
from proxy.providers.p5_cursor.bridge.tool_forms import ClientTools, client_tools
from proxy.providers.p5_cursor.catalog import LABEL, known_ids
from proxy.providers.p5_cursor.conversations import Conversations
from proxy.providers.p5_cursor.failures import PROFILE, RunError, client_error
from proxy.providers.p5_cursor.images import selected_images
from proxy.providers.p5_cursor.models import ModelSelection, select, stronger
from proxy.providers.p5_cursor.prompt import check_content, estimate, prompt_tools, render
from proxy.providers.p5_cursor.run.channels import Channels
from proxy.providers.p5_cursor.run.opening import is_posix, request_context, run_request, shell_of, workspace_of
from proxy.providers.p5_cursor.run.replies import Message
from proxy.providers.p5_cursor.run.run import Run
from proxy.providers.p5_cursor.run.watch import RunTimers
from proxy.providers.p5_cursor.settings import CursorSettings
from proxy.providers.p5_cursor.wire.protobuf import encode
from proxy.providers.upstream.adapter import RequestCredential
from proxy.providers.upstream.chat_wire import note_format
from proxy.providers.upstream.event_reader import Batches

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine as described to the service.

    workspace  the directory, for requests that name none; "" when there is none
    """

    os_version: str
    shell: str
    workspace: str


@dataclass(frozen=True, slots=True)
class CursorState:
    """State that the provider keeps beyond a request."""

    runs: OpenRuns
    conversations: Conversations
    machine: Machine


class CursorWire:
    """One request on the wire of the runs. `run` answers it."""

    after_tool_result = False

    def __init__(self, call: Call, services: Services) -> None:
        self._request = call.request
        self._services = services
        self._large = least_size(call.request, LARGE_BYTES) > LARGE_BYTES
        self._rendering: asyncio.Task[str] | None = None
        self._offered = prompt_tools(call.request)
        self.run: Run | None = None
        self.answer: CursorToMessages | None = None
        self.input_tokens = 0

    @property
    def tools(self) -> ClientTools:
        """The client's tools that a run may ask for."""
        return client_tools(self._offered)

    def attach(self, run: Run) -> None:
        """Lets this run answer from now on."""
        self.run, self.answer = run, None

    def reducer(self, stream: MessageStream) -> CursorToMessages:
        if self.run is None:
            raise RuntimeError("before the first event")
        run, names = self.run, {tool["name"] for tool in self._offered}
        self.answer = CursorToMessages(stream, names, run.pause, self._services.new_id, run.output)
        return self.answer

    async def prompt(self) -> str:
        """The prompt, rendered once for the run and for the count."""
        if self._rendering is None:
            self._rendering = asyncio.create_task(self.aside(lambda: render(self._request)))
        return await self._rendering

    async def aside(self, work: Callable[[], T]) -> T:
        """Does work in a thread when the request is large, so that others can go on."""
        return await in_thread_if(self._large, work)

    async def count(self) -> int:
        """Input tokens."""
        return estimate(await self.prompt())

    estimates_at_once = False

    async def estimate(self) -> int:
        self.input_tokens = max(1, await self.count())
        return self.input_tokens

    def rough_estimate(self) -> int:
        return 1

    def raise_for_event(self, event: Mapping[str, Any]) -> None:
        """Does nothing: a run raises its failures itself."""

    def recover(self, error: UpstreamError) -> bool:
        return False

    def let_go(self) -> None:
        """Does nothing: a run needs the request until it ends."""


class CursorAdapter:
    """One request to the service."""

    profile = PROFILE

    def __init__(self, call: Call, services: Services, state: CursorState, credential: RequestCredential) -> None:
        self._call = call
        self._services = services
        self._settings = services.config().section(CursorSettings)
        self._state = state
        self._credential = credential
        self._timers = services.tuning.of(RunTimers)
        self._selection = select(call.model, call.request, self._known(), self._settings.models)
        check_content(call.request)
        note_format(call, services, PROFILE)
        self._cures = [CursorAdapter._rebuild, CursorAdapter._fill_blobs, CursorAdapter._take_stronger]
        self._resumed = False
        self.wire = CursorWire(call, services)
        owner = None if is_an_aside(call.request) else owner_of_run(call)
        tools = self.wire.tools if owner is not None else ClientTools()
        self._owner = owner if tools else None  # owner of a run that can be found again
        self._words = UserWords()
        shell = shell_of(call.request, tools)
        workspace = workspace_of(call.request, state.machine.workspace)
        self._place = Workplace(tools, workspace, is_posix(shell), services.new_id())
        self._shell = shell or state.machine.shell

    def _known(self) -> frozenset[str]:
        """The known model ids."""
        offered = self._services.offered(LABEL)
        return known_ids(self._settings.models, offered)

    async def sign_in(self) -> None:
        """Signs in; a run that continues is already signed in."""
        if self._owner is not None or self._state.runs.waits(owner_of_run(self._call)):
            self._words = await self.wire.aside(lambda: user_words(self._call.request))
        if self._waiting() is None:
            await self._credential.get()

    async def contact(self, number: int) -> Batches:
        run = await self._resume() if number == 1 else None
        self._resumed = run is not None
        if run is None:
            run = await self._begin(number)
        self.wire.attach(run)
        capture = run.capture
        try:
            while True:
                batch = await run.take()
                self._call.timings.answered(run.id)
                yield batch
        except UpstreamError as error:
            capture.failed(error.message)
            raise
        finally:
            if run.capture is capture:  # the client may have come back already, with another request
                run.capture = NULL_ATTEMPT
            answer = self.wire.answer
            if answer is None or not answer.paused:
                self._state.runs.remove(run)

    def contextualise(self, error: UpstreamError, visible: Visible) -> UpstreamError:
        """Never repeats a run whose output was shown, thoughts included: it may have had effects."""
        return error if visible < Visible.THINKING else error.replaced(repeatable=False)

    async def recover(self, error: UpstreamError) -> bool:
        """Renews the token; or, each once, replaces the run when that is harmless. A continued run has its first token,
        and its replacement takes the current one."""
        if error.final:
            return False
        if error.kind == "sign_in":
            return self._resumed or await self._credential.renew()
        cure = next((cure for cure in self._cures if cure(self, error)), None)
        if cure is not None:
            self._cures.remove(cure)
            self._services.log.write(
                "info", PROFILE.label, "cursor_run_replaced", reqId=self._call.request_id, why=cure.__name__.strip("_")
            )
        return cure is not None

    def client_error(self, error: UpstreamError) -> UpstreamError:
        return client_error(error, self.wire.input_tokens)

    # -- runs

    def _waiting(self) -> tuple[Run, Mapping[str, Any]] | None:
        """The run that waits for a result in this request, and that result."""
        return self._state.runs.find(owner_of_run(self._call), self._call.request, self._words)

    @property
    def _is_named(self) -> bool:
        """Whether the client names its session."""
        return self._call.owner is not None or self._call.cache_key is not None

    @property
    def _conversation(self) -> Owner | None:
        """The key of the conversation's id at the service: several conversations of a session have their own. None for
        a session made of the first messages, which others may begin with as well."""
        owner = owner_of_run(self._call) if self._is_named else None
        opening = self._words.opening
        return Owner(owner.session, f"{owner.agent or ''} {opening}") if owner is not None and opening else owner

    async def _resume(self) -> Run | None:
        waiting = self._waiting()
        if waiting is None:
            return None
        run, block = waiting
        run.place = self._place
        self._state.runs.resumed(run, self._words)
        try:
            await run.resume(block, self.wire.aside, self._call.capture)
            self._call.timings.sent(1)
        except BaseException:
            self._state.runs.remove(run)
            raise
        return run

    async def _begin(self, number: int) -> Run:
        """Begins a run with the whole conversation. It ends those that wait for a result that will not come, see
        `OpenRuns.put`; a request without tools leaves other runs alone."""
        credential = await self._credential.get()
        message, opening = await self._opening()
        settings, machine = self._settings, self._state.machine
        token = credential.access.reveal()
        timings, version = self._call.timings, settings.client_version
        channels = Channels(self._services, settings.base_url, token, version, self._timers, timings)
        workspace = self._place.folder
        run = Run(
            channels,
            self._timers,
            self._services.log,
            self._call.request_id,
            context=request_context(workspace, os_version=machine.os_version, shell=self._shell),
            workspace=workspace,
            renamed=partial(self._state.conversations.record, self._conversation),
            silent=self._state.runs.silent,
        )
        run.place = self._place
        run.capture = channels.attempt(self._call.capture, message, number=number)
        if self._owner is not None:
            self._state.runs.put(self._owner, run, self._call.request, self._words, alone=self._is_named)
        timings.sent(number)
        run.start(opening)
        return run

    async def _opening(self) -> tuple[Message, bytes]:
        """The message that opens a run, and its bytes."""
        metadata = self._call.request.get("metadata")
        conversation = self._state.conversations.id_for(self._conversation, metadata, self._call.own_id)
        message_id = str(uuid.UUID(self._services.new_id()))
        prompt = await self.wire.prompt()

        def write() -> tuple[Message, bytes]:
            images = selected_images(self._call.request)
            message = run_request(prompt, images, self._selection, conversation, message_id)
            return message, encode("AgentClientMessage", message)

        return await self.wire.aside(write)

    # -- cures: faults that another run may avoid

    def _rebuild(self, error: UpstreamError) -> bool:
        """Begins a new run when the old one did not resume: the conversation contains the result."""
        return self._resumed and error.kind in ("upstream_timeout", "transport", "upstream", "bad_answer")

    def _fill_blobs(self, error: UpstreamError) -> bool:
        """Begins a new run after the service missed a blob in the store: it finds the content in the conversation."""
        run = self.wire.run
        codes = ("internal", "failed_precondition")
        return isinstance(error, RunError) and error.report.code in codes and run is not None and run.missed_blob

    def _take_stronger(self, error: UpstreamError) -> bool:
        """Retries with an effort in the id, since some models exist only with one."""
        if not (isinstance(error, RunError) and (error.report.bad_model or error.report.code == "not_found")):
            return False
        selection: ModelSelection | None = stronger(self._selection, self._known())
        self._selection = selection or self._selection
        return selection is not None


def owner_of_run(call: Call) -> Owner | None:
    """The owner of a request's run; None for a request that must leave none."""
    if call.owner is not None or call.conversation is None:
        return call.owner
    return Owner(call.conversation)
