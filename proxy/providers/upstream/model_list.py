"""One question for the list of models that a service offers to an account. Never part of a request: nothing waits for
it, and nothing of it is repeated but a connection that failed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import aiohttp

from proxy.core.bodies.decode import load_long_json
from proxy.core.invalid import InvalidRequest
from proxy.core.models import ModelFacts, ModelList, NoModel, model_list
from proxy.errors import UpstreamError
from proxy.providers.accounts.model_lists import ListTimers
from proxy.providers.contract import Services

#: A longer answer is rejected. The largest known, with the vendor's prompts in each row, has 300 kB.
MAX_BODY_BYTES = 2 * 1024 * 1024
#: The first question, and one more when the connection failed.
ATTEMPTS = 2


class _NoList(Exception):
    """There is no list; the text is the reason."""


@dataclass(frozen=True, slots=True)
class ListQuestion:
    """How a service is asked for its models, and how its answer is read.

    url, headers  headers with the credential
    read    makes an id and facts of a row; the id is checked by the caller
    member  the member of the answer's JSON that has the rows
    body    posted if given; otherwise the question is a GET
    rows    reads an answer that is not JSON; None if it always is
    """

    url: str
    headers: Mapping[str, str]
    read: Callable[[Mapping[str, Any]], tuple[Any, ModelFacts]]
    member: str = "data"
    body: bytes | None = None
    rows: Callable[[bytes], Iterable[Any]] | None = None


async def ask_list(services: Services, label: str, question: ListQuestion, known: ModelList | None) -> ModelList:
    """Asks a service for its models. Raises UpstreamError.

    known  the list to confirm; kept if the service says that it has not changed
    """
    for attempt in range(1, ATTEMPTS + 1):
        try:
            async with asyncio.timeout(services.tuning.of(ListTimers).answer):
                return await _answer(services, question, known)
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            if attempt == ATTEMPTS or isinstance(error, TimeoutError):
                raise _failure(label, f"no answer ({type(error).__name__})") from None
        except (_NoList, NoModel) as error:
            raise _failure(label, str(error)) from None
        except (ValueError, RecursionError, InvalidRequest) as error:
            raise _failure(label, f"its answer cannot be read ({type(error).__name__})") from None
    raise AssertionError("unreachable")


def _failure(label: str, why: str) -> UpstreamError:
    return UpstreamError(f"{label} did not list its models: {why}", kind="bad_answer", provider=label)


async def _answer(services: Services, question: ListQuestion, known: ModelList | None) -> ModelList:
    """The list in the answer. Raises _NoList and ValueError for one that cannot be used."""
    headers, now = dict(question.headers), services.clock()
    if known is not None and known.tag:
        headers["If-None-Match"] = known.tag
    method = "GET" if question.body is None else "POST"
    session = services.client_for(question.url)
    async with session.request(
        method, question.url, data=question.body, headers=headers, allow_redirects=False
    ) as response:
        if response.status == 304 and known is not None:
            return replace(known, asked=now)
        if response.status != 200:
            raise _NoList(f"status {response.status}")
        body = bytearray()
        while chunk := await response.content.readany():
            body += chunk
            if len(body) > MAX_BODY_BYTES:
                raise _NoList(f"the answer passed {MAX_BODY_BYTES} bytes")
        tag = response.headers.get("ETag", "")
    return await asyncio.to_thread(lambda: model_list(_read(bytes(body), question), now, tag))


def _read(body: bytes, question: ListQuestion) -> Iterator[tuple[str, ModelFacts]]:
    """Ids and facts of the rows, one by one; what is no row is left out. Raises ValueError."""
    if question.rows is not None and body[:1] != b"{":
        rows: Any = question.rows(body)
    else:
        answer = load_long_json(body)
        rows = answer.get(question.member) if isinstance(answer, Mapping) else None
    for row in rows if isinstance(rows, Iterable) and not isinstance(rows, str | Mapping) else ():
        if isinstance(row, Mapping):
            yield question.read(row)
