"""Requests for pictures and transcripts at the provider itself: what the server makes of bodies is tested elsewhere."""

from __future__ import annotations

import base64
import json
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any

import pytest
from harness import Live
from pictures import png

from proxy.core.media.pieces import Pieces
from proxy.core.media.requests import ImageRequest, InputImage, TranscriptionRequest
from proxy.errors import ProxyError
from proxy.providers.contract import MediaAnswer, MediaCall
from proxy.server.request.state import STATE

FIELDS = {"prompt": "a fox", "model": "gpt-image-2", "background": "auto", "quality": "auto", "size": "auto"}
PNG = png()
WAV = b"RIFF\x24\0\0\0WAVEfmt "


def edit(*pictures: str, **fields: Any) -> ImageRequest:
    """Each picture in pieces of a few characters."""
    images = tuple(
        InputImage("image/png", Pieces(one[at : at + 7].encode() for at in range(0, len(one), 7))) for one in pictures
    )
    return ImageRequest({**FIELDS, **fields}, images)


def recording(audio: bytes = WAV, **members: Any) -> TranscriptionRequest:
    return TranscriptionRequest(
        Pieces([audio[:5], audio[5:]]), **{"name": "a.wav", "media_type": "audio/wav", **members}
    )


@dataclass
class World:
    """`given` counts how often the server was told that the body may go."""

    live: Live
    given: int = 0

    @property
    def provider(self) -> Any:
        return self.live.app[STATE].providers["p1"]

    @property
    def seen(self) -> list[Any]:
        """What reached the services, oldest first."""
        return list(self.live.sandbox.p1.requests)

    def call(self, **members: Any) -> MediaCall:
        def sent() -> None:
            self.given += 1

        return MediaCall("req_1", recorder=self.live.watcher, sent=sent, **members)

    async def images(self, request: ImageRequest | None = None, **members: Any) -> MediaAnswer:
        answer: MediaAnswer = await self.provider.make_images(self.call(**members), request or ImageRequest(FIELDS))
        return answer

    async def transcript(self, request: TranscriptionRequest | None = None, **members: Any) -> MediaAnswer:
        answer: MediaAnswer = await self.provider.transcribe(self.call(**members), request or recording())
        return answer

    async def ask(self, kind: str, **members: Any) -> MediaAnswer:
        """The simplest request of this kind."""
        return await (self.images if kind == "images" else self.transcript)(**members)

    def play(self, fault: str, **params: Any) -> None:
        self.live.sandbox.p1.script.extend([{"fault": fault, **params}])


async def refused(asked: Awaitable[MediaAnswer]) -> ProxyError:
    with pytest.raises(ProxyError) as caught:
        await asked
    return caught.value


def pictures_of(body: bytes) -> list[bytes]:
    return [base64.b64decode(one["b64_json"], validate=True) for one in json.loads(body)["data"]]
