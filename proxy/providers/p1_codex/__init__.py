"""P1: the ChatGPT subscription, through the backend that the Codex CLI uses."""
