"""`env`: the lines for a shell, and how they are told to be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from proxy.cli import main
from proxy.cli.command import Context
from proxy.cli.launch.background import Background

#: `$SHELL`, what was typed behind the program, the hint.
HINTS = [
    ("/bin/bash", "env", 'eval "$(scripts/start env)"'),
    ("/bin/zsh", "env openai", 'eval "$(scripts/start env openai)"'),
    ("/bin/bash", "env claude --model k3", 'eval "$(scripts/start env claude --model k3)"'),
    ("/bin/bash", "env --model opus[1m]", "eval \"$(scripts/start env --model 'opus[1m]')\""),
    ("/bin/bash", "env --start openai", 'eval "$(scripts/start env openai --start)"'),
    ("/bin/bash", "env --shell zsh", 'eval "$(scripts/start env --shell zsh)"'),
    ("/bin/fish", "env --shell bash", 'eval "$(scripts/start env --shell bash)"'),
    ("/usr/bin/fish", "env --model k3", "scripts/start env --shell fish --model 'k3' | source"),
    (
        "",
        "env openai --shell powershell",
        "& scripts/start env openai --shell powershell | Out-String | Invoke-Expression",
    ),
]


@pytest.mark.parametrize(("shell", "line", "hint"), HINTS)
def test_the_hint_prints_what_was_asked_for(
    shell: str,
    line: str,
    hint: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[int] = []
    monkeypatch.setattr(Background, "find_or_start", lambda _background, user: started.append(user))
    own = {"SHELL": shell, "XDG_CONFIG_HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path), "PROXY_P4_API_KEY": "k"}
    assert main(line.split(), Context(own, program="scripts/start")) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"# to use these: {hint}"
    assert bool(started) == ("--start" in line)
