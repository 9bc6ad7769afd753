"""The web layer: routes, guards, and the one writer of event streams. It names no provider."""
