"""Serves requests: prepares one for a candidate, asks it, and passes the answer on."""
