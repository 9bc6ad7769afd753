"""The WebSockets of the simulated p1."""
