"""What a launch begins with: the settings, who is signed in, the model, and where the proxy is or is to be."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from proxy.cli.account import cures, sign_ins
from proxy.cli.banner import reachable
from proxy.cli.command import Context
from proxy.cli.config_file import ConfigFile
from proxy.cli.launch.background import OPENAI_ROUTES, Background, answers, free_port
from proxy.cli.launch.choosing import first_entry, served_model
from proxy.cli.launch.client_environment import Served
from proxy.cli.launch.users import UNUSED_S
from proxy.cli.paths import state_root
from proxy.cli.typed import FOLDER, VARIABLE
from proxy.config import Config, ConfigError


def warn(line: str) -> None:
    print(f"model-proxy: {line}", file=sys.stderr, flush=True)


@dataclass(frozen=True, slots=True)
class SetOut:
    """environment  of the user, without what only this program reads"""

    context: Context
    config: Config
    background: Background
    environment: Mapping[str, str]

    def served(self, model: str | None, *, needs_account: bool = True) -> Served:
        """What a client is to use. Raises ConfigError when nobody is signed in, and no proxy answers that might know
        better."""
        known = sign_ins(self.context, ConfigFile(self.context, new=True))
        usable = {one.entry.label for one in known if one.usable}
        if needs_account and not usable and not self.background.sandbox:
            text = "\n".join(cures(known, self.context.program))
            if not answers(self.background.url):
                raise ConfigError(text)
            warn(text)
        first = first_entry(self.context.providers, self.config, usable or {self.config.alias_provider})
        return served_model(self.background.url, self.config, self.context.providers, first, model)


def set_out(context: Context, *, sandbox: bool = False, openai: bool = False, keep: float | None = None) -> SetOut:
    """Raises ConfigError.

    openai  whether the OpenAI-style routes are needed; else a proxy that is started has them where nobody set otherwise
    keep    seconds for which a proxy that is started stays when nobody uses it any more; None for as long as usual
    """
    # What follows blocks the loop, whose own handler would only take note of Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    file = ConfigFile(context)
    config, environment = file.config, context.environment
    port = free_port() if sandbox or not config.port else config.port
    given = {} if file.source("p1.responsesApi") and not openai else {OPENAI_ROUTES: "1"}
    url = f"http://127.0.0.1:{port}" if sandbox else reachable(config.bind_address, port)
    started = {**environment, **given}
    alone = sandbox or not config.port
    stays = UNUSED_S if keep is None else keep
    background = Background(url, port, state_root(environment), started, sandbox, alone, stays)
    own = {name: value for name, value in environment.items() if name not in (FOLDER, VARIABLE)}
    return SetOut(context, config, background, own)


def return_to_folder(environment: Mapping[str, str]) -> None:
    """Where the user stood: the script that starts this program leaves that folder."""
    if folder := environment.get(FOLDER):
        os.chdir(folder)
