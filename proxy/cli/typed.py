"""How this user starts the program: what help texts tell them to type."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

#: `scripts/start` says here how it was called.
VARIABLE = "MODEL_PROXY_COMMAND"
#: And here in which folder: it leaves that one.
FOLDER = "MODEL_PROXY_FOLDER"


def typed(environment: Mapping[str, str], argv: Sequence[str], orig_argv: Sequence[str]) -> str:
    """The command as it was typed, without its arguments.

    argv, orig_argv  as `sys` has them

    >>> typed({VARIABLE: "scripts/start"}, ["/x/proxy/__main__.py"], [".venv/bin/python", "-m", "proxy"])
    'scripts/start'
    >>> typed({}, ["/x/proxy/__main__.py"], [".venv/bin/python", "-m", "proxy"])
    '.venv/bin/python -m proxy'
    """
    if told := environment.get(VARIABLE):
        return shlex.quote(told)
    name = Path(argv[0]).name
    if name == "__main__.py":
        return f"{shlex.quote(orig_argv[0])} -m proxy"
    return name if shutil.which(name) == argv[0] else shlex.quote(argv[0])
