"""The web layer: routes, guards, and the writer of event streams. It names no provider."""
