"""Watching the proxy at work: log files, error captures, redaction, recorders.

Nothing here takes part in answering a request. Whatever fails in this package stays in it: a full disk or a
vanished directory costs records, never an answer.
"""
