"""The small model over turns, on every wire of every simulated upstream."""

import json

import pytest
from families import WHOLE_FAMILIES, Asker


async def test_parallel_calls_then_a_comment(asker: Asker) -> None:
    prompt = "use Bash: ls -la and use Read: /etc/hosts"
    first = await asker.ask(prompt)
    assert first.calls == [("Bash", {"command": "ls -la"}), ("Read", {"file_path": "/etc/hosts"})]
    assert len(set(first.ids)) == 2 and first.text == "" and len(first.pieces) > 3
    second = await asker.ask(prompt, *asker.family.turn(first, ["a" * 300, None]))
    assert second.calls == []
    assert f'Bash returned: "{"a" * 200}"' in second.text
    assert 'Read returned: "seen" and 1 image (1 image/png)' in second.text


async def test_how_calls_are_chosen(asker: Asker) -> None:
    prompt = "use Bash: a and use Bash: b"
    assert (await asker.ask(prompt, **asker.family.single)).calls == [("Bash", {"command": "a"})]
    if asker.family.wire != "messages":
        assert (await asker.ask(prompt, tool_choice="none")).calls == []
    read = asker.family.tool("Read", "file_path")
    assert (await asker.ask(**asker.family.required, tools=[read])).calls == [("Read", {"file_path": "example"})]


async def test_words_structure_summary_and_monitor(asker: Asker) -> None:
    reply = await asker.ask("stream 400 words")
    assert len(reply.pieces) == 400 == len(reply.text.split())
    assert json.loads((await asker.ask("fix it", **asker.family.schema)).text) == {"title": "Fix it"}
    order = "Your task is to create a detailed summary of the conversation so far"
    text = (await asker.ask("first wish", "second wish", order)).text
    assert text.startswith("<analysis>") and text.endswith("</summary>") and len(text.split()) > 60
    assert "first wish" in text and "second wish" in text
    phrase = "You are a security monitor for autonomous AI coding agents. Judge."
    assert (await asker.ask(**asker.family.system(phrase))).text == "<block>no</block>"


async def test_thoughts_come_before_the_text(asker: Asker) -> None:
    reply = await asker.ask("hello there", **asker.family.thinks)
    kinds = [kind for kind, _ in reply.pieces]
    assert kinds == sorted(kinds, reverse=True) and set(kinds) == {"thinking", "text"}
    assert "**Planning the answer**" in reply.thought and '"hello there"' in reply.text
    assert reply.ended and not (await asker.ask()).thought


@pytest.mark.parametrize("asker", WHOLE_FAMILIES, ids=str, indirect=True)
async def test_without_a_stream(asker: Asker) -> None:
    reply = await asker.client.ask(asker.family.whole("hello"))
    assert reply.status == 200 and '\\"hello\\"' in reply.data.decode()
    assert reply.headers["content-type"].startswith("application/json")
    assert '"name":"Bash"' in (await asker.client.ask(asker.family.whole("use Bash: ls"))).data.decode()
