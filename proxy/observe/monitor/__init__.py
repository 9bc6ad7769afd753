"""The monitor: one store of all requests, shown in the terminal and in the browser."""
