"""Observing the proxy: lifecycle events, the structured log, error captures, the project's name.

Nothing here takes part in answering a request. A failure in this package stays in it: a full disk or a
vanished directory costs records, never an answer.
"""
