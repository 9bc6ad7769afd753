"""Starts clients with the proxy that they need, or prints how to reach it; their own configuration is not changed."""
