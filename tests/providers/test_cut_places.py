"""An answer that is cut at each place, with a model declared in its place and a second account: nothing of two answers
is ever mixed, and nothing is asked again once a client has seen something of the model."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from byte_places import Body
from byte_rule import MESSAGES, Content, content_of
from byte_table import P1, PROMPTS, SOCKET, Table, table_of
from byte_tapes import Row
from harness import Answer, Fake, played, store_account, until, use, whole_message
from openai_live import CHAT
from samples import Extent, each
from wires import WIRES, Wire, by_reader

from proxy.core.visible import Visible
from proxy.errors import UpstreamError
from proxy.sandbox import Sandbox
from proxy.server.request.state import STATE

HEADER, ACCOUNT = "x-model-proxy-fallback", "x-model-proxy-account"
#: Of another model, and of another account.
SECOND, OTHER = "SECOND", "OTHER"
KINDS = ("transport", "bad_answer", "overloaded", "usage_limit")
#: The failure by which the backend of p1 says that the allowance is used up.
SPENT = (
    b'event: response.failed\ndata: {"type":"response.failed","response":{"status":"failed","error":'
    b'{"code":"usage_limit_reached","message":"The usage limit has been reached"}}}\n\n'
)


def places_of(tape: bytes) -> Iterator[int]:
    """The ends of its events and places within them; of a tape without blank lines places at equal distance."""
    head = tape.index(b"\r\n\r\n") + 4 if tape.startswith(b"HTTP/") else 0
    ends = [at + 2 for at in range(head, len(tape)) if tape[at : at + 2] == b"\n\n"]
    if len(ends) < 5:
        ends = [*range(head, len(tape), max(1, (len(tape) - head) // 24))]
    for number, end in enumerate([head, *ends]):
        if Extent.everything or number < 6 or number % 3 == 0:
            yield end
            yield max(head, end - 3)


def in_chunks(tape: bytes) -> tuple[bytes, list[int]]:
    """The answer with each event in a chunk of its own, and where these end."""
    body = Body(tape)
    again, ends = tape[: body.start], [body.start]
    for event in body.payload.split(b"\n\n")[:-1]:
        again += chunk(event + b"\n\n")
        ends.append(len(again))
    return again + b"0\r\n\r\n", ends


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def second(table: Table) -> Fake:
    """The model that answers in place of the wire's, by whom nothing can be cut."""
    label, model = ("p2", "kimi-k3") if table.wire.label != "p2" else ("p1", "gpt-5.5")
    return use(table.live, Fake(label, played(whole_message(model, SECOND))))


def seen(path: str, answer: Answer, stream: bool) -> Visible:
    """What the client has seen of a model in an answer that failed."""
    if not stream or answer.status != 200:
        return Visible.NOTHING
    if path == MESSAGES:
        return Visible.NOTHING.after(event for event in answer.events if event["type"] != "error")
    if re.search(rb'"content":"[^"]', answer.raw):
        return Visible.CONTENT
    return Visible.THINKING if b'"reasoning' in answer.raw else Visible.FRAMING


def judge(path: str, stream: bool, answer: Answer, row: Row, found: Content | None, good: Content, asked: int) -> None:
    """`asked`: how often the second model was."""
    if found is None:
        visible = seen(path, answer, stream)
        assert visible > Visible.FRAMING and not asked, f"{visible.name}, asked {asked} times: {answer.raw[-300:]!r}"
        assert row.attempts <= (1 if visible is Visible.CONTENT else 2)
    elif found == (SECOND, []):
        assert asked == 1 and HEADER in answer.headers
    else:
        assert found == good and not asked and HEADER not in answer.headers
    raw = answer.raw.decode()
    assert SECOND not in raw or "Gr" not in raw.replace("Group", ""), "two answers in one"


@each(1, by_reader)
@pytest.mark.parametrize("wire", [P1, SOCKET, *WIRES], ids=str)
async def test_another_model_answers_alone_or_not_at_all(sandbox: Sandbox, tmp_path: Path, wire: Wire) -> None:
    other = "kimi-k3" if wire.label != "p2" else "gpt-5.5"
    declared = {"fallback": ((wire.model, (other,)),), "fallback_on": KINDS}
    async with table_of(sandbox, tmp_path, wire, **declared) as table:
        await table.record()
        fake, tape, number = second(table), table.good["text"][0], 0
        prompt = PROMPTS["text"]
        for turn, (path, stream) in enumerate(((MESSAGES, True), (MESSAGES, False), (CHAT, True))):
            good, places = None, [*places_of(tape)]
            if turn and not Extent.everything:  # the same answer in another form
                places = places[turn::4]
            for at in (len(tape), *places):
                number += 1
                row = table.tapes.rows[number] = Row(tape, at, "cut" if good else "", times=99)
                asked = len(fake.calls)
                answer = await table.answer(path, stream, f"row-{number}- {prompt}")
                found = content_of(path, answer, stream)
                good = good or found
                assert good is not None
                judge(path, stream, answer, row, found, good, len(fake.calls) - asked)
        await table.nothing_left()


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
async def test_another_account_and_another_model_answer_alone_or_not_at_all(
    sandbox: Sandbox, tmp_path: Path, stream: bool
) -> None:
    """The allowance turns out to be used up at each place of an answer; the second account's is as well, or is not."""
    declared = {"fallback": ((P1.model, ("kimi-k3",)),), "fallback_on": KINDS, "on_spent": "next"}
    store_account(tmp_path, "p1")
    async with table_of(sandbox, tmp_path, P1, **declared) as table:
        await table.record()
        model, number = second(table), 0
        tape, ends = in_chunks(table.good["text"][0])
        accounts = table.live.app[STATE].accounts
        spent = UpstreamError("no more", kind="usage_limit", provider="p1", retry_after=600)
        for is_spent in (False, True):
            steps = [spent] if is_spent else [whole_message(P1.model, OTHER)]
            account = accounts.named["p1/work"] = Fake("p1", played(*steps))
            for at in ends[:-1]:  # the last event is the end
                number += 1
                row = table.tapes.rows[number] = Row(tape, at, "cut", chunk(SPENT), times=99)
                asked = len(model.calls), len(account.calls)
                answer = await table.answer(MESSAGES, stream, f"row-{number}- {PROMPTS['text']}")
                models, named = len(model.calls) - asked[0], len(account.calls) - asked[1]
                found, place = content_of(MESSAGES, answer, stream), f"{at}: {answer.raw[-200:]!r}"
                if found is None:
                    assert seen(MESSAGES, answer, stream) > Visible.FRAMING and (models, named) == (0, 0), place
                elif found == (OTHER, []):
                    assert not is_spent and (models, named) == (0, 1) and HEADER not in answer.headers, place
                    assert answer.headers[ACCOUNT] == "work"
                else:
                    # once it is known that the account is spent it is not asked
                    assert is_spent and found == (SECOND, []) and (models, named) == (1, at == ends[0]), place
                assert row.attempts == 1, place
                accounts.moved("p1", "default", None)
        await until(lambda: not +table.live.app[STATE].admission.counts)
