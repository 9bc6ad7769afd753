"""Leaks over thousands of mixed requests: tasks, sockets and memory of the proxy, block by block."""
