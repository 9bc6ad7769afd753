"""The routes, one module a family."""
