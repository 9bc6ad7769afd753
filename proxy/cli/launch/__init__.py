"""Clients started with the proxy that they need, or told where it is; the client's own configuration stays as it is."""
