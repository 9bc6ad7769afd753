"""The routes: the table of them, and their handlers, one module an API."""
