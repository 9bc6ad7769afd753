"""`doctor --live` against simulated services."""

from __future__ import annotations

import json
import re

import pytest
from samples import rows

from proxy.cli.doctor.attempts import SeenAttempt, attempt_lines
from proxy.providers.registry import PROVIDERS
from proxy.sandbox import Sandbox

from .conftest import World


async def test_every_provider_passes_each_step(world: World) -> None:
    status, out = await world.run("--live", "all")
    assert status == 0 and "FAIL" not in out, out
    for entry in PROVIDERS:
        assert f"\n{entry.title}, {entry.catalog.main}\n" in out
        assert f"\n{entry.title}: " in out  # the tokens in all
    for good in ("the tool call came with complete arguments", "its usage came", "the estimate"):
        assert out.count(good) == len(PROVIDERS)
    stored = [json.loads(path.read_text()) for path in world.config.glob("*/auth.json")]
    tokens = [
        file[name] for file in stored for name in ("access", "refresh", "accessToken", "accountId") if name in file
    ]
    assert len(tokens) > 4 and not [token for token in tokens if token in out]


async def test_one_provider_is_asked_when_it_is_named(world: World) -> None:
    status, out = await world.run("--live", "kimi", "--model", "kimi-k3")
    assert status == 0 and "p2 (kimi), kimi-k3" in out and "p1" not in out


UNKNOWN_FIELD = {"status": 400, "body": {"error": {"message": "Unknown field: store"}}, "times": 9}
DRIFTED = {
    "a field that is refused": ("p1", UNKNOWN_FIELD, ["answered: 400", "Unknown field: store"]),
    "an answer that is cut": ("p1", {"fault": "cut_text"}, ["FAIL p1: the upstream cut the answer"]),
    "no sign-in any more": ("p3", {"status": 401, "body": {"error": "expired"}, "times": 9}, ["answered: 401"]),
}


@pytest.mark.parametrize("case", DRIFTED, ids=list(DRIFTED))
async def test_what_a_drifted_service_says_is_shown(case: str, world: World, sandbox: Sandbox) -> None:
    label, step, told = DRIFTED[case]
    sandbox[label].script.extend([step])
    status, out = await world.run("--live", label)
    assert status == 1 and "FAIL" in out and "to report it: attach these lines" in out, out
    for line in told:
        assert line in out, out


async def test_one_event_of_each_kind_is_shown(world: World) -> None:
    """A field that was renamed may be in the middle of a stream."""
    _, out = await world.run("--live", "p1", PROXY_P1_TRANSPORT="http")
    kinds = re.findall(r'^ +\d+: {"type": "(response[.\w]+)"', out.partition("usage: ")[0], re.MULTILINE)
    assert kinds.count("response.output_text.delta") == 1 and len(set(kinds)) == 9, kinds


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--live", "p9"], "unknown provider 'p9'"),
        (["--live", "p2"], "p2 (kimi): not signed in; model-proxy auth status p2"),
        (["--live", "all", "--model", "x"], "--model needs one provider"),
    ],
)
async def test_who_cannot_be_asked_is_said(arguments: list[str], said: str, world: World) -> None:
    (world.config / "p2" / "auth.json").unlink()
    status, out = await world.run(*arguments)
    assert status == 1 and said in out


HOSTILE = [
    b"[" * 100_000,
    b"[" * 900 + b"]" * 900,
    b'{"a":' * 400 + b"1" + b"}" * 400,
    b"9" * 5000,
    b'{"choices": 5}',
    b'{"choices": [{"delta": 7}], "type": ["x"]}',
    b'{"error": NaN}',
    b"\xff\x00\xfe",
]


@rows("said", HOSTILE)
def test_an_answer_of_any_bytes_is_told(said: bytes) -> None:
    seen = SeenAttempt("http", "POST", "http://127.0.0.1:9/", {}, said)
    seen.error = said
    seen.raw += said
    lines = list(attempt_lines(seen))
    assert lines[0].startswith("sent: http POST") and any(line.startswith("events: 1") for line in lines)
    assert max(map(len, lines)) < 100_000
