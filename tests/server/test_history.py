"""What requests leave in the history: through the whole application, as a client asks."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest
from harness import Live, ask
from observe.history.past import NOW, rows, until

from proxy.core.allowances.report import Allowance, AllowanceWindow
from proxy.observe.history.conversations import turns
from proxy.observe.history.past_request import COUNTING
from proxy.observe.history.schema import FILE_NAME, reading
from proxy.sandbox import Sandbox
from proxy.server.request.state import STATE

_TOOL = {"name": "Read", "input_schema": {"type": "object", "properties": {"file_path": {"type": "string"}}}}
_SECRET = "a-word-of-a-prompt"


@pytest.fixture
def live_options(tmp_path: Path) -> dict[str, Any]:
    return {"state_dir": tmp_path / "state"}


async def test_a_request_is_in_the_file_with_all_that_is_known(live: Live, tmp_path: Path) -> None:
    headers = {"x-claude-code-session-id": "s1"}
    system = f"Working directory: /home/anna/{_SECRET}/shop"
    asked = ask("use Read: a.py", system=system, tools=[_TOOL], stream=True)
    assert (await live.post(asked, headers=headers)).status == 200
    assert (await live.post(ask(model="nobody-knows-it"), headers=headers)).status == 400
    assert (await live.post(ask(), path="/v1/messages/count_tokens", headers=headers)).status == 200
    path = tmp_path / "state" / FILE_NAME
    until(lambda: path.exists() and len(_turns(path)) == 3)
    told, refused, counted = _turns(path)
    assert (told.endpoint, told.account, told.served, told.session) == ("messages", "p1", "gpt-5.5", "s1")
    assert (told.outcome, told.http, told.stop, told.project) == ("completed", 200, "tool_use", "shop")
    assert told.input and told.output and told.first_ms is not None and told.total_ms >= told.first_ms
    assert (refused.outcome, refused.http, refused.kind, refused.account) == ("failed", 400, "invalid_request", None)
    assert counted.endpoint == COUNTING
    assert rows(path, "SELECT sum(requests), sum(failed) FROM sums WHERE dimension = 0") == [(2, 1)]
    every = b"".join(one.read_bytes() for one in path.parent.iterdir() if one.is_file())
    assert b"shop" in every and _SECRET.encode() not in every
    assert {stat.S_IMODE(one.stat().st_mode) for one in path.parent.glob("history*")} == {0o600}


def _turns(path: Path) -> Any:
    with reading(path) as db:
        return turns(db, "s1")


async def test_allowances_are_sampled(live: Live, tmp_path: Path) -> None:
    allowances = live.app[STATE].allowances
    for seconds, used in enumerate((5.0, 5.0, 7.0)):
        allowances.tell("p1", None, Allowance((AllowanceWindow("5 hours", used, NOW + seconds),)))
    path = tmp_path / "state" / FILE_NAME
    until(lambda: path.exists() and rows(path, "SELECT used FROM allowances ORDER BY used") == [(5.0,), (7.0,)])


async def test_nothing_is_kept_where_it_is_off(sandbox: Sandbox, tmp_path: Path) -> None:
    async with Live(sandbox, tmp_path, state_dir=tmp_path / "state", history=False) as live:
        assert (await live.post(ask())).status == 200
        assert not live.app[STATE].monitor.wants_project and live.app[STATE].history is None
    assert not (tmp_path / "state" / FILE_NAME).exists()


async def test_a_damaged_file_stops_no_request_and_is_told(sandbox: Sandbox, tmp_path: Path) -> None:
    path = tmp_path / "state" / FILE_NAME
    path.parent.mkdir()
    path.write_bytes(b"no database" * 1000)
    async with Live(sandbox, tmp_path, state_dir=path.parent) as live:
        assert (await live.post(ask())).status == 200
        until(lambda: bool(live.notes.all("history_not_kept")))
        assert (await live.post(ask())).status == 200
        notices = [one.message for one in live.app[STATE].monitor.snapshot().notices]
    assert len(notices) == 1 and "damaged" in notices[0]
    assert len(live.notes.all("history_not_kept")) == 1 and path.read_bytes() == b"no database" * 1000


async def test_searches_of_the_service_are_counted(live: Live, tmp_path: Path) -> None:
    tool = {"type": "web_search_20250305", "name": "web_search", "max_uses": 2}
    asked = ask("Perform a web search for the query: cats", tools=[tool])
    answer = await live.post(asked, headers={"x-claude-code-session-id": "s1"})
    wanted = answer.json["usage"]["server_tool_use"]["web_search_requests"]
    path = tmp_path / "state" / FILE_NAME
    until(lambda: path.exists() and len(_turns(path)) == 1)
    assert [one.searches for one in _turns(path)] == [wanted] and wanted > 0
